# SPDX-License-Identifier: MIT
"""The experiments with transfers: what they say of themselves, and each once in a small lab."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments import preflight, sweep
from experiments.catalogue import find, loss_blocking, share
from experiments.catalogue.fairness import shares
from experiments.catalogue.paths_reinject import FAR_WIFI
from experiments.catalogue.sender_blocking import TABLE
from experiments.failure import RunFailed
from experiments.labs import Labs
from experiments.model import Experiment
from experiments.prepare import wanted_by
from experiments.workloads import rivals, traffic
from experiments.workloads.actors import Pause
from tests.experiments.workload_run import configuration, live
from tests.net.conftest import labs
from topologies.parameter import Params

__all__ = ["labs"]

SMT_TWO = tuple(f"smt-two-{number}" for number in range(1, 6))
NAMES = (
    *("asymmetric", "blocking", "dns-router", "download", "download-40", "fairness", "host-cc"),
    *("loss-blocking", "object"),
    *(
        "object-size",
        "overhead",
        "page-paths",
        "radio-apps",
        "radio-delay",
        "radio-error",
        "radio-qcut",
        "reordering",
        "sender-blocking",
        "sender-blocking-lte",
        "share",
        "short-connections",
        "slow-reader-crowd",
        "smt-single",
        *SMT_TWO,
        "mhttp-event",
        "mhttp-large",
        "mhttp-one-server",
        "mhttp-overhead",
        "mhttp-resolvers",
        "mhttp-scheduler",
        "mhttp-small",
        "extension-costs",
        "extension-lossy",
        "thin",
        "thin-beside",
        "thin-loss",
        "thin-settings",
        "throughput",
        "udp",
        "video",
    ),
    *("attacks", "handover", "paths-failover", "paths-file", "paths-flows", "paths-objects"),
    *("paths-proxy", "paths-rates", "paths-reinject", "paths-rules", "paths-share"),
    *("paths-split", "paths-vary"),
    *("recovery", "slow-reader", "walkthrough", "web-beside"),
)
# LTE's lines; most cases
ONLY_IN_FULL = (
    *(
        "download",
        "download-40",
        "reordering",
        "blocking",
        "share",
        "slow-reader",
        "thin",
        "web-beside",
    ),
    *("extension-costs", "extension-lossy", "paths-file", "paths-rates", "paths-share"),
    *("paths-split", "paths-vary", "radio-apps", "radio-qcut"),
    *("thin-loss", "udp"),
)


def has(params: list[Params], wanted: Params) -> bool:
    return any(all(it[name] == value for name, value in wanted.items()) for it in params)


@pytest.mark.parametrize("name", NAMES)
def test_the_runs_that_a_claim_is_about_are_in_the_sweep(name: str) -> None:
    experiment = find(name)
    for quick in (False, True):
        params = sweep.configurations(experiment, {}, quick=quick)
        assert params
        for claim in experiment.claims:
            for wanted in filter(None, (claim.of, claim.over)):
                there = has(params, wanted) or (quick and name in ONLY_IN_FULL)
                assert there, f"{claim.says}: no run with {wanted}"


@pytest.mark.parametrize("name", NAMES)
def test_claims_of_a_quick_sweep_have_runs_enough_to_be_decided(name: str) -> None:
    """Each unit, a page for instance, counts as one."""
    experiment = find(name)
    quick = sweep.configurations(experiment, {}, quick=True)
    units = len({tuple(it[unit] for unit in experiment.units) for it in quick})
    assert not experiment.claims or units * min(experiment.quick_reps, experiment.reps) >= 5


@pytest.mark.parametrize("name", NAMES)
def test_figures_and_claims_use_what_there_is(name: str) -> None:
    experiment = find(name)
    own = {it.name for it in experiment.metrics} | {"completion_s"}
    known = set(sweep.configurations(experiment, {}, quick=True)[0])
    for figure in experiment.figures:
        used = {figure.hue, figure.facet} - {""}
        used |= set() if figure.kind == "ccdf" else {figure.x}  # a list that runs have
        assert used <= known | own, figure.name
    for claim in experiment.claims:
        assert claim.metric in own, claim.says


BY_LOAD = ("extension-costs", "radio-apps")  # each run measures what its load is about
EXTENDS = ("auto", "never")
# For what lasts as long however much is carried: each packet costs the processor its time.
SLOW = {"mbps": 8.0}
HURRY = {"p1": 0.5, "p2": 1.0, "p3": 0.5, "p4": 0.5, "link": "linkem", "mbps": None, "rtt_ms": None}
RADIO = {"radio": "up", "settle_s": 0.5}
TWO_SERVERS = {"way": "direct", "topology": "two", "servers": 2, "size": 600_000, "chunk": 100_000}
SMALL_FILE = {
    **{"preset": "wifi-lte", "size": 50_000, "warm": True, "warm_size": 200_000, "idle_s": 0.3}
}
SMALL: dict[str, list[dict[str, Any]]] = {
    "asymmetric": [
        {"size": 50_000, "transfer": transfer, "up_mbps": 5.0}
        for transfer in ("down", "up", "down-beside-up")
    ],
    "attacks": [
        {"attack": attack, "quiet_s": 0.5, "attack_s": 1.0}
        for attack in ("network-of-64", "replayed-handshake")
    ],
    "blocking": [
        {"bulks": 3, "bulk_way": "up", **SLOW},
        {"trace_down": "synthetic-lte", "loss": 0.01, "rivals": 1},
        {"bulk_way": "up", "binding": "early", "jitter_ms": 2.0, **SLOW},
        {"bottleneck": "sender", "link": "veth", "rtt_ms": 0.0, "wan_rtt_ms": 0.0, "mbps": 20.0},
    ],
    "dns-router": [
        {"queries": 40, "every_ms": 20.0, "loss": 0.05, "upstream": upstream, "way": way}
        for upstream, way in (("none", "direct"), ("direct", "direct"), ("forward", "pipes"))
    ],
    "download": [{"size": 50_000, "way": way} for way in ("pipes", "direct", "mptcp")],
    "download-40": [{"size": 50_000, "down_mbps": 40.0}],
    "extension-costs": [
        {"load": "stream", "seconds": 1.0, "extend": "never"},
        {"load": "object", "seconds": 1.0, "bottleneck": "sender"},
        {"load": "both-ways", "seconds": 1.0, "up_mbps": 2.0},
    ],
    "extension-lossy": [{"size": 50_000, "loss": 0.01, "extend": extend} for extend in EXTENDS],
    "fairness": [{"plain": 2, "seconds": 1.0, "way": way, **SLOW} for way in ("pipes", "direct")],
    "handover": [{"preset": "bt-wifi", "way": "direct", "policy": "h2", "slope": 20.0, **HURRY}],
    "host-cc": [
        {"seconds": 1.0, "plain": 1, "aggregate": "dswa", "lambda": 2.0, **SLOW},
        {"seconds": 1.0, "way": "direct", **SLOW},
    ],
    "loss-blocking": [
        {"seconds": 1.0, "loss": 0.05, "connections": 3},
        {"seconds": 1.0, "connections": 2, "way": "direct"},
    ],
    "mhttp-event": [{**TWO_SERVERS, "size": 9_000_000}, {**TWO_SERVERS, "fetch": "http"}],
    "mhttp-large": [{**TWO_SERVERS, "scheduler": "ahead"}],
    "mhttp-one-server": [
        {**TWO_SERVERS, "servers": 1, "size": 3_000_000, "fetch": "http", "way": way}
        for way in ("pipes", "mptcp")
    ],
    "mhttp-overhead": [
        {"way": "direct", "size": 300_000, "chunk": 100_000, "scheduler": "next"},
        {"way": "direct", "size": 300_000, "fetch": "http"},
    ],
    "mhttp-resolvers": [
        {**TWO_SERVERS, "servers": 3, "resolvers": asked} for asked in ("local", "public", "both")
    ],
    "mhttp-scheduler": [{**TWO_SERVERS, "second_mbps": 2.0, "scheduler": "deadline"}],
    "mhttp-small": [
        TWO_SERVERS,
        {**TWO_SERVERS, "size": 8_000},
        {**TWO_SERVERS, "fetch": "http", "path": 2},
    ],
    "object": [
        {"bulk": False, **SLOW},
        {"bulk": True, "bulk_way": "up", **SLOW},
        {"way": "direct", **SLOW},
    ],
    "object-size": [{"beside": 0}, {"beside": 200_000, "binding": "early"}],
    "overhead": [{"load": load} for load in ("file", "upload", "objects", "short", "video")],
    "page-paths": [
        {"preset": "wifi-lte", "mbps": None, "page": "site-02", "second_rtt_ms": 40.0, **how}
        for how in ({"path_policy": "ecf", "conn_policy": "drr"}, {"way": "mptcp"})
    ],
    "paths-file": [
        {"preset": "wifi-lte", "size": 50_000, "path_policy": policy, "second_rtt_ms": 40.0}
        for policy in ("ecf", "dems-s", "one:lte")
    ],
    "paths-rates": [
        {**SMALL_FILE, "down_mbps": 2.5, "second_down_mbps": 17.5, "path_policy": "dems-f"}
    ],
    "paths-split": [
        {**SMALL_FILE, "path_policy": "split", "wifi_share": 0.3},
        {**SMALL_FILE, "path_policy": "best-split", "second_rtt_ms": 270.0},
        {**SMALL_FILE, "path_policy": "best-split", "warm": False},
    ],
    "paths-vary": [
        {**SMALL_FILE, "path_policy": "dems-f", **traces}
        for traces in (
            {"delay_trace": "synthetic-rtt:50:40:1", "second_delay_trace": "synthetic-rtt:70:50:1"},
            {"trace_down": "synthetic-rate:7:54:1", "second_trace_down": "synthetic-rate:9:92:1"}
            | {"varies": "rate"},
        )
    ],
    "radio-apps": [
        {**RADIO, "app": app, "load": load, "seconds": 2.0, "way": way}
        for app, load, way in (
            ("page", "upload", "direct"),
            ("video", "alone", "direct"),
            ("download", "upload", "direct"),
            ("udp", "upload", "direct"),
            ("object", "upload", "pipes"),
        )
    ],
    "paths-reinject": [
        {**FAR_WIFI, "preset": "wifi-lte", "size": 50_000, "loss": 0.01, "reinject": mode}
        for mode in ("timely", "mpflex")
    ],
    "paths-failover": [
        {"preset": "wifi-lte", "pipes": 4, "at_s": 0.7, "after_s": 2.2, **how}
        for how in (
            {"event": "wifi-down", "transfer": "down", "backup": True},
            {"event": "lte-silent", "transfer": "up"},
            {"event": "only-lte", "transfer": "up"},
        )
    ],
    **{
        name: [
            {"preset": "wifi-lte", "size": 20_000, "count": 4, "parallel": 2, **how}
            for how in (
                {"pipes": 1, "path_policy": "txdelay", "mbps": 4.0},
                {"way": "mptcp", "primary": "lte", "mbps": 4.0},
            )
        ]
        for name in ("paths-flows", "paths-proxy")
    },
    "paths-objects": [
        {"preset": "mobile-dsl", "mbps": None, "rtt_ms": None, "objects": 9, "gap_s": 0.1, **how}
        for how in (
            {"conn_policy": "srpt", "path_policy": "ecf"},
            {"conn_policy": "rr", "path_policy": "minrtt"},
        )
    ],
    "paths-share": [
        {"preset": "wifi-lte", "rivals": 1, "seconds": 1.0, "shared": "lte", "how": how}
        | {"way": "direct" if how == "plain-4" else "pipes", "mbps": 4.0}
        for how in ("both", "bound", "copies", "plain-4")
    ],
    "paths-rules": [
        {"preset": "wifi-lte", "rules": rules, "seconds": 0.3, "second_rtt_ms": 70.0}
        for rules in ("none", "both")
    ],
    "radio-delay": [{"radio": "up", "settle_s": 0.5, "seconds": 1.0, "up_mbps": 8.0}],
    "radio-error": [
        {"radio": "up", "settle_s": 0.5, "seconds": 1.5, "way": way} for way in ("direct", "pipes")
    ],
    "radio-qcut": [
        {"radio": "up", "settle_s": 0.5, "seconds": 1.0, "gate": "delay:20", "way": "direct"}
    ],
    "recovery": [{"event": "reset", "at_s": 0.5, "after_s": 1.0, "extend": "never"}],
    "reordering": [{"size": 2_500_000, "binding": "early", "pipe_sndbuf": 100_000}],
    "sender-blocking": [
        {"bottleneck": "sender", "binding": "early", "app_buffer": 50_000},
        {"bottleneck": "sender", "way": "direct"},
    ],
    "sender-blocking-lte": [{"bottleneck": "network"}],
    "share": [
        {"seconds": 1.0, "rivals": 2, "rival_cc": "reno", **way, **SLOW}
        for way in ({"way": "pipes"}, {"way": "direct"})
    ],
    "slow-reader": [{"readers": 2, "takes": "1.2MB/s", "alone_s": 0.5, "beside_s": 0.5}],
    "slow-reader-crowd": [{"readers": 40, "alone_s": 0.5, "beside_s": 0.5}],
    "smt-single": [
        {"way": "direct", "seconds": 0.5, "rest_s": 0.1, "carrier": carrier}
        for carrier in ("tcp", "quic", "quic-ordered")
    ],
    **{
        name: [
            {"way": "direct", "topology": "two", "seconds": 0.5, "distribution": 8, **more}
            for more in ({"policy": "even"}, {"policy": "closure", "printed": True})
        ]
        for name in SMT_TWO
    },
    "thin": [{"queries": 10}, {"queries": 5, "way": "direct"}],
    "thin-beside": [{"queries": 10, "bulk": bulk, **SLOW} for bulk in ("none", "same", "apart")],
    "thin-settings": [
        {"queries": 20, "every_ms": 5.0, "early_retrans": 0},
        {"queries": 10, "every_ms": 5.0, "thin_linear_timeouts": 1, "way": "direct"},
    ],
    "thin-loss": [
        {"queries": 20, "every_ms": 5.0, "thin": "same-pipe"},
        {"queries": 12, "burst": 3, "by": "fresh", "way": "direct"},
        {"queries": 10, "by": "tls", "way": "direct"},
        {"queries": 200, "every_ms": 2.0, "by": "udp", "stub": "windows", "loss": 0.02}
        | {"way": "direct"},
    ],
    "short-connections": [{"count": 10, "parallel": 4}],
    "throughput": [{"direction": "both", "seconds": 1}],
    "udp": [{"seconds": 0.5}, {"seconds": 0.5, "load": "alone", "way": "direct"}],
    "video": [{"seconds": 1.0, "bulk": True}, {"seconds": 1.0, "bulk": False}],
    "walkthrough": [{"count": 3}],
    "web-beside": [
        {"rounds": 1, "bulk_s": 1.0, "binding": "early", "jitter_ms": 2.0},
        {"rounds": 1, "bulk_s": 1.0, "rivals": 1, "loss": 0.01},
    ],
}


@pytest.fixture
def kept(labs: Path) -> Iterator[Labs]:
    with Labs() as made:
        yield made


def whole(experiment: Experiment, params: Params) -> None:
    """What is compared and drawn has to be there: without pipes, what does not need them."""
    assert set(params) >= {"way", "pipes"}
    assert experiment.title
    assert experiment.question.endswith("?")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_each_once(kept: Labs, tmp_path: Path, name: str) -> None:
    experiment = find(name)
    try:
        preflight.check_programs(experiment.packages)
        preflight.check_modules(experiment.modules)
    except preflight.CannotServe as missing:
        pytest.skip(str(missing))
    seen: set[str] = set()
    for number, chosen in enumerate(SMALL[name]):
        params = configuration(experiment.parameters, **chosen)
        whole(experiment, params)
        folder = tmp_path / str(number)
        folder.mkdir()
        with live(kept, folder, params, more=wanted_by(experiment, params, folder)) as made:
            measures = made.noted | experiment.measure(made)
        floor = experiment.floor_s(params)
        if floor is not None:
            assert measures["completion_s"] >= 0.95 * floor
        if "completion_s" in measures:
            assert measures["completion_s"] > 0
        seen |= set(measures)
        if params["pipes"] and name not in BY_LOAD:
            missing = {it.name for it in experiment.metrics} - set(measures)
            optional = {"upload_mbps", "bulk_mbps", "bulk_kept", "up_mbps", "down_mbps"}
            assert missing <= optional, f"{missing} of {name} {chosen}"
    if name in BY_LOAD:
        assert {it.name for it in experiment.metrics} <= seen


def test_nobody_is_faster_than_the_rate(kept: Labs, tmp_path: Path) -> None:
    """All that share a last mile have its rate together."""
    experiment = find("fairness")
    params = configuration(experiment.parameters, plain=2, seconds=2.0, mbps=8.0)
    with live(kept, tmp_path / "run", params) as made:
        measures = experiment.measure(made)
    assert 6.0 < measures["total_mbps"] < 8.5
    assert 0 < measures["share"] < 1


def test_shares() -> None:
    found = shares(6.0, [2.0, 2.0], pipes=3)
    assert found["share"] == 0.6
    assert found["jain_pipes"] == pytest.approx(1)
    assert found["jain"] == pytest.approx(100 / (3 * 44))
    assert found["plain_mbps"] == 2.0
    assert shares(5.0, [5.0], pipes=0)["jain_pipes"] == pytest.approx(1)


def test_a_connection_that_ended_as_it_began_has_no_shares() -> None:
    lived = {"own": 0.1, "others": 0.2, "order": 0.0, "lived": 1.0}
    ended = {"own": 0.0, "others": 0.0, "order": 0.0, "lived": 0.0}
    assert loss_blocking.shares([lived, ended]) == {
        **{"own_share": 0.1, "others_share": 0.2, "order_share": 0.0},
        **{"lost_share": pytest.approx(0.3), "accounted": 1},
    }
    with pytest.raises(RunFailed, match="none of 1 connections"):
        loss_blocking.shares([ended])


def test_a_share_is_of_all_that_was_carried() -> None:
    found = share.shares(3.0, [4.0, 2.0, 3.0])
    assert found == {"share": 0.25, "download_mbps": 3.0, "rivals_mbps": 9.0, "total_mbps": 12.0}
    assert share.shares(0.0, [0.0])["share"] is None


@pytest.mark.parametrize("name", ["share", "web-beside"])
def test_rivals_are_of_the_same_kind_as_the_pipes(name: str) -> None:
    params = sweep.configurations(find(name), {}, quick=False)
    assert {it["cc"] for it in params if it["rivals"]} == {"cubic", "bbr"}
    assert all(it["rival_cc"] == it["cc"] for it in params if it["rivals"])


def test_rivals_have_their_own_congestion_control_and_go_around_the_pipes(
    kept: Labs, tmp_path: Path
) -> None:
    params = configuration(find("share").parameters, rivals=2, rival_cc="reno", cc="cubic")
    with live(kept, tmp_path / "run", params) as made:
        there = {**rivals.actors(made), "clock": Pause(seconds=1.0)}
        found = traffic.play(made, there)
        assert made.pair is not None
        carried = sum(it["rx_bytes"] for it in made.pair.statistics("lp") if it["type"] == "pipe")
    assert all(found[name]["total"] > 100_000 for name in ("rival0", "rival1"))
    assert carried < 10_000, "rivals went through the pipes"


def test_a_queue_in_the_proxy_is_shared_out_to_the_pipes() -> None:
    """The published one is for all pipes, the proxies' is for each."""
    for row in TABLE:
        early = row.early()
        total = (early["app_buffer"] or 0) * row.pipes  # type: ignore[operator]
        assert total == (row.app or 0)
        assert row.late()["app_buffer"] is None
