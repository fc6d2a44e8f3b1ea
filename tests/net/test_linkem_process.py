# SPDX-License-Identifier: MIT
"""linkem as a process: what it refuses, how it ends, what it leaves behind."""

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import why_no_namespace
from tests.net.lab import bed
from tests.net.linkem import Linkem, LinkemError, command_line, linkem
from tests.relay.netns import Namespace, namespace
from tests.relay.programs import ROOT, SANITIZER_ENV, binary
from tests.relay.waiting import until

Ends = tuple[Namespace, Namespace]


@pytest.fixture
def ends() -> Iterator[Ends]:
    reason = why_no_namespace()
    if reason:
        pytest.skip(reason)
    with namespace("a") as a, namespace("b") as b:
        yield a, b


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [binary("linkem"), *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=20,
        env={**os.environ, **SANITIZER_ENV},
    )


def devices(end: Namespace) -> set[str]:
    return {line["ifname"] for line in json.loads(end.ip("-j", "link", "show"))}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "--a: missing"),
        (["--a", "self"], "--b: missing"),
        (["--a", "nobody-has-this", "--b", "self"], "--a: nobody-has-this: No such file"),
        (["--a", "self", "--b", "/dev/null"], "--b: /dev/null"),
        (["--frobnicate"], "--frobnicate: no such option"),
        (["--mtu"], "--mtu: needs a value"),
        (["--mtu", "67"], "--mtu: '67'"),
        (["--mtu", "1500B"], "--mtu: '1500B'"),
        (["--seed", "-1"], "--seed: '-1'"),
        (["--a-dev", "longer-than-fifteen"], "--a-dev: 'longer-than-fifteen'"),
        (["--b-dev", "a/b"], "--b-dev: 'a/b'"),
        (["--a-mac", "02:00:00:00:00"], "--a-mac:"),
        (["--b-mac", "01:00:00:00:00:01"], "--b-mac:"),
        (["--ab", "rate_mbps=10kbit"], "--ab: rate_mbps: '10kbit'"),
        (["--ba", "delay_ms=-5"], "--ba: delay_ms: -5"),
        (["--both", "speed=3"], "--both: speed: no such parameter"),
        (["--both", "loss=2%"], "--both: loss: '2%'"),
        (["--samples-ms", "0"], "--samples-ms: '0'"),
        (["--fifo", "100"], "--fifo: '100'"),
        (["--fifo", "yes"], "--fifo: 'yes'"),
        (["--cpu", "x"], "--cpu: 'x'"),
        (["--memory-mb", "0"], "--memory-mb: '0'"),
        (["--snaplen", "1"], "--snaplen: '1'"),
        (["surplus"], "'surplus': only options"),
        (["--a", "self", "--b", "self", "--samples", "/no/where"], "--samples: /no/where"),
        (["--a", "self", "--b", "self", "--pcap-b", "/no/where"], "--pcap-b: /no/where"),
    ],
)
def test_wrong_arguments_are_named_in_one_line(arguments: list[str], says: str) -> None:
    if "/dev/null" in arguments and why_no_namespace():
        pytest.skip(str(why_no_namespace()))
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("linkem: ")
    assert done.stderr.count("\n") == 1
    assert says in done.stderr
    assert done.stdout == ""


def test_help_names_every_option_and_version_is_told() -> None:
    done = run("--help")
    assert done.returncode == 0
    for option in ("--a,", "--control", "--truth", "--pcap-a", "--spin", "rate_mbps", "loss_at"):
        assert option in done.stdout
    assert all(len(line) < 100 for line in done.stdout.splitlines())
    assert run("--version").stdout.startswith("linkem ")


def test_files_that_cannot_be_are_named(ends: Ends) -> None:
    pids = ["--a", str(ends[0].pid), "--b", str(ends[1].pid)]
    for option in ("--truth", "--control"):
        done = run(*pids, option, "/no/where/x")
        assert done.returncode == 2
        assert done.stderr.startswith(f"linkem: {option}: /no/where/x: ")
        assert done.stderr.count("\n") == 1
    assert devices(ends[0]) == {"lo"}


def test_a_name_that_is_taken_is_named(ends: Ends) -> None:
    ends[1].ip("link", "add", "linkem-b", "type", "bridge")
    done = run("--a", str(ends[0].pid), "--b", ends[1].path)
    assert done.returncode == 2
    assert "--b-dev: linkem-b: already there" in done.stderr
    assert devices(ends[0]) == {"lo"}


