# SPDX-License-Identifier: MIT
"""What a service manager is told, and addresses that come later. systemd's part is played here."""

import ctypes
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.relay.ends import echo, read_exactly, serving, socks
from tests.relay.netns import Namespace
from tests.relay.programs import Program, binary, program
from tests.relay.proxies import RP_READY, local_proxy
from tests.relay.waiting import until

LATER = "192.0.2.1"


class Manager:
    """The socket of $NOTIFY_SOCKET, and what came to it."""

    def __init__(self, sock: socket.socket, name: str) -> None:
        self.sock = sock
        self.env = {"NOTIFY_SOCKET": name}
        self.told: list[str] = []

    def look(self) -> list[str]:
        while True:
            try:
                self.told.append(self.sock.recv(4096).decode())
            except BlockingIOError:
                return self.told

    def expect(self, message: str, count: int = 1) -> None:
        until(f"{count} of {message!r}", lambda: self.look().count(message) >= count)


@contextmanager
def manager(box: Namespace, at: Path | str) -> Iterator[Manager]:
    with box.entered(), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(at).replace("@", "\0"))
        sock.setblocking(False)
        yield Manager(sock, str(at))


def rp_command(*argv: str) -> list[str | Path]:
    return [binary("rp"), *argv, "--listen", "127.0.0.1", "2"]


@pytest.mark.parametrize("user", [[], ["--user", "nobody"]], ids=["root", "nobody"])
def test_a_life_as_it_is_told(box: Namespace, tmp_path: Path, user: list[str]) -> None:
    """Nobody may enter the directory of the socket, so it is reached before root is given up."""
    of_rp, of_lp = tmp_path / "rp.notify", tmp_path / "lp.notify"
    lp_command = [binary("lp"), *user, "127.0.0.1", "2"]
    with (
        manager(box, of_rp) as rp_told,
        manager(box, of_lp) as lp_told,
        program(box, rp_command(*user), tmp_path / "rp.log", env=rp_told.env) as rp,
    ):
        tmp_path.chmod(0o700)
        rp_told.expect("READY=1")
        assert box.listening(6000) and box.listening(6010)
        rp_told.expect("STATUS=0 sessions")
        with program(box, lp_command, tmp_path / "lp.log", name="lp", env=lp_told.env) as lp:
            lp_told.expect("READY=1")
            assert box.listening(1080)
            lp_told.expect("STATUS=2 pipes to 127.0.0.1:6010")
            rp_told.expect("STATUS=1 session")
            for proxy, told in ((rp, rp_told), (lp, lp_told)):
                before = time.monotonic_ns() // 1000
                proxy.send_signal(signal.SIGHUP)
                told.expect("READY=1", count=2)
                (reloading,) = [text for text in told.told if text.startswith("RELOADING=1\n")]
                at = int(reloading.removeprefix("RELOADING=1\nMONOTONIC_USEC="))
                assert before <= at <= time.monotonic_ns() // 1000
                assert told.told.index(reloading) < len(told.told) - 1
            assert rp.stop() == 0
            assert rp_told.look()[-1] == "STOPPING=1"
            lp_told.expect("STATUS=no pipes")
        assert lp_told.look()[-1] == "STOPPING=1"
    assert not any("WATCHDOG" in text for text in rp_told.told + lp_told.told)


def test_signs_of_life(box: Namespace, tmp_path: Path) -> None:
    with manager(box, "@tm3-test-notify") as told:
        env = {**told.env, "WATCHDOG_USEC": "400000"}
        with program(box, rp_command(), tmp_path / "rp.log", env=env) as rp:
            told.expect("WATCHDOG=1", count=5)
            rp.send_signal(signal.SIGSTOP)
            stat = Path(f"/proc/{rp.pid}/stat")
            until("rp to stand still", lambda: stat.read_text().rsplit(")", 1)[1].split()[0] == "T")
            before = len(told.look())
            time.sleep(1)
            assert len(told.look()) == before
            rp.send_signal(signal.SIGCONT)
            told.expect("WATCHDOG=1", count=7)


@contextmanager
def held(thread: int) -> Iterator[None]:
    """It alone stands still, whatever the others of its process do."""
    seize, interrupt, detach, wall = 0x4206, 0x4207, 17, 0x40000000
    libc = ctypes.CDLL(None, use_errno=True)
    for request in (seize, interrupt):
        assert not libc.ptrace(request, thread, None, None), os.strerror(ctypes.get_errno())
    os.waitpid(thread, wall)
    try:
        yield
    finally:
        libc.ptrace(detach, thread, None, None)


