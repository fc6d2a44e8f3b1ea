# SPDX-License-Identifier: MIT
"""Pipes with a key: what is inside TLS is read with the file of --keylog, and only with it.

The sample has that file in it, and it lies beside the sample, too.
"""

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dissector import tshark

SAMPLE = tshark.TOP / "dissector" / "samples" / "keys.pcapng"
LOG = SAMPLE.with_suffix(".log")
SECRETS = 10  # the type of a block, and where its length and its file are
SECRETS_SIZE_AT, SECRETS_AT = 12, 16
SAID = [
    "↑ HELLO: pipe 0 of 2",
    "↓ WELCOME: new",
    "↑ HELLO: pipe 1 of 2",
    "↓ WELCOME: resumed",
    "↑ OPEN 0 of 1 to 127.0.0.1:8000",
    "↓ SYNACK 0 of 1, connected",
    "1↑ data 1, 79 bytes",
    "1↓ data 1, 4096 bytes; 1↓ data 2",
    "1↓ FIN 3, no more from this end (half-close)",
    "1↑ FIN 2, no more from this end (half-close)",
    "↑ GOODBYE",
    "↑ GOODBYE",
]

pytestmark = pytest.mark.skipif(tshark.missing() is not None, reason=str(tshark.missing()))


@pytest.mark.parametrize("passes", [(), ("-2",)], ids=["one pass", "two"])
def test_messages_inside_tls(passes: tuple[str, ...]) -> None:
    rows = tshark.field_values(SAMPLE, ["_ws.col.Info"], "-Y", "tm3", *passes)
    assert len(rows) == len(SAID), rows
    for (info,), said in zip(rows, SAID, strict=True):
        assert said in info
    kinds = [message.get("tm3.type") for _, message in tshark.messages(SAMPLE, *passes)]
    assert len(kinds) == len(SAID) + 1  # one record has two messages of data


def test_what_they_carry_is_followed() -> None:
    rows = tshark.field_values(SAMPLE, ["http.request.uri", "http.content_length"], "-Y", "http")
    assert ["/f", ""] in rows and any(row[1] == "6000" for row in rows), rows


def test_a_handshake_and_an_alert_are_no_messages() -> None:
    assert tshark.field_values(SAMPLE, ["frame.number"], "-Y", "tls.handshake")
    assert tshark.field_values(SAMPLE, ["frame.number"], "-Y", "tls.alert_message")
    both = "tm3 && (tls.handshake || tls.alert_message)"
    assert not tshark.field_values(SAMPLE, ["frame.number"], "-Y", both)
    assert not tshark.field_values(SAMPLE, ["frame.number"], "-Y", "tm3.expert || _ws.malformed")


def blocks(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Those of a pcapng file, each with its type."""
    at = 0
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        yield kind, data[at : at + size]
        at += size


def without_secrets(tmp_path: Path) -> Path:
    bare = tmp_path / "bare.pcapng"
    bare.write_bytes(
        b"".join(block for kind, block in blocks(SAMPLE.read_bytes()) if kind != SECRETS)
    )
    return bare


def test_without_the_keys_it_is_tls(tmp_path: Path) -> None:
    bare = without_secrets(tmp_path)
    assert not tshark.field_values(bare, ["frame.number"], "-Y", "tm3")
    assert len(tshark.field_values(bare, ["frame.number"], "-Y", "tls.app_data")) > len(SAID)


@pytest.mark.parametrize("passes", [(), ("-2",)], ids=["one pass", "two"])
def test_the_file_beside_a_capture_does_as_well(tmp_path: Path, passes: tuple[str, ...]) -> None:
    """As whoever took a capture has it: tls.keylog_file names what --keylog wrote."""
    arguments = ("-o", f"tls.keylog_file:{LOG}", "-Y", "tm3", *passes)
    rows = tshark.field_values(without_secrets(tmp_path), ["_ws.col.Info"], *arguments)
    assert len(rows) == len(SAID), rows
    for (info,), said in zip(rows, SAID, strict=True):
        assert said in info


def test_the_file_is_the_one_in_the_capture() -> None:
    (block,) = [block for kind, block in blocks(SAMPLE.read_bytes()) if kind == SECRETS]
    (size,) = struct.unpack_from("<I", block, SECRETS_SIZE_AT)
    assert block[SECRETS_AT : SECRETS_AT + size] == LOG.read_bytes()
