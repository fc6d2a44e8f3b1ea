# SPDX-License-Identifier: MIT
"""Most messages take the quick path; it records what the other one, which asks all, records."""

from collections.abc import Callable
from pathlib import Path

import pytest

from dissector import bench
from tests.dissector import generator, tshark
from tests.dissector.scenes import play_all
from tests.dissector.test_order import SCENES

pytestmark = pytest.mark.skipif(tshark.missing() is not None, reason=str(tshark.missing()))

# To follow a connection each message is wanted in detail; there is none of this number.
NOBODY = 4_000_000_000
ASK_ALL = ("-o", f"tm3.follow:{NOBODY}")
FIELDS = [
    "frame.number", "tm3.stream", "tm3.conn", "tm3.seq", "tm3.order", "tm3.offset", "tm3.wait",
    "tm3.held", "tm3.filled_by", "tm3.release_count", "tm3.releases", "tm3.original", "tm3.expert",
    "http.response.code",
]  # fmt: skip


def random_sessions(path: Path) -> None:
    """160, half of them for each tshark where there are two."""
    seeds = tshark.mine(100, 101)
    _, capture, _ = generator.make_sessions(seeds[0], 80 * len(seeds), loss=0.02)
    capture.write(path)


def downloads(path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench, "BODY", 60_000)
        bench.make_capture(path, 1)


CAPTURES: dict[str, Callable[[Path], None]] = {
    "random": random_sessions,
    "downloads": downloads,
    "odd ones": lambda path: play_all(SCENES)[0].write(path),
    "small messages": lambda path: bench.make_small(path, 3000, 5),
}


@pytest.mark.parametrize("make", CAPTURES.values(), ids=CAPTURES)
def test_both_ways_record_the_same(make: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "either.pcap"
    make(path)
    json = ("-q", "-o", "tm3.statistics:json")
    quick, asked = tshark.run(path, *json), tshark.run(path, *json, *ASK_ALL)
    followed = f"TM³ connection {NOBODY} to ?\n"
    assert asked.endswith(followed)
    assert quick == asked.removesuffix(followed)


@pytest.mark.parametrize("make", CAPTURES.values(), ids=CAPTURES)
def test_later_looks_find_the_same(make: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "either.pcap"
    make(path)
    quick = tshark.field_values(path, FIELDS, "-2")
    asked = tshark.field_values(path, FIELDS, "-2", *ASK_ALL)
    assert quick == [row for row in asked if not row[0].startswith("TM³")]
    assert any(row[1] for row in quick)
