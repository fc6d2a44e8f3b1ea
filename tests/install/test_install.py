# SPDX-License-Identifier: MIT
"""`make install` puts everything where it belongs, `make uninstall` leaves nothing of it."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from install.programs import INSTALLED
from tests.relay.programs import BUILD, ROOT

BINARIES = {"bin/tm3-rp", "bin/tm3-lp", "sbin/tm3ctl"}
OTHERS = {
    *(f"share/man/man{it.section}/{it.name}.{it.section}" for it in INSTALLED.values()),
    *(f"share/bash-completion/completions/{name}" for name in INSTALLED),
    *(f"share/zsh/site-functions/_{name}" for name in INSTALLED),
    *(f"share/fish/vendor_completions.d/{name}.fish" for name in INSTALLED),
    *(f"share/doc/tm3/examples/{name}" for name in ("rp.conf", "lp.conf", "60-tm3.conf")),
    "lib/systemd/system/tm3-rp.service",
    "lib/systemd/system/tm3-lp.service",
}
TM3BPF = "libexec/tm3/tm3bpf"
EXPOSURE_MAX = 1.5  # of 10, as systemd counts


def make(*words: str, seconds: float = 100) -> None:
    told = ("MAKE", "PREFIX")  # perf sets the latter, for one
    env = {key: value for key, value in os.environ.items() if not key.startswith(told)}
    argv = ["make", "--no-print-directory", "-C", ROOT, f"BUILD={BUILD}", *words]
    done = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=seconds)
    assert done.returncode == 0, done.stdout + done.stderr


def files_in(folder: Path) -> set[str]:
    return {str(it.relative_to(folder)) for it in folder.rglob("*") if not it.is_dir()}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    make("install", f"DESTDIR={folder}")
    return folder / "usr" / "local"


def test_everything_is_where_it_belongs(installed: Path) -> None:
    there = files_in(installed)
    assert there - {TM3BPF} == BINARIES | OTHERS
    assert (TM3BPF in there) == (BUILD / "tm3bpf").exists()
    for name in there:
        mode = (installed / name).stat().st_mode & 0o7777
        assert mode == (0o755 if name in {*BINARIES, TM3BPF} else 0o644), name
        assert (installed / name).stat().st_size, f"{name} is empty"
    assert files_in(installed.parents[1]) == {f"usr/local/{name}" for name in there}


@pytest.mark.parametrize("side", ["rp", "lp"])
def test_what_is_installed_runs(installed: Path, side: str) -> None:
    program = installed / "bin" / f"tm3-{side}"
    done = subprocess.run([program, "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    version = re.fullmatch(rf"{side} \(TM3\) (\d+\.\d+\.\d+)\n", done.stdout)
    assert version, done.stdout
    page = (installed / "share" / "man" / "man1" / f"tm3-{side}.1").read_text()
    assert f'"TM3 {version[1]}"' in page


def test_tm3ctl_finds_what_is_installed_beside_it(installed: Path, tmp_path: Path) -> None:
    """Elsewhere than in the tree, where it looks into build/ first."""
    (tmp_path / "bin").mkdir()
    ctl = Path(shutil.copy(installed / "sbin" / "tm3ctl", tmp_path / "bin" / "tm3ctl"))
    missing = subprocess.run([ctl, "--bpf"], capture_output=True, text=True)
    assert missing.returncode == 1 and f"there is no {ctl.parent}/../{TM3BPF}" in missing.stderr
    bpf = tmp_path / TM3BPF
    bpf.parent.mkdir(parents=True)
    bpf.write_text('#!/bin/sh\necho "$0 was started with $*"\n')
    bpf.chmod(0o755)
    done = subprocess.run([ctl, "--bpf", "all"], capture_output=True, text=True, check=True)
    assert done.stdout == f"{ctl.parent}/../{TM3BPF} was started with all\n"


@pytest.mark.parametrize(
    "folders", [(), ("PREFIX=/opt/tm3",), ("PREFIX=/usr", "UNITDIR=/lib/systemd/system")]
)
def test_uninstall_leaves_nothing(tmp_path: Path, folders: tuple[str, ...]) -> None:
    where = (f"DESTDIR={tmp_path}", *folders)
    make("install", *where)
    before = files_in(tmp_path)
    assert len(before) >= len(BINARIES | OTHERS)
    for wanted in folders:
        assert any(f"/{it}".startswith(wanted.partition("=")[2]) for it in before), wanted
    foreign = next(it.parent for it in tmp_path.rglob("tm3-rp.service")) / "other.service"
    foreign.touch()
    make("uninstall", *where)
    assert files_in(tmp_path) == {str(foreign.relative_to(tmp_path))}
    ours = [it for it in tmp_path.rglob("*") if it.is_dir() and it.name in ("tm3", "examples")]
    assert not [it for it in ours if it.parent.name in ("doc", "libexec", "tm3")]
    make("uninstall", *where)  # again, with nothing there


def test_kernel_settings_are_there(installed: Path) -> None:
    """Those that are only proposed, too; each is given as many values as it has."""
    text = (installed / "share/doc/tm3/examples/60-tm3.conf").read_text()
    settings = dict(re.findall(r"^(?:# )?(net\.\S+) = (.+)$", text, re.MULTILINE))
    assert len(settings) == len(re.findall(r"^(?:# )?net\.", text, re.MULTILINE)) >= 8
    for name, value in settings.items():
        now = Path("/proc/sys", *name.split(".")).read_text().split()
        if name.endswith("_congestion_control"):
            assert re.fullmatch("[a-z ]+", value)
        else:
            assert len(value.split()) == len(now), name


# --- units ---


@pytest.fixture
def unit(installed: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """As installed, but for the folder of the program, which is not there but below DESTDIR."""
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze on this machine: apt-get install systemd")
    name = f"tm3-{request.param}.service"
    text = (installed / "lib" / "systemd" / "system" / name).read_text()
    assert "ExecStart=/usr/local/bin/tm3-" in text and "@" not in re.sub("@[a-z-]+", "", text)
    path = tmp_path / name
    path.write_text(text.replace("/usr/local/bin", f"{installed}/bin"))
    return path


def analyze(*words: str | Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "SYSTEMD_COLORS": "0", "LC_ALL": "C.UTF-8"}
    return subprocess.run(["systemd-analyze", *words], capture_output=True, text=True, env=env)


both = pytest.mark.parametrize("unit", ["rp", "lp"], indirect=True)


@both
def test_systemd_understands_the_unit(unit: Path) -> None:
    done = analyze("verify", "--man=no", unit)
    said = [line for line in (done.stdout + done.stderr).splitlines() if unit.name in line]
    assert (done.returncode, said) == (0, []), done.stderr
    # It would have said something.
    unit.write_text(unit.read_text().replace("[Service]", "[Service]\nNoSuchSetting=1"))
    assert "NoSuchSetting" in analyze("verify", "--man=no", unit).stderr


@both
def test_unit_gives_the_service_little(unit: Path) -> None:
    said = analyze("security", "--offline=true", "--no-pager", unit).stdout
    exposure = re.search(r"Overall exposure level for \S+: (\d+\.\d)", said)
    assert exposure, said
    assert float(exposure[1]) <= EXPOSURE_MAX, said
