# SPDX-License-Identifier: MIT
"""Objects by mHTTP in a lab: from which server, by which path, and what must not pass for a run."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments import preflight
from experiments.catalogue import find
from experiments.failure import RunFailed
from experiments.labs import Labs
from experiments.workloads import fetch
from experiments.workloads.mhttp.experiment import words
from tests.experiments.workload_run import configuration, live
from tests.net.conftest import labs
from topologies.parameter import Params

__all__ = ["labs"]

SIZE = 600_000
TWO = {"way": "direct", "topology": "two", "servers": 2, "size": SIZE, "chunk": 100_000}


@pytest.fixture
def kept(labs: Path) -> Iterator[Labs]:
    experiment = find("mhttp-small")
    try:
        preflight.check_programs(experiment.packages)
        preflight.check_modules(experiment.modules)
    except preflight.CannotServe as missing:
        pytest.skip(str(missing))
    with Labs() as made:
        yield made


def params(**more: Any) -> Params:
    return configuration(find("mhttp-small").parameters, **{**TWO, **more})


def test_each_path_has_a_server_of_its_own(kept: Labs, tmp_path: Path) -> None:
    asked = params()
    with live(kept, tmp_path / "both", asked) as run:
        found = fetch.object_of(run, SIZE, *words(asked))
    legs = {it["path"]: it for it in found["legs"]}
    assert {path: it["server"] for path, it in legs.items()} == {
        "10.0.1.1": "10.0.9.2",
        "10.0.2.1": "10.0.19.2",
    }
    assert sum(it["bytes"] for it in legs.values()) == SIZE
    assert sum(it["requests"] for it in legs.values()) == 6
    assert found["plain"] is None and found["look_up_s"] >= 0.01
    plain = params(fetch="http", path=2)
    with live(kept, tmp_path / "plain", plain) as run:
        found = fetch.object_of(run, SIZE, *words(plain))
        assert not list(run.folder.glob("object-*")), "objects are not kept"
    (leg,) = found["legs"]
    assert (leg["path"], leg["server"], leg["bytes"]) == ("10.0.2.1", "10.0.19.2", SIZE)
    assert found["plain"] == "one source"


def test_other_bytes_are_no_run(kept: Labs, tmp_path: Path) -> None:
    asked = params(fetch="http")
    with live(kept, tmp_path / "run", asked) as run:
        there = run.kept("replicas", lambda: fetch.replicas(run.lab))
        there.digest(SIZE)
        path = there.root / str(SIZE)
        content = bytearray(path.read_bytes())
        content[SIZE // 2] ^= 1
        path.write_bytes(content)
        with pytest.raises(RunFailed, match="came as another one"):
            fetch.object_of(run, SIZE, *words(asked))


def test_a_lost_connection_is_no_run() -> None:
    leg = {"server": "s", "path": "p", "lost": []}
    fetch.check({"legs": [leg]})
    with pytest.raises(RunFailed, match="lost: s by p: silent"):
        fetch.check({"legs": [leg, {**leg, "lost": ["silent"]}]})
