# SPDX-License-Identifier: MIT
"""The packet list tells a frame's messages: once, and without TCP's words on the segment."""

import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.dissector import tshark

pytestmark = pytest.mark.skipif(tshark.missing() is not None, reason=str(tshark.missing()))

SAMPLES = sorted((tshark.TOP / "dissector" / "samples").glob("*.pcap"))
each_sample = pytest.mark.parametrize("sample", SAMPLES, ids=[path.stem for path in SAMPLES])
TOLD = re.compile(r"(\[TCP [A-Za-z -]+\] )?(\d+[↑↓] (data|SYN|FIN) |[↑↓] [A-Z]{3,}\b)")


Listed = Callable[..., tshark.Rows]


@pytest.fixture(scope="module")
def listed(which_tshark: None) -> Listed:
    """The list of a sample's messages, asked for once in one pass and once in two."""

    @cache
    def rows(sample: Path, *passes: str) -> tshark.Rows:
        return tshark.columns(sample, *passes, "-Y", "tm3")

    return rows


@each_sample
@pytest.mark.parametrize("passes", ["one", "two"])
def test_the_info_column_tells_messages_and_nothing_of_the_segment(
    listed: Listed, sample: Path, passes: str
) -> None:
    rows = listed(sample, *(["-2"] if passes == "two" else []))
    assert len(rows) > 10
    for _, info in rows:
        assert TOLD.match(info), info
        assert "Seq=" not in info
        words = Counter(re.findall(r"\d+[↑↓] data \d+", info))
        assert not words or max(words.values()) == 1, info


@each_sample
def test_the_list_after_clicks_tells_the_same(listed: Listed, sample: Path) -> None:
    frames = {"method": "frames", "params": {"filter": "tm3"}}
    infos = [row["c"][-1] for row in tshark.sharkd(sample, [frames])[0]["result"]]
    assert infos == [info for _, info in listed(sample, "-2")]
