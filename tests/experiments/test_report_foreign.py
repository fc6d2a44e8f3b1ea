# SPDX-License-Identifier: MIT
"""A report of a folder that somebody else made: nothing in it runs, fetches or lies over it."""

import os
from html.parser import HTMLParser
from pathlib import Path

import pytest

from experiments import report
from experiments.plots import svg
from experiments.plots.plain import NoPlot, plain
from experiments.report.data import load
from tests.experiments import synthetic

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
KNOWN = '<path d="M 0 0 L 9 9" style="fill: #123456"/>'
EVIL = [
    "<script>alert(1)</script>",
    '<script xlink:href="http://example.com/x.js"/>',
    '<rect width="9" height="9" onclick="alert(1)"/>',
    '<a xlink:href="javascript:alert(1)"><rect width="9" height="9"/></a>',
    '<a href="http://example.com/"><rect width="9" height="9"/></a>',
    '<use xlink:href="http://example.com/x.svg#a"/>',
    '<use href="data:image/svg+xml,x#a"/>',
    '<image href="http://example.com/seen.png" width="9" height="9"/>',
    '<foreignObject><body xmlns="http://www.w3.org/1999/xhtml"><b>x</b></body></foreignObject>',
    '<foreignObject><iframe xmlns="http://www.w3.org/1999/xhtml" src="http://e/"/></foreignObject>',
    '<x:script xmlns:x="http://www.w3.org/2000/svg">alert(1)</x:script>',
    '<script xmlns="http://www.w3.org/1999/xhtml">alert(1)</script>',
    "<set attributeName='onload' to='alert(1)'/>",
    "<animate attributeName='href' values='javascript:alert(1)'/>",
    "<style>@import url(http://example.com/x.css);</style>",
    "<style>body { display: none }</style>",
    "<style><![CDATA[</style><script>alert(1)</script>]]></style>",
    "<title><![CDATA[x><script>alert(1)</script>]]></title>",
    "<desc><![CDATA[><img src=x onerror=alert(1)>]]></desc>",
    '<rect style="position: fixed; inset: 0; fill: red"/>',
    '<rect style="fill: url(http://example.com/x)"/>',
    r'<rect style="fill: \75 rl(http://example.com/x)"/>',
    '<rect fill="url(http://example.com/x)" clip-path="url(http://example.com/#x)"/>',
    '<rect class="verdict" data-label="x" tabindex="1"/>',
    '<?xml-stylesheet href="http://example.com/x.css"?>',
    "<!-- --><!-- ><script>alert(1)</script> -->",
]
WANTED = {"svg", "g", "path", "rect", "use", "style"}


class Seen(HTMLParser):
    """What a browser would make of it: its elements and what they are told."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.told: list[tuple[str, str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.told += [(name, value or "") for name, value in attrs]

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(f"a declaration: {data}")


def harmless(text: str) -> None:
    seen = Seen(text)
    assert seen.tags <= WANTED, seen.tags - WANTED
    for name, value in seen.told:
        assert not name.startswith("on") and name not in ("class", "tabindex", "src"), name
        assert "://" not in value and ":" not in value.replace(": ", ""), (name, value)
        assert "\\" not in value and "fixed" not in value, (name, value)
        assert name != "href" or value.startswith("#")
    for word in ("<script", "alert", "@import", "display"):
        assert word not in text


@pytest.mark.parametrize("evil", EVIL)
def test_nothing_of_it_gets_into_the_page(evil: str) -> None:
    made = svg.inline(f"{HEAD}><g>{KNOWN}{evil}</g></svg>", "a", "A title")
    harmless(made.replace(' aria-label="A title"', ""))
    assert "fill: #123456" in made, "the plot itself is gone"


@pytest.mark.parametrize("more", ['onload="alert(1)"', 'style="position: fixed"', 'class="x"'])
def test_nor_of_its_root(more: str) -> None:
    made = svg.inline(f'{HEAD} viewBox="0 0 9 9" {more}>{KNOWN}</svg>', "a", "A")
    harmless(made)
    assert made.count("style=") == 2 and 'viewBox="0 0 9 9"' in made


def test_text_stays_text() -> None:
    made = plain(f"{HEAD}><text>a &lt;b&gt; <tspan>&amp;</tspan> c<![CDATA[<b>]]></text></svg>")
    assert "<text>a &lt;b&gt; <tspan>&amp;</tspan> c&lt;b&gt;</text>" in made


@pytest.mark.parametrize("text", [
    "", "no svg", "<svg>", "<html xmlns='http://www.w3.org/1999/xhtml'/>", f"{HEAD}><g></svg>",
    f"<!DOCTYPE svg [<!ENTITY a 'aaa'>]>{HEAD}><text>&a;</text></svg>",
])  # fmt: skip
def test_what_is_no_plot_is_told(text: str) -> None:
    with pytest.raises(NoPlot):
        plain(text)


@pytest.mark.parametrize("evil", ["<script>alert(1)</script>", "<not svg"])
def test_a_report_of_a_foreign_folder(tmp_path: Path, evil: str) -> None:
    """Both pages; what is no SVG at all is drawn anew, or left out of the overview."""
    folder = synthetic.make(tmp_path / synthetic.Download.name / "A")
    (folder / "plots").mkdir()
    whole = f"{HEAD}>{KNOWN}{evil}</svg>" if evil.startswith("<script") else evil
    for figure in load(folder).figures():
        path = folder / "plots" / f"{figure.name}.svg"
        path.write_text(whole)
        os.utime(path, (2**32, 2**32))
    index = report.index([folder]).read_text()
    page = report.write(folder).read_text()
    for text in (index, page):
        assert "<script" not in text and "alert(1)" not in text
    assert page.count('<figure class="plot"><svg') == len(load(folder).figures()) > 1
    assert ("fill: #123456" in page) == evil.startswith("<script")
