# SPDX-License-Identifier: MIT
"""The page of `tm3lab watch` in Chromium: its values are the statistics', whatever they are."""

import asyncio
import json
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from experiments.watch import watched
from tests.experiments import watch_told
from tests.experiments.synthetic import planned
from tests.experiments.watch_page import Page, opened
from tests.experiments.watch_server import serving

pytestmark = pytest.mark.skipif(
    shutil.which("chromium") is None,
    reason="no chromium on this machine: sudo .ci/setup experiments/packages.debian",
)
CURSOR = "document.getElementById('cursor')"
WIDTHS = (390, 600, 800, 1280)
LANES = """[...document.querySelectorAll("#lanes .lane")].map((it) =>
    [it.dataset.pipe, ...[...it.children].map((cell) => cell.textContent)])"""
WAITS = """Object.fromEntries([...document.querySelectorAll("#waits tbody tr")].map((it) =>
    [it.children[1].dataset.field, [it.children[1].textContent, it.children[2].textContent]]))"""
TROUBLE = """(() => { const it = document.getElementById("trouble");
    return it.hidden ? "" : it.textContent; })()"""
# A record plays when it is opened: what is drawn may be of the wanted sample, but a little later.
GO = """(() => { const it = document.getElementById("cursor");
    document.documentElement.dataset.time = "";
    it.value = %s; it.dispatchEvent(new Event("input", {bubbles: true})); })()"""
SHOWN = "document.documentElement.dataset.time"


