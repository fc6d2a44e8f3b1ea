# SPDX-License-Identifier: MIT
"""--key-file: who has a key may come in, from anywhere; all others may not."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.relay import payload, wire_ext
from tests.relay.ends import (
    answers,
    echo,
    ending_of,
    read_exactly,
    read_to_end,
    sending,
    serving,
    socks,
)
from tests.relay.keyed import (
    FORWARD,
    PORT,
    UP,
    Keys,
    encrypting,
    key_file,
    keys,
    made,
    refused,
    served,
    with_psk,
)
from tests.relay.kinds import mptcp
from tests.relay.netns import Namespace
from tests.relay.pipes import pipes_in
from tests.relay.programs import binary, finish
from tests.relay.proxies import local_proxy, remote_proxy
from tests.relay.test_roaming import RP, readdress
from tests.relay.traffic import traffic
from tests.relay.waiting import until

__all__ = ["encrypting", "keys"]  # fixtures; the first skips where there is no OpenSSL

UNKNOWN_MOST = 4096
HELLO = wire_ext.Hello(b"a session's id..", 0, 1).to_bytes()


def tls(ns: Namespace, *args: str, port: int = wire_ext.PORT) -> str:
    """What OpenSSL's own client says of a handshake with rp."""
    argv = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-brief", *args]
    _, out, err = finish(argv, ns, 20)
    return out + err


# --- who may come in ---


def test_with_a_key_it_is_the_extension_alone(box: Namespace, tmp_path: Path, keys: Keys) -> None:
    """Beyond loopback by default, and port 6000 is closed."""
    with (
        serving(box, echo, ("127.0.0.1", 8000)),
        remote_proxy(box, tmp_path, *keys.rp) as rp,
        local_proxy(box, tmp_path, *keys.lp, *FORWARD, ready=UP),
    ):
        served(box)
        assert rp.lines(r"listening on 0\.0\.0\.0:6010 for pipes of the extension, with a key")
        assert rp.lines("the first of 4 pipes from 127.0.0.1, with the key of laptop")
        assert not rp.lines("anybody may open pipes")
        assert not box.listening(6000)
    with remote_proxy(box, tmp_path, *keys.rp, "--listen", "127.0.0.1", name="both"):
        assert box.listening(6000) and box.listening(6010)


@mptcp
def test_over_mptcp(box: Namespace, tmp_path: Path, keys: Keys) -> None:
    box.run("sysctl", "-q", "net.mptcp.enabled=1")
    kind = ("--pipe", "mptcp")
    with (
        serving(box, echo, ("127.0.0.1", 8000)),
        remote_proxy(box, tmp_path, *keys.rp, *kind),
        local_proxy(box, tmp_path, *keys.lp, *FORWARD, *kind, ready=UP),
    ):
        served(box)
        seen = box.run("ss", "-HMn", "state", "established", "dport = :6010").splitlines()
        assert len(seen) == 4


@pytest.mark.parametrize(
    ("name", "said"),
    [("laptop", "its key is not the one of laptop here"),
     ("stranger", "it gave a name that no key here has")],
)  # fmt: skip
def test_a_wrong_key_and_an_unknown_name(
    box: Namespace, tmp_path: Path, keys: Keys, name: str, said: str
) -> None:
    """Both are told the same, so that names cannot be found out. rp's log tells them apart."""
    shown = key_file(tmp_path / "wrong.key", made(name))
    with (
        remote_proxy(box, tmp_path, *keys.rp) as rp,
        local_proxy(box, tmp_path, *shown, *FORWARD, ready=None) as lp,
    ):
        lp.expect(rf"no pipes to 127\.0\.0\.1:6010: rp has not got this key of {name}")
        rp.expect(said)
        assert ending_of(box, PORT).how == "reset"
        assert not lp.lines("are up")


def test_an_lp_without_a_key_is_told_from_others(
    box: Namespace, tmp_path: Path, keys: Keys
) -> None:
    with (
        remote_proxy(box, tmp_path, *keys.rp) as rp,
        local_proxy(box, tmp_path, *FORWARD, ready=None) as lp,
    ):
        rp.expect("it does not speak TLS, as an lp without a key does not")
        lp.expect("no pipes to ")


