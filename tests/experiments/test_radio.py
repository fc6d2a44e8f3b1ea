# SPDX-License-Identifier: MIT
"""What is made of looks at a radio link, and which runs its claims are about."""

import pytest

from experiments.catalogue import find
from experiments.catalogue.radio_qcut import THRESHOLDS
from experiments.failure import RunFailed
from experiments.workloads.radio import Look, waits


def look(number: int, firmware_ms: float, host_ms: float = 0.0) -> Look:
    """One each 100 ms; 1 Mbit/s, of which a tenth as much was padded."""
    return Look(
        at=50 + number / 10,
        in_bytes=2000 + 12_500 * number,
        out_bytes=1000 + 12_500 * number,
        host_ms=host_ms,
        firmware_ms=firmware_ms,
        firmware_bytes=firmware_ms * 125,
        estimate_bytes=firmware_ms * 250,
        granted_bytes=7 + 13_750 * number,
        padded_bytes=1_375 * number,
        gate_falls=number // 10,
    )


def test_what_held_is_of_these_looks_alone() -> None:
    found = waits([look(n, firmware_ms=float(n), host_ms=100.0 - n) for n in range(21)])
    assert found["link_mbps"] == pytest.approx(1.0)
    assert found["firmware_ms"] == 10
    assert found["firmware_p95_ms"] == pytest.approx(19)
    assert (found["host_ms"], found["host_most_ms"]) == (90, 100)
    assert (found["firmware_kb_held"], found["estimate_kb"]) == (1.25, 2.5)
    assert found["padded"] == pytest.approx(0.1)
    assert found["gate_falls"] == 2


def test_a_median_needs_looks() -> None:
    with pytest.raises(RunFailed, match="9 looks"):
        waits([look(n, 1.0) for n in range(9)])


def test_each_rate_has_its_threshold_and_the_one_below() -> None:
    claims = [it for it in find("radio-qcut").claims if it.where == "Fig. 3.16"]
    found = {(it.of["up_mbps"], it.of["gate"], it.expect) for it in claims}
    assert found == {
        (0.8, "bytes:2000", "more"),
        (8.0, "bytes:20000", "more"),
        (8.0, "bytes:2000", "less"),
        (20.0, "bytes:50000", "more"),
        (20.0, "bytes:20000", "less"),
    }
    assert all(it.over and it.over["gate"] == "none" for it in claims)
    assert set(THRESHOLDS) == {0.8, 8.0, 20.0}
