# SPDX-License-Identifier: MIT
"""Cleaning up deletes and ends what only root can have written down as a lab's, nothing else."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from base.processes import identify
from base.shell import until
from topologies import entry, registry
from topologies.programs import built, program
from topologies.registry import LabState

SOMEBODY = 12345  # a user, whether it has a name or not


@pytest.fixture
def runs(labs: Path) -> Iterator[Path]:
    """A registry, which a test may fill with what must be left alone."""
    labs.mkdir(mode=0o755)
    yield labs
    shutil.rmtree(labs)


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process in a network namespace of its own, which is no lab's."""
    process = subprocess.Popen(["unshare", "--net", "sleep", "600"])
    until("the sleeper", lambda: Path(f"/proc/{process.pid}/comm").read_text() == "sleep\n")
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def gone() -> int:
    """The id of a process that has ended."""
    with subprocess.Popen(["true"]) as process:
        pass
    return process.pid


def record(name: str, victim: int, **changes: Any) -> str:
    """What a lab's runner would have written, which names a process that is to be ended."""
    known = identify(victim)
    assert known is not None
    told = {
        "format": entry.FORMAT,
        "lab": name,
        "boot": entry.boot(),
        "made": 1.0,
        "runner": vars(known),
        "command": [],
        "namespaces": {"client": victim},
        "processes": {"rp": vars(known)},
    }
    return json.dumps({**told, **changes})


def write(folder: Path, text: str | None) -> Path:
    folder.mkdir(mode=0o755)
    (folder / "valuable").write_text("years of work")
    if text is not None:
        (folder / "state.json").write_text(text)
        (folder / "state.json").chmod(0o644)
    return folder


def untouched(folder: Path, victim: "subprocess.Popen[bytes]", why: str) -> None:
    """By either way of cleaning; and it is said why."""
    assert not list(entry.entries())
    assert any(why in line and line.startswith(str(folder)) for line in entry.doubts())
    assert registry.clean(living=True) == registry.clean() == []
    assert victim.poll() is None
    assert (folder / "valuable").read_text() == "years of work"


def test_a_folder_without_a_record_is_foreign(
    runs: Path, bystander: "subprocess.Popen[bytes]"
) -> None:
    """TM3_RUN elsewhere: its folders are somebody's documents, and their names tell no process."""
    untouched(write(runs / "documents", None), bystander, "its name is not a lab's")
    shutil.rmtree(runs / "documents")
    untouched(write(runs / f"{gone()}-1", None), bystander, "it has no record of a lab")


@pytest.mark.parametrize("what", ["folder", "state.json"])
def test_what_another_user_wrote_is_not_believed(
    runs: Path, bystander: "subprocess.Popen[bytes]", what: str
) -> None:
    name = f"{bystander.pid}-1"
    folder = write(runs / name, record(name, bystander.pid))
    os.chown(folder if what == "folder" else folder / what, SOMEBODY, SOMEBODY)
    untouched(folder, bystander, f"it is user {SOMEBODY}'s" if what == "folder" else str(SOMEBODY))


@pytest.mark.parametrize("what", [".", "state.json"])
def test_what_others_may_write_to_is_not_believed(
    runs: Path, bystander: "subprocess.Popen[bytes]", what: str
) -> None:
    name = f"{bystander.pid}-1"
    folder = write(runs / name, record(name, bystander.pid))
    (folder / what).chmod(0o777 if what == "." else 0o666)
    untouched(folder, bystander, "others than root may write to it")


