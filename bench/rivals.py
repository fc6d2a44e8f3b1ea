# SPDX-License-Identifier: MIT
"""The relays that are compared, ours among them, and how each is started.

All get what speeds them up without changing what they are: TCP_NODELAY, a long queue of
connections to accept, the faster cipher. A relay of two processes has its client's side on the
first core and its server's side on the second, as lp and rp; a single process has the second.
"""

import subprocess
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from secrets import token_bytes

from bench import certificate, configs, namespace
from bench.configs import HaproxyTuning
from bench.kinds import ALL, BULK, MEASURES, WIRE
from bench.programs import Program, Trouble

PIPES = 4
OTHER_PIPES = (1, 16, 32, 64)
SPARE_DESCRIPTORS = 1_000  # for all that is not a connection
SERVER_PORT = 7000
ENTRY_PORT = 7100  # where the load enters a relay
MIDDLE_PORT = 6000  # between a relay's two halves
SOCKS_PORT = 7200  # where lp takes datagrams by SOCKS5's UDP ASSOCIATE
OURS = "tm3"
LIMIT = "loop"
BEFORE = "tm3-before"
WITHOUT_IDLE = tuple(it for it in ALL if it != "idle")
BARE = tuple(it for it in ALL if it not in ("idle", WIRE))
ONE_PROCESS = tuple(it for it in ALL if it != WIRE)
BETWEEN = (MIDDLE_PORT, 6010)  # ours has the extension there
WITHOUT_CHURN = tuple(it for it in ALL if it != "churn")  # which does not speak SOCKS
SOCKS_NOTE = "connections include SOCKS5's two extra round trips"
BARE_NOTES = ("bench/muxes: the library's streams and no protocol of its own around them",)
AS_IT_COMES = HaproxyTuning()
SPLICE = HaproxyTuning("maxpipes 100", "option splice-auto")
UDP_FORWARD = ("--forward", f"udp:127.0.0.1:{ENTRY_PORT}:127.0.0.1:{SERVER_PORT}")


@dataclass(frozen=True)
class Place:
    """Where a relay runs."""

    directory: Path  # of its own, emptied for each start
    tools: dict[str, str]  # name -> path of what is installed
    cores: tuple[int, int]
    descriptors: int
    datagrams: bool = False  # are to be relayed, too

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
    extra: bool = False  # only where it is asked for
    forks: bool = False  # its children are not waited for: their CPU time is lost
    notes: tuple[str, ...] = field(default=())

    def programs(self, place: Place) -> list[Program]:
        """What is started; of datagrams only who can carry them is told."""
        datagrams = place.datagrams and "udp" in self.measures
        return self.start(replace(place, datagrams=datagrams))


def direct(_: Place) -> list[Program]:
    return []


def tm3(
    options: tuple[str, ...],
    lp: tuple[str, ...] = (),
    tools: tuple[str, str] = ("rp", "lp"),
    pipes: int = PIPES,
) -> Callable[[Place], list[Program]]:
    """`options` of both, `lp` of one."""

    def start(place: Place) -> list[Program]:
        at = f"127.0.0.1:{MIDDLE_PORT}"
        rp = (place.tools[tools[0]], *options, "--listen", at, str(pipes))
        forward = f"127.0.0.1:{ENTRY_PORT}:127.0.0.1:{SERVER_PORT}"
        socks = f"127.0.0.1:{SOCKS_PORT}" if place.datagrams else "off"
        off = ("--socks", socks, "--redirect", "off")
        udp = UDP_FORWARD if place.datagrams else ()
        words = (*options, *lp, *off, "--forward", forward, *udp)
        return [
            Program("rp", rp, place.cores[1], port=MIDDLE_PORT),
            Program(
                "lp",
                (place.tools[tools[1]], *words, at, str(pipes)),
                place.cores[0],
                port=ENTRY_PORT,
                says="1 pipe to" if pipes == 1 else f"{pipes} pipes to",
            ),
        ]

    return start


def tm3_key(place: Place) -> list[Program]:
    """Both show a key, and the pipes are encrypted."""
    key = place.directory / "key"
    key.touch(0o600)
    key.write_text(f"bench {b64encode(token_bytes(32)).decode()}\n")
    return tm3(("--key-file", str(key)))(place)


def copyloop(front: str, back: str) -> Callable[[Place], list[Program]]:
    """Two that only copy: what a relay of two processes costs at least."""

    def start(place: Place) -> list[Program]:
        tool, entry, middle = place.tools["copyloop"], str(ENTRY_PORT), str(MIDDLE_PORT)
        far = (tool, middle, str(SERVER_PORT), back)
        near = (tool, entry, middle, front)
        return [
            Program("back", far, place.cores[1], port=MIDDLE_PORT),
            Program("front", near, place.cores[0], port=ENTRY_PORT),
        ]

    return start


