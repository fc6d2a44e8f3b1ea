# SPDX-License-Identifier: MIT
"""The static site: whole or not there, every link leads somewhere, and it asks nobody anything."""

import asyncio
import json
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from experiments import catalogue
from experiments.cli import main
from experiments.model import Figure
from experiments.site import about, publish
from tests.experiments import synthetic
from tests.experiments.watch_page import opened


class Small(synthetic.Download):
    """Two settings, and a plot of statistics."""

    grids = ({"preset": ["wired", "lossy"], "size": [300_000], "pipes": [1, 8]},)
    figures = (
        Figure("pipes", "Completion time against pipes", "against", facet="preset"),
        Figure("series", "Throughput and windows", "series"),
    )


class Other(synthetic.Plain):
    grids = Small.grids


PLAIN = Path("synthetic-plain", "20260103T000000Z-ccc")


@pytest.fixture(scope="module", autouse=True)
def known() -> Iterator[None]:
    def of(meta: dict[str, str]) -> synthetic.Download:
        return {"synthetic-plain": Other()}.get(meta["experiment"]) or Small()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalogue, "of", of)
        yield


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder, with one plot."""
    root = tmp_path_factory.mktemp("plain")
    synthetic.make(root / PLAIN, Other(), 5)
    return root


@pytest.fixture(scope="module")
def results(plain: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One experiment twice, another once."""
    root = tmp_path_factory.mktemp("results")
    for name, reps in (("20260101T000000Z-aaa", 5), ("20260102T000000Z-bbb", 6)):
        synthetic.make(root / "synthetic-download" / name, Small(), reps)
    shutil.copytree(plain / PLAIN, root / PLAIN)
    return root


