# SPDX-License-Identifier: MIT
"""What the trace analyser reads of files, and how it refuses those that it does not."""

import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from experiments.trace.bursts import DOWN, UP
from experiments.trace.capture import Capture, CaptureError
from experiments.trace.findings import findings
from experiments.trace.flow import CONNECTIONS, HANDSHAKE, PORT, TOLD, Ends
from experiments.trace.packet import MALFORMED, OTHER, PIECE, READ, SHORT, UDP, parse
from experiments.trace.told import data, text
from experiments.trace.trace import Trace
from tests.experiments.captures import (
    CLIENT,
    CLIENT6,
    SERVER,
    SERVER6,
    Connection,
    Frame,
    block,
    enhanced,
    ethernet,
    interface,
    ip,
    pcap,
    pcapng,
    section,
    traced,
    udp,
)


def talk(it: Connection | None = None) -> list[Frame]:
    it = it or Connection()
    return [*it.opened(0, 0.02), it.send(0.03, 700), it.get(0.05, 1400), it.send(1.5, 0)]


def facts(trace: Trace) -> list[object]:
    return [
        (it.payload, it.packets, it.trips.handshake_ns, it.trips.least_ns, it.bursts.count)
        for it in trace.flows()
    ]


EXPECTED = [([700, 1400], [3, 2], 20_000_000, 20_000_000, [1, 1])]


@pytest.mark.parametrize(
    "made",
    [
        pcap(talk()),
        pcap(talk(), order=">"),
        pcap(talk(), unit=1),
        pcap(talk(), order=">", unit=1),
        pcapng(talk()),
        pcapng(talk(), order=">"),
        pcapng(talk()[:2]) + pcapng(talk()[2:], order=">"),
        pcap(talk(Connection(client=CLIENT6, server=SERVER6))),
    ],
    ids=["pcap", "big-endian", "ns", "big-endian-ns", "pcapng", "pcapng-big", "sections", "ipv6"],
)
def test_all_formats_tell_the_same(tmp_path: Path, made: bytes) -> None:
    assert facts(traced(tmp_path, made)) == EXPECTED


@pytest.mark.parametrize(
    ("option", "ticks_ns"),
    [(struct.pack("<HHB3x", 9, 1, 9), 1), (struct.pack("<HHB3x", 9, 1, 3), 10**6)],
)
def test_times_of_any_resolution(tmp_path: Path, option: bytes, ticks_ns: int) -> None:
    made = section() + interface(options=option)
    made += b"".join(enhanced(it, ticks_ns=ticks_ns) for it in talk())
    assert facts(traced(tmp_path, made)) == EXPECTED


def test_times_in_powers_of_two_and_from_an_offset(tmp_path: Path) -> None:
    options = struct.pack("<HHB3x", 9, 1, 0x80 | 10) + struct.pack("<HHq", 14, 8, 1000)
    head = struct.pack("<IIIII", 0, 0, 1536, len(talk()[0][1]), 60)
    made = section() + interface(options=options) + block(6, head + talk()[0][1])
    (path := tmp_path / "x").write_bytes(made)
    assert [it.time_ns for it in Capture(path).records()] == [1_001_500_000_000]


def test_blocks_of_other_kinds_are_passed_over(tmp_path: Path) -> None:
    parts = [section(), block(4, bytes(8)), interface(), block(5, bytes(12)), block(2**31 + 7, b"")]
    old = talk()[0]
    ticks = old[0] // 1000
    head = struct.pack("<HHIIII", 0, 0, ticks >> 32, ticks & 0xFFFFFFFF, len(old[1]), old[2])
    parts += [block(2, head + old[1]), *map(enhanced, talk()[1:])]
    assert facts(traced(tmp_path, b"".join(parts))) == EXPECTED


def framed(link: int, packet: bytes) -> bytes:
    kind = ethernet(packet)[12:14]
    if link == 113:
        return bytes(14) + kind + packet
    if link == 276:
        return kind + bytes(18) + packet
    if link in (0, 108):
        return b"\x02\0\0\0" + packet
    return ethernet(packet) if link == 1 else packet


@pytest.mark.parametrize("link", sorted(READ))
def test_link_types_that_are_read(tmp_path: Path, link: int) -> None:
    frames = [(at, framed(link, frame[14:]), 0) for at, frame, _ in talk()]
    made = pcap([(at, frame, len(frame)) for at, frame, _ in frames], link=link)
    assert facts(traced(tmp_path, made)) == EXPECTED


def test_vlans(tmp_path: Path) -> None:
    tags = b"\x88\xa8\x00\x05\x81\x00\x00\x07"
    frames = [(at, it[:12] + tags + it[12:], length + 8) for at, it, length in talk()]
    assert facts(traced(tmp_path, frames)) == EXPECTED


@pytest.mark.parametrize("snaplen", [54, 68, 96])
def test_cut_frames_tell_the_same(tmp_path: Path, snaplen: int) -> None:
    trace = traced(tmp_path, [(at, it[:snaplen], length) for at, it, length in talk()])
    assert facts(trace) == EXPECTED
    assert trace.cut == 2


