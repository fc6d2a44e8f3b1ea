# SPDX-License-Identifier: MIT
"""The server: unbound, which has all names that are asked for as local data, in one thread."""

from pathlib import Path

NAME = "resolver.test"  # on its certificate
ZONE = "tm3.test"
NAMES = 256
READY = "start of service"
IDLE_MS = 120_000  # the longest that unbound takes
OWN_DESCRIPTORS = 100  # of unbound, connections aside
SPARE_CONNECTIONS = 64


def slots(connections: int, descriptors: int) -> int:
    """Twice as many connections as there are: with more than half of them in use unbound gives
    them less time, and it does not start with more than it has descriptors for."""
    return min(2 * connections + SPARE_CONNECTIONS, descriptors - OWN_DESCRIPTORS)


def configuration(folder: Path, port: int, slots: int, *, tls: bool) -> str:
    """`folder` has certificate.pem and key.pem if there is `tls`.

    Buffers of 4 KiB, as in the published measurement: by default they are 64 KiB each.
    """
    lines = [
        "server:",
        f"interface: 127.0.0.1@{port}",
        "access-control: 127.0.0.0/8 allow",
        'username: ""',
        'chroot: ""',
        f'directory: "{folder}"',
        'pidfile: ""',
        'logfile: ""',
        "use-syslog: no",
        "do-daemonize: no",
        "verbosity: 1",
        "num-threads: 1",
        "so-rcvbuf: 4m",
        "msg-buffer-size: 4096",
        'module-config: "iterator"',
        "outgoing-range: 16",
        f"incoming-num-tcp: {slots}",
        f"tcp-idle-timeout: {IDLE_MS}",
        f'local-zone: "{ZONE}." static',
        *(f'local-data: "q{n}.{ZONE}. 3600 IN A 192.0.2.{n}"' for n in range(NAMES)),
    ]
    if tls:
        lines += [
            f"tls-port: {port}",
            f'tls-service-pem: "{folder}/certificate.pem"',
            f'tls-service-key: "{folder}/key.pem"',
        ]
    lines += ["remote-control:", "control-enable: no"]
    return "\n".join(lines) + "\n"