def test_without_root_it_says_so() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to become somebody else")
    program = binary("linkem", asan=False)
    if any(not path.stat().st_mode & 1 for path in program.parents):
        pytest.skip(f"somebody else cannot reach {program}")
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    done = subprocess.run(
        [*nobody, "--bounding-set=-all", program, "--a", "self", "--b", "self"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("linkem: ")
    assert "(needs root)" in done.stderr
    assert done.stderr.count("\n") == 1


def test_kill_leaves_no_device_and_the_socket_is_taken_over(ends: Ends, tmp_path: Path) -> None:
    argv = command_line(binary("linkem", asan=False), ends[0].pid, ends[1].path)
    link = Linkem(argv, tmp_path)
    assert "linkem-a" in devices(ends[0])
    assert json.loads(link.truth_path.read_text())["state"] == "running"
    link.kill()
    assert link.control_path.exists()
    for end in ends:
        until("the device to go", lambda end=end: devices(end) == {"lo"})
    with linkem(argv, tmp_path) as again:
        assert again.get()["ok"] is True


def test_a_socket_in_use_is_refused(ends: Ends, tmp_path: Path) -> None:
    with bed(ends, tmp_path) as lab, namespace("c") as c, namespace("d") as d:
        done = run("--a", str(c.pid), "--b", str(d.pid), "--control", lab.link.control_path)
        assert done.returncode == 2
        assert done.stderr.startswith(f"linkem: --control: {lab.link.control_path}: ")
        assert lab.link.get()["ok"] is True


def test_of_those_that_start_at_once_one_has_the_socket(ends: Ends, tmp_path: Path) -> None:
    """The others say so. Who is at it has a lock on a file beside it."""
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    arguments = ["--a", str(ends[0].pid), "--b", ends[1].path, "--control", path]
    with Path(f"{path}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = run(*arguments)
    assert done.returncode == 2
    says = "another process is about to listen there"
    assert done.stderr == f"linkem: --control: {path}: {says}\n"
    assert path.is_socket()
    assert devices(ends[0]) == {"lo"}


def test_it_ends_with_its_parent(ends: Ends, tmp_path: Path) -> None:
    """The runner is killed with -9; neither process nor device stay."""
    program = (
        "import sys, time; from pathlib import Path\n"
        "from tests.net.linkem import Linkem, command_line\n"
        "link = Linkem(command_line(Path(sys.argv[1]), sys.argv[2], sys.argv[3]),"
        " Path(sys.argv[4]))\n"
        "print(link.pid, flush=True); time.sleep(60)\n"
    )
    link = binary("linkem", asan=False)
    runner = subprocess.Popen(
        [sys.executable, "-c", program, link, str(ends[0].pid), str(ends[1].pid), tmp_path],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        assert runner.stdout is not None
        pid = int(runner.stdout.readline())
        assert "linkem-a" in devices(ends[0])
    finally:
        runner.kill()
        runner.wait(timeout=10)
        assert runner.stdout is not None
        runner.stdout.close()
    until("the device to go", lambda: devices(ends[0]) == {"lo"})
    until(
        "the truth", lambda: json.loads((tmp_path / "truth.json").read_text())["state"] == "ended"
    )
    assert pid != runner.pid


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_with_the_truth(ends: Ends, tmp_path: Path, number: signal.Signals) -> None:
    with bed(ends, tmp_path, asan=True) as lab:
        os.kill(lab.link.pid, number)
        assert lab.link.stop()["state"] == "ended"


def test_sigusr1_writes_the_truth(ends: Ends, tmp_path: Path) -> None:
    with bed(ends, tmp_path) as lab:
        before = lab.link.truth_path.stat().st_mtime_ns
        os.kill(lab.link.pid, signal.SIGUSR1)
        until("a new truth", lambda: lab.link.truth_path.stat().st_mtime_ns > before)
        assert json.loads(lab.link.truth_path.read_text())["state"] == "running"


def test_a_device_that_is_deleted_ends_it_with_one_line(ends: Ends, tmp_path: Path) -> None:
    argv = command_line(binary("linkem"), ends[0].pid, ends[1].pid)
    link = Linkem(argv, tmp_path)
    ends[0].ip("link", "delete", "linkem-a")
    with pytest.raises(LinkemError, match="ended with 1"):
        until("linkem to end", lambda: link.returncode is not None)
        link.stop()
    assert "device linkem-a: gone" in link.log
    assert json.loads(link.truth_path.read_text())["state"] == "ended"


def test_wrong_commands_change_nothing(ends: Ends, tmp_path: Path) -> None:
    with bed(ends, tmp_path, ab={"delay_ms": 5}, asan=True) as lab:
        before = lab.link.get()
        for line, says in [
            ("", "'' is none of"),
            ("frobnicate", "'frobnicate' is none of"),
            ("set", "'' is not ab, ba or both"),
            ("set up delay_ms=1", "'up' is not ab, ba or both"),
            ("set both delay_ms=9 rate_mbps=fast", "rate_mbps: 'fast'"),
            ("restart", "restart: '' is not a seed"),
            ("restart -1", "restart: '-1' is not a seed"),
            ("set ab delay_ms", "delay_ms: no '=VALUE'"),
            ("set ab trace=/no/where", "trace: /no/where"),
        ]:
            with pytest.raises(LinkemError) as refused:
                lab.link.command(line)
            assert says in str(refused.value)
        assert lab.link.get() == before


def test_clients_of_the_control_socket_do_no_harm(ends: Ends, tmp_path: Path) -> None:
    """Parts of lines, several at once, too long ones, more clients than there is room for."""
    with bed(ends, tmp_path, asan=True) as lab:
        path = str(lab.link.control_path)

        def client() -> socket.socket:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.settimeout(10)
            sock.connect(path)
            return sock

        with client() as slow:
            slow.sendall(b"ge")
            with client() as quick:
                quick.sendall(b"get\ntruth\nget\n")
                reader = quick.makefile()
                assert [json.loads(reader.readline()).get("ok") for _ in range(3)] == [
                    *(True, None, True)
                ]
            slow.sendall(b"t\n")
            assert json.loads(slow.makefile().readline())["ok"] is True
        with client() as endless:
            with pytest.raises(OSError, match=r"reset|Broken pipe"):
                for _ in range(1000):
                    endless.sendall(b"x" * 4096)
        crowd = [client() for _ in range(40)]
        for sock in crowd:
            sock.close()
        with client() as after:
            after.sendall(b"get\n")
            assert json.loads(after.makefile().readline())["ok"] is True
