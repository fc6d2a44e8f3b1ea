# SPDX-License-Identifier: MIT
"""The programs of a case: the server and rp on the second core, lp on the first, where those are
that ask."""

from pathlib import Path

from bench import certificate
from bench.programs import Program
from bench.ramp import unbound
from bench.ramp.cases import BARE, Case
from bench.rivals import ENTRY_PORT, MIDDLE_PORT, SERVER_PORT, Place


def server(case: Case, place: Place) -> Program:
    if case.way == BARE:
        argv = (place.tools["ramp"], "serve", case.kind, str(SERVER_PORT), "0")
        return Program(BARE, argv, place.cores[1], says="serving")
    tls = case.kind == "tls"
    if tls:
        certificate.make(place.directory, place.tools["openssl"], unbound.NAME)
    slots = unbound.slots(case.connections, place.descriptors)
    path = place.directory / "unbound.conf"
    path.write_text(unbound.configuration(place.directory, SERVER_PORT, slots, tls=tls))
    argv = (place.tools["unbound"], "-d", "-c", str(path))
    return Program("unbound", argv, place.cores[1], says=unbound.READY)


def proxies(case: Case, place: Place) -> list[Program]:
    if not case.pipes:
        return []
    at, pipes = f"127.0.0.1:{MIDDLE_PORT}", str(case.pipes)
    protocol = "udp:" if case.kind == "udp" else ""
    rules = [
        ("--forward", f"{protocol}127.0.0.1:{ENTRY_PORT + n}:127.0.0.1:{SERVER_PORT}")
        for n in range(case.ports)
    ]
    off = ("--socks", "off", "--redirect", "off")
    words = (*off, *(word for rule in rules for word in rule), at, pipes)
    up = "1 pipe to" if case.pipes == 1 else f"{pipes} pipes to"
    rp = (place.tools["rp"], "--listen", at, pipes)
    return [
        Program("rp", rp, place.cores[1], port=MIDDLE_PORT),
        Program("lp", (place.tools["lp"], *words), place.cores[0], says=up),
    ]


def entry_port(case: Case) -> int:
    return ENTRY_PORT if case.pipes else SERVER_PORT


def authority(case: Case, place: Place) -> Path | None:
    return place.directory / "certificate.pem" if case.kind == "tls" else None