def page(does: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(90):
            await does()

    asyncio.run(limited())


def stamped(folder: Path, who: str) -> list[float]:
    """Every moment that is told of; nothing of a folder of results."""
    if not (folder / f"{who}.stats.jsonl").is_file():
        return []
    told = watch_told.read(folder, who)
    return [it.get("time", it.get("closed")) for it in told]


@asynccontextmanager
async def looking(folder: Path, **more: Any) -> AsyncIterator[Page]:
    with serving(folder) as server:
        async with opened(server.url, **more) as made:
            await made.until("pipes to be shown", f"{LANES}.length > 0")
            told = [it for who in ("rp", "lp") for it in stamped(folder, who)]
            length = max(told, default=0.0) - min(told, default=0.0)
            await made.until("all to be read", f"{CURSOR}.max > {length - 1e-3}")
            yield made
            assert not made.complaints


async def go(made: Page, seconds: float, wanted: float) -> None:
    """To a moment after the beginning; `wanted` is the sample that is shown then."""
    await made.value(GO % seconds)
    await made.until(f"the sample of {wanted}", f"Math.abs({SHOWN} - {wanted}) < 1e-3")


def in_bytes(value: int) -> str:
    """As the page has it, written once more: up to 1000 bytes, KB with a place below 10."""
    if value < 1000:
        return f"{value} B"
    if value < 1_000_000:
        return f"{value / 1e3:.1f} KB" if value < 10_000 else f"{round(value / 1e3)} KB"
    return f"{value / 1e6:.2f} MB"


def test_values_are_those_of_the_statistics(tmp_path: Path) -> None:
    """Of both proxies, at moments all over the record, and by any way to get there."""
    begun = watch_told.record(tmp_path, ticks=40)

    async def does() -> None:
        async with looking(tmp_path) as made:
            for side in ("rp", "lp"):
                await made.value(f"document.querySelector('[value={side}]').click()")
                told = watch_told.read(tmp_path, side)
                for tick in (1, 2, 7, 8, 39):
                    at = begun + 0.1 * (tick + 1)
                    await go(made, 0.1 * (tick + 1) + 0.02, at + 1e-5)
                    compare(await made.value(LANES), told, at, tick)
                    await compare_all(made, told, at)

    page(does)


def compare(lanes: list[list[str]], told: list[dict[str, Any]], at: float, tick: int) -> None:
    pipes = [it for it in told if it["type"] == "pipe" and abs(it["time"] - at) < 1e-3]
    assert len(lanes) == len(pipes) == 2
    for lane, pipe in zip(lanes, pipes, strict=True):
        number, name, trip, _, flight, unsent, rate, again = lane
        assert (number, name) == (str(pipe["pipe"]), f"pipe {pipe['pipe']}cubic")
        assert abs(float(trip.removesuffix(" ms")) - pipe["rtt_ms"]) <= 0.051
        assert flight == in_bytes(pipe["in_flight"])
        assert unsent == in_bytes(pipe["unsent"])
        assert again == str(pipe["retransmits"])
        mbps = 100_000 * (pipe["pipe"] + 1) * 8 / 0.1 / 1e6 if tick else None
        assert mbps is None or abs(float(rate.removesuffix(" Mbit/s")) - mbps) <= 0.051


async def compare_all(made: Page, told: list[dict[str, Any]], at: float) -> None:
    def of(kind: str) -> dict[str, Any]:
        return next(it for it in told if it["type"] == kind and abs(it["time"] - at) < 1e-3)

    waits, queues, limit = await made.value(WAITS), of("queues"), of("aggregate")
    for name in (*watch_told.WAITS, "connections"):
        assert waits[name] == [str(queues[name])] * 2, name
    shown = await made.text("#pipes-sum")
    assert f"{in_bytes(limit['held'])} held of {in_bytes(limit['limit'])}" in shown
    stands = await made.text("#queues")
    for name in ("queued", "early", "kept"):
        assert in_bytes(queues[name]) in stands
    pipes = [it for it in told if it["type"] == "pipe" and abs(it["time"] - at) < 1e-3]
    for name in ("unsent", "in_flight"):
        assert in_bytes(sum(it[name] for it in pipes)) in stands
    over = [it for it in told if it["type"] == "conn" and it["closed"] <= at + 0.02]
    assert (await made.text("#ended-sum")).startswith(f"{len(over)} connection")


def test_a_script_in_a_name_stays_text(tmp_path: Path) -> None:
    """Wherever it comes from: a destination, a reason, a peer, a log, a file that somebody sent."""
    begun = watch_told.record(tmp_path, ticks=5)
    naughty = watch_told.NAUGHTY
    end = watch_told.session(begun + 1, "end", naughty) | {"peer": naughty}
    odd = {"transport": naughty, "cc": naughty, "rtt_ms": 50.0}
    for who in ("rp", "lp"):
        told = [
            watch_told.conn(99, begun + 0.9, naughty),
            watch_told.pipe(0, begun + 0.95, 9, **odd),
        ]
        watch_told.write(tmp_path, who, [*told, end])
        (tmp_path / f"{who}.log").write_text(f"{who}: {naughty}\n")

    async def does() -> None:
        async with looking(tmp_path) as made:
            await made.value(GO % 1.0)
            for place in ("#ended td", "#lanes", "#events", "#said"):
                shown = f"document.querySelector('{place}').textContent"
                await made.until(place, f"{shown}.includes({json.dumps(naughty)})")
            assert not await made.value("document.querySelector('main script, main img')")
            assert (await made.value("document.title")).endswith("tm3lab watch")

    page(does)


def test_thousands_of_connections(tmp_path: Path) -> None:
    """The page has all in its counts, a few in its table, and stays quick."""
    begun, count = watch_told.record(tmp_path, ticks=10), 15_000
    told = [watch_told.conn(it % 32767, begun + 1.2 + it * 1e-6) for it in range(count)]
    crowd = watch_told.queues(begun + 1.35, 0) | {"connections": 12_345, "idle": 12_310}
    last = [watch_told.pipe(it, begun + 1.3, 12) for it in range(2)]
    watch_told.write(tmp_path, "lp", [*told, *last, crowd])

    async def does() -> None:
        async with looking(tmp_path) as made:
            shown = "document.getElementById('ended-sum').textContent"
            await made.value(GO % 2.0)
            await made.until("all of them", f"{shown}.startsWith('{count + 10:,} connections')")
            assert await made.value("document.querySelectorAll('#ended tbody tr').length") == 12
            assert (await made.value(WAITS))["connections"][1] == "12,345"
            assert (await made.value(WAITS))["idle"][1] == "12,310"
            took = await made.value(
                """new Promise((done) => { const from = performance.now(); let left = 20;
                const each = () => { document.getElementById("cursor").dispatchEvent(
                new Event("input")); left-- ? requestAnimationFrame(each)
                : done((performance.now() - from) / 20); }; each(); })"""
            )
            assert took < 100, f"{took:.0f} ms for a picture"

    page(does)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written before a browser that starts slowly is of proxies that run."""
    monkeypatch.setattr(watched, "FRESH_S", 60.0)


@pytest.mark.usefixtures("patient")
def test_it_goes_on_when_the_server_comes_again(tmp_path: Path) -> None:
    """Neither twice nor forgotten: what the page had, and what was written meanwhile."""
    now = watch_told.record(tmp_path, ticks=5, begun=time.time() - 2)

    async def does() -> None:
        chip = "document.getElementById('connection').textContent"
        ended = "document.getElementById('ended-sum').textContent"
        with serving(tmp_path) as server:
            place = server.server_address[:2]
            made_by = opened(server.url)
            made = await made_by.__aenter__()
            try:
                await made.until("it to be live", f"{chip} === 'live'")
                await made.until("five connections", f"{ended}.startsWith('5 ')")
                await asyncio.to_thread(server.ending.set)
            except BaseException:
                await made_by.__aexit__(None, None, None)
                raise
        try:
            await made.until("it to see that", f"{chip}.startsWith('connection lost')")
            more = [*watch_told.sample(now + 1.2, 7), watch_told.conn(77, now + 1.19)]
            watch_told.write(tmp_path, "rp", more)
            watch_told.write(tmp_path, "lp", more)
            with serving(tmp_path, place):
                await made.until("the rest", f"{ended}.startsWith('6 ')")
                await made.until("it to be live again", f"{chip} === 'live'")
                starts = """[...document.querySelectorAll('#events li')]
                    .filter((it) => it.textContent.includes(' began: ')).length"""
                assert await made.value(starts) == 2, "one of each proxy"
        finally:
            await made_by.__aexit__(None, None, None)

    page(does)


@pytest.mark.usefixtures("patient")
def test_it_is_live_within_a_second(tmp_path: Path) -> None:
    watch_told.record(tmp_path, ticks=3, begun=time.time() - 1)

    async def does() -> None:
        async with looking(tmp_path) as made:
            took = []
            for tick in range(4, 9):
                before = time.time()
                watch_told.write(tmp_path, "rp", watch_told.sample(before, tick))
                await made.until("the sample", f"Math.abs({SHOWN} - {before}) < 1e-3", 5)
                took.append(time.time() - before)
            assert sorted(took)[2] < 1.0, took

    page(does)


def test_pipes_that_go_and_come_are_told(tmp_path: Path) -> None:
    begun = time.time() - 1000
    told = [watch_told.start("rp", begun), watch_told.session(begun)]
    for tick in range(30):
        at = begun + 0.1 * (tick + 1)
        some = watch_told.sample(at, tick, state="yield" if 20 <= tick < 22 else "bound")
        told += [it for it in some if not (it.get("pipe") == 1 and 10 <= tick < 15)]
    told += [it | {"tx_bytes": 5} for it in watch_told.sample(begun + 3.5, 1) if "pipe" in it]
    watch_told.write(tmp_path, "rp", told)

    async def does() -> None:
        async with looking(tmp_path) as made:
            events = await made.text("#events")
            for words in (
                *("rp: pipe 1 is gone", "rp: pipe 1 is up", "rp: pipe 0 was dialled again"),
                *("the common limit gives way", "the common limit is bound again"),
            ):
                assert words in events, events
            moment = """[...document.querySelectorAll("#events button")].find((it) =>
                it.textContent.includes("pipe 1 is gone"))"""
            await made.value(f"{moment}.click()")
            await made.until("one pipe", f"{LANES}.length === 1")
            assert abs(float(await made.value(f"{moment}.dataset.time")) - begun - 1.1) < 0.01

    page(does)


def test_a_broken_line_is_told_of_and_left_out(tmp_path: Path) -> None:
    at = watch_told.record(tmp_path, ticks=2)

    async def does() -> None:
        async with looking(tmp_path) as made:
            assert not await made.value(TROUBLE)
            with (tmp_path / "rp.stats.jsonl").open("a") as file:
                file.write('{"type": broken\n[1]\nnull\n')
            watch_told.write(tmp_path, "rp", watch_told.sample(at + 10, 10))
            await made.until("the sample after them", f"{CURSOR}.max > 9")
            assert "lines that are no records" in await made.value(TROUBLE)

    page(does)


def test_connections_are_counted_until_their_session_ends(tmp_path: Path) -> None:
    """A friend that went, with thousands of them, and came again."""
    begun = time.time() - 1000
    before, after = watch_told.sample(begun + 0.1, 1), watch_told.sample(begun + 0.3, 1)
    before[-1] |= {"connections": 1200}
    none, end = "\N{EN DASH}", watch_told.session(begun + 0.2, "end", "its pipes were closed")
    anew = [it | {"session": 2} for it in (watch_told.session(begun + 0.25), *after)]
    told = [watch_told.start("rp", begun), watch_told.session(begun), *before, end, *anew]
    watch_told.write(tmp_path, "rp", told)

    async def does() -> None:
        async with looking(tmp_path) as made:
            for at, count in ((0.15, "1,200"), (0.22, none), (0.3, str(after[-1]["connections"]))):
                await made.value(GO % at)
                await made.until(f"{count} at {at} s", f"{WAITS}.connections[0] === '{count}'")

    page(does)


def test_keys(tmp_path: Path) -> None:
    begun = watch_told.record(tmp_path, ticks=40)

    async def does() -> None:
        async with looking(tmp_path) as made:
            await made.press("Home")
            await made.until(
                "the first moment", "document.getElementById('clock').textContent === '0.0 s'"
            )
            for tick in (0, 1, 2):
                await made.press("ArrowRight")
                wanted = begun + 0.1 * (tick + 1)
                await made.until(f"step {tick}", f"Math.abs({SHOWN} - {wanted}) < 1e-3")
            await made.press("ArrowLeft")
            await made.until("a step back", f"Math.abs({SHOWN} - {begun + 0.2}) < 1e-3")
            await made.press("End")
            await made.until("the end", f"Math.abs({SHOWN} - {begun + 4.0}) < 1e-3")
            play = "document.getElementById('play').textContent"
            await made.press("Home")
            await made.press(" ")
            assert await made.until("it to play", f"{play} === 'Pause'")
            await made.press(" ")
            assert await made.until("it to pause", f"{play} === 'Play'")
            reached = []
            for _ in range(30):
                await made.press("Tab")
                reached.append(
                    await made.value(
                        "document.activeElement.id || document.activeElement.className"
                    )
                )
            assert {"skip", "play", "cursor", "window", "speed", "said"} <= set(reached), reached

    page(does)


def test_reduced_motion_plays_nothing_by_itself(tmp_path: Path) -> None:
    watch_told.record(tmp_path, ticks=40)

    async def does() -> None:
        with serving(tmp_path) as server:
            async with opened("about:blank") as made:
                await made.prefers(reduced_motion="reduce")
                await made.go(server.url)
                await made.until("pipes' place", "!document.getElementById('watching')?.hidden")
                assert await made.text("#play") == "Play"
                assert await made.text("#clock") == "0.0 s"

    page(does)


CONTRAST = """(() => {
    const parts = (text) => text.match(/[\\d.]+/g).map(Number);
    const light = (text) => { const [r, g, b] = parts(text).map((it) => it / 255).map((it) =>
        it <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const behind = (it) => { for (; it; it = it.parentElement) {
        const told = getComputedStyle(it).backgroundColor; if (parts(told)[3] !== 0) return told; }
        return getComputedStyle(document.documentElement).backgroundColor; };
    const found = [];
    for (const it of document.querySelectorAll("body *")) {
        const own = [...it.childNodes].some((one) => one.nodeType === 3 && one.data.trim());
        if (!own || !it.checkVisibility() || it.closest(".hidden, .skip, option, .later")) continue;
        const [a, b] = [light(getComputedStyle(it).color), light(behind(it))].sort((x, y) => y - x);
        const ratio = (a + 0.05) / (b + 0.05);
        if (ratio < 4.5) found.push(`${it.tagName} ${it.className} ${it.textContent}: ${ratio}`);
    }
    return found; })()"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read(tmp_path: Path, scheme: str) -> None:
    """On any width nothing sticks out; all text has a contrast of 4.5 at least."""
    folder = planned(tmp_path)
    for run in (folder / "logs").iterdir():
        shutil.rmtree(run)
        watch_told.record(run)

    async def does() -> None:
        async with looking(folder) as made:
            await made.prefers(color_scheme=scheme)
            for width in WIDTHS:
                await made.size(width, 900)
                await asyncio.sleep(0.3)
                assert await made.value("document.documentElement.scrollWidth") == width
            assert await made.value(CONTRAST) == []
            dark = "getComputedStyle(document.body).backgroundColor"
            assert (await made.value(dark) == "rgb(18, 21, 24)") == (scheme == "dark")

    page(does)


def test_nothing_is_fetched_from_elsewhere(tmp_path: Path) -> None:
    watch_told.record(tmp_path)

    async def does() -> None:
        async with looking(tmp_path) as made:
            fetched = await made.value(
                "performance.getEntriesByType('resource').map((it) => new URL(it.name).host)"
            )
            assert fetched
            assert set(fetched) == {await made.value("location.host")}

    page(does)
