# SPDX-License-Identifier: MIT
"""Command lines that are wrong, ports that are taken, descriptors that run out."""

import re
import socket
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.relay.ends import echo, ending_of, serving
from tests.relay.netns import Namespace
from tests.relay.programs import binary, finish
from tests.relay.proxies import local_proxy, pair, remote_proxy
from tests.relay.waiting import equals

# The arguments, and what the one line on stderr must name.
BOTH_WRONG = [
    (["--binding", "later"], "--binding"),
    (["--binding"], "--binding"),
    (["--pipe-policy", "best"], "--pipe-policy"),
    (["--conn-policy", "lifo"], "--conn-policy"),
    (["--path-policy", "nearest"], "--path-policy: 'nearest' is not one of soonest, minrtt, rr, "),
    (["--path-policy", "split:101"], "--path-policy: 'split:101': P is not a number from 0 to 100"),
    (["--path-policy", "split:-1"], "'split:-1': P is not a number from 0 to 100"),
    (["--path-policy", "split"], "--path-policy: 'split' needs a P behind it: split:P"),
    (["--path-policy", "one:"], "--path-policy: 'one:': NAME is not the name of a path"),
    (["--path-policy", "ecf:3"], "--path-policy: 'ecf:3': nothing stands behind ecf"),
    (["--app-buffer", "-1"], "--app-buffer"),
    (["--app-buffer", "10X"], "--app-buffer"),
    (["--pipe-sndbuf", "many"], "--pipe-sndbuf"),
    (["--cc", "nosuchcc"], "nosuchcc"),
    (["--seed", "x"], "--seed"),
    (["--stats-interval", "0"], "--stats-interval"),
    (["--stats-interval", "-1"], "--stats-interval"),
    (["--stats-interval", "soon"], "--stats-interval"),
    (["--no-such-option"], "--no-such-option"),
    (["-Z"], "Z"),
    (["--max-conns", "0"], "--max-conns"),
    (["--max-conns", "70000"], "--max-conns"),
    (["--pipe", "udp"], "'udp' is not one of tcp, mptcp, sctp"),
    (["--pipe", "tcp:0"], "'tcp:0'"),
    (["--pipe", "tcp,tcp"], "named twice"),
    (["--pipe", "tcp:3"], "add up to 3, and PIPES is 4"),
    (["--pipe", "tcp:4,mptcp:4"], "add up to 8, and PIPES is 4"),
    (["--sctp-loss", "0"], "--sctp-loss"),
    (["--sctp-loss", "some"], "--sctp-loss"),
    (["--pipe-policy", "fixed", "--pipe", "tcp:2,sctp:2"], "--pipe-policy fixed"),
    (["--aggregate", "on"], "--aggregate"),
    (["--thin", "more"], "--thin: 'more' is not one of copy, same-pipe, off"),
    (["--reinject", "more"], "--reinject: 'more' is not one of off, timely, mpflex"),
    (["--lambda", "0"], "--lambda: '0' is not a number from 0.1 to 100"),
    (["--lambda", "101"], "--lambda"),
    (["--lambda", "two"], "--lambda"),
    (["--lambda", "2"], "--aggregate dswa only"),
    (["--aggregate", "dswa", "--binding", "early", "--lambda", "2"], "--binding late and"),
    (["--sctp-loss", "1"], "--sctp-loss goes with a set of SCTP and other pipes only"),
    (["--sctp-loss", "1", "--pipe", "tcp:2,mptcp:2"], "--sctp-loss"),
]
RP_WRONG = [
    (["--metrics", "0.0.0.0:9600", "4"], "--metrics: '0.0.0.0:9600' is not a loopback address"),
    (["--metrics", "[2001:db8::1]:9600", "4"], "is not a loopback address"),
    (["--metrics", "nine", "4"], "--metrics: 'nine' is neither"),
    (["--metrics", "0", "4"], "--metrics: '0' is neither"),
    (["--metrics", "", "4"], "--metrics: '' is neither"),
    (["--metrics", "/" + "x" * 107, "4"], "--metrics: File name too long"),
    ([], "PIPES"),
    (["0"], "0"),
    (["65"], "65"),
    (["-1"], "1"),
    (["four"], "four"),
    (["4x"], "4x"),
    (["4", "5"], "5"),
    (["--listen", "nonsense", "4"], "--listen"),
    (["--listen", "127.0.0.1:99999", "4"], "--listen"),
    (["--listen", "[::1:6000", "4"], "--listen"),
    (["--allow", "10.0.0.0/33", "4"], "--allow"),
    (["--allow", "everybody", "4"], "--allow"),
    (["--deny", "10.0.0/8", "4"], "--deny"),
    (["--permit", "10.0.0.0/x", "4"], "--permit"),
    (["--permit-listen", "0", "4"], "--permit-listen"),
    (["--permit-listen", "9-8", "4"], "--permit-listen"),
    (["--permit-listen", "80-", "4"], "--permit-listen"),
    (["--permit-listen", "::1:80", "4"], "--permit-listen"),
    (["--permit-listen", "host:80", "4"], "--permit-listen"),
    (["--permit-listen", ":80", "4"], "--permit-listen"),
    (["--connect-timeout", "0", "4"], "--connect-timeout"),
    (["--connect-timeout", "x", "4"], "--connect-timeout"),
    (["--max-sessions", "0", "4"], "--max-sessions"),
    (["--max-sessions", "x", "4"], "--max-sessions"),
    (["--max-sessions-each", "0", "4"], "--max-sessions-each"),
    (["--max-opens", "0", "4"], "--max-opens"),
    (["--workers", "0", "4"], "--workers: '0' is not a whole number from 1 to 16"),
    (["--workers", "17", "4"], "--workers: '17'"),
    (["--workers", "1000", "4"], "--workers: '1000'"),
    (["--workers", "x", "4"], "--workers: 'x'"),
    (["--max-connects", "0", "4"], "--max-connects"),
    (["--max-memory", "0", "4"], "--max-memory"),
    (["--memory", "1G", "4"], "--memory"),
    (["--max-connects", "65536", "4"], "--max-connects"),
    (["--resume", "-1", "4"], "--resume"),
    (["--resume", "65536", "4"], "--resume"),
    (["--udp", "maybe", "4"], "--udp"),
    (["--thin", "copy", "--extended", "off", "4"], "--thin: copy needs the extension"),
    (["--reinject", "mpflex", "--extended", "off", "4"], "--reinject: mpflex needs the extension"),
    (["--path-policy", "ecf", "4"], "--path-policy: several paths need the extension"),
    (
        ["--listen", "127.0.0.1", "--path-policy", "one:wifi", "4"],
        "--path-policy: one:wifi: rp knows paths by their numbers, from 0 to 6",
    ),
    (["--listen", "127.0.0.1", "--path-policy", "one:7", "4"], "from 0 to 6"),
    (
        ["--listen", "127.0.0.1", "--path-policy", "rr", "--pipe-policy", "fixed", "4"],
        "--pipe-policy fixed does not go with --path-policy rr",
    ),
]
A_PATH = ["--path", "a,src=127.0.0.2"]
TWO_PATHS = [*A_PATH, "--path", "b,dev=lo"]
TO_RP = ["127.0.0.1", "4"]
LP_WRONG = [
    (["--path", "a,src=there", *TO_RP], "--path: a: src='there' is not the address of a host"),
    (["--path", "a", *TO_RP], "--path: a: it needs src=ADDR or dev=IFACE"),
    ([*TWO_PATHS, "--rule", "port 443", *TO_RP], "--rule: 'port 443': it names no path"),
    ([*TWO_PATHS, "--rule", "paths a,c", *TO_RP], "--rule: paths a,c: there is no path c (--path)"),
    (["--rule", "paths a", *TO_RP], "--rule: paths a: there is no path a (--path)"),
    ([*TWO_PATHS, "--rule", "port 1 port 2 paths a", *TO_RP], "port is given twice"),
    (
        [*TWO_PATHS, "--rule", "user no-such-user paths a", *TO_RP],
        "user 'no-such-user' is not known on this host",
    ),
    (
        [*TWO_PATHS, "--rule", "paths a", "--pipe-policy", "fixed", *TO_RP],
        "--rule: it does not go with --pipe-policy fixed",
    ),
    (
        [*A_PATH, "--path", "b,dev=lo,backup", "--rule", "paths b", *TO_RP],
        "--rule: paths b: all of them are backups",
    ),
    (["--path", "a,dev=lo,fast", *TO_RP], "--path: a: 'fast' is none of"),
    (["--path", "a b,dev=lo", *TO_RP], "--path: 'a b,dev=lo' does not begin with a name"),
    ([*A_PATH, *A_PATH, *TO_RP], "--path: a is given twice"),
    (
        [word for n in range(8) for word in ("--path", f"p{n},dev=lo")] + TO_RP,
        "--path: p7: there are more than 7",
    ),
    ([*A_PATH, "--path", "b,dev=lo,pipes=61", *TO_RP], "--path: the paths have 65 pipes together"),
    (["--path", "a,dev=lo,backup", *TO_RP], "--path: all paths are backups"),
    (
        [*A_PATH, "--path", "b,dev=lo", "--extend", "never", *TO_RP],
        "--path: several of them need the extension",
    ),
    (
        [*A_PATH, "--path", "b,dev=lo,pipes=3", "--pipe", "tcp:2,mptcp:2", *TO_RP],
        "--path: b: pipes=3 does not go with --pipe",
    ),
    (["--path-policy", "minrtt", *TO_RP], "--path-policy: minrtt chooses between paths"),
    ([*A_PATH, "--path-policy", "split:5", *TO_RP], "and there are not two of them (--path)"),
    ([*TWO_PATHS, "--path-policy", "one:c", *TO_RP], "one:c: there is no path of that name"),
    (
        [*TWO_PATHS, "--path", "c,src=127.0.0.3", "--path-policy", "dems-b", *TO_RP],
        "--path-policy: dems-b is for 2 paths, and there are 3 of them (--path)",
    ),
    (
        [*TWO_PATHS, "--path-policy", "ecf", "--pipe-policy", "fixed", *TO_RP],
        "--pipe-policy fixed does not go with --path-policy ecf",
    ),
    ([], "RP_ADDRESS"),
    (["127.0.0.1"], "PIPES"),
    (["127.0.0.1", "0"], "0"),
    (["127.0.0.1", "65"], "65"),
    (["127.0.0.1", "four"], "four"),
    (["127.0.0.1:0", "4"], "127.0.0.1:0"),
    (["127.0.0.1:70000", "4"], "70000"),
    (["127.0.0.1,70000", "4"], "'70000' is not a port from 1 to 65535"),
    (
        ["--extend", "always", "127.0.0.1:7000", "4"],
        "the baseline, which is not spoken (--extend always); that of the extension stands behind a"
        " comma: 127.0.0.1,7000",
    ),
    (["--extend", "always", "[::1]:7000", "4"], "behind a comma: [::1],7000"),
    (["[::1", "4"], "[::1"),
    (["127.0.0.1", "4", "extra"], "extra"),
    (["--redirect", "x", "127.0.0.1", "4"], "--redirect"),
    (["--redirect", "70000", "127.0.0.1", "4"], "--redirect"),
    (["--socks", "host:80", "127.0.0.1", "4"], "--socks"),
    (["--forward", "80", "127.0.0.1", "4"], "--forward"),
    (["--forward", "8000:host", "127.0.0.1", "4"], "--forward"),
    (["--forward", "8000:host:0", "127.0.0.1", "4"], "--forward"),
    (["--forward", "8000::80", "127.0.0.1", "4"], "--forward"),
    (["--remote-forward", "8000:host", "127.0.0.1", "4"], "--remote-forward"),
    (["--remote-forward", "udp:80:h:80", "127.0.0.1", "4"], "datagrams"),
    (["--remote-forward", "80:h:80", "--extend", "never", "127.0.0.1", "4"], "extension"),
    (["--thin", "copy", "--extend", "never", *TO_RP], "--thin: copy needs the extension"),
    (["--reinject", "timely", "--extend", "never", *TO_RP], "--reinject: timely needs the ext"),
    (["--remote-forward", "80:h:80", "--remote-forward", "80:h:80", "127.0.0.1", "4"], "twice"),
    (["--remote-forward", "8:h:8", "--remote-forward", "127.0.0.1:8:i:9", "1.2.3.4", "4"], "twice"),
    (["--forward", "udp:7000:host", "127.0.0.1", "4"], "--forward"),
    (["--forward", "udp:host:7000:80:1:1", "127.0.0.1", "4"], "--forward"),
    (["--forward", "udp:7000:h.example:53", "--names", "lp", "127.0.0.1", "4"], "h.example"),
    (["--forward", "udp:7000:10.0.0.1:53", "--extend", "never", "127.0.0.1", "4"], "extension"),
    (["--tproxy", "x", "127.0.0.1", "4"], "--tproxy"),
    (["--tproxy", "6003", "--extend", "never", "127.0.0.1", "4"], "extension"),
    (["--tproxy", "6003", "127.0.0.1:7000", "4"], "is not spoken here (--extend, or no EXTPORT)"),
    (["--tproxy", "6003", "--user", "nobody", "127.0.0.1", "4"], "does not go with --user"),
    (["--pipe", "tcp,mptcp", "127.0.0.1", "4"], "add up to PIPES, 4"),
]
WRONG = (
    [("rp", [*args, "4"] if args != ["--binding"] else args, named) for args, named in BOTH_WRONG]
    + [
        ("lp", [*args, "127.0.0.1", "4"] if args != ["--binding"] else args, named)
        for args, named in BOTH_WRONG
    ]
    + [("rp", args, named) for args, named in RP_WRONG]
    + [("lp", args, named) for args, named in LP_WRONG]
)


