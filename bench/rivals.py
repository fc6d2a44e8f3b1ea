# SPDX-License-Identifier: MIT
"""The relays that are compared, ours among them, and how each is started.

All get what speeds them up without changing what they are: TCP_NODELAY, a long queue of
connections to accept, the faster cipher. A relay of two processes has its client's side on the
first core and its server's side on the second, as lp and rp; a single process has the second.
"""

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_bytes

from bench import configs
from bench.programs import Program

PIPES = 4
SPARE_DESCRIPTORS = 1_000  # for all that is not a connection
SERVER_PORT = 7000
ENTRY_PORT = 7100  # where the load enters a relay
MIDDLE_PORT = 6000  # between a relay's two halves
OURS = "tm3"
BEFORE = "tm3-before"
BULK = ("down", "up")
ALL = ("down", "up", "connects", "echo", "idle")
MEASURES = (*ALL, "udp")  # not all relays carry it
UDP_FORWARD = ("--forward", f"udp:127.0.0.1:{ENTRY_PORT}:127.0.0.1:{SERVER_PORT}")


@dataclass(frozen=True)
class Place:
    """Where a relay runs."""

    directory: Path  # of its own, emptied for each start
    tools: dict[str, str]  # name -> path of what is installed
    cores: tuple[int, int]
    descriptors: int
    datagrams: bool = False  # are to be relayed, too: older builds of ours cannot

    def room(self, fds_per_connection: int) -> int:
        """Connections that a process can hold."""
        return (self.descriptors - SPARE_DESCRIPTORS) // fds_per_connection


@dataclass(frozen=True)
class Rival:
    name: str
    title: str
    needs: tuple[str, ...]
    start: Callable[[Place], list[Program]]
    measures: tuple[str, ...] = ALL
    entry_port: int = ENTRY_PORT
    socks: bool = False
    fds_per_connection: int = 1  # in its busiest process
    idle_most: int = 1_000_000  # connections it can hold, whatever the descriptors
    root: bool = False  # needs it
    forks: bool = False  # its children are not waited for: their CPU time is lost
    notes: tuple[str, ...] = field(default=())


def direct(_: Place) -> list[Program]:
    return []


def tm3(
    options: tuple[str, ...],
    lp: tuple[str, ...] = (),
    tools: tuple[str, str] = ("rp", "lp"),
) -> Callable[[Place], list[Program]]:
    """`options` of both, `lp` of one."""

    def start(place: Place) -> list[Program]:
        at = f"127.0.0.1:{MIDDLE_PORT}"
        rp = (place.tools[tools[0]], *options, "--listen", at, str(PIPES))
        forward = f"127.0.0.1:{ENTRY_PORT}:127.0.0.1:{SERVER_PORT}"
        off = ("--socks", "off", "--redirect", "off")
        udp = UDP_FORWARD if place.datagrams else ()
        words = (*options, *lp, *off, "--forward", forward, *udp)
        return [
            Program("rp", rp, place.cores[1], port=MIDDLE_PORT),
            Program(
                "lp",
                (place.tools[tools[1]], *words, at, str(PIPES)),
                place.cores[0],
                port=ENTRY_PORT,
                says=f"{PIPES} pipes to",
            ),
        ]

    return start


def tm3_key(place: Place) -> list[Program]:
    """Both show a key, and the pipes are encrypted."""
    key = place.directory / "key"
    key.touch(0o600)
    key.write_text(f"bench {b64encode(token_bytes(32)).decode()}\n")
    return tm3(("--key-file", str(key)))(place)


def socat(buffer: tuple[str, ...]) -> Callable[[Place], list[Program]]:
    def start(place: Place) -> list[Program]:
        listen = f"TCP-LISTEN:{ENTRY_PORT},bind=127.0.0.1,reuseaddr,fork,nodelay,backlog=1024"
        argv = (place.tools["socat"], *buffer, listen, f"TCP:127.0.0.1:{SERVER_PORT},nodelay")
        return [Program("socat", argv, place.cores[1], port=ENTRY_PORT)]

    return start


def haproxy(tuning: str) -> Callable[[Place], list[Program]]:
    def start(place: Place) -> list[Program]:
        config = place.directory / "haproxy.cfg"
        config.write_text(configs.haproxy(ENTRY_PORT, SERVER_PORT, place.room(2), tuning))
        argv = (place.tools["haproxy"], "-q", "-db", "-f", str(config))
        return [Program("haproxy", argv, place.cores[1], port=ENTRY_PORT)]

    return start


