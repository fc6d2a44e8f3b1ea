# SPDX-License-Identifier: MIT
"""Page loads in a lab: the right bytes, in the order of the tree, over the right connections."""

import errno
import json
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from experiments import parameters, preflight, prepare, sweep
from experiments.catalogue.page_busy import PageBusy
from experiments.catalogue.sctp import Sctp
from experiments.failure import RunFailed
from experiments.labs import Labs
from experiments.live_run import LiveRun
from experiments.preflight import CannotServe
from experiments.workloads.web.busy import BESIDE
from experiments.workloads.web.http1 import PER_HOST, length_of
from experiments.workloads.web.load import PARAMETERS, Plan, load
from experiments.workloads.web.page import Page, chain
from experiments.workloads.web.pages import page
from experiments.workloads.web.site import Site, addresses
from experiments.workloads.web.transport import LoadError
from tests.conftest import why_no_namespace

SITE = "site-08"
FAST: dict[str, Any] = {"mbps": 100.0, "rtt_ms": 10.0, "link": "linkem", "page": SITE}
DIRECT: dict[str, Any] = {**FAST, "way": "direct"}

pytestmark = [
    pytest.mark.skipif(why_no_namespace() is not None, reason=str(why_no_namespace())),
    pytest.mark.skipif(not Path("/dev/net/tun").exists(), reason="no /dev/net/tun for linkem"),
]
need_chromium = pytest.mark.skipif(
    shutil.which("chromium") is None,
    reason="no chromium on this machine: sudo .ci/setup experiments/packages.debian",
)
need_mptcp = pytest.mark.skipif(
    not Path("/proc/sys/net/mptcp/enabled").exists(), reason="this kernel has no MPTCP"
)


@pytest.fixture(scope="module")
def labs() -> Iterator[Labs]:
    with Labs() as made:
        yield made


@pytest.fixture
def live(labs: Labs, tmp_path: Path) -> Callable[..., Any]:
    @contextmanager
    def begun(limit_s: float = 30.0, own: Any = PARAMETERS, **chosen: Any) -> Iterator[LiveRun]:
        params = parameters.complete(own, chosen)
        with prepare.prepared(labs, params, 1, tmp_path, limit_s, keep_pcaps=False) as made:
            yield made

    return begun


def loaded(made: LiveRun) -> tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]:
    """Measures, the loader's account, and what the server saw of this load alone."""
    before = len(site_of(made).requests()) if "web" in made._labs._kept else 0
    measures = load(made, Plan.of(made.params))
    account = json.loads((made.folder / "objects.json").read_text())
    return measures, account, site_of(made).requests()[before:]


def site_of(made: LiveRun) -> Site:
    def nothing() -> Any:
        raise AssertionError("no page was loaded yet")

    return made.kept("web", nothing)


def check_tree(it: Page, account: dict[str, Any], slack_s: float = 0.0) -> None:
    """Nothing was asked for before what names it was there and thought about."""
    times = {told["index"]: told for told in account["objects"]}
    assert sorted(times) == list(range(len(it.items)))
    assert account["cpu_s"] > 0
    for item in it.items[1:]:
        before = chain(it, item)[-1]
        known = times[before.index]["last_byte_s"] + before.think_ms / 1000
        assert times[item.index]["asked_s"] >= known - slack_s, item


def check_requests(it: Page, seen: list[dict[str, Any]], protocol: str) -> None:
    """The server was asked for each object once, and sent it whole."""
    wanted = sorted((it.hosts[item.host], item.path, item.size) for item in it.items)
    assert sorted((told["host"], told["path"], told["bytes"]) for told in seen) == wanted
    assert {told["protocol"] for told in seen} == {protocol}
    assert {told["status"] for told in seen} == {200}