@pytest.mark.parametrize(
    ("side", "args", "named"), WRONG, ids=[f"{p} {' '.join(a)}" for p, a, _ in WRONG]
)
def test_wrong_arguments(box: Namespace, side: str, args: list[str], named: str) -> None:
    code, out, err = finish([binary(side), *args], box, 10)
    lines = err.strip().splitlines()
    assert code == 2, f"ended with {code}: {err}"
    assert len(lines) == 1 and lines[0].startswith(f"{side}: "), err
    assert named in lines[0], f"{lines[0]} does not name {named}"
    assert out == ""


@pytest.mark.parametrize(
    "args", [args for args, _ in BOTH_WRONG], ids=[" ".join(args) for args, _ in BOTH_WRONG]
)
def test_both_proxies_say_the_same(box: Namespace, args: list[str]) -> None:
    ends = {"rp": ["4"], "lp": ["127.0.0.1", "4"]}
    said = {}
    for side, behind in ends.items():
        argv = [binary(side), *args, *(behind if args != ["--binding"] else [])]
        _, _, err = finish(argv, box, 10)
        said[side] = err.removeprefix(f"{side}: ").replace(f"{side} --help", "--help")
    limit = ("1 to 65535", "1 to 32767")  # lp gives ids out, and half of them are its own
    assert said["rp"].replace(*limit) == said["lp"].replace(*limit)