def ssh(place: Place) -> list[Program]:
    keys = configs.ssh_keys(place.directory, place.tools["ssh-keygen"], MIDDLE_PORT)
    config = place.directory / "sshd_config"
    config.write_text(configs.sshd(keys, MIDDLE_PORT))
    sshd = (place.tools["sshd"], "-D", "-e", "-f", str(config))
    return [
        Program("sshd", sshd, place.cores[1], port=MIDDLE_PORT),
        Program(
            "ssh",
            (place.tools["ssh"], *configs.ssh_options(keys, ENTRY_PORT, MIDDLE_PORT)),
            place.cores[0],
            port=ENTRY_PORT,
        ),
    ]


def sing_box(place: Place) -> list[Program]:
    return tunnel(
        place,
        place.tools["sing-box"],
        ("run", "-c"),
        configs.sing_box_server(MIDDLE_PORT),
        configs.sing_box_client(ENTRY_PORT, MIDDLE_PORT, SERVER_PORT, PIPES),
    )


def v2ray(place: Place) -> list[Program]:
    return tunnel(
        place,
        place.tools["v2ray"],
        ("-config",),
        configs.v2ray_server(MIDDLE_PORT),
        configs.v2ray_client(ENTRY_PORT, MIDDLE_PORT, SERVER_PORT),
    )


def tunnel(
    place: Place, binary: str, run: tuple[str, ...], server: str, client: str
) -> list[Program]:
    """A tunnel whose halves are one program with two configurations."""
    halves = []
    for role, text, core, port in (
        ("server", server, place.cores[1], MIDDLE_PORT),
        ("client", client, place.cores[0], ENTRY_PORT),
    ):
        config = place.directory / f"{role}.json"
        config.write_text(text)
        halves.append(Program(role, (binary, *run, str(config)), core, port=port))
    return halves


RIVALS = (
    Rival("direct", "direct", (), direct, entry_port=SERVER_PORT, measures=ALL[:4]),
    Rival(
        "socat",
        "socat",
        ("socat",),
        socat(()),
        idle_most=200,
        forks=True,
        notes=("one process a connection", "memory from 200 connections, shared pages included"),
    ),
    Rival(
        "socat-64k",
        "socat -b 65536",
        ("socat",),
        socat(("-b", "65536")),
        measures=BULK,
        forks=True,
    ),
    Rival("haproxy", "HAProxy", ("haproxy",), haproxy(""), fds_per_connection=2),
    Rival(
        "haproxy-64k",
        "HAProxy, 64 KiB buffers",
        ("haproxy",),
        haproxy("tune.bufsize 65536"),
        measures=BULK,
        fds_per_connection=2,
    ),
    Rival(
        "ssh",
        "ssh -D",
        ("ssh", "sshd", "ssh-keygen"),
        ssh,
        root=True,  # sshd takes on the user's identity
        socks=True,
        idle_most=1_000,
        notes=(
            "AES-128-GCM",
            "memory from 1,000 connections",
            "connections include SOCKS5's two extra round trips",
        ),
    ),
    Rival("sing-box", f"sing-box, smux over {PIPES}", ("sing-box",), sing_box),
    Rival("v2ray", "v2ray, VMess with mux", ("v2ray",), v2ray),
    Rival(
        "tm3-early",
        f"rp + lp, {PIPES} pipes, early binding",
        ("rp", "lp"),
        tm3(("--binding", "early")),
        measures=BULK,
    ),
    Rival(
        "tm3-baseline",
        f"rp + lp, {PIPES} pipes, baseline",
        ("rp", "lp"),
        tm3((), lp=("--extend", "never")),
    ),
    Rival("tm3-key", f"rp + lp, {PIPES} pipes, TLS with a key", ("rp", "lp"), tm3_key),
    Rival(
        BEFORE,
        f"rp + lp of another build, {PIPES} pipes",
        ("rp-before", "lp-before"),
        tm3((), tools=("rp-before", "lp-before")),
        measures=MEASURES,
    ),
    Rival(OURS, f"rp + lp, {PIPES} pipes", ("rp", "lp"), tm3(()), MEASURES),
)
BY_NAME = {rival.name: rival for rival in RIVALS}