@pytest.mark.parametrize("whose", ["root", "somebody"])
def test_nothing_is_believed_in_a_registry_that_is_not_roots_alone(
    runs: Path, bystander: "subprocess.Popen[bytes]", whose: str
) -> None:
    name = f"{bystander.pid}-1"
    folder = write(runs / name, record(name, bystander.pid))
    if whose == "root":
        runs.chmod(0o1777)
    else:
        os.chown(runs, SOMEBODY, SOMEBODY)
    for do in (registry.clean, lambda: LabState().open(), lambda: list(entry.entries())):
        with pytest.raises(entry.NotOurs, match=str(runs)):
            do()
    done = subprocess.run([built("tm3lab"), "clean", "--all"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith(f"tm3lab: labs cannot be written down: {runs}: ")
    assert folder.is_dir() and bystander.poll() is None
    os.chown(runs, 0, 0)
    runs.chmod(0o755)


def test_symbolic_links_are_not_followed(
    runs: Path, tmp_path: Path, bystander: "subprocess.Popen[bytes]"
) -> None:
    """Neither to a folder elsewhere, nor to a record, nor to a namespace."""
    name = f"{bystander.pid}-1"
    elsewhere = write(tmp_path / name, record(name, bystander.pid))
    (runs / name).symlink_to(elsewhere)
    untouched(runs / name, bystander, "it is a symbolic link")
    (runs / name).unlink()
    folder = write(runs / name, None)
    (folder / "state.json").symlink_to(elsewhere / "state.json")
    assert any("state.json: it is a symbolic link" in line for line in entry.doubts())
    assert registry.clean(living=True) == []
    shutil.rmtree(folder)
    left = f"{gone()}-1"
    runner = {"pid": int(left.split("-")[0]), "start": 1}
    folder = write(runs / left, record(left, bystander.pid, runner=runner))
    (folder / "client.net").symlink_to(f"/proc/{bystander.pid}/ns/net")
    (folder / "logs").symlink_to(elsewhere)
    assert registry.clean() == [left]
    assert bystander.poll() is None
    assert (elsewhere / "valuable").exists()


@pytest.mark.parametrize("change", [
    {"lab": "1-1"}, {"format": 0}, {"runner": None}, {"runner": {"pid": "x"}}, {"namespaces": 3},
    {"boot": None, "made": "yesterday"},
])  # fmt: skip
def test_a_record_of_something_else_is_not_believed(
    runs: Path, bystander: "subprocess.Popen[bytes]", change: dict[str, Any]
) -> None:
    name = f"{bystander.pid}-1"
    folder = write(runs / name, record(name, bystander.pid, **change))
    untouched(folder, bystander, "its state.json is ")


@pytest.mark.parametrize("change", [{"boot": "another"}, {"runner": {"start": 1}}])
def test_an_id_that_is_another_process_by_now_is_not_ended(
    runs: Path, bystander: "subprocess.Popen[bytes]", change: dict[str, Any]
) -> None:
    """The lab is one that was left behind; whoever has its runner's id now is nobody of it."""
    name = f"{bystander.pid}-1"
    changed = (
        {"runner": {"pid": bystander.pid, **change["runner"]}} if "runner" in change else change
    )
    write(runs / name, record(name, bystander.pid, **changed))
    (left,) = entry.entries()
    assert not left.running()
    assert registry.clean(living=True) == [name]
    assert bystander.poll() is None
    assert not (runs / name).exists()


def test_who_is_only_named_in_a_record_is_not_ended(
    runs: Path, bystander: "subprocess.Popen[bytes]"
) -> None:
    """A lab's processes carry its mark or are in its namespaces, whatever a file says."""
    pid = gone()
    name = f"{pid}-1"
    write(runs / name, record(name, bystander.pid, runner={"pid": pid, "start": 1}))
    assert registry.clean() == [name]
    assert bystander.poll() is None


def test_what_is_mounted_in_a_folder_is_not_emptied(
    runs: Path, tmp_path: Path, bystander: "subprocess.Popen[bytes]"
) -> None:
    pid = gone()
    name = f"{pid}-1"
    folder = write(runs / name, record(name, bystander.pid, runner={"pid": pid, "start": 1}))
    kept = write(tmp_path / "kept here", None)
    (folder / "a place").mkdir()
    subprocess.run(["mount", "--bind", kept, folder / "a place"], check=True)
    try:
        untouched(folder, bystander, f"{folder}/a place is mounted in it")
        assert (kept / "valuable").exists()
    finally:
        subprocess.run(["umount", folder / "a place"], check=True)


def test_a_lab_of_the_same_name_elsewhere_is_another(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two registries: a process id comes again, and with it the name."""
    here, there = LabState(), LabState()
    here.open()
    monkeypatch.setenv("TM3_RUN", f"{runs}-elsewhere")
    there.open()
    assert here.name == there.name
    try:
        with program(there, None, "sleeper", ["sleep", "600"]) as sleeper:
            here.close()
            assert sleeper.running()
            there.close()
            assert not sleeper.running()
    finally:
        here.close()
        there.close()
        Path(f"{runs}-elsewhere").rmdir()


def test_whatever_the_umask_a_lab_is_known_again(runs: Path) -> None:
    before = os.umask(0)
    state = LabState()
    try:
        state.open()
        assert [it.folder for it in entry.entries()] == [state.folder]
    finally:
        os.umask(before)
        state.close()


def test_tm3lab_clean_tells_what_it_did(runs: Path) -> None:
    foreign = write(runs / "documents", None)
    half = runs / f".{gone()}-1"
    half.mkdir(mode=0o755)

    def clean() -> "subprocess.CompletedProcess[str]":
        argv = [built("tm3lab"), "clean"]
        return subprocess.run(argv, capture_output=True, text=True, check=True)

    done = clean()
    assert done.stdout == f"removed 1 labs {half.name}\n"
    assert done.stderr == f"left alone: {foreign}: its name is not a lab's\n"
    assert clean().stdout == "removed 0 labs\n"