@pytest.fixture(scope="module")
def index(known: None, results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the site of all results."""
    site = tmp_path_factory.mktemp("published") / "site"
    index = publish.publish(results, site, lambda text: None)
    assert index == site / "index.html"
    return index


class Links(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.to: list[str] = []
        self.ids: set[str] = set()
        self.tags: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name in ("href", "src", "action", "data", "poster", "srcset"):
                self.to.append(value or "")
            elif name == "id":
                self.ids.add(value or "")


def whole(page: Path) -> Links:
    """Every link leads to a file of the site or a place in the page; nothing is fetched."""
    text = page.read_text()
    assert "default-src 'none'" in text
    assert "url(" not in re.sub(r"url\(#[\w-]+\)", "", text) and "@import" not in text
    found = Links(text)
    assert not found.tags & {"script", "img", "iframe", "link", "object", "embed", "form"}
    for there in found.to:
        if there.startswith("#"):
            assert there[1:] in found.ids, there
        else:
            assert (page.parent / there).is_file(), there
    return found


def test_everything_is_there_and_leads_to_each_other(results: Path, index: Path) -> None:
    found = whole(index)
    folders = [it.parent.relative_to(results) for it in sorted(results.glob("*/*/meta.json"))]
    assert {it for it in found.to if it.endswith(".html")} == {
        f"{it}/report.html" for it in folders
    }
    text = index.read_text()
    assert text.index("bbb/report.html") < text.index("aaa/report.html"), "the fuller one first"
    assert "How to read a results folder" in text and "Same size?" in text
    for folder in folders:
        there = index.parent / folder
        page = whole(there / "report.html")
        assert publish.HOME in page.to
        assert (there / "runs.jsonl").read_bytes() == (results / folder / "runs.jsonl").read_bytes()
        assert json.loads((there / "summary.json").read_text())["folder"] == folder.name
        assert (there / "plots" / "pipes.svg").is_file() and not (there / "logs").exists()
    told = json.loads((index.parent / "site.json").read_text())
    assert sorted(told["folders"]) == [str(it) for it in folders]
    assert not list(results.rglob("report.html")), "the results stay as they are"


def test_plots_are_drawn_anew_and_others_stay_without_what_is_no_plot(
    results: Path, tmp_path: Path
) -> None:
    """Of logs that were not kept there is only what was drawn then."""
    root = tmp_path / "results"
    folder = root / "synthetic-download" / "20260102T000000Z-bbb"
    shutil.copytree(results / folder.relative_to(root), folder)
    shutil.rmtree(folder / "logs")
    (folder / "plots").mkdir()
    evil = "<path d='M 0 0 L 9 9' style='fill: #123456'/><script>alert(1)</script>"
    for name in ("pipes", "series", "old"):
        svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9">{evil}</svg>'
        (folder / "plots" / f"{name}.svg").write_text(svg)
    publish.publish(root, tmp_path / "site", lambda text: None)
    plots = tmp_path / "site" / folder.relative_to(root) / "plots"
    assert "#123456" not in (plots / "pipes.svg").read_text(), "drawn anew"
    kept = (plots / "series.svg").read_text()
    assert "#123456" in kept and kept.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert "script" not in kept and "alert" not in kept
    assert not (plots / "old.svg").exists()
    assert "fill: #123456" in (plots.parent / "report.html").read_text()


def test_a_site_is_replaced_when_the_new_one_is_whole(plain: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()  # empty: it may be written to
    publish.publish(plain, site, lambda text: None)
    (site / "of-before").touch()
    broken = tmp_path / "broken" / "a" / "b"
    broken.mkdir(parents=True)
    (broken / "meta.json").write_text('{"format": 0}')
    assert main(["publish", str(site), "--of", str(broken.parents[1])]) == 1
    assert (site / "of-before").exists(), "nothing happened to it"
    publish.publish(plain, site, lambda text: None)
    assert not (site / "of-before").exists()
    assert sorted(it.name for it in tmp_path.iterdir()) == ["broken", "site"], "and no scratch"


def test_what_may_not_be_replaced(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "thesis.tex").touch()
    file, link = tmp_path / "file", tmp_path / "link"
    file.touch()
    link.symlink_to(full)
    inside, around = results / "site", results.parent
    empty = tmp_path / "empty"
    empty.mkdir()
    for site, root, status, says in (
        (full, results, 2, "not empty, and no site of tm3lab's (it has no site.json)"),
        (file, results, 2, "no folder"),
        (link, results, 2, "no folder"),
        (inside, results, 2, "the site cannot lie in"),
        (around, results, 2, "the site cannot lie in"),
        (tmp_path / "site", empty, 1, "no results to publish"),
        (tmp_path / "site", tmp_path / "nowhere", 1, "no results to publish"),
    ):
        assert main(["publish", str(site), "--of", str(root)]) == status
        told = capsys.readouterr().err
        assert says in told and told.count("\n") == 1, told
    assert (full / "thesis.tex").exists() and not inside.exists()


def test_the_readme_is_a_part_of_a_page() -> None:
    made = str(about.part(publish.READING.read_text()))
    found = Links(made)
    assert not found.to, "its links lead into the sources"
    assert "decision 23" in made and "statistics.md" in made, "their words stay"
    assert "h1" not in found.tags and {"h2", "h3", "table", "pre"} <= found.tags
    assert made.count('<div class="scroll"><table>') == made.count("</table>\n</div>") > 1
    hostile = str(about.part("<script>alert(1)</script> [x](javascript:alert(1)) ![y](z.png)"))
    assert not Links(hostile).tags - {"p"} and not Links(hostile).to


@pytest.mark.skipif(
    shutil.which("chromium") is None,
    reason="no chromium on this machine: sudo .ci/setup experiments/packages.debian",
)
def test_in_a_browser(index: Path) -> None:
    """Nothing to be scrolled sideways, no complaint, nothing asked of anybody; light and dark."""
    pages = [index, *sorted(index.parent.glob("*/*/report.html"))[:1]]
    paper = "getComputedStyle(document.body).backgroundColor"
    tables = (
        "[...document.querySelectorAll('.scroll:has(.comparison)')].filter("
        "it => it.scrollWidth > it.clientWidth).map(it => it.scrollWidth - it.clientWidth)"
    )

    async def look() -> None:
        async with opened(index.as_uri()) as page:
            asked: list[str] = []
            page.heard("Network.requestWillBeSent", lambda it: asked.append(it["request"]["url"]))
            await page.ask("Network.enable")
            for path in pages:
                await page.go(path.as_uri())
                colours = []
                for width in (390, 1020, 1060, 1280):
                    await page.size(width, 900)
                    assert await page.value("document.documentElement.scrollWidth") == width
                    assert await page.value(tables) == [], width
                for scheme in ("light", "dark"):
                    await page.prefers(color_scheme=scheme)
                    colours.append(await page.value(paper))
                assert colours == ["rgb(255, 255, 255)", "rgb(21, 24, 28)"]
            assert page.complaints == []
            assert asked == [path.as_uri() for path in pages]

    asyncio.run(look())