@pytest.mark.parametrize("side", ["rp", "lp"])
def test_help_and_version(box: Namespace, side: str) -> None:
    code, out, err = finish([binary(side), "--help"], box, 10)
    assert (code, err) == (0, "")
    options = {"--binding", "--app-buffer", "--pipe-sndbuf", "--pipe-policy", "--conn-policy",
               "--path-policy", "--sizes",
               "--cc", "--seed", "--stats", "--stats-interval", "--verbose",
               "--quiet", "--help", "--version", "--max-conns", "--pipe", "--sctp-loss",
               "--aggregate", "--lambda", "--thin", "--reinject", "--memory", "--window-memory",
                "--keep",
               "--user", "--config",
               "--check", "--seccomp"}  # fmt: skip
    options |= (
        {
            "--listen",
            "--allow",
            "--deny",
            "--permit",
            "--permit-listen",
            "--connect-timeout",
            "--max-sessions",
            "--max-connects",
            "--max-opens",
            "--max-sessions-each",
            "--max-memory",
            "--workers",
            "--resume",
            "--udp",
        }
        if side == "rp"
        else {"--redirect", "--tproxy", "--socks", "--forward", "--remote-forward"}
    )
    assert options <= set(re.findall(r"--[a-z-]+", out))
    named = "late early delay dswa soonest least rr random fixed las drr fifo minrtt ecf txdelay"
    for name in named.split():
        assert re.search(rf"\b{name}\b", out), f"--help does not name {name}"
    assert "shares the address" in out, "who can get bytes of others"
    code, out, err = finish([binary(side), "--version"], box, 10)
    assert (code, err) == (0, "")
    assert re.match(rf"{side}\b.* \d+\.\d+", out)


