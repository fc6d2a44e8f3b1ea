# SPDX-License-Identifier: MIT
"""Sockets that were there before the proxies: systemd's part is played by activate.py."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.relay.ends import echo, read_exactly, read_to_end, serves, serving, socks
from tests.relay.netns import Namespace
from tests.relay.programs import Program, binary, finish, program
from tests.relay.proxies import LP_READY, RP_READY, local_proxy, remote_proxy

ACTIVATE = Path(__file__).parent / "activate.py"


def command(side: str, sockets: Sequence[str], argv: Sequence[str]) -> list[str | Path]:
    return [sys.executable, ACTIVATE, *sockets, "--", binary(side), *argv]


@contextmanager
def activated(
    box: Namespace, tmp_path: Path, side: str, sockets: Sequence[str], *argv: str
) -> Iterator[Program]:
    ready = RP_READY if side == "rp" else LP_READY
    words = command(side, sockets, argv)
    with program(box, words, tmp_path / f"{side}.log", name=side, ready=ready) as proxy:
        yield proxy


def test_rp_by_names(box: Namespace, tmp_path: Path) -> None:
    """At ports that only root may open, though it never was root's to open them."""
    sockets = ["extended=127.0.0.1:82", "pipes=127.0.0.1:81"]
    with (
        serving(box, echo) as server,
        activated(box, tmp_path, "rp", sockets, "--user", "nobody", "2") as rp,
    ):
        rp.expect(r"^rp: listening on 127\.0\.0\.1:81 for 2 pipes$")
        rp.expect(r"^rp: listening on 127\.0\.0\.1:82 for pipes of the extension$")
        assert not box.listening(6000) and not box.listening(6010)
        with local_proxy(box, tmp_path, to="127.0.0.1:81,82", pipes=2):
            serves(box, server.port)
        with local_proxy(box, tmp_path, "--extend", "never", to="127.0.0.1:81", pipes=2, name="b"):
            serves(box, server.port)


@pytest.mark.parametrize("port", [6000, 6010])
def test_rp_by_ports_of_both_families(box: Namespace, tmp_path: Path, port: int) -> None:
    """As `ListenStream=6000` has them. No pipe leads to rp itself, by whatever family."""
    argv = ("--allow", "127.0.0.0/8", "2")
    with (
        serving(box, echo) as server,
        activated(box, tmp_path, "rp", ["rp.socket=:6000", "rp.socket=:6010"], *argv) as rp,
        local_proxy(box, tmp_path, pipes=2) as lp,
    ):
        rp.expect(r"^rp: listening on \[::\]:6000 for 2 pipes$")
        lp.expect("6010 are up")
        serves(box, server.port)
        with socks(box, "127.0.0.1", port) as sock:
            assert read_to_end(sock, 5).how == "reset"
        rp.expect(rf"127\.0\.0\.1:{port} denied: it is where rp itself listens")


def test_rp_by_addresses(box: Namespace, tmp_path: Path) -> None:
    """What was not handed over is opened if it was named; nothing is by default."""
    argv = ("--listen", "127.0.0.1:7001", "--listen", "127.0.0.1:7002", "2")
    with (
        serving(box, echo) as server,
        activated(box, tmp_path, "rp", ["=127.0.0.1:7001"], *argv) as rp,
        local_proxy(box, tmp_path, to="127.0.0.1:7001", pipes=2),
    ):
        serves(box, server.port)
        assert len(rp.lines("listening on")) == 2
        assert box.listening(7002) and not box.listening(6010)


def test_lp(box: Namespace, tmp_path: Path) -> None:
    sockets = ["socks=127.0.0.1:1082", "=127.0.0.1:7000", "redirect=127.0.0.1:83"]
    with serving(box, echo) as server, remote_proxy(box, tmp_path, pipes=2):
        argv = ("--forward", f"7000:127.0.0.1:{server.port}", "127.0.0.1", "2")
        with (
            activated(box, tmp_path, "lp", sockets, *argv) as lp,
            box.connect(("127.0.0.1", 7000)) as sock,
        ):
            sock.sendall(b"hello")
            assert read_exactly(sock, 5) == b"hello"
            serves(box, server.port, lp=("127.0.0.1", 1082))
            lp.expect(r"^lp: redirected connections on 127\.0\.0\.1:83$")
            assert not box.listening(1080) and not box.listening(6003)


def test_what_came_by_it_is_reset_with_lp(box: Namespace, tmp_path: Path) -> None:
    """A socket that was handed over has none of the options that lp gives those which it opens
    itself, and which hand them on to what they accept."""
    with (
        serving(box, echo) as server,
        remote_proxy(box, tmp_path, pipes=2),
        activated(
            *(box, tmp_path, "lp", ["=127.0.0.1:7000"]),
            *("--forward", f"7000:127.0.0.1:{server.port}", "127.0.0.1", "2"),
        ) as lp,
        box.connect(("127.0.0.1", 7000)) as sock,
    ):
        sock.sendall(b"hello")
        assert read_exactly(sock, 5) == b"hello"
        lp.kill()
        assert read_to_end(sock).how == "reset"


def test_beside_an_address_that_comes_later(box: Namespace, tmp_path: Path) -> None:
    words = command("rp", ["pipes=127.0.0.1:81"], ["--listen", "192.0.2.1", "2"])
    with program(box, words, tmp_path / "rp.log", name="rp") as rp:
        rp.expect("waiting for 192.0.2.1:6000")
        box.ip("address", "add", "192.0.2.1/32", "dev", "lo")
        rp.expect(r"listening on 192\.0\.2\.1:6000")
        rp.expect(r"listening on 127\.0\.0\.1:81")
        with local_proxy(box, tmp_path, to="127.0.0.1:81", pipes=2):
            pass


@pytest.mark.parametrize(
    ("side", "sockets", "argv", "said"),
    [
        ("rp", ["web=127.0.0.1:80"], ["2"], "a socket on 127.0.0.1:80 was handed over by the name"),
        ("rp", ["pipes=dgram127.0.0.1:80"], ["2"], "descriptor 3 is no listening socket"),
        pytest.param(
            "rp",
            ["pipes=127.0.0.1:80"],
            ["--pipe", "mptcp", "2"],
            "a socket of tcp was handed",
            marks=pytest.mark.skipif(
                not Path("/proc/sys/net/mptcp").exists(), reason="this kernel has no MPTCP"
            ),
        ),
        ("lp", ["x=127.0.0.1:80"], ["127.0.0.1", "2"], "by the name 'x', which is no way in"),
        ("lp", ["socks=127.0.0.1:80"], ["--socks", "off", "127.0.0.1", "2"], "by the name 'socks'"),
    ],
)
def test_what_nobody_can_use(
    box: Namespace, side: str, sockets: list[str], argv: list[str], said: str
) -> None:
    code, out, err = finish(command(side, sockets, argv), box, 10)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert said in err


def test_those_of_another_process(box: Namespace, tmp_path: Path) -> None:
    """The variables were inherited; what they speak of is somebody else's."""
    words = ["env", "LISTEN_PID=1", *command("rp", ["pipes=127.0.0.1:81"], ["2"])]
    with program(box, words, tmp_path / "rp.log", name="rp", ready=RP_READY):
        assert box.listening(6000)
