# SPDX-License-Identifier: MIT
"""Each vector that the C encoder made, on a pipe of its own, read field by field by tshark."""

import json
from typing import Any

import pytest

from tests.dissector import tshark
from tests.dissector.packets import Capture, Endpoint, TcpStream

VECTORS = json.loads((tshark.TOP / "tests" / "vectors" / "vectors.json").read_text())
# What is large is so behind a HELLO and a WELCOME with feature 0x800: see test_large.py.
LARGE = {"extension_large", "extension_large_errors"}
SECTIONS = [n for n, value in VECTORS.items() if isinstance(value, list) and n not in LARGE]

pytestmark = pytest.mark.skipif(tshark.missing() is not None, reason=str(tshark.missing()))

# The vectors' names for fields, and the dissector's.
NAMES = {
    "number": "tm3.seq", "connection": "tm3.about", "version": "tm3.version",
    "features": "tm3.features", "session": "tm3.session_id", "pipe": "tm3.pipe_index",
    "pipes": "tm3.pipe_count", "incarnation": "tm3.incarnation", "path": "tm3.path",
    "path_flags": "tm3.path.flags", "path_cost": "tm3.path.cost", "cost": "tm3.path.cost",
    "state": "tm3.path.state", "serial": "tm3.path.serial", "reorder_limit": "tm3.reorder_limit",
    "connections": "tm3.connections", "conn_early": "tm3.conn_early",
    "session_early": "tm3.session_early", "wait_s": "tm3.waits_s", "status": "tm3.status",
    "result": "tm3.result", "offset": "tm3.window_offset", "token": "tm3.token",
    "sent_us": "tm3.sent_us", "received_us": "tm3.received_us", "reason": "tm3.goodbye",
    "priority": "tm3.priority", "remaining": "tm3.remaining", "paths": "tm3.paths",
    "time_us": "tm3.ack.time_us", "reorder_bytes": "tm3.reorder_bytes", "kind": "tm3.kind",
    "address": "tm3.address", "port": "tm3.dst.port", "protocol": "tm3.protocol",
    "window": "tm3.window", "mtu": "tm3.mtu", "payload": "tm3.payload", "listener": "tm3.listener",
}  # fmt: skip
ACKED = {
    "pipe": "tm3.ack.pipe",
    "incarnation": "tm3.ack.incarnation",
    "received": "tm3.ack.received",
}
TYPES = {
    "HELLO": 1, "WELCOME": 2, "SYNACK": 3, "WINDOW": 4, "PING": 5, "PONG": 6, "GOODBYE": 7,
    "HINT": 8, "ACK": 9, "OPEN": 11, "DATAGRAM": 12, "LISTEN": 13,
    "LISTENING": 14, "PATH": 15, "TOO_BIG": 16,
}  # fmt: skip
BASELINE = {"data": 0, "syn": 0xFFFF, "fin": 0xFFFE}
EXPERTS = {
    "length": "length", "direction": "syn_downlink", "number": "syn_number", "reason": "reason",
    "connection id": "id_0",
}  # fmt: skip
EXTENSION_EXPERTS = {
    "syn": "ext_syn", "direction": "ext_direction", "pipe": "ext_pipe", "reason": "reason",
    "protocol": "ext_protocol", "address": "address", "unknown type": "unknown_type",
    "short body": "short", "connection id": "ext_id",
}  # fmt: skip
# Each vector is the first message of its pipe and its connection, which few are in truth.
ALONE = {"ext_first", "reset", "duplicate", "too_far", "gap"}


@pytest.fixture(scope="module")
def dissected(
    which_tshark: None, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[tshark.Message]]:
    """Messages by name of the vector; all vectors are in one capture."""
    capture, path, names = Capture(), tmp_path_factory.mktemp("vectors") / "v.pcap", {}
    time_us = 0
    for section in SECTIONS:
        port = 6010 if section.startswith("extension") else 6000
        for vector in VECTORS[section]:
            address = f"10.1.{len(names) >> 8}.{len(names) & 255}"
            names[address] = f"{section}/{vector['name']}"
            pipe = TcpStream(capture, Endpoint(address, 40_000), Endpoint("10.9.0.1", port))
            pipe.open(time_us)
            pipe.send(time_us + 100, bytes.fromhex(vector["hex"]), vector["direction"] == "up")
            time_us += 1000
    capture.write(path)
    found: dict[str, list[tshark.Message]] = {name: [] for name in names.values()}
    for frame in tshark.frames(path, "-Y", "tm3", only="ip tm3"):
        ip = frame.layers["ip"]
        found[names.get(ip["ip.src"]) or names[ip["ip.dst"]]] += frame.messages
    return found


