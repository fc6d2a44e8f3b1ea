# SPDX-License-Identifier: MIT
"""Attacks on TLS with a key: handshakes that cannot succeed or are cut short, one behind the other.

What a client says in one is recorded once and sent again and again. rp has as much work with it as
with one that was made anew: it keeps nothing of those before.
"""

import select
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from experiments.workloads.attacks.attacker import DIAL_S, Attacker, Crowd
from experiments.workloads.attacks.pipes import hello

ALPN = "tm3/1"
AT_ONCE = 200
QUIET_S = 0.5  # then a handshake is over, one way or the other
NETWORK = "127.5.0"
NOT_A_KEY = "00" * 32
RECORD_HEAD = 5
ALERT, ENCRYPTED = 0x15, 0x17  # types of records
CUT_BY = 3  # bytes of a record's end that do not come
EVERY_S = 0.5  # a record of who has a key is cut
CUT = "records cut behind a handshake"


def no_key(it: Attacker) -> None:
    """TLS 1.3 by who has no key."""
    _flood(it, _said(it, []))


def wrong_key(it: Attacker, name: str) -> None:
    """The name of a friend, and not the friend's key."""
    _flood(it, _said(it, ["-psk", NOT_A_KEY, "-psk_identity", name]))


def replayed(it: Attacker, name: str, key: str) -> None:
    """What a friend said, overheard, handshake and all. `key`: in hex, for the friend's own."""
    said = _said(it, ["-psk", key, "-psk_identity", name])
    _flood(it, said)


def downgrade(it: Attacker) -> None:
    """Something weaker than TLS 1.3 with a key, in turn: a HELLO that is not encrypted, TLS 1.2, a
    pipe of the baseline. rp may answer with an alert alone."""
    older = _said(it, ["-psk", NOT_A_KEY, "-psk_identity", "x"], version="-tls1_2")

    def heard(answer: bytes) -> None:
        if answer[0] != ALERT:
            it.counts["got in"] += 1

    def say(number: int, sock: socket.socket) -> None:
        if number % 3 == 1:
            it.counts["got in"] += 1  # nobody should listen there
        else:
            it.send(sock, hello(number) if number % 3 == 0 else older)

    crowd = Crowd(it, AT_ONCE, heard)
    it.begin()
    crowd.flood(NETWORK, lambda number: it.port if number % 3 == 1 else it.extended, say)
    crowd.close()


def cut_records(it: Attacker, name: str, key: str) -> None:
    """A friend's handshake that ends within each of its records, at ever other bytes; beside it,
    twice a second, a handshake that succeeds, by who has the friend's key, and within the first
    record of what follows it the end."""
    words = ["-psk", key, "-psk_identity", name]
    said = _said(it, words)
    inside = list(_inside_records(said))
    crowd = Crowd(it, AT_ONCE)
    it.counts["bytes of a handshake"] = len(said)
    beside = threading.Thread(target=_cut_behind_handshakes, args=(it, words), daemon=True)

    def say(number: int, sock: socket.socket) -> None:
        it.send(sock, said[: inside[number % len(inside)]])
        with suppress(OSError):
            sock.shutdown(socket.SHUT_WR)

    it.begin()
    beside.start()
    crowd.flood(NETWORK, lambda _: it.extended, say)
    beside.join()
    crowd.close()


def _cut_behind_handshakes(it: Attacker, words: list[str]) -> None:
    """Beside a flood rp may be too slow for any of them: behind its end another one is tried."""
    while not it.over.wait(EVERY_S):
        _cut_behind_one(it, words)
    if not it.counts[CUT]:
        _cut_behind_one(it, words)


def _cut_behind_one(it: Attacker, words: list[str]) -> None:
    with suppress(OSError), _client(it, words) as (client, near, far):
        assert client.stdin is not None
        client.stdin.write(hello(0))  # said when the handshake is over
        client.stdin.flush()
        it.counts[CUT] += _brought_but_the_end(near, far)


def _brought_but_the_end(near: socket.socket, far: socket.socket) -> bool:
    """All between the two, but the end of the first record behind `near`'s handshake: its second
    that is encrypted. False: it did not come, because rp was slow."""
    waiting, encrypted = b"", 0
    while ready := select.select([near, far], [], [], DIAL_S)[0]:
        if far in ready:
            answer = far.recv(65536)
            if not answer:
                return False
            near.sendall(answer)
        if near in ready:
            waiting += near.recv(65536)
        while len(waiting) >= RECORD_HEAD and len(waiting) >= (size := _record_size(waiting)):
            record, waiting = waiting[:size], waiting[size:]
            encrypted += record[0] == ENCRYPTED
            far.sendall(record[:-CUT_BY] if encrypted == 2 else record)
            if encrypted == 2:
                return True
    return False


def _record_size(said: bytes) -> int:
    return RECORD_HEAD + int.from_bytes(said[3:RECORD_HEAD], "big")


def _inside_records(said: bytes) -> Iterator[int]:
    """Lengths that end within a record, its head included."""
    at = 0
    while at < len(said):
        end = at + _record_size(said[at:])
        yield from range(at + 1, min(end, len(said)))
        at = end


def _flood(it: Attacker, said: bytes) -> None:
    crowd = Crowd(it, AT_ONCE)
    it.counts["bytes of a handshake"] = len(said)
    it.begin()
    crowd.flood(NETWORK, lambda _: it.extended, lambda _, sock: it.send(sock, said))
    crowd.close()


@contextmanager
def _client(
    it: Attacker, words: list[str], version: str = "-tls1_3"
) -> Iterator[tuple["subprocess.Popen[bytes]", socket.socket, socket.socket]]:
    """OpenSSL's, the connection that it has made, and one to rp: nobody brings bytes between."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        argv = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", version]
        client = subprocess.Popen(
            [*argv, "-alpn", ALPN, "-quiet", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            listener.settimeout(10)
            near = listener.accept()[0]
            with near, socket.create_connection((it.host, it.extended)) as far:
                yield client, near, far
        finally:
            client.kill()
            client.wait()


def _said(it: Attacker, words: list[str], version: str = "-tls1_3") -> bytes:
    """By OpenSSL's client, to rp."""
    with _client(it, words, version) as (_, near, far):
        return _overheard(near, far)


def _overheard(near: socket.socket, far: socket.socket) -> bytes:
    """Bytes from `near`, which are brought to `far` as what `far` says is to `near`."""
    said = b""
    to = {near: far, far: near}
    with suppress(ConnectionError):
        while ready := select.select([near, far], [], [], QUIET_S)[0]:
            for sock in ready:
                data = sock.recv(65536)
                if not data:
                    return said
                to[sock].sendall(data)
                said += data if sock is near else b""
    return said