def test_padding_of_short_frames_is_no_data(tmp_path: Path) -> None:
    frames = [(at, it.ljust(60, b"\0"), max(60, length)) for at, it, length in talk()]
    assert facts(traced(tmp_path, frames)) == EXPECTED


def test_lengths_that_the_device_fills_in(tmp_path: Path) -> None:
    """A segment that the device divides later has length 0 in its IP header."""
    frames = [(at, it[:16] + b"\0\0" + it[18:], length) for at, it, length in talk()]
    assert facts(traced(tmp_path, frames)) == EXPECTED


V4 = ip(6, CLIENT, SERVER, bytes(12) + b"\x50" + bytes(7))


@pytest.mark.parametrize(
    ("frame", "length", "why"),
    [
        (ethernet(V4)[:30], 54, SHORT),
        (ethernet(V4)[:40], 54, SHORT),
        (ethernet(V4)[:10], 54, SHORT),
        (ethernet(ip(1, CLIENT, SERVER, bytes(8))), 42, OTHER),
        (ethernet(ip(58, CLIENT6, SERVER6, bytes(8))), 62, OTHER),
        (b"\2" * 12 + b"\x08\x06" + bytes(28), 42, OTHER),
        (ethernet(b"\x41" + V4[1:]), 54, MALFORMED),
        (ethernet(V4[:32] + b"\x40" + V4[33:]), 54, MALFORMED),
        (ethernet(V4[:32] + b"\xf0" + V4[33:]), 54, MALFORMED),
        (ethernet(V4[:6] + b"\0\x01" + V4[8:]), 54, PIECE),
        (ethernet(ip(44, CLIENT6, SERVER6, b"\x06\0\0\x08" + bytes(24))), 82, PIECE),
    ],
)
def test_what_is_left_out(frame: bytes, length: int, why: str) -> None:
    assert parse(1, frame, length) == why


def test_extension_headers_of_ipv6() -> None:
    inner = udp((CLIENT6, 1), (SERVER6, 2), b"12345")[40:]
    chain = b"\x3c\0" + bytes(6) + b"\x2c\x01" + bytes(14) + b"\x11\0\0\x01" + bytes(4) + inner
    found = parse(1, ethernet(ip(0, CLIENT6, SERVER6, chain)), 200)
    assert not isinstance(found, str)
    assert (found.protocol, found.payload) == (UDP, 5)


def test_who_the_client_is(tmp_path: Path) -> None:
    begun = Connection(port=80, server_port=50000)  # captured without its SYN: taken for a server
    how = [
        (talk(), Ends(), HANDSHAKE, UP),
        ([begun.send(0, 10)], Ends(), PORT, DOWN),
        ([begun.send(0, 10)], Ends(_network(CLIENT)), TOLD, UP),
        ([Connection().syn_ack(0), Connection().send(1, 10)], Ends(), HANDSHAKE, UP),
    ]
    for frames, ends, found, way in how:
        (flow,) = traced(tmp_path, frames, ends).flows()
        assert flow.found == found
        assert flow.payload[way] > 0


def _network(address: str) -> tuple:
    from ipaddress import ip_network

    return (ip_network(address),)


