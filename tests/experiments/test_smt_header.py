# SPDX-License-Identifier: MIT
"""SMT's header on the wire."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.workloads.smt.failure import BadMessage
from experiments.workloads.smt.header import (
    BITS,
    NUMBERS,
    PRIORITIES,
    ROUNDS,
    SIZE,
    TAGS,
    Header,
    decode,
)


@st.composite
def headers(draw: st.DrawFn) -> Header:
    number = draw(st.integers(0, NUMBERS - 1))
    termination = draw(st.none() | st.integers(0, NUMBERS - 1))
    deltas: list[int] = []
    if termination is None:
        count = draw(st.integers(0, min(3, number)))
        most = min(number, (1 << BITS[count]) - 1)
        deltas = draw(st.lists(st.integers(1, max(1, most)), unique=True, max_size=count))
        most = (1 << BITS[len(deltas)]) - 1
        deltas = sorted((it for it in deltas if it <= most), reverse=True)
    return Header(
        tag=draw(st.integers(0, TAGS - 1)),
        round=draw(st.integers(0, ROUNDS - 1)),
        number=number,
        priority=draw(st.integers(0, PRIORITIES - 1)),
        deltas=tuple(deltas),
        termination=termination,
    )


@pytest.mark.parametrize(
    ("header", "told"),
    [
        (Header(tag=1, round=2, number=3), "00040002 00000003 00000000 00000000"),
        (
            Header(tag=127, round=65535, number=2**32 - 1, priority=127, termination=2**32 - 1),
            "fffdffff ffffffff ffffffff 00000000",
        ),
        (
            Header(tag=1, round=0, number=101_000, deltas=(1000,)),
            "00040000 00018a88 400003e8 00000000",
        ),
        (
            Header(tag=1, round=0, number=40_000, deltas=(32767, 1)),
            "00040000 00009c40 bfff8001 00000000",
        ),
        (
            Header(tag=2, round=0, number=2000, priority=1, deltas=(1023, 2, 1)),
            "02080000 000007d0 fff00801 00000000",
        ),
    ],
)
def test_words(header: Header, told: str) -> None:
    assert header.encode() == bytes.fromhex(told)
    assert decode(bytes.fromhex(told)) == header


@settings(deadline=None)
@given(headers(), st.binary(max_size=9))
def test_there_and_back(header: Header, payload: bytes) -> None:
    assert len(header.encode()) == SIZE
    assert decode(header.encode() + payload) == header


@settings(deadline=None, max_examples=400)
@given(st.binary(max_size=20) | st.tuples(headers(), st.integers(0, 127)).map(lambda it: flip(*it)))
def test_any_bytes_are_a_header_or_refused(data: bytes) -> None:
    try:
        found = decode(data)
    except BadMessage:
        return
    assert found.encode() == data[:SIZE], "no header is written in two ways"
    assert all(0 <= it < found.number for it in found.needs)


def flip(header: Header, bit: int) -> bytes:
    data = bytearray(header.encode())
    data[bit // 8] ^= 1 << bit % 8
    return bytes(data)


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ("00040002 00000003 00000000", "a header of 12 bytes"),
        ("00060002 00000003 00000000 00000000", "P is set"),
        ("00040002 00000003 00000000 00000001", "P is set"),
        ("00040002 00000003 00000001 00000000", "bits that no dependency uses"),
        ("00040002 00000003 40000000 00000000", "none of its round"),
        ("00040002 00000003 40000004 00000000", "none of its round"),
        ("00040002 00000003 80008001 00000000", "not the farthest first"),
        ("00040002 00000003 80008002 00000000", "not the farthest first"),
    ],
)
def test_refused(told: str, why: str) -> None:
    with pytest.raises(BadMessage, match=why):
        decode(bytes.fromhex(told))
