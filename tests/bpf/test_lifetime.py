# SPDX-License-Identifier: MIT
"""How `tm3ctl --bpf` begins and ends, and that nothing of it stays behind."""

import os
import re
import signal
import time
from pathlib import Path

import pytest

from tests.bpf.conftest import cgroup2
from tests.bpf.road import A6, CLIENT, RP, TM3BPF, TM3CTL, A, Road, Talker, join
from tests.relay.waiting import equals, until

PID_MAX_LIMIT = 1 << 22  # no process of Linux has a higher number


def own_cgroup() -> Path:
    """Below which tm3ctl makes those of commands."""
    (line,) = re.findall(r"^0::/(.*)$", Path("/proc/self/cgroup").read_text(), re.MULTILINE)
    return cgroup2() / line


def cgroup_of(pid: int) -> Path:
    (line,) = re.findall(r"^0::/(.*)$", Path(f"/proc/{pid}/cgroup").read_text(), re.MULTILINE)
    return cgroup2() / line


def status(way: Road) -> str:
    done = way.tm3ctl("status")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout


def keeper(way: Road) -> int:
    found = re.search(r"process (\d+) redirects", status(way))
    assert found, status(way)
    return int(found[1])


def wait_until_off(way: Road) -> None:
    equals("what tm3ctl says", lambda: status(way), "tm3ctl: off\n")


def obedient(way: Road, program: Talker) -> Path:
    assert program.hears() == "ready\n"
    folder = cgroup_of(program.pid)
    assert folder == own_cgroup() / f"tm3ctl.{program.pid}"
    return folder


def test_status_counts_and_off_says_what_goes_on(way: Road) -> None:
    assert status(way) == "tm3ctl: off\n"
    with way.proxies(), way.started("8000", "8002-8003", "--", *CLIENT, "obey") as program:
        folder = obedient(way, program)
        assert program.ask(A, 8000)["peer"] == [A, 8000]
        assert program.ask(A, 8001)["peer"] == [A, 8001]
        assert program.ask(A6, 8002)["peer"] == [A6, 8002]
        on, *counters = status(way).splitlines()
        assert on.endswith(f" redirects port 8000,8002-8003 of {folder}")
        assert counters == ["redirected 2", "bound 0", "dropped 0"]
        assert way.tm3ctl("off").stdout == (
            "tm3ctl: off\ntm3ctl: what --bpf redirects it does until it ends: tm3ctl status\n"
        )
        assert program.ask(A, 8000)["peer"] == [A, 8000]
    wait_until_off(way)
    assert not folder.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda it: it.name)
def test_when_the_command_is_killed_nothing_is_left(way: Road, number: signal.Signals) -> None:
    with way.started("--", *CLIENT, "obey") as program:
        folder = obedient(way, program)
        program.process.send_signal(number)
        assert program.process.wait(timeout=20) == -number
        until("the cgroup to be removed", lambda: not folder.exists())
    wait_until_off(way)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda it: it.name)
def test_without_its_keeper_a_command_goes_on_directly(way: Road, number: signal.Signals) -> None:
    with way.proxies(), way.started("--", *CLIENT, "obey") as program:
        folder = obedient(way, program)
        assert program.ask(A, 8000)["own"][0] == "127.0.0.1"
        os.kill(keeper(way), number)
        wait_until_off(way)
        assert program.ask(A, 8000)["own"][0] == "10.77.0.1"
        assert program.process.stdin
        program.process.stdin.close()
        assert program.process.wait(timeout=20) == 0
        if number == signal.SIGKILL:
            assert folder.exists(), "who would have removed it?"
            assert way.bpf("--", "true").returncode == 0
        until("the cgroup to be removed", lambda: not folder.exists())


def test_its_standard_output_ends_with_the_command(way: Road) -> None:
    """The keeper does not hold the pipe of a shell."""
    began = time.monotonic()
    with way.started("--", "sh", "-c", "sleep 20 >/dev/null 2>&1 & echo $!") as program:
        sleeper = int(program.hears())
        try:
            assert program.hears() == ""
            assert program.process.wait(timeout=10) == 0
            assert time.monotonic() - began < 15
            assert keeper(way)
        finally:
            os.kill(sleeper, signal.SIGKILL)
    wait_until_off(way)


def test_its_exit_status_is_the_commands(way: Road) -> None:
    assert way.bpf("--", "sh", "-c", "exit 7").returncode == 7
    done = way.bpf("--", "/no/such/command")
    assert done.returncode == 127
    assert "cannot run '/no/such/command': No such file or directory" in done.stderr
    wait_until_off(way)


def test_of_many_short_ones_nothing_is_left(way: Road) -> None:
    """Each that begins clears up empty cgroups, and may be faster than the one's own keeper."""
    for _ in range(25):
        assert way.near.run(TM3BPF, "--", "true") == ""
    wait_until_off(way)
    assert not list(own_cgroup().glob("tm3ctl.*"))


