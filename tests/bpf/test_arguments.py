# SPDX-License-Identifier: MIT
"""What `tm3ctl --bpf` refuses: one line, which says what would be right."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.bpf.road import TM3BPF, TM3CTL, Road

PORTS_ARE = "is not a port from 1 to 65535"
CASES = [
    ([], "either -- COMMAND or --cgroup DIR is needed"),
    (["80"], "either -- COMMAND or --cgroup DIR is needed"),
    (["--"], "which command? None stands behind --"),
    (["--cgroup", "/x", "--", "true"], "either -- COMMAND or --cgroup DIR is needed"),
    (["--cgroup", "/x", "--cgroup", "/y"], "--cgroup can be given once"),
    (["--cgroup"], "--cgroup needs a value"),
    (["--wait", "--", "true"], "unknown option '--wait'"),
    (["-x", "--", "true"], "unknown option '-x'"),
    (["-port", "80", "--", "true"], "unknown option '-port'"),
    (["80", "-except", "10.0.0.1", "--", "true"], "unknown option '-except'"),
    (["--status", "--", "true"], "--status takes nothing else"),
    (["--except", "10.0.0.1"] * 257 + ["--", "true"], "--except can be given 256 times at most"),
    *((["--local-port", port, "--", "true"], PORTS_ARE) for port in ("0", "65536", "", "x", "06")),
    *(([port, "--", "true"], PORTS_ARE) for port in (
        "0", "65536", "http", "80-", "90-80", "", "1-2-3", "80,443", "08", "8 0", "99999999999",
    )),
    *((["--except", net, "--", "true"], f"'{net}' is not an address or ADDR/BITS") for net in (
        "", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8x", "10.0.0.256", "::/129",
        "rp.example", "10.0.0.0/0008", "1" * 60,
    )),
]  # fmt: skip


@pytest.fixture
def tm3bpf() -> Path:
    if not TM3BPF.exists():
        pytest.skip(f"there is no {TM3BPF}: make bpf")
    return TM3BPF


def run(tm3bpf: Path | str, *args: str | Path) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "TM3_BPF": str(tm3bpf)}
    argv = [TM3CTL, "--bpf", *args]
    return subprocess.run(argv, capture_output=True, text=True, timeout=10, env=environ)


@pytest.mark.parametrize(("args", "why"), CASES, ids=lambda it: str(it)[:40])
def test_wrong_arguments_are_one_line_and_2(tm3bpf: Path, args: list[str], why: str) -> None:
    done = run(tm3bpf, *args)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("tm3ctl: ") and done.stderr.count("\n") == 1
    assert why in done.stderr and "--help" in done.stderr


def test_help_names_every_option(tm3bpf: Path) -> None:
    done = run(tm3bpf, "--help")
    assert done.returncode == 0 and done.stderr == ""
    for word in ("-- COMMAND", "--cgroup DIR", "--except", "--local-port", "--status"):
        assert word in done.stdout


def test_where_it_was_not_built(tmp_path: Path) -> None:
    done = run(tmp_path / "tm3bpf", "--", "true")
    assert (done.returncode, done.stderr) == (
        1,
        f"tm3ctl: there is no {tmp_path}/tm3bpf: make bpf\n",
    )


def test_only_root_may(tm3bpf: Path) -> None:
    if os.geteuid():
        done = run(tm3bpf, "--", "true")
    else:
        argv = ["setpriv", "--reuid", "65534", "--clear-groups", "--inh-caps=-all", "/dev/fd/0"]
        with tm3bpf.open("rb") as program:  # the tree may be closed to others
            done = subprocess.run(
                [*argv, "--", "true"], stdin=program, capture_output=True, text=True, timeout=10
            )
    assert (done.returncode, done.stderr) == (1, "tm3ctl: needs root\n")


@pytest.mark.parametrize(
    ("folder", "why"),
    [
        ("/no/such", "there is no cgroup '/no/such'"),
        ("/proc/version", "'/proc/version' is no cgroup: Not a directory"),
        ("/usr", "'/usr' is not in a file system of cgroup2"),
    ],
)
def test_a_folder_that_is_no_cgroup(way: Road, folder: str, why: str) -> None:
    done = way.bpf("--cgroup", folder)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith(f"tm3ctl: {why}") and done.stderr.count("\n") == 1


def test_loopback_that_is_down(way: Road) -> None:
    way.near.ip("link", "set", "lo", "down")
    done = way.bpf("--", "echo", "hello")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "tm3ctl: there is nowhere to redirect to: loopback is down\n"


def test_without_cgroup2(way: Road) -> None:
    hidden = 'umount -a -t cgroup2 && exec "$@"'
    done = subprocess.run(
        way.near.command(["unshare", "--mount", "sh", "-c", hidden, "sh", TM3BPF, "--", "true"]),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "tm3ctl: there is no cgroup2 here: mount -t cgroup2 none " in done.stderr


def test_without_the_right_to_load_programs(way: Road) -> None:
    """Root of a container that may not, say."""
    argv = ["setpriv", "--bounding-set=-bpf,-sys_admin", "--inh-caps=-all", TM3BPF, "--", "true"]
    done = subprocess.run(way.near.command(argv), capture_output=True, text=True)
    assert done.returncode == 1
    assert "tm3ctl: the BPF programs cannot be loaded: the kernel does not permit it" in done.stderr
