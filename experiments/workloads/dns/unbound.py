# SPDX-License-Identifier: MIT
"""The server: unbound, which knows all names that are asked for and asks nobody."""

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from experiments.workloads.dns import zone
from experiments.workloads.dns.failure import BadInput

READY = r"start of service"
PORT, TLS_PORT = 53, 853
PROMPT_PORT = 5353  # for connections without Nagle's algorithm: see nodelay.py
NAME = "resolver.test"  # on its certificate
IDLE_MS = 600_000  # a connection may be silent for longer than any run


def need_unbound() -> None:
    """Raises BadInput where it is not installed."""
    if shutil.which("unbound") is None:
        raise BadInput("no unbound on this machine: sudo .ci/setup experiments/packages.debian")


def configuration(
    folder: Path,
    address: str,
    ports: Sequence[int] = (PORT, PROMPT_PORT, TLS_PORT),
    *,
    tls: bool = True,
) -> str:
    """`folder` has certificate.pem and key.pem for the last of the ports if there is `tls`.

    One thread, so answers leave in the order in which queries came. No validation and no module
    but the iterator: what is not local is refused, nothing is looked up.
    """
    data = [(zone.name(n), zone.address(n)) for n in range(zone.NAMES)]
    lines = plain(folder, [f"{address}@{port}" for port in ports[: 2 + tls]], zone.ZONE, data)
    if tls:
        lines += [
            f"tls-port: {ports[2]}",
            f'tls-service-pem: "{folder}/certificate.pem"',
            f'tls-service-key: "{folder}/key.pem"',
        ]
    return written(lines)


def plain(
    folder: Path, interfaces: Sequence[str], known: str, data: Iterable[tuple[str, str]]
) -> list[str]:
    """Of a server that answers for the zone `known` alone, by `data`: names and their addresses."""
    return [
        *basis(folder, interfaces),
        f'local-zone: "{known}." static',
        *(f'local-data: "{name} 3600 IN A {address}"' for name, address in data),
    ]


def basis(folder: Path, interfaces: Sequence[str]) -> list[str]:
    """Of any server here."""
    return [
        "server:",
        *(f"interface: {it}" for it in interfaces),
        "access-control: 0.0.0.0/0 allow",
        'username: ""',
        'chroot: ""',
        f'directory: "{folder}"',
        'pidfile: ""',
        'logfile: ""',
        "use-syslog: no",
        "do-daemonize: no",
        "verbosity: 1",
        "num-threads: 1",
        "so-rcvbuf: 4m",  # that nothing is lost where a machine is busy
        'module-config: "iterator"',
        "incoming-num-tcp: 1024",
        f"tcp-idle-timeout: {IDLE_MS}",
    ]


def written(lines: Sequence[str]) -> str:
    """As unbound reads it."""
    return "\n".join((*lines, "remote-control:", "control-enable: no")) + "\n"


def command(
    folder: Path,
    address: str,
    ports: Sequence[int] = (PORT, PROMPT_PORT, TLS_PORT),
    *,
    tls: bool = True,
) -> list[str]:
    """What starts it in the foreground; its configuration is written to `folder`."""
    return started(folder, configuration(folder, address, ports, tls=tls))


def started(folder: Path, told: str) -> list[str]:
    """The same of a configuration."""
    need_unbound()
    path = folder / "unbound.conf"
    path.write_text(told)
    return ["unbound", "-d", "-c", str(path)]
