# SPDX-License-Identifier: MIT
"""The command's words: what is wrong is told in one line that lists what there is."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from base.sources import ROOT
from experiments import catalogue, cli_run, preflight, sweep
from experiments.cli import main
from experiments.preflight import CannotServe
from experiments.progress import Expectation
from topologies.presets import PRESETS
from topologies.qdisc import why_no_netem


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    try:
        status = main(list(words))
    except SystemExit as left:
        status = int(str(left.code or 0))
    said = capsys.readouterr()
    return status, said.out, said.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("run", "downlaod"), "experiment 'downlaod': there is none; there are asymmetric, "),
        (("list", "nothing"), "experiment 'nothing': there is none; there are asymmetric, "),
        (("run", "download", "--lost", "1%"), "--lost: no such argument; there are --size"),
        (("run", "object", "--pipe", "3"), "--pipe: no such argument; there are "),
        (("run", "download", "--preset", "lan"), f"preset: 'lan' is none of {', '.join(PRESETS)}"),
        (("run", "download", "--size", "big"), "size: 'big' is no size"),
        (("run", "download", "--pipes", "65"), "pipes: 65 is not from 0 to 64"),
        (("run", "download", "--reps", "0"), "reps: 0 is not from 1 to 100000"),
        (("run", "download", "--reps", "x"), "argument --reps: invalid int value: 'x'"),
        (("run", "no-such.toml"), "no-such.toml: no such file"),
        (("run",), "the following arguments are required: NAME"),
        (("rum",), "'rum' (choose from"),
        (("up", "lan"), "preset: 'lan' is none of"),
        (("up", "lte", "--pipes", "1,2"), "pipes: '1,2': one value for one lab"),
        ((), "required: COMMAND"),
    ],
)
def test_wrong_words(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str) -> None:
    status, out, err = told(capsys, *words)
    assert (status, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1
    assert err.startswith("tm3lab: ")


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--reps", str(10**18)), f"reps: {10**18} is not from 1 to 100000"),
        (("--reps", "9" * 400), " is not from 1 to 100000"),
        (("--reps", "90000"), "reps: 90000 of 135 configurations are 12150000 runs; there may be"),
        (("--time-limit", "1e300"), "time_limit: 1e+300 is not from 0.001 to 1e+06 seconds"),
        (("--time-limit", "nan"), "time_limit: nan is not a number"),
        (("--within", "1e300"), "within: 1e+300 is not from 0.0001 to 1e+06 minutes"),
        (("--seed", "-1"), "seed: -1 is not from 0 to "),
        (("--seed", str(10**26)), f"seed: {10**26} is not from 0 to "),
        (("--size", "1e30"), " is not from 1 to 4.61169e+18"),
        (("--size", "1000000000000GB"), " is not from 1 to 4.61169e+18"),
        (("--pipe-sndbuf", "9" * 30), " is not from 1024 to 4.61169e+18"),
        (("--initcwnd", "1..65535"), "initcwnd: 1..65535 are more than 10000 values"),
        (("--initcwnd", "1..9000", "--initrwnd", "1..9000"), "9000 values make "),
    ],
)
def test_what_nobody_can_measure_is_refused_at_once(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str
) -> None:
    status, out, err = told(capsys, "run", "download", *words, "--dry-run")
    assert (status, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


@pytest.mark.timeout(20)
def test_a_large_sweep_is_planned_soon(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ("--mtu", "600..1400", "--preset", "wired", "--way", "pipes", "--size", "50KB")
    more = ("--pipes", "1", "--warm", "no", "--reps", "100", "--results", str(tmp_path))
    status, _, err = told(capsys, "run", "download", *words, *more, "--dry-run")
    assert status == 0
    assert "download: 801 configurations x 100 repetitions, about " in err


@pytest.mark.parametrize(
    ("name", "more", "says"),
    [
        ("downlaod", "", "experiment 'downlaod': there is none"),
        ("download", 'los = "1%"', "los: no such parameter"),
        ("download", "warm = 3", "warm: 3 is "),
        ("download", '[[figure]]\nname = "f"\ntitle = "F"\nkind = "bars"', "figure: kind 'bars'"),
        (
            "download",
            '[[figure]]\nname="f"\ntitle="F"\nkind="cdf"\ny="s"',
            "figure f: y: 's' is no",
        ),
    ],
)
def test_a_file_is_named_with_what_is_wrong_in_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, more: str, says: str
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'experiment = "{name}"\n[[grid]]\npipes = [1, 8]\n{more}\n')
    status, out, err = told(capsys, "run", str(path), "--dry-run")
    assert (status, out) == (2, "")
    assert err.startswith(f"tm3lab: {path}: {says}")
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", ["resume", "plot", "report"])
def test_a_folder_of_something_else(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str
) -> None:
    if command == "resume" and os.geteuid() != 0:
        pytest.skip("says first that it needs root")
    status, _, err = told(capsys, command, str(tmp_path))
    assert status == 1
    assert err == f"tm3lab: {tmp_path}: no folder of results (it has no meta.json)\n"


def test_list_has_all(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = told(capsys, "list")
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()] == list(catalogue.names())


@pytest.mark.parametrize("name", catalogue.names())
def test_list_tells_of_each(capsys: pytest.CaptureFixture[str], name: str) -> None:
    status, out, _ = told(capsys, "list", name)
    assert status == 0
    for parameter in (*catalogue.find(name).parameters, "pipes", "loss"):
        word = parameter if isinstance(parameter, str) else parameter.name
        assert f"--{word.replace('_', '-')} " in out


def test_help_has_units_and_choices(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = told(capsys, "run", "download", "--help")
    assert status == 0
    for word in ("--size SIZE", "--rtt-ms X", "Mbit/s", "late, early", "wired, lossy", "--resul"):
        assert word in out


def test_a_dry_run_says_how_long_and_runs_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ("--pipes", "1,2", "--way", "pipes", "--size", "50KB", "--preset", "wired")
    status, _, err = told(
        capsys,
        *("run", "download", *words, "--warm", "no", "--reps", "2", "--dry-run"),
        *("--results", str(tmp_path)),
    )
    assert status == 0
    assert "download: 2 configurations x 2 repetitions, about " in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("quick", [False, True])
def test_all_is_all(capsys: pytest.CaptureFixture[str], tmp_path: Path, quick: bool) -> None:
    """But for what is too long for the quick one."""
    words = ["--quick"] * quick
    status, _, err = told(capsys, "run", "all", *words, "--dry-run", "--results", str(tmp_path))
    assert status == 0
    for it in catalogue.experiments():
        assert (f"tm3lab: {it.name}: " in err) == (it.in_all_quick or not quick)
    assert "all together: about " in err


def test_quick_takes_hardly_more_than_it_is_given() -> None:
    """By the guesses. `--within` bounds it whatever they are, at the cost of blocks left undone."""
    total_s = sum(
        it.quick_reps * Expectation(it).guess_s * len(sweep.configurations(it, {}, quick=True))
        for it in catalogue.experiments()
        if it.in_all_quick
    )
    assert cli_run.QUICK_MINUTES < 90
    assert total_s < 1.65 * 60 * cli_run.QUICK_MINUTES


def test_without_root_it_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    for words in (("run", "download", "--results", str(tmp_path)), ("up", "lte")):
        status, _, err = told(capsys, *words)
        assert status == 1
        assert "need root" in err.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="says first that it needs root")
@pytest.mark.skipif(why_no_netem() is None, reason="this kernel has netem")
def test_a_kernel_without_netem_says_what_would_serve(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ("run", "download", "--link", "netem", "--results", str(tmp_path))
    status, _, err = told(capsys, *words)
    assert status == 1
    assert "netem" in err
    assert "--link linkem" in err
    assert list(tmp_path.iterdir()) == []


def test_what_is_missing_is_named() -> None:
    with pytest.raises(CannotServe, match="not installed: no-such-program: sudo "):
        preflight.check_programs(("sh", "no-such-program"))
    preflight.check_modules(("json",))
    with pytest.raises(CannotServe, match=r"^no no_such_module in Python: sudo make setup$"):
        preflight.check_modules(("json", "no_such_module"))
    with pytest.raises(CannotServe, match=r"^cc hasty: this kernel has .*reno"):
        preflight.check_cc("hasty")


def test_the_script_works_from_anywhere(tmp_path: Path) -> None:
    from topologies.programs import built

    (tmp_path / "statistics.py").write_text("raise SystemExit('not this one')")
    done = subprocess.run(
        [built("tm3lab"), "list"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(catalogue.names()[0])


def test_the_script_says_what_is_missing(tmp_path: Path) -> None:
    from topologies.programs import built

    text = built("tm3lab").read_text()
    (line,) = [line for line in text.splitlines() if line.startswith("python=")]
    script = tmp_path / "tm3lab"
    script.write_text(text.replace(line, f"python={tmp_path}/none"))
    done = subprocess.run(["sh", script, "list"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("tm3lab: set-up is missing: sudo make -C ")


def test_the_script_of_another_tree_does_not_run_here(tmp_path: Path) -> None:
    """A copy of a tree ran the sources and the proxies of the one that it was copied from."""
    from topologies.programs import built

    for there, status in (("experiments", 1), ("notes", 0)):
        copy = tmp_path / there / "build" / "tm3lab"
        copy.parent.mkdir(parents=True)
        (tmp_path / there / there).mkdir()
        shutil.copy(built("tm3lab"), copy)
        done = subprocess.run([copy, "list"], capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        assert (f"tm3lab: {copy} was made in " in done.stderr) == bool(status)


def test_who_reads_may_have_seen_enough() -> None:
    """tm3lab list | head: no traceback."""
    reader, writer = os.pipe()
    os.close(reader)
    argv = [sys.executable, "-m", "experiments", "list", "download"]
    done = subprocess.run(argv, stdout=writer, stderr=subprocess.PIPE, cwd=ROOT, check=False)
    os.close(writer)
    assert done.stderr == b""
    assert done.returncode == 1


def test_nothing_heavy_is_read_until_it_is_asked_for() -> None:
    """Each start of tm3lab waits for what is imported: `up` and `watch` draw nothing."""
    code = "import sys; from experiments.cli import parser; parser([]); print(*sys.modules)"
    argv = [sys.executable, "-c", code]
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, cwd=ROOT, check=True)
    read = set(done.stdout.split())
    assert "experiments.campaign" in read
    assert not read & {"asyncio", "distributed", "jinja2", "matplotlib", "numpy", "rich", "scipy"}