def test_installed_under_another_name(box: Namespace, tmp_path: Path) -> None:
    """What is told to type is the name it was called by; lines of its log begin with its own."""
    called = tmp_path / "tm3-rp"
    called.symlink_to(binary("rp").resolve())
    _, out, _ = finish([called, "--help"], box, 10)
    assert out.startswith("Usage: tm3-rp [OPTION]... PIPES\n")
    for args in ([], ["4", "5"], ["--nonsense"], ["-Z"]):
        code, _, err = finish([called, *args], box, 10)
        assert code == 2 and err.startswith("rp: ") and "tm3-rp --help" in err, err


@pytest.mark.parametrize(
    ("side", "args", "port"),
    [
        ("rp", ["4"], 6000),
        ("rp", ["--listen", "127.0.0.1:6001", "--listen", "127.0.0.1:6002", "4"], 6002),
        ("lp", ["127.0.0.1", "4"], 6003),
        ("lp", ["127.0.0.1", "4"], 1080),
        ("lp", ["--forward", "7000:127.0.0.1:80", "127.0.0.1", "4"], 7000),
    ],
)
def test_port_in_use(box: Namespace, side: str, args: list[str], port: int) -> None:
    """One line, and nothing of ports that it had before."""
    with serving(box, echo, ("127.0.0.1", port)):
        code, _, err = finish([binary(side), *args], box, 10)
    assert code == 2, f"ended with {code}: {err}"
    assert len(err.splitlines()) == 1 and f":{port}: Address already in use" in err, err


