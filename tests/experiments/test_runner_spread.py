# SPDX-License-Identifier: MIT
"""Sweeps that are done by several: by workers of a Dask scheduler."""

import importlib.util
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from base.shell import until
from experiments import parameters, remote
from experiments.folder import Results
from experiments.plan import Plan
from tests.conftest import why_no_namespace
from tests.experiments.runner_lab import SWEEP
from topologies.programs import built

CONFIGURATIONS = tuple(parameters.complete((), {"pipes": pipes}) for pipes in (1, 8))
PLAN = Plan("download", CONFIGURATIONS, reps=5, seed=1, limit_s=30.0)


def test_files_of_a_run_arrive_and_stay_where_they_belong(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    (there / "logs" / "a").mkdir(parents=True)
    (there / "logs" / "a" / "rp.log").write_bytes(bytes(range(256)) * 100)
    remote.unpack(remote._packed(there), here, "a")
    assert (here / "logs" / "a" / "rp.log").read_bytes() == bytes(range(256)) * 100
    for name in ("../x", "/etc/x", "meta.json", "logs/b/rp.log", "logs/a/../b", "plots/x.svg"):
        with pytest.raises(remote.Refused, match="lies outside"):
            remote.unpack({name: ""}, here, "a")


def test_a_sweep_ends_its_own_runs_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker is for whoever asks: Ctrl-C of one must not fail the runs of another."""
    argv = ["sleep", "60"]
    mine, other = (subprocess.Popen(argv, text=True) for _ in range(2))
    monkeypatch.setattr(remote, "_running", {mine: "a", other: "b"})
    try:
        remote.stop("a")
        assert mine.wait(10) < 0
        assert other.poll() is None
    finally:
        for process in (mine, other):
            process.kill()
            process.wait()


# --- by Dask ---

needs_dask = pytest.mark.skipif(
    importlib.util.find_spec("distributed") is None,
    reason="no Dask: pip install -r experiments/requirements-spread.txt",
)
needs_root = pytest.mark.skipif(why_no_namespace() is not None, reason=str(why_no_namespace()))


@contextmanager
def started(tmp_path: Path, name: str, argv: list[str | Path]) -> Iterator[subprocess.Popen[bytes]]:
    with (tmp_path / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            argv, cwd=tmp_path, stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


def address_in(told: Path) -> str | None:
    """None until it is there, and whole: it is not written at once."""
    with suppress(FileNotFoundError, json.JSONDecodeError):
        return json.loads(told.read_text())["address"]
    return None


@contextmanager
def cluster(tmp_path: Path, workers: int, *tls: str | Path) -> Iterator[str]:
    """A scheduler on loopback and its workers; its address."""
    told = tmp_path / "scheduler.json"
    argv = [built("tm3lab"), "scheduler", "--port", "0", "--scheduler-file", told, *tls]
    with ExitStack() as stack:
        processes = [stack.enter_context(started(tmp_path, "scheduler", argv))]
        address = until("the scheduler", lambda: address_in(told), 60.0)
        for number in range(workers):
            words = [built("tm3lab"), "worker", "--as-root", address, *tls]
            processes.append(stack.enter_context(started(tmp_path, f"worker{number}", words)))
        for number in range(workers):
            log = tmp_path / f"worker{number}.log"
            until(f"worker {number}", lambda log=log: "Registered to" in log.read_text(), 60.0)
        elsewhere = [it for it in listening(processes) if not it.startswith(("127.", "[::1]"))]
        assert not elsewhere, "others than this machine can reach it"
        yield address


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Without TLS; for more than one sweep, as anybody's would be."""
    with cluster(tmp_path_factory.mktemp("cluster"), 2) as address:
        yield address


def listening(processes: list[subprocess.Popen[bytes]]) -> list[str]:
    """On which addresses and ports they do, each at least on one."""
    found = []
    lines = subprocess.check_output(["ss", "-Htlnp"], text=True).splitlines()
    for process in processes:
        own = [line.split()[3] for line in lines if f"pid={process.pid}," in line]
        assert own, f"{process.args} listens nowhere"
        found += own
    return found


def spread(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [built("tm3lab"), "run", "download", *SWEEP, *words]
    return subprocess.run(
        argv, cwd=tmp_path, capture_output=True, text=True, timeout=250, check=False
    )


@pytest.mark.slow
@pytest.mark.timeout(300)
@needs_dask
@needs_root
def test_workers_do_the_runs(tmp_path: Path, two_workers: str) -> None:
    done = spread(tmp_path, "--reps", "1", "--spread", two_workers, "--results", "here")
    assert done.returncode == 0, done.stderr
    results = Results.open(next(tmp_path.glob("here/download/*")))
    runs = results.runs()
    assert [record["outcome"] for record in runs] == ["ok"] * 2
    assert results.unfinished() == 0
    assert all(record["host"] for record in runs)
    for record in runs:
        assert (results.path / record["logs"] / "rp.stats.jsonl").exists()
    assert results.meta["labs"]


@needs_dask
def test_when_the_time_is_up_no_block_is_begun() -> None:
    from experiments.spread import _begun_before

    runs = list(PLAN.runs())
    assert list(_begun_before(time.monotonic() + 60, runs)) == runs
    first = [run for run in runs if run.rep == 0]
    assert list(_begun_before(time.monotonic() - 1, runs)) == first
    assert list(_begun_before(0, [])) == []


@pytest.mark.slow
@pytest.mark.timeout(300)
@needs_dask
@needs_root
def test_a_spread_sweep_keeps_to_its_time(tmp_path: Path, two_workers: str) -> None:
    """0.0001 minutes are up when the first block has begun; the rest can be resumed."""
    words = ("--reps", "3", "--within", "0.0001", "--spread", two_workers, "--results", "here")
    done = spread(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    results = Results.open(next(tmp_path.glob("here/download/*")))
    assert len(results.runs()) == 2 and results.unfinished() == 4
    assert "4 runs of the plan are left" in done.stderr


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> list[str | Path]:
    """One that signed itself, for all: an authority of one."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl")
    folder = tmp_path_factory.mktemp("tls")
    key, cert = folder / "key.pem", folder / "cert.pem"
    argv = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    argv += ["-nodes", "-subj", "/CN=lab", "-days", "1", "-keyout", key, "-out", cert]
    subprocess.run(argv, check=True, capture_output=True)
    return ["--tls-ca-file", cert, "--tls-cert", cert, "--tls-key", key]


@pytest.mark.slow
@pytest.mark.timeout(300)
@needs_dask
@needs_root
def test_with_tls_only_who_has_a_certificate_is_let_in(
    tmp_path: Path, certificate: list[str | Path]
) -> None:
    with cluster(tmp_path, 1, *certificate) as address:
        assert address.startswith("tls://127.0.0.1:")
        words = ("--reps", "1", "--spread", address, "--results", "here")
        done = spread(tmp_path, *words, *map(str, certificate))
        assert done.returncode == 0, done.stderr
        for without in (address, address.replace("tls:", "tcp:")):
            other = spread(tmp_path, *words[:3], without, "--results", "there")
            assert other.returncode == 1, other.stderr
    results = Results.open(next(tmp_path.glob("here/download/*")))
    assert [record["outcome"] for record in results.runs()] == ["ok"] * 2
    assert not [it for path in tmp_path.glob("there/*/*") for it in Results.open(path).runs()]


@needs_dask
def test_no_scheduler_is_told(tmp_path: Path) -> None:
    words = ("--reps", "1", "--spread", "tcp://127.0.0.1:9", "--results", "here")
    done = spread(tmp_path, *words)
    assert done.returncode == 1
    assert "no Dask scheduler at tcp://127.0.0.1:9" in done.stderr.splitlines()[-1]
