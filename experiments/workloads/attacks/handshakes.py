# SPDX-License-Identifier: MIT
"""Attacks on TLS with a key: handshakes that cannot succeed, one behind the other.

What a client says in one is recorded once and sent again and again. rp has as much work with it as
with one that was made anew: it keeps nothing of those before.
"""

import select
import socket
import subprocess
from contextlib import suppress

from experiments.workloads.attacks.attacker import Attacker, Crowd

ALPN = "tm3/1"
AT_ONCE = 200
QUIET_S = 0.5  # then a handshake is over, one way or the other
SOURCES = 200
NOT_A_KEY = "00" * 32


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


def _flood(it: Attacker, said: bytes) -> None:
    crowd = Crowd(it, AT_ONCE)
    it.counts["bytes of a handshake"] = len(said)
    it.begin()
    number = 0
    while it.going():
        number += 1
        sock = it.dial(f"127.5.0.{number % SOURCES + 1}", it.extended)
        crowd.add(sock)
        if sock:
            it.send(sock, said)
        if number % 20 == 0:
            crowd.look()
    crowd.close()


def _said(it: Attacker, words: list[str]) -> bytes:
    """By OpenSSL's client, to rp."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        argv = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-tls1_3"]
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
                return _overheard(near, far)
        finally:
            client.kill()
            client.wait()


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
