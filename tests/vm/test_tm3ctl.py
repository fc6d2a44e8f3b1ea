# SPDX-License-Identifier: MIT
"""tm3ctl where modules can be loaded: with the module, with nftables, and lp unaware of either."""

import pytest

from tests.relay.netns import Namespace
from tests.relay.programs import ROOT, finish
from tests.vm.module import Log, counters, in_guest, load, loaded, rmmod, setting
from tests.vm.road import DEVICE, RP, Road, fetch

pytestmark = [in_guest, pytest.mark.timeout(180)]

Two = tuple[Namespace, Namespace]
TM3CTL = ROOT / "kmod" / "tm3ctl"


def tm3ctl(ns: Namespace, *args: str, env: str = "A=b", status: int = 0) -> str:
    code, out, err = finish(["env", env, TM3CTL, *args], ns, 60)
    assert code == status, f"tm3ctl {args} ended with {code}: {out}{err}"
    return out + err


def test_the_module_is_loaded_and_taken_back(way: Road) -> None:
    with way.proxies():
        assert tm3ctl(way.near, "status") == "tm3ctl: off\n"
        said = tm3ctl(way.near, RP, DEVICE, "80", "8000-8010")
        assert "(module)" in said and "nobody" not in said
        assert "portList=80,8000-8010 localPort=6003" in setting(way.near)
        assert fetch(way.near) == way.page
        assert "\nredirected 1\n" in tm3ctl(way.near, "status")
        assert tm3ctl(way.near, "off") == "tm3ctl: off (module)\n"
        assert fetch(way.near) == way.page
        assert tm3ctl(way.near, "status").startswith("tm3ctl: off\nredirected 1\n")
        rmmod()
        assert way.near.run("nft", "list", "ruleset") == ""
    assert way.relayed() == [f"{RP}:80"]


def test_lp_is_the_same_between_the_two(way: Road) -> None:
    """One lp, redirected to by nftables, by the module, by nftables again; each takes over."""
    nothing = "TM3_KO=/nonexistent"
    with way.proxies() as both:
        said = tm3ctl(way.near, RP, DEVICE, "80", env=nothing)
        assert "(nftables; the module cannot be loaded: there is no /nonexistent)" in said
        assert fetch(way.near) == way.page
        both.settled()
        tm3ctl(way.near, RP, DEVICE, "80")
        assert way.near.run("nft", "list", "ruleset") == ""
        assert fetch(way.near) == way.page
        tm3ctl(way.near, "--with", "nftables", RP, DEVICE, "80")
        assert setting(way.near) == "off"
        assert fetch(way.near) == way.page
        assert counters(way.near) == {"redirected": 1}
        both.settled()
        assert tm3ctl(way.near, "off") == "tm3ctl: off (nftables)\n"
    assert way.relayed() == [f"{RP}:80"] * 3


def test_what_the_module_refuses_tm3ctl_reports(two: Two, log: Log) -> None:
    near, _ = two
    log.expected.append(r"^tm3: ")
    load(near)
    near.ip("link", "set", "lo", "down")
    said = tm3ctl(near, RP, DEVICE, "80", status=1)
    assert "the module refused this: Network is down" in said and said.count("\n") == 1
    assert loaded()


def test_a_module_for_another_kernel_is_no_module(two: Two, log: Log) -> None:
    near, _ = two
    log.expected.append(r"Invalid ELF|Module has invalid")
    said = tm3ctl(near, RP, DEVICE, "80", env=f"TM3_KO={TM3CTL}")
    assert "(nftables; the module cannot be loaded: ERROR: could not insert module" in said
    assert not loaded()