GOOD = pcap(talk())
GOOD_NG = pcapng(talk())


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (b"", "the file is empty"),
        (b"\xd4\xc3", "it is neither pcap nor pcapng: it begins with d4 c3"),
        (b"GET / HTTP/1.1\r\n", "it is neither pcap nor pcapng: it begins with 47 45 54 20"),
        (b"\x1f\x8b\x08\0" + bytes(20), "it is compressed by gzip; uncompress it first"),
        (b"snoop\0\0\0" + bytes(20), "a capture by snoop"),
        (GOOD[:20], "it ends within the header of a pcap file"),
        (GOOD[:24], "there is no packet in it"),
        (GOOD[:30], "it ends within packet 1, at byte 24; --cut-short takes what is there"),
        (GOOD[:-1], "it ends within packet 5, at byte"),
        (GOOD[:4] + b"\3\0" + GOOD[6:], "version 3.4 of the pcap format"),
        (GOOD[:32] + b"\xff" * 4 + GOOD[36:], "packet 1, at byte 24, is none: 4294967295 bytes"),
        (pcap(talk(), link=105), "link type 105 (IEEE 802.11) is not read; Ethernet, raw IP,"),
        (pcap(talk(), link=147), "link type 147 is not read; "),
        (section() + interface(127) + enhanced(talk()[0]), "link type 127 (IEEE 802.11 with radio"),
        (section() + enhanced(talk()[0]), "packet 1 is of interface 0, which is nowhere"),
        (section() + interface() + block(3, bytes(64)), "packet 1 has no time (a simple block)"),
        (section() + interface(), "there is no packet in it"),
        (GOOD_NG[:-1], "it ends within packet 5, at byte"),
        (GOOD_NG[:8] + b"\x11" * 20, "the section at byte 0 of a pcapng file is none"),
        (GOOD_NG[:-4] + b"\1\1\1\1", "ends with another length"),
        (section() + b"\6\0\0\0\3\0\0\0", "the block at byte 28 cannot have 3 bytes"),
    ],
)
def test_refused_in_a_line_that_names_the_file(tmp_path: Path, made: bytes, says: str) -> None:
    with pytest.raises(CaptureError) as wrong:
        traced(tmp_path, made)
    assert str(wrong.value).startswith(f"{tmp_path / 'made.pcap'}: ")
    assert says in str(wrong.value)
    assert "\n" not in str(wrong.value)


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    for path, says in ((tmp_path / "none", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(CaptureError, match=f"^{path}: {says}"):
            Trace().read(Capture(path))


@pytest.mark.parametrize("made", [GOOD, GOOD_NG])
def test_cut_short_takes_what_is_there(tmp_path: Path, made: bytes) -> None:
    path = tmp_path / "cut"
    path.write_bytes(made[:-5])
    capture, trace = Capture(path, cut_short=True), Trace()
    trace.read(capture)
    assert (trace.packets, capture.is_cut) == (4, True)
    assert [it.payload for it in trace.flows()] == [[700, 1400]]


def read_through(folder: Path, made: bytes, cut_short: bool) -> None:
    """All of it is read and told, or the declared error names the file."""
    path = folder / "fuzzed"
    path.write_bytes(made)
    capture, trace = Capture(path, cut_short=cut_short), Trace(Ends(pipes=(443,)))
    try:
        trace.read(capture)
    except CaptureError as wrong:
        assert str(wrong).startswith(f"{path}: ")
        return
    found = findings([trace])
    assert data([(capture, trace)], found)["files"][0]["packets"] == trace.packets > 0
    assert text([(capture, trace)], found)
    told = sum(sum(flow.packets) for flow in trace.flows())
    assert told + trace.udp_packets + trace.skipped.total() == trace.packets
    slots = {kind: counts.total() for kind, counts in trace.slots.busy.items()}
    assert set(slots.values()) == {trace.slots.count}, slots


FUZZED = settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
WHOLE = {
    "pcap": pcap(talk() + talk(Connection(client=CLIENT6, server=SERVER6, port=2))),
    "pcapng": pcapng(talk()) + pcapng(talk(), order=">"),
}


@FUZZED
@given(st.binary(max_size=400), st.sampled_from([b"", *(it[:24] for it in WHOLE.values())]))
def test_any_bytes(tmp_path: Path, made: bytes, head: bytes) -> None:
    read_through(tmp_path, head + made, cut_short=True)


@FUZZED
@given(
    st.sampled_from(sorted(WHOLE)),
    st.lists(st.tuples(st.integers(0, 10**4), st.binary(min_size=1, max_size=8)), max_size=6),
    st.integers(0, 10**4),
    st.booleans(),
)
def test_changed_and_cut_captures(
    tmp_path: Path, which: str, changes: list[tuple[int, bytes]], keep: int, cut_short: bool
) -> None:
    made = bytearray(WHOLE[which])
    for at, new in changes:
        at %= len(made)
        made[at : at + len(new)] = new
    read_through(tmp_path, bytes(made[: len(made) - keep % len(made)]), cut_short)


@FUZZED
@given(st.sampled_from(sorted(READ)), st.binary(max_size=120), st.integers(0, 70000))
def test_any_frame(link: int, frame: bytes, length: int) -> None:
    found = parse(link, frame, length)
    if isinstance(found, str):
        assert found in (SHORT, OTHER, MALFORMED, PIECE)
    else:
        assert len(found.ends) in (12, 36)
        assert found.payload >= 0


@FUZZED
@given(
    st.lists(
        st.tuples(
            st.floats(0, 200),
            st.sampled_from(["syn", "syn_ack", "send", "get", "again"]),
            st.integers(0, 3000),
            st.integers(0, 2),
        ),
        min_size=1,
        max_size=40,
    )
)
def test_sums_are_those_of_the_packets(
    tmp_path: Path, moves: list[tuple[float, str, int, int]]
) -> None:
    """Whatever connections do: nothing is lost between packets, flows, bursts and sessions."""
    its = [Connection(port=40000 + k) for k in range(3)]
    frames, sent = [], 0
    for at, what, size, which in moves:
        it = its[which]
        if what in ("syn", "syn_ack"):
            frames.append(getattr(it, what)(at))
            continue
        sent += size
        again = {"back": max(1, size)} if what == "again" else {}
        frames.append(it.get(at, size) if what == "get" else it.send(at, size, **again))
    trace = traced(tmp_path, frames)
    flows = list(trace.flows())
    assert sum(sum(it.payload) for it in flows) == sent
    assert sum(sum(it.bursts.bytes) for it in flows) == sent
    assert sum(sum(it.payload) for it in trace.sessions) == sent
    assert sum(sum(it.packets) for it in flows) == len(moves)
    busy = trace.slots.busy[CONNECTIONS]
    assert busy.total() == trace.slots.count
    assert all(it.mean_s >= 0 for it in trace.slots.growth[CONNECTIONS].values())
