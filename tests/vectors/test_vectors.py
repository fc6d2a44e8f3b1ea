# SPDX-License-Identifier: MIT
"""The vectors in vectors.json: made by the C encoder, read here by a decoder of its own.

The decoder below is written from docs/wire-format.md and shares nothing with mux/, so a mistake
that the C encoder and decoder have in common shows as a difference.
"""

import ipaddress
import json
import os
import re
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
TOP = HERE.parents[1]
COMMITTED = HERE / "vectors.json"
VECTORS: dict[str, Any] = json.loads(COMMITTED.read_text())
SECTIONS = ["baseline", "baseline_errors", "extension", "extension_longer", "extension_errors"]

Fields = dict[str, int | str]


class Malformed(Exception):
    """What is wrong, in the words of vectors.json."""


# The fixed fields of the extension's messages: names and a struct format.
EXTENSION = {
    1: ("HELLO", "BI16sBBHQII", "version features session pipe pipes incarnation received"
        " conn_window session_window"),
    2: ("WELCOME", "BIBQIIII", "version features status received conn_window session_window"
        " conn_early session_early"),
    3: ("SYNACK", "HB", "connection result"),
    4: ("WINDOW", "HQ", "connection offset"),
    5: ("PING", "QQ", "token sent_us"),
    6: ("PONG", "QQQ", "token sent_us received_us"),
    7: ("GOODBYE", "B", "reason"),
    8: ("HINT", "HBQ", "connection priority remaining"),
    9: ("ACK", "BHQQI", "pipe incarnation received received_us reorder_bytes"),
    10: ("RELEASE", "H", "connection"),
}  # fmt: skip


def decode_baseline(message: bytes, downlink: bool) -> Fields:
    """One whole message of the baseline."""
    connection, number, length = struct.unpack_from("<HIH", message)
    body = message[8:]
    sizes = {0xFFFF: 14, 0xFFFE: 9}
    if length not in sizes and not 9 <= length <= 4104:
        raise Malformed("length")
    assert len(message) == sizes.get(length, length)
    if connection == 0:
        raise Malformed("connection id")
    fields: Fields = {"connection": connection, "number": number}
    if length == 0xFFFF:
        if downlink:
            raise Malformed("direction")
        if number != 0:
            raise Malformed("number")
        address = str(ipaddress.IPv4Address(body[:4]))
        port = int.from_bytes(body[4:6], "little")
        return {"type": "syn", **fields, "address": address, "port": port}
    if length == 0xFFFE:
        if body[0] not in (0x88, 0x99):
            raise Malformed("reason")
        return {"type": "fin", **fields, "reason": body[0]}
    return {"type": "data", **fields, "payload": body.hex()}


def decode_open(fields: bytes) -> Fields:
    """The one message whose size depends on what it holds."""
    if len(fields) < 4:
        raise Malformed("short body")
    connection, kind, size = struct.unpack_from("<HBB", fields)
    address, rest = fields[4 : 4 + size], fields[4 + size :]
    if len(rest) < 2:
        raise Malformed("short body")
    if connection == 0:
        raise Malformed("connection id")
    sizes = {4: [4], 6: [16], ord("n"): range(1, 256)}
    if size not in sizes.get(kind, []) or (kind == ord("n") and 0 in address):
        raise Malformed("address")
    port = int.from_bytes(rest[:2], "little")
    fixed: Fields = {"type": "OPEN", "connection": connection, "kind": kind}
    return fixed | {"address": address.hex(), "port": port}


def decode_extension(message: bytes) -> Fields:
    """One whole message of the extension; bytes behind the known fields are of the future."""
    connection, number, length = struct.unpack_from("<HIH", message)
    assert (connection, number, length) == (0, 0, len(message))
    kind, fields = message[8], message[9:]
    if kind == 11:
        return decode_open(fields)
    if kind not in EXTENSION:
        raise Malformed("unknown type")
    name, layout, names = EXTENSION[kind]
    if len(fields) < struct.calcsize("<" + layout):
        raise Malformed("short body")
    values = struct.unpack_from("<" + layout, fields)
    decoded = dict(zip(names.split(), values, strict=True))
    if name != "WINDOW" and decoded.get("connection") == 0:
        raise Malformed("connection id")
    return {"type": name} | {k: v.hex() if isinstance(v, bytes) else v for k, v in decoded.items()}


