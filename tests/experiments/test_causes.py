# SPDX-License-Identifier: MIT
"""Causes: what each law expects of runs that are made up by it, and of such that are not."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from experiments import catalogue, parameters
from experiments.causes import lossy, split
from experiments.causes.apart import Apart
from experiments.causes.before import Before
from experiments.causes.bursts import Bursts, OfBoth
from experiments.causes.cause import Seen, Setting, Side, explains_ratio
from experiments.causes.chunks import Chunks
from experiments.causes.drains import Drains, queue_up
from experiments.causes.dswa import Dswa
from experiments.causes.fair import Fair
from experiments.causes.filled import Filled
from experiments.causes.front import Download, Front
from experiments.causes.goes_with import GoesWith, chance, spearman
from experiments.causes.handshake import Handshake
from experiments.causes.headers import Headers
from experiments.causes.in_all import InAll
from experiments.causes.lossy import Lossy
from experiments.causes.optimum import Optimum
from experiments.causes.otherwise import Nearer, Otherwise, Unused
from experiments.causes.overdue import Overdue
from experiments.causes.printed import Printed, RoundTrip
from experiments.causes.turns import Turns
from experiments.causes.uneven import Uneven
from experiments.causes.units import size, three
from experiments.report.data import load
from experiments.report.seen import side as side_of
from experiments.report.seen import wants_cause
from experiments.workloads import account
from experiments.workloads.mhttp import begun
from experiments.workloads.mhttp.experiment import BY_RANGES
from experiments.workloads.mhttp.serial import Served
from experiments.workloads.smt.experiment import BASE
from tests.experiments import synthetic
from topologies.parameter import Params

GAP = "\N{NO-BREAK SPACE}"
NOTHING = Side([])
EARLY: Params = {"way": "pipes", "pipes": 1, "binding": "early", "bottleneck": "sender"}
LATE: Params = {"way": "pipes", "pipes": 8, "binding": "late"}
DIRECT: Params = {"way": "direct", "pipes": 0}
WIRED_MBPS = 10 * 1448 / 1514


def configuration(params: Params, of: str = "sender-blocking") -> Params:
    return parameters.complete(catalogue.find(of).parameters, params)


def side(*settings: tuple[Params, Mapping[str, float]], of: str = "sender-blocking") -> Side:
    return Side([Setting(configuration(params, of), measured) for params, measured in settings])


def seen(of: Side, over: Side | None = None, **more: Any) -> Seen:
    told = {"metric": "completion_s", "ours": 1.0, "paper": None, "paper_sides": (None, None)}
    return Seen(**{**told, "of": of, "over": over, "select": lambda _: NOTHING, **more})


def plain(text: str) -> str:
    return text.replace(GAP, " ")


def front(took_s: float, published_s: float, params: Params, cause: Front | None = None) -> str:
    late = side((LATE, {"object_p50_s": 0.06}))
    early = side((params, {"object_p50_s": took_s}))
    told = seen(late, early, metric="object_p50_s", paper_sides=(0.06, published_s))
    return plain((cause or Front()).tell(told))


def seconds_of(count: float) -> float:
    return 0.054 + count * 8e-6 / WIRED_MBPS


def test_an_object_waits_for_what_stands_in_front() -> None:
    """Only the side that has something in front of it says so."""
    told = front(seconds_of(2e6), seconds_of(1e6), {**EARLY, "pipe_sndbuf": 2_000_000})
    assert "what 2 MB in front of the object take at 9.56 Mbit/s" in told
    assert "room for 2.12 MB (2 MB in send buffers, 120 KB in the last mile's queue)" in told
    assert "which explains ours" in told
    part = "with 44 % of the send buffers full; all of them take as long at 20.3 Mbit/s"
    assert f"is what 1 MB take at that rate, {part}" in told
    assert told.count("in front of the object") == 1, "late binding has nothing in front"
    half = front(seconds_of(1e6), seconds_of(1e6), {**EARLY, "pipe_sndbuf": 2_000_000})
    assert "which does not explain ours" in half


def test_the_kernels_own_buffer_is_what_is_left() -> None:
    told = front(seconds_of(150e3), seconds_of(250e3), EARLY)
    assert "120 KB in the last mile's queue at most, and 30.4 KB in the kernel's send" in told
    assert "is what 250 KB take at that rate." in told, "nobody knows how much room there was"


def test_what_the_pipes_statistics_have_is_a_test_of_it() -> None:
    on_the_way = 0.05 * WIRED_MBPS * 1e6 / 8

    def sampled(held: float) -> str:
        measured = {"object_p50_s": seconds_of(2.1e6), "held_bytes": held}
        early = side(({**EARLY, "app_buffer": 2_000_000}, measured))
        both = (0.06, 1.0)
        told = seen(side((LATE, {})), early, metric="object_p50_s", paper_sides=both)
        return plain(Front().tell(told))

    right = sampled(100e3 + on_the_way)
    assert "160 KB were unsent or in flight, 59.8 KB of them a round trip's" in right
    assert "with the proxy's queues 2.1 MB stood in front, which explains ours" in right
    assert "3 MB stood in front, which does not explain ours" in sampled(1e6 + on_the_way)


def test_published_times_of_several_rates_are_one_buffer_or_not() -> None:
    def at(published: Mapping[float, float]) -> str:
        return front(1.0, 1.0, EARLY, Front(0.05, published))

    same = {rate: 0.05 + 100e3 * 8e-6 / (rate * 1448 / 1514) for rate in (5.0, 10.0, 20.0)}
    assert "At 5, 10, 20 Mbit/s the published ones are 100 KB, 100 KB, 100 KB: the same" in at(same)
    assert "another one at each rate" in at(dict.fromkeys(same, 0.2))


@pytest.mark.parametrize(("took_s", "says"), [(0.35, "which explains"), (0.6, "does not explain")])
def test_a_download_in_front_less_what_went_before(took_s: float, says: str) -> None:
    params: Params = {**EARLY, "app_buffer": 8_000_000, "beside": 500_000}
    of = side((params, {"completion_s": took_s}), of="object-size")
    told = plain(Download("beside", 0.2, 0.05).tell(seen(of, paper_sides=(0.47, 0.05))))
    assert "0.272 s to 0.472 s are expected" in told and says in told
    assert told.endswith("which explains the published 0.47 s.")


def test_a_ratio_may_be_as_printed() -> None:
    told = seen(NOTHING, NOTHING, ours=4.0, paper_sides=(0.22, 0.05))
    assert "may be a ratio of 3.91 to 5" in plain(Printed(0.01).tell(told))
    assert not Printed(0.01).tell(seen(NOTHING, NOTHING, ours=3.0, paper_sides=(0.22, 0.05)))


def test_a_round_trip_alone() -> None:
    of = side((DIRECT, {}))
    told = plain(RoundTrip(0.01).tell(seen(of, ours=0.0565, paper=0.05)))
    assert "Of 56.5 ms the round trip of the lab is 54 ms, and 2.5 ms the object." in told
    assert "below 55 ms, so its round trip was below 52.5 ms" in told


def test_what_a_loss_leaves_of_a_rate() -> None:
    """A tenth of a link whose loss makes it so; the law back and forth."""
    rate = lossy.carried_mbps(0.01, 0.05)
    assert rate == pytest.approx(2.837, abs=1e-3)
    assert lossy.loss_for(rate, 0.05) == pytest.approx(0.01)

    def by(slow_s: float, fast_s: float) -> str:
        params: Params = {"preset": "lossy", "size": 2_000_000}
        over = side(({**LATE, **params, "pipes": 1}, {"completion_s": slow_s}), of="download")
        of = side(({**LATE, **params}, {"completion_s": fast_s}), of="download")
        return plain(Lossy("size").tell(seen(of, over, ours=fast_s / slow_s, paper=0.68)))

    told = by(5.6, 1.75)
    assert (
        "one pipe at 1 % loss should carry 2.84 Mbit/s and carried 2.88 Mbit/s (2 MB), which"
        in told
    )
    assert "8 pipes at 1 % loss should carry 9.56 Mbit/s, as much as the link, and carried" in told
    assert "The published 0.68 leaves 6.5 Mbit/s: a loss of 0.19 %" in told
    assert "which does not explain ours" in by(2.0, 1.75)


def test_the_law_of_losses_is_of_many_losses() -> None:
    params: Params = {"preset": "lossy", "size": 300_000}
    over = side(({**LATE, **params, "pipes": 1}, {"completion_s": 0.5}), of="download")
    of = side(({**LATE, **params}, {"completion_s": 0.4}), of="download")
    assert not Lossy("size").tell(seen(of, over, paper=0.47))


def test_pages_that_are_over_before_a_loss_tells() -> None:
    pages = {"site-02": (0.8e6, 1.2, 1.0), "site-26": (5e6, 20.0, 5.0)}
    base: Params = {"protocol": "http2", "loss": 0.015}
    both = [
        side(
            *(
                ({**base, **way, "page": page}, {"page_bytes": count, "completion_s": times[which]})
                for page, (count, *times) in pages.items()
            ),
            of="loss",
        )
        for which, way in enumerate((DIRECT, LATE))
    ]
    told = plain(Lossy("page_bytes", "page").tell(seen(both[1], both[0], paper=0.58)))
    assert "The smallest page, of 800 KB, took 0.833 of the other side's time, the largest" in told
    assert told.endswith("or pages that are as small as 800 KB.")


def test_headers_are_a_share_of_messages() -> None:
    def by(ours: float, **measured: float) -> str:
        of = Side([Setting({}, {"message_bytes": 792.0, **measured})])
        return plain(Headers(8).tell(seen(of, ours=ours, paper=2.0)))

    assert "1 % expected, 1 % measured, which explains ours" in by(1.0)
    assert "that of messages of 392 bytes, or of 16.2 bytes of header each" in by(1.0)
    assert "which does not" in by(3.0)
    # With the extension ACKs are messages, too, and their bytes nobody's.
    told = by(1.1, data_bytes=992.0, acks=0.3)
    assert "carried 992 of the user here: 0.8 % and 0.3 % of ACKs expected, 1.1 % measured" in told
    assert "which explains ours" in told


@pytest.mark.parametrize(("ours", "says"), [(0.9, "explains"), (0.7, "explains that there is")])
def test_who_opens_a_connection_waits_for_it(ours: float, says: str) -> None:
    over = side(({"way": "haproxy"}, {"completion_s": 0.5}), of="download")
    of = side(({"way": "pipes", "pipes": 1}, {}), of="download")
    told = plain(Handshake().tell(seen(of, over, ours=ours, paper=1.0)))
    assert f"0.9 expected, {three(ours)} measured, which {says}" in told
    assert told.endswith("The published 1 leaves 0 ms for it.")


def test_half_of_the_rate_beside_a_download() -> None:
    late = Side([Setting({}, {"over_floor": 2.02})])
    early, deeper = (Side([Setting({}, {"over_floor": it})]) for it in (4.0, 10.0))
    cause = Fair(others={"deeper": {"which": "deeper"}, "the same": {}})

    def select(params: Params) -> Side:
        return deeper if params else early

    told = cause.tell(seen(late, early, paper=0.2, select=select))
    assert "2.02 times were measured, which explains ours" in told
    assert (
        "should not be below 0.5; the published 0.2 asks for 10 times, and deeper took 10" in told
    )


def test_what_is_reinjected_is_what_is_overdue() -> None:
    params: Params = {**LATE, "pipes": 4, "preset": "wifi-lte", "size": 1_448_000}

    def by(retransmits: float) -> str:
        of = side((params, {"retransmits": retransmits}), of="paths-reinject")
        return Overdue("size").tell(seen(of, ours=0.0, paper=0.015))

    assert "TCP sent 0 of 1000 segments again: nothing was missing" in by(0)
    assert "as many over another pipe would be 0.03 of the file, and 0 went there" in by(30)
    assert by(0).endswith("The published 0.015 is 15 segments.")


def test_a_full_path_loses_nothing_of_its_rate() -> None:
    params: Params = {**LATE, "preset": "lte"}

    def by(flies: float) -> str:
        of = side((params, {"in_flight_bytes": flies}), of="host-cc")
        return plain(Filled().tell(seen(of, paper=0.95)))

    assert "76.9 KB fill this path of 70 ms, and 154 KB were in flight, 2 times that" in by(153.8e3)
    assert "for want of them" in by(30e3)


def test_dswa_leaves_the_root_of_what_was_there() -> None:
    """λ = 2 and RTTmin = 70 ms: of 560 ms half is left."""
    params: Params = {**LATE, "preset": "lte", "aggregate": "dswa", "lambda": 2.0}
    of = side((params, {}), of="host-cc")
    over = side(({**LATE, "preset": "lte", "aggregate": "off"}, {"rtt_s": 0.56}), of="host-cc")

    def by(ours: float) -> str:
        return plain(Dswa().tell(seen(of, over, metric="in_flight_bytes", ours=ours, paper=0.4)))

    assert "of 2, 70 ms and 560 ms 0.5 is expected, 0.52 was measured, which explains" in by(0.52)
    assert "which does not explain ours" in by(1.0)
    assert "that of 12.5 RTTmin without it, where here are 8" in by(0.5)


def test_bursts_have_to_fit_a_shorter_window_too() -> None:
    """Bursts 500 ms apart are wrong by 2 at 100 ms, and by sqrt(24) at 20 ms."""
    cause = Bursts(0.1, "shorter", 0.02)

    def by(shorter: float) -> str:
        of = Side([Setting({}, {"shorter": shorter})])
        return plain(cause.tell(seen(of, ours=2.0, paper=3.0)))

    assert "is that of bursts 1000 ms apart" in by(4.9) and "would be of 500 ms" in by(4.9)
    assert by(4.9).endswith("nearer to each other.")
    assert by(2.1).endswith("here nothing is passed in such bursts.")
    of = Side([Setting({}, {"app": 0.5, "tcp": 0.1})])
    both = OfBoth({"app": 1.41, "tcp": 1.36}).tell(seen(of))
    assert both.startswith("Ours is 0.5 / 0.1, published 1.41 / 1.36")


def test_ranges_one_after_another_with_slow_start() -> None:
    """By hand: 100 segments a round trip of 0.1 s. 10, 20, 40 and 80 are 0.4 s, 50 more 0.05 s."""
    path = Served(rate=1448 * 1000.0, rtt_s=0.1)
    took = begun.Begun(path)
    assert took.takes_s(200 * 1448) == pytest.approx(0.1 + 0.4 + 0.05)
    assert took.takes_s(50 * 1448) == pytest.approx(0.1 + 0.05), "the window stays"
    assert begun.plain(path, 200 * 1448) == pytest.approx(0.65)
    # Two ranges by two paths: the second connects when the first is whole.
    first = 0.1 + 0.1 + 0.4 + 0.05
    two = begun.seconds([path, path], 200 * 1448, 400 * 1448)
    assert two == pytest.approx(first + 0.1 + 0.2), "the first path has the second one sooner"
    # Over both at once 20, 40 and 80 are 0.3 s, 60 more 0.03 s.
    assert begun.together([path, path], 200 * 1448) == pytest.approx(0.2 + 0.3 + 0.03)


def test_ranges_are_held_to_what_they_should_take() -> None:
    params: Params = {"preset": "wired", "way": "direct", "wan_rtt_ms": 0.0, "mbps": 100.0}
    params |= {"rtt_ms": 50.0, "size": 16_000_000}
    of = side(({**params, "fetch": "mhttp", "chunk": 1_024_000}, {}), of="mhttp-overhead")
    over = side(({**params, "fetch": "http", "path": 1}, {}), of="mhttp-overhead")
    told = plain(BY_RANGES.tell(seen(of, over, ours=1.48, paper=1.075)))
    assert "a ratio of 1.45; 1.48 was measured, which explains ours" in told
    assert "Without any round trips it would be 1; the published 1.07 is that of 13" in told
    other = BY_RANGES.tell(seen(of, over, ours=0.9, paper=0.5))
    assert "which does not explain ours" in other and "is not the published 0.5 either" in other


def test_pages_save_until_their_html_is_there() -> None:
    def pages(html_s: float, took_s: float) -> Side:
        return Side([Setting({"page": "a"}, {"html_s": html_s, "completion_s": took_s})])

    told = plain(Before("html_s", "page").tell(seen(pages(0.1, 0), pages(0.3, 2.0), ours=0.91)))
    assert not told, "nothing was published that it could be held to"
    told = Before("html_s", "page").tell(seen(pages(0.1, 1), pages(0.3, 2.0), ours=0.91, paper=0.8))
    assert "0.9 expected, 0.91 measured, which explains ours." in told
    assert "pages that take 1" in told


def test_what_is_as_published_without_a_circumstance() -> None:
    constant = Side([Setting({}, {"completion_s": 3.0})])
    cause = Otherwise("At a rate that does not change", {"rate": 8.0}, "more", 1.0)
    told = seen(NOTHING, ours=0.8, select=lambda _: constant)
    assert cause.tell(told).endswith("it is 3 instead of 0.8, as it should be: that is the cause.")
    half = Side([Setting({}, {"completion_s": 6.0})])
    told = seen(NOTHING, half, ours=0.8, select=lambda _: constant)
    assert "it is 0.5 instead of 0.8, so that is not the cause" in cause.tell(told)
    assert not cause.tell(seen(NOTHING)), "of what was not run nothing is said"
    used = Side([Setting({}, {"share": 0.1})])
    assert not Unused("share", "What").tell(seen(used))
    assert Unused("share", "What").tell(seen(Side([Setting({}, {"share": 0.0})])))


@pytest.mark.parametrize(
    ("without", "says"),
    [
        (101.0, "which is what was published: that is the cause."),
        (141.0, "nearer to what was published: that is part of the cause."),
        (261.0, "no nearer to what was published, so that is not the cause."),
        (300.0, "no nearer to what was published, so that is not the cause."),
        (0.0, "no nearer to what was published, so that is not the cause."),
    ],
)
def test_what_is_nearer_without_a_circumstance(without: float, says: str) -> None:
    side = Side([Setting({}, {"completion_s": without})])
    told = seen(NOTHING, ours=273.0, paper=109.0, select=lambda _: side)
    begins = f"With TCP_NODELAY it is {three(without)} instead of 273, "
    assert Nearer("With TCP_NODELAY", {"nagle": False}).tell(told) == begins + says
    assert not Nearer("What", {}).tell(seen(NOTHING, paper=1.0)), "of what was not run"
    half = Side([Setting({}, {"completion_s": 2 * without})])
    two = Side([Setting({}, {"completion_s": 2.0})])
    ratio = seen(NOTHING, two, ours=273.0, paper=109.0, select=lambda _: half)
    assert Nearer("With TCP_NODELAY", {"nagle": False}).tell(ratio) == begins + says


def test_chunks_stand_still_for_longer_than_there_is_no_network() -> None:
    cause = Chunks(0.98, 0.16, 0.04)
    of = side(({"preset": "bt-wifi", "wan_rtt_ms": 0.0}, {}), of="handover")
    told = plain(cause.tell(seen(of, ours=1.14, paper=0.98)))
    assert "up to 1.22 s expected, 1.14 s measured, which explains ours." in told
    assert "does not explain" in cause.tell(seen(of, ours=2.0, paper=0.98))
    assert not cause.tell(seen(of, ours=1.14, paper=43.6)), "another figure"
    assert not cause.tell(seen(NOTHING, ours=1.14, paper=0.98)), "of what was not run"


def test_what_a_ratio_goes_with() -> None:
    assert spearman([1, 2, 3, 4], [10, 20, 30, 25]) == pytest.approx(0.8)
    assert spearman([1, 1, 1], [1, 2, 3]) == 0
    rising = [float(it) for it in range(8)]
    assert chance(rising, rising) < 0.01 < 0.5 < chance(rising, [1, 0, 3, 2, 0, 3, 1, 2.0])

    def run(ratios: list[float]) -> str:
        of, over = (
            Side(
                [
                    Setting({"page": n}, {"completion_s": took, "share": n * which})
                    for n, took in enumerate(times)
                ]
            )
            for which, times in ((1.0, ratios), (0.0, [1.0] * len(ratios)))
        )
        return GoesWith("share", "the far path", "page").tell(seen(of, over))

    assert "larger where there is more of the far path (rank correlation 1" in run(rising)
    assert run([3.0, 1.0, 2.0, 3.0, 1.0, 2.0]).endswith("which decides nothing.")
    assert not run([1.0, 2.0])


def test_another_split_gains_at_most_what_the_paths_end_apart() -> None:
    over = Side([Setting({}, {"completion_s": 0.25, "apart": 0.025})])
    told = plain(Apart("apart", 0.86).tell(seen(NOTHING, over)))
    assert "10 % of its time after the other" in told and "0.86 cannot be reached" in told
    assert "reached" not in Apart("apart", 0.95).tell(seen(NOTHING, over))


def test_a_message_waits_for_what_its_pipe_holds_more() -> None:
    params: Params = {**EARLY, "pipes": 4, "pipe_sndbuf": 250_000}

    def by(most: float) -> str:
        of = side((params, {"reorder_max_bytes": most}), of="reordering")
        told = seen(of, metric="reorder_p75_s", ours=0.1, paper=1.0)
        return plain(Uneven().tell(told))

    assert "ours, 0.1 s, is a difference of 29.9 KB. 89.7 KB of the other pipes" in by(100e3)
    assert "at most 100 KB did, which fits." in by(100e3)
    assert "which does not fit." in by(50e3)
    assert by(50e3).endswith("of 299 KB: there is no room for it in send buffers of 250 KB.")


def test_a_page_is_as_much_sooner_as_more_was_carried() -> None:
    over, of = (
        Side([Setting({"page": "a"}, {"total_mbps": rate, "completion_s": 1.0})])
        for rate in (4.0, 5.0)
    )
    told = plain(InAll("total_mbps", "page").tell(seen(of, over, ours=0.82, paper=0.5)))
    assert "had 5 Mbit/s instead of 4 Mbit/s: by that 0.8 of the time is expected" in told
    assert "0.82 was measured, which explains ours" in told and "that of 2 times" in told
    told = InAll("total_mbps", "page").tell(seen(of, over, ours=1.2, paper=0.5))
    assert "which does not explain ours" in told


def test_no_policy_gains_more_than_is_left() -> None:
    over = Side([Setting({"rate": n}, {"over_optimum": it}) for n, it in enumerate((1.0, 1.1, 2))])
    told = Optimum().tell(seen(NOTHING, over, paper=0.6))
    assert "took 1.1 times" in told and "below 0.909, so the published 0.6 cannot" in told
    told = Optimum("furthest").tell(seen(NOTHING, over, paper=0.6))
    assert "took 2 times" in told and told.endswith("no ratio can be below 0.5.")


def test_a_full_buffer_drains_at_the_rate() -> None:
    cause = Drains("A firmware", lambda _: 300e3)
    of = side(({**DIRECT, "radio": "up", "up_mbps": 8.0}, {}), of="radio-delay")
    told = plain(cause.tell(seen(of, ours=301.0, paper=280.0)))
    assert "of 300 KB drains in 300 ms at 8 Mbit/s; 301 ms were measured, which explains" in told
    assert told.endswith("The published 280 ms are 280 KB at that rate.")
    assert "does not explain" in cause.tell(seen(of, ours=600.0, paper=280.0))
    assert queue_up(of.params) == pytest.approx(8e6 / 8 * 0.1), "100 ms of the wired last mile"


def test_two_paths_take_as_long_as_the_later_of_them() -> None:
    """By hand: the request goes 10 ms over the near path and 4 ms beyond; then 10 and 35 ms."""
    params: Params = {**LATE, "pipes": 1, "preset": "wifi-lte", "rtt_ms": 20.0}
    params |= {"second_rtt_ms": 70.0, "size": 200_000, "mbps": 10.0, "second_mbps": 10.0}
    near, far = split.paths(configuration(params, "paths-flows"))
    assert (near[1], far[1]) == (pytest.approx(0.024), pytest.approx(0.049))
    whole = 200_000 * 8e-6 / WIRED_MBPS
    assert split.takes_s(configuration(params, "paths-flows"), 200_000, 0.25) == pytest.approx(
        0.024 + 0.75 * whole
    )
    share, least = split.best(configuration(params, "paths-flows"), 200_000)
    assert least == pytest.approx((whole + 0.024 + 0.049) / 2)
    assert 0.049 + share * whole == pytest.approx(least)
    over, of = (side((params, {"share": it}), of="paths-flows") for it in (0.0, 0.25))
    told = plain(split.Split("size", "share", 0.79).tell(seen(of, over, ours=0.78)))
    assert "0 % and 25 % of the bytes over the second path" in told
    assert "a ratio of 0.781; 0.78 was measured, which explains ours" in told
    assert "so no split has" not in told
    told = split.Split("size", "share", 0.4).tell(seen(of, over, ours=0.78))
    assert told.endswith("so no split has the published 0.4.")


def by_turns(number: int, messages_per_s: float, mbps: float, share: float) -> Setting:
    measured = {"messages_per_s": messages_per_s, "mbps": mbps, "second_share": share}
    lossy: Params = {**BASE, "second_loss": 0.01, "distribution": number}
    return Setting(configuration(lossy, "smt-two-5"), measured)


def test_by_turns_both_paths_are_as_fast_as_the_slower_one() -> None:
    """Of the distribution whose ratio is the answer."""
    of = Side([by_turns(7, 175, 95.0, 0.05), by_turns(2, 960, 0.25, 0.1)])
    over = Side([by_turns(7, 17.5, 9.6, 0.5), by_turns(2, 800, 0.2, 0.5)])
    turns = Turns()
    told = plain(turns.tell(seen(of, over, ours=10.0, paper=2.0, metric="messages_per_s")))
    assert told == (
        "Chosen for each message the paths carried 90.2 Mbit/s and 4.75 Mbit/s. By turns neither "
        "carries more than the other, so 9.5 Mbit/s are expected of both; 9.6 Mbit/s were "
        "measured. That is a ratio of 10; 10 was measured, which explains ours. The published 2 is "
        "that of paths of which one carries 0.333 of the other."
    )
    told = plain(turns.tell(seen(of, over, ours=1.2, metric="messages_per_s")))
    assert told.startswith(
        "Neither path is full: 64 messages of 32 bytes may be unacknowledged, in"
    )
    assert "a round trip of 50 ms 0.328 Mbit/s at most" in told


@pytest.mark.parametrize(
    ("expected", "measured", "says"),
    [
        (0.93, 0.96, "explains ours"),
        (0.94, 1.03, "does not explain ours"),
        (0.50, 0.80, "explains that there is an effect, not its size"),
        (1.45, 1.48, "explains ours"),
        (1.00, 1.50, "does not explain ours"),
    ],
)
def test_a_ratio_is_explained_by_its_effect(expected: float, measured: float, says: str) -> None:
    assert explains_ratio(expected, measured) == f"which {says}"


def test_sizes_and_numbers_as_they_are_written() -> None:
    assert [size(it) for it in (14, 139e3, 999_600, 1.94e6)] == [
        *(f"14{GAP}bytes", f"139{GAP}KB", f"1{GAP}MB", f"1.94{GAP}MB"),
    ]
    assert [three(it) for it in (0.0558, 1234.5, 1e6)] == ["0.0558", "1234", "1000000"]


def test_a_setting_that_only_failed_is_none(tmp_path: Path) -> None:
    """It has no time, and the law of another one does not need it."""
    made = synthetic.make(tmp_path / "failed", synthetic.Plain())
    lines = [json.loads(line) for line in (made / "runs.jsonl").read_text().splitlines()]
    for line in lines:
        if line["params"]["pipes"] == 8:
            line |= {"outcome": "failed", "error": "x", "completion_s": None, "measures": {}}
    (made / "runs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    results = load(made)
    assert not side_of(results, {"pipes": 8}, "completion_s").settings
    (one, *_) = side_of(results, {"pipes": 1}, "completion_s").settings
    assert 0 < one.measured["completion_s"] < 100


def test_nothing_is_said_of_no_runs() -> None:
    """By no law of any claim: a report is made of what there is."""
    asked = [it for each in catalogue.experiments() for it in each.claims if it.causes]
    assert len(asked) > 100
    for claim in asked:
        over = None if claim.over is None else NOTHING
        told = seen(NOTHING, over, metric=claim.metric, paper=claim.paper)
        for cause in claim.causes:
            if not isinstance(cause, Printed):  # which is of what was published alone
                assert not cause.tell(told), f"{claim.says}: {cause}"


def test_a_cause_is_asked_for_where_a_figure_is_another() -> None:
    assert wants_cause("no", None) and wants_cause("yes", "weaker") and wants_cause("nil", None)
    assert not wants_cause("unclear", "unclear") and not wants_cause("yes", "yes")


def test_what_stood_in_sockets_is_sampled_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """The median of each pipe, of all pipes; nothing before and after."""
    monkeypatch.setattr("time.time", lambda: 1000.0)
    monkeypatch.setattr("time.monotonic", lambda: 0.0)
    records = [
        {"type": "pipe", "time": 1000.0 + at, "session": 1, "pipe": pipe, "unsent": held - 10}
        | {"in_flight": 10}
        for pipe in (0, 1)
        for at, held in ((1.0, 900), (2.0, 100 + pipe), (2.1, 300 + pipe), (2.2, 200 + pipe))
    ]
    assert account.held([*records, {"type": "conn"}], 1.5, 3.0) == 200 + 201
    assert account.held(records, 5.0, 6.0) is None