@pytest.mark.parametrize(
    ("side", "args"),
    [
        ("rp", ["--listen", "127.0.0.1:81", "4"]),
        ("lp", ["--socks", "81", "127.0.0.1", "4"]),
        ("lp", ["--forward", "81:127.0.0.1:80", "127.0.0.1", "4"]),
        ("rp", ["--metrics", "81", "4"]),
    ],
)
def test_port_of_root_s(box: Namespace, side: str, args: list[str]) -> None:
    """A restart would not help: as with a port in use the status says so to a service manager."""
    everyday = ["setpriv", "--bounding-set=-net_bind_service", "--"]
    code, _, err = finish([*everyday, binary(side), *args], box, 10)
    assert code == 2, f"ended with {code}: {err}"
    assert len(err.splitlines()) == 1 and "81: Permission denied" in err, err


@pytest.mark.parametrize(
    ("side", "option", "at", "why"),
    [
        ("rp", "--metrics", "missing/x.sock", "No such file or directory"),
        ("lp", "--metrics", "missing/x.sock", "No such file or directory"),
        ("lp", "--control", "missing/x.sock", "No such file or directory"),
        ("rp", "--metrics", "file/x.sock", "Not a directory"),
        ("lp", "--control", "file/x.sock", "Not a directory"),
        ("rp", "--stats", "missing/x.jsonl", "No such file or directory"),
        ("lp", "--stats", "file/x.jsonl", "Not a directory"),
    ],
)
def test_what_no_folder_has_room_for(
    box: Namespace, tmp_path: Path, side: str, option: str, at: str, why: str
) -> None:
    (tmp_path / "file").write_text("")
    rest = ["4"] if side == "rp" else ["127.0.0.1", "4"]
    code, out, err = finish([binary(side), option, str(tmp_path / at), *rest], box, 10)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert err.startswith(f"{side}: {option}: cannot ") and err.endswith(f"{why}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_metrics_on_a_read_only_file_system(box: Namespace) -> None:
    code, _, err = finish([binary("rp"), "--metrics", "/sys/x.sock", "4"], box, 10)
    assert code == 2 and err.startswith("rp: --metrics: cannot listen on /sys/x.sock: "), err


def test_off_switches_a_listener_off(box: Namespace, tmp_path: Path) -> None:
    with (
        remote_proxy(box, tmp_path),
        local_proxy(
            box, tmp_path, *("--redirect", "off"), *("--socks", "off"), *("--forward", "7000:a:80")
        ),
    ):
        assert box.listening(6000)
        assert not box.listening(6003)
        assert not box.listening(1080)


def limit(box: Namespace, pid: int, descriptors: int) -> None:
    box.run("prlimit", "--pid", str(pid), f"--nofile={descriptors}:")


def opened(box: Namespace, count: int) -> list[socket.socket]:
    return [box.connect(("127.0.0.1", 7000)) for _ in range(count)]


def attempted(box: Namespace, count: int) -> list[socket.socket]:
    """As many of them as were not refused before connect() had returned."""
    made = []
    for _ in range(count):
        with suppress(ConnectionResetError):
            made += opened(box, 1)
    return made


def echoes(sock: socket.socket) -> bool:
    sock.settimeout(3)
    try:
        sock.sendall(b"ping")
        return sock.recv(4) == b"ping"
    except OSError:
        return False


@pytest.mark.parametrize("short", ["rp", "lp"])
def test_too_few_descriptors(box: Namespace, tmp_path: Path, short: str) -> None:
    """One clear line, no busy loop; who has a connection keeps it, and all is well afterwards."""
    with (
        serving(box, echo) as server,
        pair(box, tmp_path, lp=["--forward", f"7000:127.0.0.1:{server.port}"]) as proxies,
    ):
        victim = proxies.rp if short == "rp" else proxies.lp
        first = opened(box, 5)
        assert all(echoes(sock) for sock in first)
        limit(box, victim.pid, victim.fd_count() + 3)
        more = attempted(box, 60)
        line = victim.expect(r"descriptor|open files|RLIMIT_NOFILE|ulimit")
        before = victim.cpu_s()
        time.sleep(0.2)  # a stretch of time to count processor time in
        assert victim.cpu_s() - before < 0.15, "it spins"
        assert all(echoes(sock) for sock in first), line
        for sock in more:
            sock.close()
        assert len(victim.lines(r"descriptor|open files|RLIMIT_NOFILE|ulimit")) <= 3, victim.log
        limit(box, victim.pid, 4096)
        # What was refused is refused; what comes now is served.
        for sock in first:
            sock.close()
        equals("rp's descriptors", proxies.rp.fd_count, proxies.rp_fds)
        again = opened(box, 40)
        assert all(echoes(sock) for sock in again)
        for sock in again:
            sock.close()


def test_max_conns_of_lp(box: Namespace, tmp_path: Path) -> None:
    """Past the limit applications wait or are refused; those within it are served."""
    with (
        serving(box, echo) as server,
        pair(
            box,
            tmp_path,
            lp=["--max-conns", "5", "--forward", f"7000:127.0.0.1:{server.port}"],
        ),
    ):
        held = opened(box, 5)
        assert all(echoes(sock) for sock in held)
        for sixth in attempted(box, 1):
            with sixth:
                assert not echoes(sixth)
        for sock in held:
            sock.close()


def test_max_conns_of_rp(box: Namespace, tmp_path: Path) -> None:
    with (
        serving(box, echo) as server,
        pair(
            box,
            tmp_path,
            rp=["--max-conns", "5"],
            lp=["--forward", f"7000:127.0.0.1:{server.port}"],
        ),
    ):
        held = opened(box, 5)
        assert all(echoes(sock) for sock in held)
        assert ending_of(box, 7000).how == "reset"
        assert all(echoes(sock) for sock in held)
        for sock in held:
            sock.close()


def test_max_sessions(box: Namespace, tmp_path: Path) -> None:
    with (
        remote_proxy(box, tmp_path, "--max-sessions", "1") as rp,
        serving(box, echo) as server,
        local_proxy(box, tmp_path, "--forward", f"7000:127.0.0.1:{server.port}"),
    ):
        ports = (
            "--socks",
            "off",
            "--redirect",
            "off",
            "--forward",
            f"7001:127.0.0.1:{server.port}",
        )
        with local_proxy(box, tmp_path, *ports, name="second", ready=None):
            rp.expect(r"max-sessions|limit of 1|1 sessions? (is|are)")
            with opened(box, 1)[0] as sock:
                assert echoes(sock)
