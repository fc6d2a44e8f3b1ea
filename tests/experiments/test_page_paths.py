# SPDX-License-Identifier: MIT
"""A page over two last miles, of whose answers lp is told by the loader, or rp by their heads."""

import asyncio
import re
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from experiments import parameters
from experiments.catalogue.page_paths import PagePaths
from experiments.failure import RunFailed
from experiments.labs import Labs
from experiments.prepare import wanted_by
from experiments.workloads.web.hints import Hints
from experiments.workloads.web.load import Plan
from experiments.workloads.web.page import Item
from experiments.workloads.web.pages import page
from experiments.workloads.web.transport import LoadError
from tests.conftest import why_no_namespace
from tests.experiments.workload_run import live

SITE = "site-05"
CHOSEN: dict[str, Any] = {
    **{"preset": "wifi-lte", "pipes": 2, "second_rtt_ms": 70.0, "page": SITE},
    **{"conn_policy": "srpt", "path_policy": "ecf"},
}
STYLE = Item(1, 0, "style", 2560, 0)
IMAGE = Item(2, 0, "image", 256, 0)
US = ("10.0.1.1", 40312)


def need_a_lab(test: Callable[..., None]) -> Callable[..., None]:
    why = why_no_namespace()
    tun = pytest.mark.skipif(not Path("/dev/net/tun").exists(), reason="no /dev/net/tun for linkem")
    return pytest.mark.skipif(why is not None, reason=str(why))(tun(test))


@pytest.fixture(scope="module")
def labs() -> Iterator[Labs]:
    with Labs() as made:
        yield made


@need_a_lab
@pytest.mark.parametrize("sizes", ["none", "http", "hints"])
def test_what_rp_hears_of_sizes(labs: Labs, tmp_path: Path, sizes: str) -> None:
    """Of each answer with hints; else of none."""
    experiment = PagePaths()
    params = parameters.complete(experiment.parameters, {**CHOSEN, "sizes": sizes})
    more = wanted_by(experiment, params, tmp_path)
    with live(labs, tmp_path, params, more=more) as made:
        measures = experiment.measure(made)
        assert made.pair is not None
        rp, lp = made.pair.rp.argv, made.pair.lp.argv
    pair = made.pair
    assert ("http" in rp, "http" in lp) == (sizes == "http", False)
    assert ("--control" in lp) == (sizes == "hints")
    assert measures["bytes"] == page(SITE).bytes and 0 < measures["far_share"] < 1
    wanted = len(page(SITE).items) if sizes == "hints" else 0
    assert measures.get("hints", 0) == wanted
    counted = {
        who: {it["type"]: it for it in pair.statistics(who)}["counters"] for who in ("rp", "lp")
    }
    sent, heard = counted["lp"]["hints_sent"], counted["rp"]["hints_received"]
    # One that overtakes its OPEN is nobody's, and said once more when rp has answered. Copies are
    # of what was overdue: an acknowledgement waits behind the page on the way down.
    came = heard + counted["rp"]["hints_dropped"]
    assert wanted <= heard and sent <= came <= sent + counted["lp"]["copies"]
    assert sent <= wanted + measures["connections"]
    assert counted["rp"]["hints_dropped"] <= measures["connections"]
    if sizes != "hints":
        assert sent == 0


@need_a_lab
@pytest.mark.skipif(
    shutil.which("chromium") is None,
    reason="no chromium on this machine: sudo .ci/setup experiments/packages.debian",
)
def test_chromium_over_two_last_miles(labs: Labs, tmp_path: Path) -> None:
    experiment = PagePaths()
    chosen = {**CHOSEN, "browser": "chromium", "sizes": "http"}
    params = parameters.complete(experiment.parameters, chosen)
    with live(labs, tmp_path, params, more=wanted_by(experiment, params, tmp_path)) as made:
        measures = experiment.measure(made)
    assert measures["bytes"] == page(SITE).bytes
    assert measures["requests"] == len(page(SITE).items)
    assert measures["completion_s"] > 0 and 0 < measures["far_share"] < 1


def test_what_goes_not_together_is_said() -> None:
    told = {"way": "pipes", "sizes": "hints"}
    for more in ({"protocol": "http2"}, {"browser": "chromium"}):
        with pytest.raises(RunFailed, match=r"hints are for the loader, and by HTTP/1\.1"):
            Plan.of({**told, **more})
    assert Plan.of(told).hints
    assert not Plan.of({**told, "sizes": "http"}).hints


@asynccontextmanager
async def of_lp(
    path: Path, answer: Callable[[str], str]
) -> AsyncIterator[tuple[Hints, "asyncio.Task[None]"]]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(f"{answer(line.decode().rstrip())}\n".encode())
        writer.close()

    async with await asyncio.start_unix_server(serve, path):
        hints = await Hints.open(path)
        listening = asyncio.create_task(hints.listen())
        try:
            yield hints, listening
        finally:
            listening.cancel()
            hints.writer.close()
        await asyncio.gather(listening, return_exceptions=True)


def said(tmp_path: Path, answer: Callable[[str], str]) -> tuple[list[str], int]:
    """What lp is told of a style and an image, and how many it took."""
    lines: list[str] = []

    def noted(line: str) -> str:
        lines.append(line)
        return answer(line)

    async def work() -> int:
        async with of_lp(tmp_path / "lp.sock", noted) as (hints, _):
            hints.tell(US, STYLE)
            hints.tell(US, IMAGE)
            await hints.all_told()
            return hints.told

    return lines, asyncio.run(asyncio.wait_for(work(), 10))


def test_lp_is_told_how_large_and_how_urgent(tmp_path: Path) -> None:
    lines, took = said(tmp_path, lambda _: "ok")
    assert lines == [
        "hint 10.0.1.1:40312 size=3082 urgency=7",  # 0 of RFC 9218
        "hint 10.0.1.1:40312 size=769 urgency=4",  # 3
    ]
    assert took == 2


def test_a_connection_that_lp_does_not_know_yet_is_named_again(tmp_path: Path) -> None:
    answers = iter([f"error: there is no connection {US}"] * 3)
    lines, took = said(tmp_path, lambda _: next(answers, "ok"))
    assert (took, len(lines)) == (2, 5)


@pytest.mark.parametrize(
    "refusal", ["error: rp does not understand hints", f"error: there is no connection {US}"]
)
def test_what_lp_refuses_is_an_error(tmp_path: Path, refusal: str) -> None:
    async def work() -> None:
        async with of_lp(tmp_path / "lp.sock", lambda _: refusal) as (hints, listening):
            hints.tell(US, STYLE)
            await listening

    with pytest.raises(LoadError, match=f"lp: hint .*: {re.escape(refusal)}"):
        asyncio.run(asyncio.wait_for(work(), 10))
    with pytest.raises(LoadError, match=r"nobody\.sock: No such file"):
        asyncio.run(Hints.open(tmp_path / "nobody.sock"))