def decode(section: str, vector: dict[str, Any]) -> dict[str, Any]:
    message = bytes.fromhex(vector["hex"])
    try:
        if section.startswith("baseline"):
            return {"fields": decode_baseline(message, vector["direction"] == "down")}
        return {"fields": decode_extension(message)}
    except Malformed as what:
        return {"error": str(what)}


def cases() -> list[Any]:
    return [
        pytest.param(section, vector, id=f"{section}-{vector['name']}")
        for section in SECTIONS
        for vector in VECTORS[section]
    ]


@pytest.mark.parametrize(("section", "vector"), cases())
def test_reads_the_same_here(section: str, vector: dict[str, Any]) -> None:
    said = {key: vector[key] for key in ("fields", "error") if key in vector}
    assert decode(section, vector) == said
    assert ("error" in said) == section.endswith("_errors")


def test_every_type_and_every_error_has_a_vector() -> None:
    def seen(section: str, *path: str) -> set[str]:
        return {(v[path[0]][path[1]] if path[1:] else v[path[0]]) for v in VECTORS[section]}

    names = {name for name, _, _ in EXTENSION.values()} | {"OPEN"}
    assert seen("baseline", "fields", "type") == {"data", "syn", "fin"}
    assert seen("extension", "fields", "type") == names
    assert seen("extension_longer", "fields", "type") == names
    assert seen("baseline_errors", "error") == {
        "length",
        "connection id",
        "number",
        "reason",
        "direction",
    }
    assert seen("extension_errors", "error") == {
        "unknown type",
        "short body",
        "connection id",
        "address",
    }


def test_names_are_unique() -> None:
    names = [vector["name"] for section in SECTIONS for vector in VECTORS[section]]
    assert len(names) == len(set(names))
    assert set(VECTORS) == {"format", *SECTIONS}


def test_what_is_longer_reads_as_without_it() -> None:
    plain = {vector["name"]: vector for vector in VECTORS["extension"]}
    for longer in VECTORS["extension_longer"]:
        short = plain[longer["name"].removesuffix("-with-future-fields")]
        assert longer["fields"] == short["fields"]
        # All but the length field, then three bytes more.
        assert longer["hex"][16:-6] == short["hex"][16:]


def test_the_document_gives_the_same_lengths() -> None:
    text = (TOP / "docs" / "wire-format.md").read_text()
    said = re.findall(r"^### \d+ ([A-Z]+) .*; length (\d+)( and that of the address)?$", text, re.M)
    assert len(said) == len(EXTENSION) + 1
    for name, length, address in said:
        for vector in VECTORS["extension"]:
            fields = vector["fields"]
            if fields["type"] == name:
                more = len(fields["address"]) // 2 if address else 0
                assert len(vector["hex"]) // 2 == int(length) + more


def test_the_document_s_examples_are_what_it_says() -> None:
    text = (TOP / "docs" / "wire-format.md").read_text()
    examples = re.findall(r"`((?:[0-9a-f]{2} +)+[0-9a-f]{2})`", text)
    assert [decode_baseline(bytes.fromhex(example), False) for example in examples] == [
        {"type": "data", "connection": 5, "number": 1, "payload": b"hi".hex()},
        {"type": "syn", "connection": 5, "number": 0, "address": "192.0.2.33", "port": 443},
        {"type": "fin", "connection": 5, "number": 2, "reason": 0x88},
    ]


def test_the_committed_file_is_what_the_encoder_makes(tmp_path: Path) -> None:
    sources = [HERE / "generate.c", *sorted((TOP / "mux" / "wire").glob("wire*.c"))]
    program = tmp_path / "generate"
    compiler = os.environ.get("CC", "cc").split()
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", f"-I{TOP}"]
    subprocess.run([*compiler, *flags, "-o", program, *sources], check=True)
    made = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    assert made == COMMITTED.read_text(), (
        "vectors.json is not what the encoder makes; generate.c says how to write it anew"
    )