def test_a_worker_that_hangs_gives_no_sign_of_life(box: Namespace, tmp_path: Path) -> None:
    """The first thread goes on meanwhile, and says how many sessions there are. It may be about to
    give a sign, and a worker that answered it before is good for one more."""
    with manager(box, tmp_path / "notify") as told:
        env = {**told.env, "WATCHDOG_USEC": "400000"}
        argv = rp_command("--workers", "2")
        with program(box, argv, tmp_path / "rp.log", name="rp", ready=RP_READY, env=env) as rp:
            told.expect("WATCHDOG=1", count=5)
            threads = sorted(int(task.name) for task in Path(f"/proc/{rp.pid}/task").iterdir())
            threads.remove(rp.pid)
            for worker in threads:
                with held(worker):
                    before = told.look().count("WATCHDOG=1")
                    time.sleep(1.2)  # six of its looks
                    assert told.look().count("WATCHDOG=1") <= before + 2
                told.expect("WATCHDOG=1", count=before + 5)
            assert len(threads) == 2


def test_a_watchdog_of_another_process(box: Namespace, tmp_path: Path) -> None:
    """The variables may be inherited from somebody else's service."""
    with manager(box, tmp_path / "notify") as told:
        env = {**told.env, "WATCHDOG_USEC": "100000", "WATCHDOG_PID": "1"}
        with (
            program(box, rp_command(), tmp_path / "rp.log", name="rp", env=env) as rp,
            local_proxy(box, tmp_path, pipes=2),
        ):
            told.expect("STATUS=1 session")
            assert not any("WATCHDOG" in text for text in told.told)
            assert rp.running()


def test_nobody_at_the_socket(box: Namespace, tmp_path: Path) -> None:
    env = {"NOTIFY_SOCKET": str(tmp_path / "nobody")}
    argv = rp_command()
    with (
        serving(box, echo) as server,
        program(box, argv, tmp_path / "rp.log", name="rp", ready=RP_READY, env=env) as rp,
        local_proxy(box, tmp_path, pipes=2),
        socks(box, "127.0.0.1", server.port) as sock,
    ):
        sock.sendall(b"hello")
        assert read_exactly(sock, 5) == b"hello"
        assert len(rp.lines("NOTIFY_SOCKET: .*/nobody: No such file or directory")) == 1


# --- addresses ---


@contextmanager
def waiting(
    box: Namespace, tmp_path: Path, side: str, *argv: str, env: dict[str, str]
) -> Iterator[Program]:
    with program(box, [binary(side), *argv], tmp_path / "log", name=side, env=env) as proxy:
        proxy.expect(rf"^{side}: waiting for {LATER}:\d+, which is no address of this host yet$")
        yield proxy


@pytest.mark.parametrize(
    ("side", "argv", "port", "ready"),
    [
        ("rp", ["--listen", "127.0.0.1:6000", "--listen", f"{LATER}:6000", "2"], 6000, RP_READY),
        ("rp", ["--listen", "127.0.0.1:81", "--extended", LATER, "2"], 81, RP_READY),
        ("rp", ["--listen", LATER, "--allow", "127.0.0.0/8", "2"], 6010, RP_READY),
        ("lp", ["--socks", f"{LATER}:1080", "127.0.0.1", "2"], 6003, r"lp: SOCKS5 on 192"),
        ("lp", ["--forward", f"{LATER}:7000:h:80", "127.0.0.1", "2"], 1080, r"lp: forwarding 192"),
    ],
)
def test_an_address_that_comes_later(
    box: Namespace, tmp_path: Path, side: str, argv: list[str], port: int, ready: str
) -> None:
    """It is waited for, said once; nothing is open before, and root is not given up."""
    with (
        manager(box, tmp_path / "notify") as told,
        waiting(box, tmp_path, side, "--user", "nobody", *argv, env=told.env) as proxy,
    ):
        proxy.send_signal(signal.SIGHUP)
        proxy.expect(rf"SIGHUP: still waiting for {LATER}")
        proxy.send_signal(signal.SIGUSR1)
        proxy.expect(rf"^waiting for {LATER}")
        until("three tries", lambda: sum("STATUS=wait" in text for text in told.look()) >= 3)
        assert all("\nEXTEND_TIMEOUT_USEC=10000000" in text for text in told.told), told.told
        assert not box.listening(port)
        box.ip("address", "add", f"{LATER}/32", "dev", "lo")
        proxy.expect(ready)
        told.expect("READY=1")
        assert box.listening(port)
        assert len(proxy.lines("waiting for .*yet$")) == 1
        assert not proxy.lines("is not spoken")


def test_who_waits_ends_when_told(box: Namespace, tmp_path: Path) -> None:
    with manager(box, tmp_path / "notify") as told:
        with waiting(box, tmp_path, "rp", "--listen", LATER, "2", env=told.env) as rp:
            assert rp.stop() == 0
        assert told.look()[-1] == "STOPPING=1"
        assert "READY=1" not in told.told
