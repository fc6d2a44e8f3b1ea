# SPDX-License-Identifier: MIT
"""What is asked of our policies over two paths: by which bound, and in which settings."""

from itertools import product

import pytest

from experiments.catalogue import find
from experiments.catalogue.paths_file import KIB, MEDIUM, MIB, RTTS_MS, SIZES
from experiments.model import Claim

OURS = ("ecf", "dems-f")


def instead(name: str, policy: str, other: str, *, warm: bool) -> dict[tuple[int, float], Claim]:
    """The laboratory's own claims of one policy over another, by size and LTE's round trip."""
    found = {}
    for it in find(name).claims:
        if it.over and it.is_own and it.metric == "completion_s":
            sides = [(side["path_policy"], side["warm"]) for side in (it.of, it.over)]
            if sides == [(policy, warm), (other, warm)]:
                found[it.of["size"], it.of["second_rtt_ms"]] = it
    return found  # type: ignore[return-value]


@pytest.mark.parametrize("policy", OURS)
@pytest.mark.parametrize(("warm", "than"), [(True, 1.05), (False, 1.15)])
def test_a_policy_is_nearly_as_fast_as_the_best_split(policy: str, warm: bool, than: float) -> None:
    claims = instead("paths-split", policy, "best-split", warm=warm)
    assert set(claims) == set(product(MEDIUM, RTTS_MS))
    assert {(it.expect, it.than) for it in claims.values()} == {("less", than)}


@pytest.mark.parametrize("policy", OURS)
def test_a_policy_is_a_fifth_sooner_than_minrtt_where_lte_is_far(policy: str) -> None:
    claims = instead("paths-file", policy, "minrtt", warm=True)
    assert set(claims) == set(product([256 * KIB], [270.0, 470.0]))
    assert {(it.expect, it.than) for it in claims.values()} == {("less", 0.8)}


@pytest.mark.parametrize("policy", OURS)
def test_no_fresh_file_takes_a_tenth_longer_than_under_minrtt(policy: str) -> None:
    claims = instead("paths-file", policy, "minrtt", warm=False)
    assert set(claims) == set(product(SIZES, RTTS_MS)) and min(SIZES) == 64 * KIB
    assert {(it.expect, it.than) for it in claims.values()} == {("less", 1.1)}


@pytest.mark.parametrize("policy", OURS)
def test_large_files_take_as_long_as_under_minrtt(policy: str) -> None:
    found = {
        it.of["second_rtt_ms"]: it
        for it in find("paths-file").claims
        if it.expect == "same" and it.of["path_policy"] == policy
    }
    assert set(found) == set(RTTS_MS)
    for it in found.values():
        assert it.over and it.over["path_policy"] == "minrtt"
        assert it.of["size"] == it.over["size"] == 8 * MIB and it.within == 0.03


@pytest.mark.parametrize("policy", OURS)
@pytest.mark.parametrize(("metric", "than"), [("over_optimum", 1.15), ("ends_apart_s", 0.025)])
def test_grown_windows_have_bounds_of_their_own(policy: str, metric: str, than: float) -> None:
    asked = {
        (it.of["size"], it.of["second_rtt_ms"]): it.than
        for it in find("paths-file").claims
        if it.is_own and it.metric == metric and it.of["path_policy"] == policy and it.of["warm"]
    }
    assert asked == dict.fromkeys(product(MEDIUM, RTTS_MS), than)


@pytest.mark.parametrize(
    ("metric", "than"),
    [("reinjected_bytes", 0.77), ("reinjected_over_expected", 1.1), ("reinjected_share", 0.01)],
)
def test_dems_f_reinjects_little(metric: str, than: float) -> None:
    asked = {
        (it.of["size"], it.of["second_rtt_ms"]): it.than
        for it in find("paths-file").claims
        if it.metric == metric
    }
    assert asked == dict.fromkeys(product(MEDIUM, RTTS_MS), than)