def mptcp(place: Place) -> list[Program]:
    try:
        namespace.have_subflows(PIPES)
    except (subprocess.CalledProcessError, OSError) as error:
        raise Trouble(f"no MPTCP with {PIPES} subflows here: {error}") from None
    return copyloop("mptcp-out", "mptcp-in")(place)


def socat(buffer: tuple[str, ...]) -> Callable[[Place], list[Program]]:
    def start(place: Place) -> list[Program]:
        listen = f"TCP-LISTEN:{ENTRY_PORT},bind=127.0.0.1,reuseaddr,fork,nodelay,backlog=1024"
        argv = (place.tools["socat"], *buffer, listen, f"TCP:127.0.0.1:{SERVER_PORT},nodelay")
        return [Program("socat", argv, place.cores[1], port=ENTRY_PORT)]

    return start


def haproxy(tuning: HaproxyTuning = AS_IT_COMES, hops: int = 1) -> Callable[[Place], list[Program]]:
    """One of it, or two in a row as lp and rp are."""

    def hop(place: Place, role: str, core: int, ports: tuple[int, int]) -> Program:
        config = place.directory / f"{role}.cfg"
        config.write_text(configs.haproxy(*ports, place.room(2), tuning))
        argv = (place.tools["haproxy"], "-q", "-db", "-f", str(config))
        return Program(role, argv, core, port=ports[0])

    def start(place: Place) -> list[Program]:
        if hops == 1:
            return [hop(place, "haproxy", place.cores[1], (ENTRY_PORT, SERVER_PORT))]
        return [
            hop(place, "back", place.cores[1], (MIDDLE_PORT, SERVER_PORT)),
            hop(place, "front", place.cores[0], (ENTRY_PORT, MIDDLE_PORT)),
        ]

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


def sing_box(protocol: str, tls: bool = False) -> Callable[[Place], list[Program]]:
    def start(place: Place) -> list[Program]:
        shown = None
        if tls:
            openssl = place.tools["openssl"]
            shown = certificate.make(place.directory, openssl, configs.SERVER_NAME)
        at = (ENTRY_PORT, MIDDLE_PORT, SERVER_PORT)
        return tunnel(
            place,
            place.tools["sing-box"],
            ("run", "-c"),
            configs.sing_box_server(MIDDLE_PORT, shown),
            configs.sing_box_client(*at, protocol, PIPES, shown),
        )

    return start


def muxes(protocol: str) -> Callable[[Place], list[Program]]:
    """Streams of one of the two libraries that others are made of, and nothing else."""

    def start(place: Place) -> list[Program]:
        tool, middle = place.tools["muxes"], f"127.0.0.1:{MIDDLE_PORT}"
        far = (tool, protocol, "server", middle, f"127.0.0.1:{SERVER_PORT}", str(PIPES))
        near = (tool, protocol, "client", f"127.0.0.1:{ENTRY_PORT}", middle, str(PIPES))
        return [
            Program("server", far, place.cores[1], port=MIDDLE_PORT),
            Program("client", near, place.cores[0], port=ENTRY_PORT),
        ]

    return start


def microsocks(place: Place) -> list[Program]:
    argv = (place.tools["microsocks"], "-i", "127.0.0.1", "-p", str(ENTRY_PORT))
    return [Program("microsocks", argv, place.cores[1], port=ENTRY_PORT)]


def kcptun(place: Place) -> list[Program]:
    """Its datagrams are plain and without what makes good for lost ones; its windows are wide."""
    common = ("--crypt", "null", "--nocomp", "--datashard", "0", "--parityshard", "0")
    wide = ("--mode", "fast3", "--sndwnd", "4096", "--rcvwnd", "4096", "--mtu", "1400", "--quiet")
    at = f"127.0.0.1:{MIDDLE_PORT}"
    server = (place.tools["kcptun-server"], "-l", at, "-t", f"127.0.0.1:{SERVER_PORT}")
    client = (place.tools["kcptun-client"], "-l", f"127.0.0.1:{ENTRY_PORT}", "-r", at)
    return [
        Program("server", (*server, *common, *wide), place.cores[1], says="listening on"),
        Program(
            "client",
            (*client, *common, *wide, "--conn", str(PIPES)),
            place.cores[0],
            port=ENTRY_PORT,
        ),
    ]


def v2ray(place: Place) -> list[Program]:
    return tunnel(
        place,
        place.tools["v2ray"],
        ("-config",),
        configs.v2ray_server(MIDDLE_PORT),
        configs.v2ray_client(ENTRY_PORT, MIDDLE_PORT, SERVER_PORT),
    )


