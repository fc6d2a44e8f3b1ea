# SPDX-License-Identifier: MIT
"""Attacks by pipes that take places: they say nothing, or little, or come from everywhere."""

import errno
import itertools
import random
import socket
import struct
import time

from experiments.workloads.attacks.attacker import TICK_S, Attacker, Crowd
from experiments.workloads.attacks.messages import Hello
from experiments.workloads.attacks.takers import Takers

HALF_OPEN = 10_000
HALF_OPEN_AT_ONCE = 3_500  # more than may wait
HALF_OPEN_SOURCES = 20
WAITING = 2_400  # more than may wait at either port
SLOW = 512
SLOW_SOURCES = 16
DRIP_S = 0.2  # a HELLO has more than 25 bytes, and 5 s
RESETTING_SOURCES = 16
RESET_ON_CLOSE = struct.pack("ii", 1, 0)
FALLEN_BACK = 400
NETWORK = "2001:db8:0:5::"
NETWORK_AT_ONCE = 500


def hello(number: int) -> bytes:
    """Of a session that there was not before."""
    return Hello(random.randbytes(12) + number.to_bytes(4, "big"), 0, 1).to_bytes()


def half_open(it: Attacker) -> None:
    """10,000 that say nothing, from 20 addresses, to both ports."""
    crowd = Crowd(it, HALF_OPEN_AT_ONCE)
    it.begin()
    for number in it.each(HALF_OPEN):
        source = f"127.2.0.{number % HALF_OPEN_SOURCES + 1}"
        crowd.add(it.dial(source, (it.port, it.extended)[number // HALF_OPEN_SOURCES % 2]))
        if number % 100 == 0:
            crowd.look()
    it.over.wait()
    crowd.close()


def waiting(it: Attacker) -> None:
    """2,400 that say nothing, each from an address of its own; whoever is closed comes again."""
    crowd = Crowd(it, WAITING)
    it.begin()
    numbers = itertools.count()
    while it.going():
        crowd.look()
        for _ in range(WAITING - len(crowd.socks)):
            number = next(numbers)
            source = f"127.3.{number // 250 % 250}.{number % 250 + 1}"
            crowd.add(it.dial(source, (it.port, it.extended)[number % 2]))
            if not it.going():
                break
        it.over.wait(TICK_S)
    crowd.close()


def slowloris(it: Attacker) -> None:
    """512 from 16 addresses, whose HELLO comes byte by byte; whoever is closed comes again."""
    crowd = Crowd(it, SLOW)
    said: dict[int, int] = {}  # of each: bytes that it has sent
    numbers = itertools.count()
    it.begin()
    while it.going():
        began = time.monotonic()
        crowd.look()
        for _ in range(SLOW - len(crowd.socks)):
            sock = it.dial(f"127.4.0.{next(numbers) % SLOW_SOURCES + 1}", it.extended)
            crowd.add(sock)
            if sock:
                said[sock.fileno()] = 0
        for number, sock in crowd.socks.items():
            whole = hello(number)
            it.send(sock, whole[said[number] : min(said[number] + 1, len(whole) - 1)])
            said[number] += 1
        it.over.wait(max(0.0, began + DRIP_S - time.monotonic()))
    crowd.close()


def connects_and_resets(it: Attacker) -> None:
    """Pipes that are reset as soon as they are there, at both ports in turn, from 16 addresses."""
    it.begin()
    for number in itertools.count():
        if not it.going():
            break
        source = f"127.7.0.{number % RESETTING_SOURCES + 1}"
        sock = it.dial(source, (it.port, it.extended)[number // RESETTING_SOURCES % 2])
        if sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
            sock.close()


def firewalled(it: Attacker) -> None:
    """Others whose pipes to 6010 are dropped on their way, as the friend's are: each tries it in
    vain, and then has a session of the baseline; the newest of these stay."""
    crowd, tries = Crowd(it, FALLEN_BACK), Crowd(it, FALLEN_BACK)
    it.begin()
    for number in itertools.count():
        if not it.going():
            break
        source = f"127.9.0.{number % SLOW_SOURCES + 1}"
        vain = socket.socket()
        vain.bind((source, 0))
        vain.setblocking(False)
        if vain.connect_ex((it.host, it.extended)) == errno.EINPROGRESS:
            it.counts["in vain"] += 1
            tries.add(vain)
        else:
            vain.close()
        for _ in range(it.pipes):
            crowd.add(it.dial(source, it.port))
        crowd.look()
    tries.close()
    crowd.close()


def elsewhere(it: Attacker) -> None:
    """Connections to another port of rp's host, that take no more than who makes them: what an
    attack costs that is none."""
    server = Takers()
    it.begin()
    for number in itertools.count():
        if not it.going():
            break
        sock = it.dial(f"127.6.0.{number % SLOW_SOURCES + 1}", server.port)
        if sock:
            sock.close()


def network_of_64(it: Attacker) -> None:
    """As many as there can be, each from a new address of one /64; half of them begin a session."""
    crowd = Crowd(it, NETWORK_AT_ONCE)
    it.begin()
    for number in itertools.count(1):
        if not it.going():
            break
        sock = it.dial(f"{NETWORK}{number >> 16:x}:{number & 0xFFFF:x}", it.extended)
        crowd.add(sock)
        if sock and number % 2:
            it.send(sock, hello(number))
        if number % 50 == 0:
            crowd.look()
    crowd.close()
