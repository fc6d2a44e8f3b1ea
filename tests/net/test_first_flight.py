# SPDX-License-Identifier: MIT
"""What the first windows of all pipes hold together arrives within one round trip."""

from pathlib import Path

import pytest

from experiments import parameters
from experiments.catalogue import find
from experiments.labs import Labs
from experiments.prepare import prepared

pytestmark = [pytest.mark.slow, pytest.mark.timeout(60)]

RTT_S = 0.1
# Half of what eight windows of ten segments hold.
FRESH = {"rtt_ms": 1e3 * RTT_S, "mbps": 40.0, "pipes": 8, "size": 50_000, "link": "linkem"}


@pytest.mark.parametrize("extend", ["auto", "never"])
def test_an_object_that_fits_into_first_windows(labs: Path, tmp_path: Path, extend: str) -> None:
    """A request and its answer: no byte waits for the acknowledgement of another."""
    download = find("download")
    params = parameters.complete(download.parameters, {**FRESH, "extend": extend})
    took = []
    with Labs() as made:
        for seed in range(1, 6):
            folder = tmp_path / str(seed)
            folder.mkdir()
            with prepared(made, params, seed, folder, 30.0, keep_pcaps=False) as run:
                took.append(download.measure(run)["completion_s"])
    print(f"completion: {', '.join(f'{1e3 * it:.0f} ms' for it in sorted(took))}")
    assert sorted(took)[1] < 1.7 * RTT_S
