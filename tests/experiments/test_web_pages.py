# SPDX-License-Identifier: MIT
"""Pages: always the same, as large as they say, and as files they name what their tree says."""

import hashlib
import re
import statistics
import struct
import zlib
from pathlib import Path

import pytest

from experiments.workloads.web import bodies
from experiments.workloads.web.page import Item, Manifest, Page, chain
from experiments.workloads.web.pages import NAMES, SITE_NAMES, TEN_SITES, page

DRAWN = "d0cee43eaa3cb0998909a2a7ee05d3d85c4a8872c34127e23c5c1dbabdc01b11"
URL = re.compile(r'(?:href|src)="([^"]+)"|url\(([^)]+)\)|add\("\w+","([^"]+)"\)')


def test_the_pages_of_table_5() -> None:
    for name, small, big in (("medium", 40, 7), ("large", 200, 17)):
        sizes = [item.size for item in page(name).items[1:]]
        assert sorted(sizes) == [2_600] * small + [86_500] * big
        assert {item.after for item in page(name).items[1:]} == {0}
        assert len(page(name).hosts) == 1


def test_the_thirty_are_always_the_same() -> None:
    """Results of different machines and versions of Python are of the same pages."""
    drawn = repr([page(name) for name in SITE_NAMES]).encode()
    assert hashlib.sha256(drawn).hexdigest() == DRAWN


def test_the_thirty_are_shaped_like_what_was_published() -> None:
    requests = [len(page(name).items) for name in SITE_NAMES]
    assert requests == sorted(requests)
    deciles = statistics.quantiles(requests, n=20, method="inclusive")
    found = [deciles[at] for at in (1, 4, 9, 14, 17)]
    for ours, published in zip(found, (24, 42, 71, 115, 176), strict=True):
        assert ours == pytest.approx(published, rel=0.08)
    median = statistics.median(page(name).bytes for name in SITE_NAMES)
    assert 1.5e6 < median < 2.3e6  # 1.894 MB are the published medians of the five kinds
    assert all(max(page(name).depths) >= 2 for name in SITE_NAMES)
    assert all(2 <= len(page(name).hosts) <= 24 for name in SITE_NAMES)
    assert len(TEN_SITES) == 10


@pytest.mark.parametrize("name", ["medium", "large", *TEN_SITES])
def test_files_are_what_the_page_declares(name: str, tmp_path: Path) -> None:
    it = page(name)
    manifest = bodies.write(it, tmp_path)
    total = 0
    for item, digest in zip(it.items, manifest.sha256, strict=True):
        content = (tmp_path / it.hosts[item.host] / item.path[1:]).read_bytes()
        assert len(content) == item.size
        assert hashlib.sha256(content).hexdigest() == digest
        total += len(content)
        if item.kind in ("html", "style", "script"):
            assert named(it, item, content.decode()) == {
                other.index for other in it.named[item.index]
            }
    assert total == it.bytes
    again = tmp_path / "manifest.json"
    manifest.write(again)
    assert Manifest.read(again) == manifest


def named(it: Page, by: Item, text: str) -> set[int]:
    """What a text names, from its own words."""
    where = {f"//{it.hosts[item.host]}{item.path}": item.index for item in it.items}
    urls = ["".join(found) for found in URL.findall(text)]
    found = [
        where[url if url.startswith("//") else f"//{it.hosts[by.host]}{url}"]
        for url in urls
        if url != "data:,"
    ]
    assert len(found) == len(set(found))
    return set(found)


def test_images_are_whole() -> None:
    content = bodies.body(page("medium"), page("medium").items[1])
    assert content.startswith(bodies.SIGNATURE)
    names, rest = [], content[len(bodies.SIGNATURE) :]
    while rest:
        size = struct.unpack(">I", rest[:4])[0]
        assert zlib.crc32(rest[4 : 8 + size]) == struct.unpack(">I", rest[8 + size : 12 + size])[0]
        names.append(rest[4:8])
        rest = rest[12 + size :]
    assert names == [b"IHDR", b"tmTm", b"IDAT", b"IEND"]


def test_a_tree_that_no_browser_would_load_is_refused() -> None:
    html = Item(0, 0, "html", 100, None)
    for wrong in (
        Item(1, 0, "font", 100, 0),  # only styles name fonts
        Item(1, 1, "image", 100, 0),  # no such host
        Item(1, 0, "image", 100, 1),  # by itself
        Item(1, 0, "image", 100, None),
    ):
        with pytest.raises(ValueError, match="odd"):
            Page("odd", "odd", ("www.odd.test",), (html, wrong))
    with pytest.raises(ValueError, match="do not fit 100"):
        bodies.body(Page("odd", "odd", ("www.odd.test",), (html,)), html)
    with pytest.raises(ValueError, match="none of medium, large, site-01"):
        page("site-31")


def test_chain() -> None:
    it = page("site-25")
    deepest = it.items[it.depths.index(5)]
    before = chain(it, deepest)
    assert [it.depths[item.index] for item in before] == [0, 1, 2, 3, 4]
    assert before[-1].index == deepest.after


def test_names_are_hosts() -> None:
    assert len(NAMES) == len(set(NAMES)) == 32
    for name in NAMES:
        assert all(host.endswith(f".{name}.test") for host in page(name).hosts)