def xray(place: Place) -> list[Program]:
    return tunnel(
        place,
        place.tools["xray"],
        ("run", "-c"),
        configs.xray_server(MIDDLE_PORT),
        configs.xray_client(ENTRY_PORT, MIDDLE_PORT, SERVER_PORT),
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
    Rival("direct", "direct", (), direct, entry_port=SERVER_PORT, measures=BARE),
    Rival(
        LIMIT,
        "two copy loops",
        ("copyloop",),
        copyloop("plain", "plain"),
        measures=WITHOUT_IDLE,
        notes=("recv and send of 256 KB, a connection between them for each one",),
    ),
    Rival(
        "loop-framed",
        "two copy loops, framed",
        ("copyloop",),
        copyloop("frame", "unframe"),
        measures=BULK,
        notes=("the same with headers as ours between them",),
    ),
    Rival(
        "mptcp",
        f"two copy loops, MPTCP of {PIPES} subflows between",
        ("copyloop",),
        mptcp,
        measures=(*BULK, "connects", "echo"),
        extra=True,
        notes=("a connection of MPTCP for each one that is relayed",),
    ),
    Rival(
        "socat",
        "socat",
        ("socat",),
        socat(()),
        measures=ONE_PROCESS,
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
    Rival("haproxy", "HAProxy", ("haproxy",), haproxy(), ONE_PROCESS, fds_per_connection=2),
    Rival(
        "haproxy-64k",
        "HAProxy, 64 KiB buffers",
        ("haproxy",),
        haproxy(HaproxyTuning("tune.bufsize 65536")),
        measures=BULK,
        fds_per_connection=2,
    ),
    Rival(
        "haproxy-splice",
        "HAProxy, splice-auto",
        ("haproxy",),
        haproxy(SPLICE),
        measures=BULK,
        fds_per_connection=2,
        extra=True,
    ),
    Rival("haproxy-2", "HAProxy twice", ("haproxy",), haproxy(hops=2), fds_per_connection=2),
    Rival(
        "haproxy-2-splice",
        "HAProxy twice, splice-auto",
        ("haproxy",),
        haproxy(SPLICE, hops=2),
        measures=BULK,
        fds_per_connection=2,
        extra=True,
    ),
    Rival(
        "microsocks",
        "microsocks",
        ("microsocks",),
        microsocks,
        measures=tuple(it for it in WITHOUT_CHURN if it != WIRE),
        socks=True,
        fds_per_connection=2,
        idle_most=1_000,
        notes=(
            "a thread a connection, and a line of its log",
            "memory from 1,000 connections",
            SOCKS_NOTE,
        ),
        extra=True,
    ),
    Rival(
        "ssh",
        "ssh -D",
        ("ssh", "sshd", "ssh-keygen"),
        ssh,
        measures=WITHOUT_CHURN,
        root=True,  # sshd takes on the user's identity
        socks=True,
        idle_most=1_000,
        notes=(
            "AES-128-GCM",
            "memory from 1,000 connections",
            SOCKS_NOTE,
        ),
    ),
    Rival("sing-box", f"sing-box, smux over {PIPES}", ("sing-box",), sing_box("smux")),
    Rival(
        "sing-box-yamux",
        f"sing-box, yamux over {PIPES}",
        ("sing-box",),
        sing_box("yamux"),
        extra=True,
    ),
    Rival(
        "sing-box-h2mux",
        f"sing-box, h2mux over {PIPES}",
        ("sing-box",),
        sing_box("h2mux"),
        extra=True,
    ),
    Rival(
        "sing-box-tls",
        f"sing-box, smux over {PIPES}, TLS",
        ("sing-box", "openssl"),
        sing_box("smux", tls=True),
        extra=True,
        notes=("TLS 1.3 with a certificate",),
    ),
    Rival("smux", f"bare smux over {PIPES}", ("muxes",), muxes("smux"), notes=BARE_NOTES),
    Rival("yamux", f"bare yamux over {PIPES}", ("muxes",), muxes("yamux"), notes=BARE_NOTES),
    Rival(
        "kcptun",
        f"kcptun over {PIPES}",
        ("kcptun-server", "kcptun-client"),
        kcptun,
        notes=("KCP over UDP: no congestion control of the kernel's", "not encrypted, no FEC"),
        extra=True,
    ),
    Rival(
        "xray",
        "xray, VLESS with mux",
        ("xray",),
        xray,
        extra=True,
        notes=("128 streams a connection at most", "not encrypted"),
    ),
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
    *(
        Rival(
            f"tm3-{pipes}",
            f"rp + lp, {pipes} pipe{'s' if pipes > 1 else ''}",
            ("rp", "lp"),
            tm3((), pipes=pipes),
            measures=("down", "up", "echo"),
            extra=True,
        )
        for pipes in OTHER_PIPES
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