def connections_of(seen: list[dict[str, Any]]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = defaultdict(set)
    for told in seen:
        found[told["host"]].add(told["connection"])
    return found


@pytest.mark.parametrize("pipes", [0, 2])
def test_http1(live: Callable[..., Any], pipes: int) -> None:
    with live(**FAST, pipes=pipes) as made:
        measures, account, seen = loaded(made)
    it = page(SITE)
    check_tree(it, account)
    check_requests(it, seen, "HTTP/1.1")
    connections = connections_of(seen)
    assert max(map(len, connections.values())) == PER_HOST  # its own host has enough for all six
    made_by_host = Counter(told["host"] for told in account["connections"])
    assert max(made_by_host.values()) == PER_HOST
    used = [told for told in account["connections"] if told["requests"]]  # one may come too late
    assert sum(map(len, connections.values())) == len(used) <= measures["connections"]
    assert measures["bytes"] == it.bytes
    last = max(told["last_byte_s"] for told in account["objects"])
    assert measures["completion_s"] == pytest.approx(last, abs=1e-5)
    assert measures["completion_s"] > it.bytes * 8 / 100e6
    assert {told["client"].split(":")[0] for told in seen} == {"10.0.9.1" if pipes else "10.0.1.1"}
    kept_alive = [told for told in seen if told["nth"] > 1]
    assert len(kept_alive) == len(seen) - len(used)


@pytest.mark.parametrize("tls", [False, True])
def test_http2_over_one_connection(live: Callable[..., Any], tls: bool) -> None:
    with live(**DIRECT, protocol="http2", tls=tls) as made:
        measures, account, seen = loaded(made)
    check_tree(page(SITE), account)
    check_requests(page(SITE), seen, "HTTP/2.0")
    assert len({told["connection"] for told in seen}) == measures["connections"] == 1


def test_http2_over_a_connection_for_each_host(live: Callable[..., Any]) -> None:
    with live(**FAST, pipes=2, protocol="http2", http2_per="host") as made:
        measures, account, seen = loaded(made)
    check_tree(page(SITE), account)
    check_requests(page(SITE), seen, "HTTP/2.0")
    connections = connections_of(seen)
    assert {len(of_host) for of_host in connections.values()} == {1}
    assert measures["connections"] == len(connections) == len({*page(SITE).hosts} & {*connections})


@need_mptcp
def test_http2_over_mptcp(live: Callable[..., Any]) -> None:
    with live(**FAST, way="mptcp", protocol="http2") as made:
        measures, _, seen = loaded(made)
    check_requests(page(SITE), seen, "HTTP/2.0")
    assert measures["connections"] == 1
    assert 2 <= measures["server_sockets"] <= 8


@pytest.mark.parametrize("protocol", ["http1", "http2"])
def test_a_wrong_byte_fails_the_run(live: Callable[..., Any], protocol: str) -> None:
    with live(**DIRECT, protocol=protocol) as made:
        loaded(made)
        it = page(SITE)
        item = it.items[-1]
        path = site_of(made).root / it.hosts[item.host] / item.path[1:]
        right = path.read_bytes()
        try:
            path.write_bytes(right[:-1] + bytes([right[-1] ^ 1]))
            with pytest.raises(RunFailed, match=f"{item.path}: the bytes are not those"):
                load(made, Plan.of(made.params))
            path.write_bytes(right[:-1])
            with pytest.raises(RunFailed, match=f"{item.path}: {item.size - 1} bytes"):
                load(made, Plan.of(made.params))
            path.unlink()
            with pytest.raises(RunFailed, match=f"{item.path}: answered .*404"):
                load(made, Plan.of(made.params))
        finally:
            path.write_bytes(right)
        load(made, Plan.of(made.params))


def test_a_load_ends_at_its_deadline(live: Callable[..., Any]) -> None:
    with live(**{**DIRECT, "mbps": 1.0}, limit_s=2.0) as made:
        with pytest.raises(RunFailed, match="not loaded after"):
            load(made, Plan.of(made.params))


def test_another_congestion_control_fails_the_run(live: Callable[..., Any]) -> None:
    with live(**DIRECT) as made:
        route = made.lab.server.inside("ip", "route", "show", "default").split()
        assert "cubic" in route
        try:
            other = ["reno" if word == "cubic" else word for word in route]
            made.lab.server.inside("ip", "route", "replace", *other)
            with pytest.raises(RunFailed, match=r"under \['reno'\]"):
                load(made, Plan.of(made.params))
        finally:
            made.lab.server.inside("ip", "route", "replace", *route)


@need_chromium
@pytest.mark.parametrize(
    ("protocol", "tls", "pipes", "name"),
    [("http1", False, 2, "http/1.1"), ("http2", True, 0, "h2")],
)
def test_chromium(
    live: Callable[..., Any], protocol: str, tls: bool, pipes: int, name: str
) -> None:
    with live(**FAST, pipes=pipes, protocol=protocol, tls=tls, browser="chromium") as made:
        measures, account, seen = loaded(made)
    it = page(SITE)
    check_requests(it, seen, "HTTP/2.0" if tls else "HTTP/1.1")
    assert account["protocols"] == [name]
    assert sorted(told["index"] for told in account["objects"]) == list(range(len(it.items)))
    assert 0 < measures["completion_s"] < 25
    # Styles and scripts are asked for as their tags come in; what they name, after they are there.
    below = {item.index for item in it.items if it.depths[item.index] >= 2}
    times = {told["index"]: told for told in account["objects"]}
    for index in below:
        before = it.items[index].after
        assert before is not None
        assert times[index]["first_byte_s"] > times[before]["last_byte_s"]
    if not tls:
        assert max(map(len, connections_of(seen).values())) <= PER_HOST


@need_chromium
def test_chromium_compares_bytes(live: Callable[..., Any]) -> None:
    with live(**DIRECT, browser="chromium") as made:
        it = page(SITE)
        load(made, Plan.of({**made.params, "browser": "loader"}))
        item = next(item for item in it.items if item.kind == "font")
        path = site_of(made).root / it.hosts[item.host] / item.path[1:]
        right = path.read_bytes()
        try:
            path.write_bytes(right[:-1] + bytes([right[-1] ^ 1]))
            with pytest.raises(RunFailed, match=f"{item.path}: the bytes are not those"):
                load(made, Plan.of(made.params))
        finally:
            path.write_bytes(right)


def test_what_goes_not_together_is_said() -> None:
    chosen = {"way": "direct", "browser": "chromium", "protocol": "http2", "tls": False}
    with pytest.raises(RunFailed, match="only under TLS"):
        Plan.of(chosen)
    with pytest.raises(RunFailed, match="MPTCP is for the loader"):
        Plan.of({"way": "mptcp", "tls": True})
    assert Plan.of({"way": "http2", "protocol": "http1"}).protocol == "http2"


def test_addresses() -> None:
    it = page(SITE)
    assert len(set(addresses(it).values())) == len(it.hosts)
    assert set(addresses(it, one=True).values()) == {"10.0.10.1"}


def test_heads_of_responses() -> None:
    assert length_of(b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n") == 12
    for wrong in (
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 12\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"SSH-2.0-x\r\n\r\n",
    ):
        with pytest.raises(LoadError):
            length_of(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["pipes", "direct"])
def test_a_page_beside_a_download(live: Callable[..., Any], way: str) -> None:
    """Both go on at once, and share the rate; at 3 Mbit/s the download keeps to that."""
    chosen = {**FAST, "mbps": 20.0, "way": way, "pipes": 2, "protocol": "http2"}
    rates = {}
    for beside in BESIDE.choices[1:]:
        with live(own=PageBusy.parameters, **chosen, beside=beside) as made:
            measures = PageBusy().measure(made)
        rates[beside] = measures["bulk_mbps"]
        assert measures["bytes"] == page(SITE).bytes
        assert 10 < measures["total_mbps"] < 20
    assert 2.0 < rates["3mbps"] < 3.5 < rates["full"]


def test_pipes_of_sctp_are_refused_where_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line that says where they would work; before anything is begun."""

    def without(*_: Any) -> Any:
        raise OSError(errno.EPROTONOSUPPORT, "Protocol not supported")

    (params, *_) = sweep.configurations(Sctp(), {"transport": ("sctp",)})
    monkeypatch.setattr(preflight, "need_root", lambda: None)
    monkeypatch.setattr(preflight, "check_programs", lambda more: None)
    monkeypatch.setattr(preflight, "check_cc", lambda cc: None)
    monkeypatch.setattr(preflight.socket, "socket", without)
    with pytest.raises(CannotServe, match=r"^transport: this kernel has no SCTP; in a guest"):
        preflight.check(Sctp(), [params])
