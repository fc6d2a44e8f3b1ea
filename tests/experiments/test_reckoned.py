# SPDX-License-Identifier: MIT
"""What a claim says of itself by arithmetic: bounds that cannot hold, shares too small to tell."""

from dataclasses import replace
from pathlib import Path

import pytest

from experiments import sweep
from experiments.catalogue import find, handover, mhttp_large, radio_qcut, thin_loss
from experiments.model import Claim, Experiment
from experiments.report import rows
from experiments.workloads.mhttp.experiment import MB
from tests.experiments import synthetic

SAID = "Eight pipes have no more than one has."
MISSED = Claim("x", "Fig. 9", "missed", {"pipes": 1}, {"pipes": 8}, reckoned=SAID)


class Missed(synthetic.Plain):
    claims = (MISSED, replace(MISSED, says="held", of={"pipes": 8}, over={"pipes": 1}))


def test_it_is_told_where_a_claim_is_missed(tmp_path: Path) -> None:
    results = synthetic.loaded(synthetic.make(tmp_path / "A", Missed(), 10), Missed())
    missed, held = rows.rows(results)
    assert (missed.verdict, held.verdict) == ("no", "yes")
    assert f"Reckoned, not measured: {SAID}" in missed.causes
    assert held.causes == ()


def claim(experiment: Experiment, says: str) -> Claim:
    (found,) = (it for it in experiment.claims if it.says.startswith(says))
    return found


def test_new_connections_cannot_be_as_quick_as_serial_requests_at_16_mb() -> None:
    """At 64 MB they can."""
    large = find("mhttp-large")
    short = claim(large, "16 MB, ranges of 1024 KB: time to").reckoned
    assert "1.113 of it: below that, and so below 1.1," in short
    assert (
        "1.030 of it, which leaves 0.070" in claim(large, "64 MB, ranges of 1024 KB: time").reckoned
    )
    both = mhttp_large.served()
    assert [it.rtt_s for it in both] == [0.01, 0.05]
    told = claim(large, "64 MB, ranges of 1024 KB, ahead").reckoned
    assert f"{sum(it.rate for it in both) * 8 / 1e6:.4g} Mbit/s" in told and "path 2" in told
    assert mhttp_large.at_least(16 * MB) == short


def test_h3_cannot_hold_its_bound_where_the_signal_falls_too_fast() -> None:
    said = {
        slope: claim(find("handover"), f"h3, {slope:g} dB/s: longest").reckoned
        for slope in handover.SLOPES
    }
    assert [slope for slope, text in said.items() if text] == [5.0]
    assert "cannot be under 0.6 s, and is 0.76 s" in said[5.0]
    assert any(said[5.0] in it for it in find("handover").notes)
    assert not claim(find("handover"), "lp, 5 dB/s").reckoned, "lp waits for no discovery"


def test_how_many_queries_a_share_after_retransmissions_is_of() -> None:
    """Published to three places, of which 8,000 queries show less."""
    said = [it.reckoned for it in find("thin-loss").claims if it.metric in thin_loss.AGAIN]
    assert [text.split(" queries ")[1].split(" are")[0] for text in said] == ["304", "12.1", "0.48"]
    found = thin_loss.shares_again([1, 2, 2, 3, 1, 4, 7], [0.02, 3.02, 3.02, 6.02, 0.1, 9.02, None])
    assert found == pytest.approx(
        {"again_1_share": 2 / 7, "again_2_share": 1 / 7, "again_3_share": 1 / 7}
    )


def test_default_mode_is_held_to_one_pipe_by_each_number_of_pipes() -> None:
    its = [it for it in find("thin-loss").claims if it.over and it.over.get("pipes") == 1]
    found = {(it.of["pipes"], it.of["every_ms"], it.metric) for it in its}
    assert len(found) == len(its) == 3 * 2 * 2
    assert {it.than for it in its} == {thin_loss.MOST}


def test_small_buffers_of_the_sender_stand_beside_the_gates() -> None:
    """Of each rate, in the host's queue and in TCP."""
    every = sweep.configurations(find("radio-qcut"), {})
    small = [it for it in every if it["queue_up_ms"] == radio_qcut.SMALL_QUEUE_MS]
    sent = [it for it in every if it["pipe_sndbuf"] == radio_qcut.SMALL_BUFFER]
    for its, way in ((small, "direct"), (sent, "pipes")):
        assert sorted(it["up_mbps"] for it in its) == sorted(radio_qcut.THRESHOLDS)
        assert {(it["way"], it["gate"], it["host"]) for it in its} == {(way, "none", "fifo")}