def params(*sections: str) -> Any:
    return pytest.mark.parametrize(
        ("section", "vector"),
        [
            pytest.param(section, vector, id=f"{section}-{vector['name']}")
            for section in sections
            for vector in VECTORS[section]
        ],
    )


def number(message: tshark.Message, name: str) -> int:
    value = message[name]
    # Generated items may repeat what is on the wire; all must agree.
    values = set(value) if isinstance(value, list) else {value}
    assert len(values) == 1, f"{name}: {values}"
    return int(values.pop(), 0)


def listed(message: tshark.Message, name: str) -> list[int]:
    value = message.get(name, [])
    return [int(each, 0) for each in (value if isinstance(value, list) else [value])]


def raw(message: tshark.Message, name: str) -> str:
    return message.get(name, "").replace(":", "")


@params("baseline")
def test_baseline(dissected: dict[str, Any], section: str, vector: dict[str, Any]) -> None:
    (message,) = dissected[f"{section}/{vector['name']}"]
    of_a_connection(message, vector)


def of_a_connection(message: tshark.Message, vector: dict[str, Any]) -> None:
    """Data, SYN or FIN, as in the baseline."""
    fields = vector["fields"]
    assert number(message, "tm3.conn") == fields["connection"]
    assert number(message, "tm3.seq") == fields["number"]
    assert number(message, "tm3.type") == BASELINE[fields["type"]]
    assert message["tm3.direction"] == ("1" if vector["direction"] == "up" else "2")
    size = len(vector["hex"]) // 2
    length = size if fields["type"] == "data" else BASELINE[fields["type"]]
    assert number(message, "tm3.len") == length
    if fields["type"] == "data":
        assert raw(message, "tm3.payload") == fields["payload"]
        assert number(message, "tm3.payload.len") == size - 8
    elif fields["type"] == "syn":
        assert message["tm3.dst.ip"] == fields["address"]
        assert number(message, "tm3.dst.port") == fields["port"]
    else:
        assert number(message, "tm3.reason") == fields["reason"]
    assert not set(tshark.experts(message)) - ALONE


@params("extension", "extension_longer")
def test_extension(dissected: dict[str, Any], section: str, vector: dict[str, Any]) -> None:
    (message,) = dissected[f"{section}/{vector['name']}"]
    fields = dict(vector["fields"])
    if fields["type"] not in TYPES:
        of_a_connection(message, vector)
        return
    kind = TYPES[fields.pop("type")]
    assert number(message, "tm3.conn") == 0
    assert number(message, "tm3.len") == len(vector["hex"]) // 2
    assert number(message, "tm3.ext.type") == kind
    assert number(message, "tm3.type") == 0x100 + kind
    for entry, name in ACKED.items():
        said = [each[entry] for each in fields.get("acked", [])]
        assert listed(message, name) == said
    fields.pop("acked", None)
    if kind == TYPES["LISTENING"]:
        assert number(message, "tm3.listening") == fields.pop("result")
    for name, value in fields.items():
        if name in ("session", "address", "payload"):
            assert raw(message, NAMES[name]) == value
        else:
            assert number(message, NAMES[name]) == value, name
    if "address" in fields:
        form = {4: "tm3.dst.ip", 6: "tm3.dst.ip6", 0x6E: "tm3.dst.name"}.get(fields["kind"])
        assert form is None or form in message
    assert ("tm3.future" in message) == (section == "extension_longer")
    assert not set(tshark.experts(message)) - ALONE


@params("baseline_errors", "extension_errors")
def test_errors(dissected: dict[str, Any], section: str, vector: dict[str, Any]) -> None:
    (message,) = dissected[f"{section}/{vector['name']}"]
    error = vector["error"]
    expert = (EXPERTS if section == "baseline_errors" else EXTENSION_EXPERTS)[error]
    assert expert in tshark.experts(message)
    if error == "length":
        assert raw(message, "tm3.undecoded") == vector["hex"]


def test_all_vectors_are_there() -> None:
    assert set(SECTIONS) == {
        "baseline", "baseline_errors", "extension", "extension_longer", "extension_errors",
    }  # fmt: skip
