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
SECTIONS += ["extension_large", "extension_large_errors"]

Fields = dict[str, Any]


class Malformed(Exception):
    """What is wrong, in the words of vectors.json."""


# The fixed fields of the extension's messages: names and a struct format.
EXTENSION = {
    1: ("HELLO", "BI16sBBIBBHI", "version features session pipe pipes incarnation path path_flags"
        " path_cost reorder_limit"),
    2: ("WELCOME", "BIBHIIHI", "version features status connections conn_early session_early"
        " wait_s reorder_limit"),
    3: ("SYNACK", "HBQ", "connection result offset"),
    4: ("WINDOW", "HQ", "connection offset"),
    5: ("PING", "QQ", "token sent_us"),
    6: ("PONG", "QQQ", "token sent_us received_us"),
    7: ("GOODBYE", "B", "reason"),
    8: ("HINT", "HBQB", "connection priority remaining paths"),
    14: ("LISTENING", "HBH", "listener result port"),
    15: ("PATH", "BBHI", "path state cost serial"),
    16: ("TOO_BIG", "HH", "connection mtu"),
}  # fmt: skip
# Those whose size depends on what they hold.
SIZED = {9: "ACK", 11: "OPEN", 12: "DATAGRAM", 13: "LISTEN"}
NAMES = {name for name, _, _ in EXTENSION.values()} | set(SIZED.values())
NOT_COUNTED = {"HELLO", "WELCOME", "PING", "PONG", "ACK", "DATAGRAM", "TOO_BIG"}
# What ends with a bad message, by what is wrong with it.
ENDS = {
    "syn": "session", "direction": "session", "pipe": "pipe", "reason": "connection",
    "protocol": "connection", "address": "connection", "unknown type": "message",
    "short body": "message", "connection id": "message",
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


class Reader:
    """The fields of a message, one behind the other."""

    def __init__(self, body: bytes) -> None:
        self.left = body

    def take(self, size: int) -> bytes:
        if len(self.left) < size:
            raise Malformed("short body")
        taken, self.left = self.left[:size], self.left[size:]
        return taken

    def fields(self, layout: str, names: str) -> Fields:
        values = struct.unpack("<" + layout, self.take(struct.calcsize("<" + layout)))
        pairs = zip(names.split(), values, strict=True)
        return {name: v.hex() if isinstance(v, bytes) else v for name, v in pairs}

    def address(self) -> Fields:
        kind, size = self.take(2)
        return {
            "kind": kind,
            "address": self.take(size).hex(),
            "port": int.from_bytes(self.take(2), "little"),
        }


def decode_sized(name: str, reader: Reader) -> Fields:
    """ACK, OPEN, DATAGRAM or LISTEN."""
    if name == "ACK":
        head = reader.fields("QI", "time_us reorder_bytes")
        (count,) = reader.take(1)
        each = [reader.fields("BIQ", "pipe incarnation received") for _ in range(count)]
        return head | {"acked": each}
    if name == "OPEN":
        head = reader.fields("HB", "connection protocol")
        return head | reader.address() | reader.fields("I", "window")
    if name == "LISTEN":
        return reader.fields("HB", "listener protocol") | reader.address()
    head = reader.fields("H", "connection") | reader.address()
    return head | {"payload": reader.left.hex()}


def address_is_sound(fields: Fields) -> bool:
    kind, address = fields["kind"], bytes.fromhex(str(fields["address"]))
    sizes = {0: [0], 4: [4], 6: [16], ord("n"): range(1, 256)}
    if fields.get("connection", 0) >= 32768 and fields.get("protocol") == 6:
        sizes[ord("L")] = [6, 18]
    return len(address) in sizes.get(kind, []) and not (kind == ord("n") and 0 in address)


def judge(name: str, fields: Fields, downlink: bool) -> None:
    """What is wrong with a message whose fields are all there."""
    if fields.get("connection") == 0:
        raise Malformed("connection id")
    ways = {"HELLO": [False], "PATH": [False], "WELCOME": [True]}
    ways |= {"LISTEN": [False], "LISTENING": [True], "TOO_BIG": [True]}
    if name in ("OPEN", "SYNACK"):
        opened_by_rp = fields["connection"] >= 32768
        ways[name] = [opened_by_rp if name == "OPEN" else not opened_by_rp]
    if downlink not in ways.get(name, [False, True]):
        raise Malformed("direction")
    if name == "HELLO" and not (fields["pipe"] < fields["pipes"] and 1 <= fields["pipes"] <= 64):
        raise Malformed("pipe")
    if name == "OPEN" and fields["protocol"] not in (6, 17):
        raise Malformed("protocol")
    if "address" in fields and not address_is_sound(fields):
        raise Malformed("address")
    if name == "OPEN" and fields["protocol"] == 6 and fields["kind"] == 0:
        raise Malformed("address")


def decode_own(message: bytes, downlink: bool) -> Fields:
    """A message of the extension itself; bytes behind the known fields are of the future."""
    _, number, length = struct.unpack_from("<HIH", message)
    assert length == len(message)
    kind, reader = message[8], Reader(message[9:])
    if kind in SIZED:
        name = SIZED[kind]
        fields = decode_sized(name, reader)
    elif kind in EXTENSION:
        name, layout, names = EXTENSION[kind]
        fields = reader.fields(layout, names)
    else:
        raise Malformed("unknown type")
    judge(name, fields, downlink)
    numbered: Fields = {"number": number} if name in ("OPEN", "SYNACK") else {}
    return {"type": name, **numbered, **fields}


def decode_extension(message: bytes, downlink: bool) -> Fields:
    """Any message on a pipe of the extension."""
    connection, number, length = struct.unpack_from("<HIH", message)
    if length == 0xFFFF:
        raise Malformed("syn")
    if connection == 0 and length != 0xFFFE:
        return decode_own(message, downlink)
    if connection == 0:
        raise Malformed("connection id")
    fields: Fields = {"connection": connection, "number": number}
    if length != 0xFFFE:
        return {"type": "data", **fields, "payload": message[8:].hex()}
    if message[8] not in (0x77, 0x99):
        raise Malformed("reason")
    return {"type": "fin", **fields, "reason": message[8]}


def decode_large(message: bytes) -> Fields:
    """A data message where both ends have feature 0x800."""
    connection, number, length = struct.unpack_from("<HIH", message)
    if not 9 <= length <= (16392 if connection else 4104):
        raise Malformed("length")
    assert len(message) == length
    payload = message[8:].hex()
    return {"type": "data", "connection": connection, "number": number, "payload": payload}


def counts(message: bytes) -> bool:
    """Whether it has a count on its pipe: by its type, whatever else is wrong with it."""
    connection, _, length = struct.unpack_from("<HIH", message)
    if connection or length in (0xFFFF, 0xFFFE):
        return True
    name = SIZED.get(message[8]) or EXTENSION.get(message[8], ("unknown",))[0]
    return name not in NOT_COUNTED


def decode(section: str, vector: dict[str, Any]) -> dict[str, Any]:
    message, downlink = bytes.fromhex(vector["hex"]), vector["direction"] == "down"
    if section.startswith("baseline"):
        try:
            return {"fields": decode_baseline(message, downlink)}
        except Malformed as what:
            return {"error": str(what)}
    if section.startswith("extension_large"):
        try:
            return {"fields": decode_large(message)}
        except Malformed as what:
            return {"error": str(what), "ends": "session"}
    try:
        return {"counts": counts(message), "fields": decode_extension(message, downlink)}
    except Malformed as what:
        return {"counts": counts(message), "error": str(what), "ends": ENDS[str(what)]}


def cases() -> list[Any]:
    return [
        pytest.param(section, vector, id=f"{section}-{vector['name']}")
        for section in SECTIONS
        for vector in VECTORS[section]
    ]


@pytest.mark.parametrize(("section", "vector"), cases())
def test_reads_the_same_here(section: str, vector: dict[str, Any]) -> None:
    said = {key: value for key, value in vector.items() if key not in ("name", "direction", "hex")}
    assert decode(section, vector) == said
    assert ("error" in said) == section.endswith("_errors")


def test_every_type_and_every_error_has_a_vector() -> None:
    def seen(section: str, *path: str) -> set[str]:
        return {(v[path[0]][path[1]] if path[1:] else v[path[0]]) for v in VECTORS[section]}

    assert seen("baseline", "fields", "type") == {"data", "syn", "fin"}
    assert seen("extension", "fields", "type") == NAMES | {"data", "fin"}
    assert seen("extension_longer", "fields", "type") == NAMES - {"DATAGRAM"}
    assert seen("baseline_errors", "error") == {
        "length",
        "connection id",
        "number",
        "reason",
        "direction",
    }
    assert seen("extension_errors", "error") == set(ENDS)


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
    said = re.findall(r"^### (\d+) ([A-Z_]+) — .*; length (\d+)( and .*)?$", text, re.M)
    numbers = {number: name for number, (name, _, _) in EXTENSION.items()} | SIZED
    assert {int(number): name for number, name, _, _ in said} == numbers
    for _, name, length, more in said:
        assert bool(more) == (name in SIZED.values())
        for vector in VECTORS["extension"]:
            fields = vector["fields"]
            if fields["type"] == name:
                own = len(fields.get("address", "") + fields.get("payload", "")) // 2
                own += 13 * len(fields.get("acked", []))
                assert len(vector["hex"]) // 2 == int(length) + own


def test_the_document_s_tables_have_no_hole() -> None:
    """Each message's fields lie one behind the other, from the type on."""
    text = (TOP / "docs" / "wire-format.md").read_text()
    tables = re.findall(
        r"^### \d+ ([A-Z_]+) — .*; length (\d+).*\n\n(?:.*\n){2}((?:\|.*\n)+)", text, re.M
    )
    assert {name for name, _, _ in tables} == NAMES
    for name, length, rows in tables:
        place, grown = 8, ""
        for row in rows.splitlines():
            offset, size = (cell.strip() for cell in row.split("|")[1:3])
            assert offset == f"{place}{grown}", f"{name}: {row}"
            if size.isdigit():
                place += int(size)
            else:
                grown += f" + {size}"
        assert place == int(length), name


def test_the_document_s_examples_are_what_it_says() -> None:
    text = (TOP / "docs" / "wire-format.md").read_text()
    examples = re.findall(r"`((?:[0-9a-f]{2} +)+[0-9a-f]{2})`", text)
    assert [decode_baseline(bytes.fromhex(example), False) for example in examples] == [
        {"type": "data", "connection": 5, "number": 1, "payload": b"hi".hex()},
        {"type": "syn", "connection": 5, "number": 0, "address": "192.0.2.33", "port": 443},
        {"type": "fin", "connection": 5, "number": 2, "reason": 0x88},
    ]


def test_the_committed_file_is_what_the_encoder_makes(tmp_path: Path) -> None:
    sources = [*sorted(HERE.glob("*.c")), *sorted((TOP / "mux" / "wire").glob("*.c"))]
    program = tmp_path / "generate"
    compiler = os.environ.get("CC", "cc").split()
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", f"-I{TOP}"]
    subprocess.run([*compiler, *flags, "-o", program, *sources], check=True)
    made = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    assert made == COMMITTED.read_text(), (
        "vectors.json is not what the encoder makes; `make vectors` writes it anew"
    )
