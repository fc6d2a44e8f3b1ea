# SPDX-License-Identifier: MIT
"""Nothing of a lab outlives it: not at its end, not after Ctrl-C, not after kill -9 and clean."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from base.processes import Identity, environment_has, everybody, network_of
from base.shell import run, until
from topologies import registry
from topologies.lab import Lab
from topologies.topos import LastMile

ROOT = Path(__file__).parents[2]
RUNNER = """
import sys
from pathlib import Path
from topologies.lab import Lab
from topologies.programs import program
from topologies.topos import LastMile

logs = Path(sys.argv[1])
with Lab(LastMile("wired"), logs=logs) as lab:
    sleeper = program(lab.state, "server", "sleeper", ["sleep", "600"])
    with lab.proxies(2), lab.redirected(), sleeper:
        lab.client.cmd("sleep 601 &")  # for a moment it is still the shell's copy
        print("ready", flush=True)
        sys.stdin.read()
"""


def start_runner(logs: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", RUNNER, str(logs)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_ready(runner: subprocess.Popen[str]) -> None:
    assert runner.stdout is not None and runner.stderr is not None
    line = runner.stdout.readline()
    if line != "ready\n":
        runner.kill()
        raise AssertionError(f"the runner said {line!r}: {runner.stderr.read()}")


def folder_of(runner: subprocess.Popen[str]) -> Path:
    return registry.run_dir() / f"{runner.pid}-1"


def members(folder: Path) -> set[Identity]:
    """Everybody of the lab, as an onlooker finds them; kept to see them gone."""
    spaces = {network_of(pid) for pid in registry_pids(folder)} - {network_of("self"), None}
    return {
        process
        for process in everybody()
        if network_of(process.pid) in spaces or environment_has(process.pid, f"TM3_LAB={folder}")
    }


def command_of(process: Identity) -> bytes:
    """Its arguments, each ended by a zero byte; nothing of a process that has gone."""
    try:
        return Path(f"/proc/{process.pid}/cmdline").read_bytes()
    except OSError:
        return b""


def has_a(name: bytes, processes: set[Identity]) -> bool:
    return any(name in command_of(process) for process in processes)


def registry_pids(folder: Path) -> list[int]:
    return list(json.loads((folder / "state.json").read_text())["namespaces"].values())


def nothing_left(folder: Path, known: set[Identity]) -> None:
    alive = [process for process in known if process.alive()]
    assert not alive, [command_of(process) for process in alive]
    assert not folder.exists()
    assert str(folder) not in Path("/proc/self/mountinfo").read_text()
    for process in everybody():
        command = command_of(process)
        assert str(folder).encode() not in command, command


def clean() -> str:
    return run([sys.executable, "-m", "topologies", "clean"], seconds=60.0)


@pytest.fixture
def tree(monkeypatch: pytest.MonkeyPatch, labs: Path) -> None:
    monkeypatch.chdir(ROOT)


def test_the_end_of_the_block(tree: None, tmp_path: Path) -> None:
    runner = start_runner(tmp_path)
    wait_ready(runner)
    folder = folder_of(runner)
    for expected in (b"linkem", b"rp\0", b"lp\0", b"sleep\x00600", b"sleep\x00601", b"mininet:rp"):
        until(f"{expected!r} in the lab", lambda name=expected: has_a(name, members(folder)))
    known = members(folder)
    _, errors = runner.communicate("", timeout=60)
    assert runner.returncode == 0, errors
    nothing_left(folder, known)


def test_ctrl_c(tree: None, tmp_path: Path) -> None:
    runner = start_runner(tmp_path)
    wait_ready(runner)
    folder = folder_of(runner)
    known = members(folder)
    runner.send_signal(signal.SIGINT)
    _, errors = runner.communicate(timeout=60)
    assert runner.returncode != 0
    assert "KeyboardInterrupt" in errors
    nothing_left(folder, known)


def test_kill_9_and_clean(tree: None, tmp_path: Path) -> None:
    """And a lab that lives is not touched, nor a program of the machine."""
    runner = start_runner(tmp_path)
    wait_ready(runner)
    folder = folder_of(runner)
    known = members(folder)
    bystander = subprocess.Popen(["sleep", "602"])
    try:
        with Lab(LastMile("wired")) as other:
            runner.kill()
            runner.wait(timeout=10)
            assert any(process.alive() for process in known), "nothing was left to clean"
            listed = run([sys.executable, "-m", "topologies", "list"])
            assert f"{folder.name}: left behind" in listed
            assert f"{other.name}: runs" in listed
            assert clean() == f"removed 1 labs {folder.name}\n"
            nothing_left(folder, known)
            other.check()
            other.client.inside("ping", "-c", "1", "-W", "3", "10.0.9.2")
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


@pytest.mark.parametrize("after_s", [0.15, 0.3, 0.45, 0.6, 0.9])
def test_kill_9_at_any_moment(tree: None, tmp_path: Path, after_s: float) -> None:
    """While it is being built there is less to clean, and no less must go."""
    runner = start_runner(tmp_path)
    until("the lab's entry", lambda: folder_of(runner).exists(), 20.0)
    time.sleep(after_s)  # the moment, not a wait for something
    runner.kill()
    runner.wait(timeout=10)
    folder = folder_of(runner)
    known = members(folder)
    clean()
    nothing_left(folder, known)


def test_a_lab_that_fails_to_start_leaves_nothing(
    labs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from topologies import linkem

    monkeypatch.setattr(linkem, "words", lambda *_, **__: {"delay_ms": "never"})
    with pytest.raises(RuntimeError, match="delay_ms"), Lab(LastMile("wired")):
        raise AssertionError("the lab started")
    assert not list(labs.iterdir())


def test_a_topology_serves_one_lab_at_a_time(labs: Path) -> None:
    topo = LastMile("wired")
    with Lab(topo), pytest.raises(RuntimeError, match="in use"), Lab(topo):
        raise AssertionError("two labs share one entry")
    with Lab(topo) as again:
        assert again.name


def test_clean_leaves_what_is_not_a_lab(labs: Path) -> None:
    """A folder that a dead process began, and nothing but that."""
    dead = subprocess.Popen(["true"])
    dead.wait()
    half = labs / f".{dead.pid}-1"
    half.mkdir(parents=True)
    living = labs / f".{os.getpid()}-99"
    living.mkdir()
    assert registry.clean() == [half.name]
    assert living.exists()
    living.rmdir()