def test_openssl_agrees(box: Namespace, tmp_path: Path, keys: Keys) -> None:
    """rp is TLS 1.3 for anybody's client that has the key."""
    with remote_proxy(box, tmp_path, *keys.rp) as rp:
        ok = tls(box, *with_psk(keys.psk(), "-alpn", "tm3/1"))
        assert "CONNECTION ESTABLISHED" in ok and "Protocol version: TLSv1.3" in ok, ok
        assert not rp.lines("^rp: session")


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("no alpn", "it does not speak of TM3"),
        ("http", "no application protocol"),
        ("no key", "TLS with a key did not come about"),
        ("wrong key", "its key is not the one of laptop here"),
        ("tls 1.2", "unsupported protocol"),
    ],
)
def test_nothing_less_is_taken(
    box: Namespace, tmp_path: Path, keys: Keys, how: str, said: str
) -> None:
    """rp says a reason once in ten seconds: each has an rp of its own."""
    words = {
        "no alpn": with_psk(keys.psk()),
        "http": with_psk(keys.psk(), "-alpn", "http/1.1"),
        "no key": ("-tls1_3", "-alpn", "tm3/1"),
        "wrong key": with_psk("00" * 32, "-alpn", "tm3/1"),
        "tls 1.2": ("-tls1_2", *with_psk(keys.psk(), "-alpn", "tm3/1")[1:]),
    }
    with remote_proxy(box, tmp_path, *keys.rp) as rp:
        heard = tls(box, *words[how])
        # A client without ALPN has done its part when rp looks for it.
        assert how == "no alpn" or "ESTABLISHED" not in heard
        rp.expect(said)
        assert not rp.lines("^rp: session")