def test_what_a_killed_keeper_left_below_a_name_of_systemd_s(way: Road) -> None:
    """Such names have backslashes, as has that of a terminal's cgroup."""
    terminal = cgroup2() / f"tm3-test-{os.getpid()}\\x2dterminal*.scope"
    left = terminal / f"tm3ctl.{PID_MAX_LIMIT + 1}"
    terminal.mkdir()
    try:
        left.mkdir()
        assert way.near.run(*join(terminal), TM3BPF, "--", "true") == ""
        assert not left.exists()
    finally:
        until("the keeper to end", lambda: not (terminal / "cgroup.procs").read_text())
        for folder in (*terminal.glob("tm3ctl.*"), terminal):
            folder.rmdir()


def test_a_command_within_a_command(way: Road) -> None:
    with way.proxies() as both:
        inner = ["env", TM3CTL, "--bpf", "8000", "--", *CLIENT, "ask", A, "8000"]
        done = way.bpf("8001", "--", *inner)
        assert f'"peer": ["{A}", 8000]' in done.stdout, done.stderr
        both.settled()
    assert way.relayed() == [f"{A}:8000"]
    wait_until_off(way)


# --- a cgroup that is there ----------------------------------------------------------------------


def test_a_cgroup_and_what_is_below_it(way: Road, cgroup: Path) -> None:
    below = cgroup / "below"
    below.mkdir()
    try:
        with way.proxies(), way.started("--cgroup", cgroup) as holder:
            assert holder.complains() == (
                f"tm3ctl: connections of {cgroup} to port all go to lp, until this process ends\n"
            )
            for folder in (cgroup, below):
                argv = [*join(folder), *CLIENT, "ask", A, "8000"]
                assert f'"peer": ["{A}", 8000]' in way.near.run(*argv)
            assert way.unredirected("ask", A, "8000")["server"].endswith(" from 10.77.0.1")
            holder.process.send_signal(signal.SIGINT)
            assert holder.complains() == "tm3ctl: off\n"
            assert holder.process.wait(timeout=10) == 0
            equals("what lp relayed", way.relayed, [f"{A}:8000"] * 2)
            assert status(way) == "tm3ctl: off\n"
    finally:
        below.rmdir()


def test_killed_it_leaves_nothing_and_connections_go_on(way: Road, cgroup: Path) -> None:
    script = (
        "import socket\n"
        f"s = socket.create_connection(('{A}', 9000), 10)\n"
        "print(s.recv(3).decode(), flush=True)\n"
        "print(s.recv(3).decode(), flush=True)\n"
    )
    with way.proxies(), way.far.open_socket() as listener:
        listener.bind((A, 9000))
        listener.listen()
        with way.started("--cgroup", cgroup) as holder:
            holder.complains()
            with way.begun([*join(cgroup), "python3", "-c", script]) as program:
                sock, peer = listener.accept()
                with sock:
                    assert peer[0] != "10.77.0.1"
                    sock.sendall(b"1st")
                    assert program.hears() == "1st\n"
                    holder.process.kill()
                    holder.process.wait(timeout=10)
                    equals("those who redirect", lambda: str(cgroup) + "\n" in status(way), False)
                    sock.sendall(b"2nd")
                    assert program.hears() == "2nd\n"
                    argv = [*join(cgroup), *CLIENT, "ask", A, "8000"]
                    assert " from 10.77.0.1" in way.near.run(*argv)
    wait_until_off(way)


def test_it_ends_with_the_cgroup(way: Road, cgroup: Path) -> None:
    gone = cgroup / "gone"
    gone.mkdir()
    with way.started("--cgroup", gone) as holder:
        assert "nobody listens" in holder.complains()
        assert "until this process ends" in holder.complains()
        gone.rmdir()
        assert holder.complains() == "tm3ctl: off: the cgroup is gone\n"
        assert holder.process.wait(timeout=10) == 0


def test_lp_itself_is_not_turned_back_to_itself(way: Road, cgroup: Path) -> None:
    """Whoever names a cgroup with lp in it is told; with --except RP_IP lp may be there."""
    inner = cgroup / "lp"
    inner.mkdir()
    with way.proxies_with_lp_in(inner):
        done = way.bpf("--cgroup", cgroup)
        assert done.returncode == 1
        assert f"lp itself is in {cgroup}, its pipes would be turned back" in done.stderr
        with way.started("--cgroup", cgroup, "--except", RP) as holder:
            assert "until this process ends" in holder.complains()
            argv = [*join(cgroup), *CLIENT, "ask", A, "8000"]
            assert f'"peer": ["{A}", 8000]' in way.near.run(*argv)
    inner.rmdir()