@contextmanager
def a_tls_server(ns: Namespace, *args: str) -> Iterator[None]:
    argv = ["openssl", "s_server", "-accept", f"127.0.0.1:{wire_ext.PORT}", "-quiet", *args]
    server = subprocess.Popen(
        ns.command(argv), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until("openssl to listen", lambda: ns.listening(wire_ext.PORT))
        yield
    finally:
        server.kill()
        server.wait()


def test_lp_takes_no_certificate_for_a_key(box: Namespace, tmp_path: Path, keys: Keys) -> None:
    """Who has not got the key may have any certificate: lp does not go on with it."""
    cert, secret = tmp_path / "cert.pem", tmp_path / "secret.pem"
    box.run(
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
        *("-nodes", "-subj", "/CN=rp", "-keyout", secret, "-out", cert),
    )
    with (
        a_tls_server(box, "-tls1_3", "-alpn", "tm3/1", "-cert", str(cert), "-key", str(secret)),
        local_proxy(box, tmp_path, *keys.lp, *FORWARD, ready=None) as lp,
    ):
        lp.expect("certificate verify failed")
        assert not lp.lines("are up")


# --- the ill-behaved ---


def test_a_plain_hello_is_no_way_in(box: Namespace, tmp_path: Path, keys: Keys) -> None:
    with remote_proxy(box, tmp_path, *keys.rp) as rp:
        with box.connect(("127.0.0.1", wire_ext.PORT)) as sock:
            sock.sendall(HELLO)
            got = read_to_end(sock)
            assert got.size < 16, got  # an alert at most
        rp.expect("a pipe from .* was closed: it does not speak TLS, as an lp without a key")
        assert not rp.lines("^rp: session")


def test_who_says_nothing_or_too_much(box: Namespace, tmp_path: Path, keys: Keys) -> None:
    """Five seconds and 4 KiB for all before a key was shown, however they are spread."""
    with remote_proxy(box, tmp_path, *keys.rp) as rp:
        with box.connect(("127.0.0.1", wire_ext.PORT)) as slow:
            began = time.monotonic()
            slow.settimeout(0.5)
            ended = False
            for byte in b"\x16\x03\x01\x3f\xff\x01\x00\x3f\xfb" + bytes(20):
                try:
                    slow.sendall(bytes([byte]))
                    ended = slow.recv(1) == b""
                except TimeoutError:
                    continue
                except OSError:
                    ended = True
                if ended:
                    break
            assert ended and 4 < time.monotonic() - began < 8
            rp.expect("did not say HELLO within 5 s")
    with remote_proxy(box, tmp_path, *keys.rp, name="another") as rp:
        with box.connect(("127.0.0.1", wire_ext.PORT)) as sock:
            sock.sendall(b"\x16\x03\x01\x3f\xff\x01\x00\x3f\xfb" + bytes(UNKNOWN_MOST))
            read_to_end(sock, 3)
            rp.expect(f"it said {UNKNOWN_MOST} bytes without showing a key")


def relayed(near: socket.socket, far: socket.socket, quiet_s: float = 1.0) -> bytes:
    """Bytes from `near` to `far` and back, until both are quiet; those of `near`."""
    said = b""
    for sock in (near, far):
        sock.settimeout(quiet_s)
    quiet = 0
    while quiet < 2:
        quiet = 0
        for one, other in ((near, far), (far, near)):
            try:
                data = one.recv(65536)
            except TimeoutError:
                quiet += 1
                continue
            other.sendall(data)
            said += data if one is near else b""
    return said


def test_a_handshake_that_was_overheard_is_no_way_in(
    box: Namespace, tmp_path: Path, keys: Keys
) -> None:
    with (
        box.open_socket() as listener,
        remote_proxy(box, tmp_path, *keys.rp) as rp,
    ):
        listener.bind(("127.0.0.1", 6500))
        listener.listen()
        at = "127.0.0.1:6499,6500"
        with local_proxy(box, tmp_path, *keys.lp, *FORWARD, to=at, pipes=1, ready=None):
            near = listener.accept()[0]
            with near, box.connect(("127.0.0.1", wire_ext.PORT)) as far:
                said = relayed(near, far)
        rp.expect("session 1: the first of 1 pipe ")
        assert len(said) > 300
        with box.connect(("127.0.0.1", wire_ext.PORT)) as sock:
            sock.sendall(said)
            read_to_end(sock, 10)
        rp.expect("TLS with a key did not come about")
        assert not rp.lines("session 2")


def counted(box: Namespace, name: str) -> int:
    """Connections that were begun, by a counter of nftables."""
    told = box.run("nft", "list", "counter", "ip", "tries", name)
    return int(told.split("packets")[1].split()[0])


def test_nothing_but_6010(box: Namespace, tmp_path: Path, keys: Keys) -> None:
    """An rp without keys, and a firewall before one with: lp never takes the baseline."""
    box.nft(
        "table ip tries { counter extended { }; counter baseline { };"
        " chain out { type filter hook output priority 0;"
        " tcp dport 6010 tcp flags syn counter name extended;"
        " tcp dport 6000 tcp flags syn counter name baseline; }; }"
    )
    closed = ("--extended", "off", "--listen", "127.0.0.1")
    with (
        remote_proxy(box, tmp_path, *closed),
        local_proxy(box, tmp_path, *keys.lp, *FORWARD, ready=None) as lp,
    ):
        lp.expect("no pipes to 127.0.0.1:6010: Connection refused")
        until("further tries", lambda: counted(box, "extended") >= 3)
        assert counted(box, "baseline") == 0
    with (
        remote_proxy(box, tmp_path, "--listen", "127.0.0.1", name="plain") as plain,
        local_proxy(box, tmp_path, *keys.lp, *FORWARD, ready=None, name="lp2") as lp,
    ):
        lp.expect("no pipes to 127.0.0.1:6010: the other end closed .* before it had shown a key")
        plain.expect("it began with TLS, as an lp with a key does, and this rp has none")
        assert not lp.lines("are up")
    box.nft("table ip t { chain in { type filter hook input priority 0; tcp dport 6010 drop; }; }")
    with (
        remote_proxy(box, tmp_path, *keys.rp, "--listen", "127.0.0.1", name="walled"),
        local_proxy(box, tmp_path, *keys.lp, *FORWARD, ready=None, name="lp3") as lp,
    ):
        lp.expect("no pipes to 127.0.0.1:6010: no answer in time", 12)
        assert not box.run("ss", "-Htn", "state", "established", "dport = :6000")


# --- what goes over it ---


def test_bulk_both_ways_while_pipes_are_killed(box: Namespace, tmp_path: Path, keys: Keys) -> None:
    data = payload.seeded(30_000_000)
    with (
        serving(box, sending(data), ("127.0.0.1", 8001)),
        remote_proxy(box, tmp_path, *keys.rp),
        local_proxy(
            box, tmp_path, *keys.lp, *FORWARD, "--forward", "7001:127.0.0.1:8001", ready=UP
        ),
        pipes_in(box) as pipes,
        traffic(box, PORT, workers=2) as going,
        box.connect(("127.0.0.1", 7001)) as sock,
    ):
        for _ in range(5):
            pipes.kill_one()
            time.sleep(0.2)  # the pace at which they are killed
        got = read_to_end(sock, 60)
        assert (got.how, got.sha256) == ("eof", payload.digest(data))
        before = going.done.total()
        until(
            "more connections to end",
            lambda: going.wrong or going.done.total() >= before + 6,
            60,
        )
        assert not going.wrong, going.wrong[:3]


def test_a_record_that_is_cut_ends_the_pipe_alone(
    box: Namespace, tmp_path: Path, keys: Keys
) -> None:
    """Whoever sits between says the end inside a record: that pipe is lost, the session goes on."""
    with (
        serving(box, echo, ("127.0.0.1", 8000)),
        box.open_socket() as listener,
        remote_proxy(box, tmp_path, *keys.rp) as rp,
    ):
        listener.bind(("127.0.0.1", 6500))
        listener.listen()
        at = "127.0.0.1:6499,6500"
        with local_proxy(box, tmp_path, *keys.lp, *FORWARD, to=at, pipes=1, ready=None) as lp:
            near = listener.accept()[0]
            with near, box.connect(("127.0.0.1", wire_ext.PORT)) as far:
                relayed(near, far, 0.5)
                with box.connect(("127.0.0.1", PORT)) as sock:
                    sock.sendall(b"over the second pipe")
                    record = near.recv(65536)
                    far.sendall(record[:-3])
                    far.shutdown(socket.SHUT_WR)
                    rp.expect("pipe 0 failed: Connection reset by peer")
                    near.close()
                    far.close()
                    again = listener.accept()[0]
                    with again, box.connect(("127.0.0.1", wire_ext.PORT)) as beyond:
                        relayed(again, beyond, 0.5)
                        assert read_exactly(sock, 20) == b"over the second pipe"
            assert lp.running()
        assert not rp.lines("session 2")


# --- whose a session is ---


def test_the_same_key_comes_from_elsewhere(
    two: tuple[Namespace, Namespace], tmp_path: Path, keys: Keys
) -> None:
    """lp's host has another address: connections go on, as they would not without a key."""
    near, far = two
    data = payload.seeded(200_000)
    with (
        serving(far, echo, (RP, 8000)),
        remote_proxy(far, tmp_path, *keys.rp) as rp,
        local_proxy(near, tmp_path, *keys.lp, to=RP, ready=r"pipes to \S+:6010 are up") as lp,
        socks(near, RP, 8000) as sock,
    ):
        sock.sendall(data)
        assert read_exactly(sock, len(data)) == data
        readdress(near, "wire-l", "10.77.0.1/24", "10.77.0.9/24")
        lp.expect("is this host's no more")
        sock.sendall(data)
        assert read_exactly(sock, len(data)) == data
        assert not rp.lines("session 2|was sent away")
        assert "10.77.0.9" in near.run("ss", "-Htn", "dport = :6010")


def say_hello(ns: Namespace, keys: Keys, name: str, psk: str) -> str:
    """A pipe of that session by OpenSSL's client; rp's answer, WELCOME, comes after HELLO."""
    argv = [
        *(
            "timeout",
            "4",
            "openssl",
            "s_client",
            "-connect",
            f"127.0.0.1:{wire_ext.PORT}",
            "-quiet",
            "-tls1_3",
        ),
        *("-psk", psk, "-psk_identity", name, "-alpn", "tm3/1"),
    ]
    said = keys.folder / "hello"
    said.write_bytes(HELLO)
    shell = ["sh", "-c", 'cat "$0"; sleep 2', said]
    feeding = subprocess.Popen(ns.command(shell), stdout=subprocess.PIPE)
    done = subprocess.run(
        ns.command(argv), stdin=feeding.stdout, capture_output=True, timeout=20, check=False
    )
    feeding.wait()
    return done.stdout.hex()


def test_another_key_does_not_get_a_session(box: Namespace, tmp_path: Path, keys: Keys) -> None:
    """From the same address, with a key that rp has, and with the session's id."""
    phone = Path(keys.rp[1]).read_text().splitlines()[2]
    other = Keys(phone, keys.rp, keys.lp, keys.folder).psk()
    with remote_proxy(box, tmp_path, *keys.rp) as rp:
        first = say_hello(box, keys, "laptop", keys.psk())
        rp.expect("session 1: the first of 1 pipe from 127.0.0.1, with the key of laptop")
        assert first
        assert say_hello(box, keys, "phone", other)
        rp.expect("it wants session 1, which is of 127.0.0.1 and the key of laptop")
        assert not rp.lines("session 2")


# --- bad input ---


def test_files_that_will_not_do(box: Namespace, tmp_path: Path, keys: Keys) -> None:
    bad = tmp_path / "bad"
    with_bad = [binary("rp"), *key_file(bad, keys.line, "\n", keys.line), "4"]
    assert "bad:3: there is another key of laptop" in refused(with_bad, box)
    bad.write_text("# mine\nlaptop AAAA\n")
    assert "bad:2: the key of laptop is too short" in refused(with_bad, box)
    bad.write_text(keys.line)
    bad.chmod(0o644)
    assert "others may read" in refused(with_bad, box)
    bad.unlink()
    assert "No such file" in refused(with_bad, box)


def test_what_does_not_go_together(box: Namespace, keys: Keys) -> None:
    lp = [binary("lp"), *keys.lp, "127.0.0.1", "4"]
    rp = [binary("rp"), *keys.rp, "4"]
    for argv, said in (
        ([*lp[:3], "--extend", "never", *lp[3:]], "--extend: it cannot be never"),
        (
            [*lp[:3], "127.0.0.1:7000", "4"],
            "the baseline, which is not spoken (--key-file); that of the extension stands behind a"
            " comma: 127.0.0.1,7000",
        ),
        # Where the kernel has no SCTP, that is said first.
        ([*lp[:3], "--pipe", "sctp", *lp[3:]], "sctp"),
        ([*rp[:3], "--pipe", "tcp,sctp", "4"], "sctp"),
        ([*rp[:3], "--extended", "off", "4"], "--extended: it cannot be off"),
        ([binary("rp"), "--keylog", "log", "4"], "--keylog: without --key-file"),
        ([binary("lp"), *keys.rp, "127.0.0.1", "4"], "has 2 keys, and lp shows one"),
        ([binary("lp"), "--quiet", "--make-key", "x", "4"], "--make-key: it stands alone"),
        ([binary("lp"), "--make-key", "two words"], "is no name"),
        ([binary("lp"), "--make-key", "a", "b"], "one argument too many"),
    ):
        assert said in refused(argv, box)


def test_what_encryption_takes_is_in_the_memory(box: Namespace, tmp_path: Path, keys: Keys) -> None:
    """64 pipes take more than an address may hold of 16 MiB: their session ends, and no other."""
    many = ("--socks", "1081", "--redirect", "off")
    with (
        serving(box, echo, ("127.0.0.1", 8000)),
        remote_proxy(box, tmp_path, *keys.rp, "--memory", "16") as rp,
        local_proxy(box, tmp_path, *keys.lp, *FORWARD, ready=UP),
        box.connect(("127.0.0.1", PORT)) as sock,
    ):
        answers(sock)
        with local_proxy(
            box, tmp_path, *keys.lp, *many, pipes=64, name="many", ready="SOCKS5 on"
        ) as lp:
            rp.expect(r"session 2: too little memory is left .* pipes' encryption \d+: session", 30)
            lp.expect("GOODBYE, reason 2: it is at a limit", 30)
            answers(sock)
            served(box)
