# SPDX-License-Identifier: MIT
"""tm3ctl where there is no module: what it refuses, and nftables in its place.

near (lp, tm3ctl, curl) --- 10.77.0.0/24 --- far (rp, the servers)
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.relay import payload, records
from tests.relay.netns import Namespace
from tests.relay.programs import ROOT, finish
from tests.relay.proxies import Pair, pair
from tests.relay.servers import nginx
from tests.relay.waiting import until

TM3CTL = ROOT / "kmod" / "tm3ctl"
RP = "10.77.0.2"
PORTS_ARE = "not a port from 1 to 65535"
Two = tuple[Namespace, Namespace]


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ([], "what is to be done?"),
        (["10.0.0.1"], "RP_IP, INTERFACE and at least one PORT are needed"),
        (["10.0.0.1", "eth0"], "RP_IP, INTERFACE and at least one PORT are needed"),
        (["off", "now"], "'off' takes no arguments"),
        (["status", "10.0.0.1", "80"], "'status' takes no arguments"),
        *(([ip, "eth0", "80"], f"'{ip}' is not the IPv4 address") for ip in (
            "10.0.0", "10.0.0.1.2", "10.0.0.256", "0.0.0.0", "224.0.0.1", "::1", "rp.example", "",
            "10.0.0.1;reboot", "10..0.1", "010.0.0.1",
        )),
        *((["10.0.0.1", "eth0", "80", port], PORTS_ARE) for port in (
            "0", "65536", "http", "-80", "80-", "90-80", "", "1-2-3", "80,443", "all", "08",
        )),
        (["--local-port", "0", "10.0.0.1", "eth0", "80"], PORTS_ARE),
        (["--local-port"], "--local-port needs a value"),
        (["--with", "iptables", "10.0.0.1", "eth0", "80"], "module or nftables, not 'iptables'"),
        (["--wait", "10.0.0.1", "eth0", "80"], "unknown option '--wait'"),
        (["--local-port", "7003", "--bpf", "--", "true"], "--bpf comes first"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_wrong_arguments_are_one_line_and_2(args: list[str], why: str) -> None:
    done = subprocess.run([TM3CTL, *args], capture_output=True, text=True, timeout=10)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("tm3ctl: ") and done.stderr.count("\n") == 1
    assert why in done.stderr and "--help" in done.stderr


def test_help_names_every_command() -> None:
    done = subprocess.run([TM3CTL, "--help"], capture_output=True, text=True, timeout=10)
    assert done.returncode == 0 and done.stderr == ""
    for word in ("RP_IP INTERFACE PORT...", "tm3ctl off", "tm3ctl status", "--with", "TM3_KO"):
        assert word in done.stdout


@pytest.mark.parametrize("command", ["10.0.0.1 lo 80", "off", "status"])
def test_only_root_may_redirect_or_see_it(command: str) -> None:
    """To others nftables shows nothing, which is not the same as that there is nothing."""
    if os.geteuid() or not shutil.which("setpriv"):
        pytest.skip("needs root, and setpriv to give it up")
    argv = ["setpriv", "--reuid", "65534", "--clear-groups", "--inh-caps=-all", "sh", "-s"]
    done = subprocess.run(
        [*argv, *command.split()],
        stdin=TM3CTL.open(),  # the tree may be closed to others
        capture_output=True,
        text=True,
        timeout=10,
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("tm3ctl: needs root")


# What tm3ctl calls.
TOOLS = "cat dirname grep head id ip nft readlink sed ss tee wc"


def path_without(missing: str, folder: Path) -> str:
    """As for env: a PATH on which all of TOOLS are but that one."""
    for name in TOOLS.split():
        found = shutil.which(name)
        if name != missing and found:
            (folder / name).symlink_to(found)
    return f"PATH={folder}"


@pytest.mark.parametrize("missing", ["ip", "ss"])
def test_without_a_tool_it_says_which_one(missing: str, tmp_path: Path) -> None:
    """And not that there is no such interface, or nobody who listens."""
    argv = ["env", path_without(missing, tmp_path), TM3CTL, "10.0.0.1", "eth0", "80"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=10)
    said = f"tm3ctl: there is no {missing} on this machine: apt-get install iproute2\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", said)


def tm3ctl(ns: Namespace, *args: str, status: int = 0) -> str:
    code, out, err = finish(["env", "TM3_KO=/nonexistent", TM3CTL, *args], ns, 20)
    assert code == status, f"tm3ctl {args} ended with {code}: {out}{err}"
    assert (err == "") == (status == 0), err
    return out + err


def fetch(ns: Namespace, url: str) -> tuple[int, bytes]:
    done = subprocess.run(
        ns.command(["curl", "-sS", "--fail", "--max-time", "20", url]),
        capture_output=True,
        timeout=30,
    )
    return done.returncode, done.stdout


@contextmanager
def relayed(two: Two, tmp_path: Path, *lp: str) -> Iterator[tuple[Pair, Path]]:
    near, far = two
    stats = tmp_path / "lp.jsonl"
    with pair(far, tmp_path, lp=["--stats", str(stats), *lp], lp_ns=near, to=RP) as proxies:
        yield proxies, stats


@pytest.fixture
def page(two: Two, tmp_path: Path) -> Iterator[bytes]:
    """What the servers on ports 80 and 6001 of far serve."""
    root = tmp_path / "root"
    root.mkdir()
    payload.write(root / "page", 1_500_000)
    with (
        nginx(two[1], tmp_path, root, port=80, address=RP),
        nginx(two[1], tmp_path, root, port=6001, address=RP),
    ):
        yield (root / "page").read_bytes()


def test_nftables_end_to_end(two: Two, page: bytes, tmp_path: Path) -> None:
    """On, off and status; only what was asked for, byte for byte, and never the pipes."""
    near, _ = two
    assert tm3ctl(near, "status") == "tm3ctl: off\n"
    assert tm3ctl(near, "off") == "tm3ctl: off\n"
    said = tm3ctl(near, "--with", "nftables", RP, "wire-l", "80")
    assert "(nftables)" in said and "nobody listens on port 6003" in said
    with relayed(two, tmp_path) as (proxies, stats):
        said = tm3ctl(near, "--with", "nftables", RP, "wire-l", "80", "80-81", "6000-6001")
        assert "nobody" not in said
        assert fetch(near, f"http://{RP}/page") == (0, page)
        assert fetch(near, f"http://{RP}:6001/page") == (0, page)
        assert tm3ctl(near, "status").startswith("tm3ctl: on (nftables)\n")
        proxies.settled()
        assert tm3ctl(near, "off") == "tm3ctl: off (nftables)\n"
        assert near.run("nft", "list", "ruleset") == ""
        assert fetch(near, f"http://{RP}/page") == (0, page)
    assert [c["dst"] for c in records.of(stats, "conn")] == [f"{RP}:80", f"{RP}:6001"]


def test_the_pipes_go_out_when_everything_is_redirected(
    two: Two, page: bytes, tmp_path: Path
) -> None:
    near, _ = two
    tm3ctl(near, "--with", "nftables", RP, "wire-l", "all")
    with relayed(two, tmp_path) as (_, stats):
        assert fetch(near, f"http://{RP}/page") == (0, page)
    assert [c["dst"] for c in records.of(stats, "conn")] == [f"{RP}:80"]


def test_another_interface_is_left_alone(two: Two, page: bytes) -> None:
    near, _ = two
    near.ip("link", "add", "other", "type", "veth", "peer", "name", "its-peer")
    tm3ctl(near, "--with", "nftables", RP, "other", "80")
    assert fetch(near, f"http://{RP}/page") == (0, page)


def test_off_lets_open_connections_go_on(two: Two, page: bytes, tmp_path: Path) -> None:
    near, _ = two
    with relayed(two, tmp_path, "--redirect", "6333") as (proxies, stats):
        tm3ctl(near, "--with", "nftables", "--local-port", "6333", RP, "wire-l", "80")
        with near.connect((RP, 80)) as sock:
            sock.sendall(b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n")
            assert sock.recv(1)
            assert "open connections: 1;" in tm3ctl(near, "off")
            said = tm3ctl(near, "off")  # and still, when asked again
            assert "open connections: 1;" in said, said
            assert tm3ctl(near, "status") == "tm3ctl: off\n"
            got = 1
            while got < len(page):
                more = len(sock.recv(65536))
                assert more, f"it ended after {got} bytes"
                got += more
            assert fetch(near, f"http://{RP}/page") == (0, page)
        proxies.settled()
        gone_with(near, 6333)
    assert len(records.of(stats, "conn")) == 1


def test_off_breaks_no_connection_that_it_cannot_see(two: Two, tmp_path: Path) -> None:
    """ss lists them; without it what translates them stays."""
    near, _ = two
    tm3ctl(near, RP, "wire-l", "80")
    before = near.run("nft", "list", "ruleset")
    code, out, err = finish(["env", path_without("ss", tmp_path), TM3CTL, "off"], near, 20)
    assert (code, out) == (1, "")
    assert err == "tm3ctl: there is no ss on this machine: apt-get install iproute2\n"
    assert near.run("nft", "list", "ruleset") == before


def gone_with(near: Namespace, port: int) -> None:
    """With the last connection to lp, the next `off` leaves nothing behind."""
    states = ("state", "connected", "exclude", "time-wait")
    listing = ["ss", "-Htn", *states, f"sport = :{port}"]
    until("lp's end to close", lambda: not near.run(*listing).strip())
    tm3ctl(near, "off")
    assert near.run("nft", "list", "ruleset") == ""


def test_off_lets_a_slow_reader_have_the_rest(two: Two, tmp_path: Path) -> None:
    """The server has closed, lp has closed: what the program has not read yet still comes."""
    near, far = two
    size = 400_000
    with relayed(two, tmp_path), far.open_socket() as listener:
        tm3ctl(near, RP, "wire-l", "80")
        listener.bind((RP, 80))
        listener.listen()
        with near.connect((RP, 80)) as sock:
            server, _ = listener.accept()
            with server:
                server.sendall(b"x" * size)
            listing = ["ss", "-Htn", "state", "fin-wait-1", "sport = :6003"]
            until("lp to have closed", lambda: near.run(*listing).strip())
            assert "open connections: 1;" in tm3ctl(near, "off")
            sock.settimeout(20)
            got = 0
            while part := sock.recv(65536):
                got += len(part)
            assert got == size
        gone_with(near, 6003)


def test_it_says_why_there_is_no_module(two: Two) -> None:
    if Path("/proc/net/tm3").exists():
        pytest.skip("tm3.ko is loaded here")
    near, _ = two
    assert "the module cannot be loaded: " in tm3ctl(near, RP, "wire-l", "80")
    said = tm3ctl(near, "--with", "module", RP, "wire-l", "80", status=1)
    assert said.startswith("tm3ctl: the module cannot be loaded: ") and said.count("\n") == 1


def many_ports(characters: int) -> list[str]:
    """Single ones, with which the line for the module has so many characters."""
    line = f"remoteProxyIP={RP} fwdInterface=wire-l portList=1 localPort=6003"
    more, rest = divmod(characters - len(line), len(",10001"))
    first = ("1", "10", "100", "1000", "10000", "1-1000")[rest]
    return [first, *(str(10001 + 2 * number) for number in range(more))]


def test_more_ports_than_the_module_takes(two: Two) -> None:
    """The kernel would refuse them and give no reason; nftables has no such limit."""
    if Path("/proc/net/tm3").exists():
        pytest.skip("tm3.ko is loaded here")
    near, _ = two
    said = tm3ctl(near, "--with", "module", RP, "wire-l", *many_ports(4095), status=1)
    assert said.startswith("tm3ctl: the module cannot be loaded: ")
    too_many = many_ports(4096)
    why = (
        "the module takes 4095 characters in all, and with these ports they are 4096: "
        "ranges such as 8000-8010 are shorter"
    )
    said = tm3ctl(near, "--with", "module", RP, "wire-l", *too_many, status=1)
    assert said == f"tm3ctl: {why}\n"
    assert f"(nftables; {why})" in tm3ctl(near, RP, "wire-l", *too_many)
    assert too_many[-1] in near.run("nft", "list", "set", "ip", "tm3ctl", "ports")


@pytest.mark.parametrize(
    ("interface", "why"),
    [("nope", "there is no interface 'nope' here"), ("lo", "'lo' is loopback")],
)
def test_an_interface_that_will_not_do(two: Two, interface: str, why: str) -> None:
    near, _ = two
    assert why in tm3ctl(near, RP, interface, "80", status=1)
    assert near.run("nft", "list", "ruleset") == ""


@pytest.mark.parametrize("other_name", ["lastmile", "a-name-longer-than-15-bytes"])
def test_an_interface_by_its_other_name(two: Two, other_name: str) -> None:
    """Rules know its own name only."""
    near, _ = two
    near.ip("link", "property", "add", "dev", "wire-l", "altname", other_name)
    assert " out of wire-l " in tm3ctl(near, RP, other_name, "80")
    with pytest.raises(ConnectionRefusedError):
        near.connect((RP, 80))


def test_a_name_that_nftables_would_take_for_a_pattern(two: Two) -> None:
    near, _ = two
    near.ip("link", "add", "w*", "type", "veth", "peer", "name", "its-peer")
    said = tm3ctl(near, RP, "w*", "80", status=1)
    assert said == "tm3ctl: nftables would misread the name 'w*'\n"
    assert near.run("nft", "list", "ruleset") == ""


def test_loopback_that_is_down(two: Two) -> None:
    """Connections that are sent there would hang."""
    near, _ = two
    near.ip("link", "set", "lo", "down")
    said = tm3ctl(near, RP, "wire-l", "80", status=1)
    assert said == "tm3ctl: there is nowhere to redirect to: loopback is down\n"
    assert near.run("nft", "list", "ruleset") == ""


def test_rules_of_the_document_stay_as_they_are(two: Two) -> None:
    """A router's, beside tm3ctl's own; neither takes the other away."""
    near, _ = two
    document = (ROOT / "docs" / "redirect.md").read_text()
    (router,) = (text for text in document.split("```") if "nat hook prerouting" in text)
    near.nft(router.removeprefix("nft"))
    before = near.run("nft", "list", "ruleset")
    assert 'iifname "lan0" tcp dport' in before
    tm3ctl(near, RP, "wire-l", "80")
    assert before in near.run("nft", "list", "ruleset")
    assert tm3ctl(near, "off") == "tm3ctl: off (nftables)\n"
    assert near.run("nft", "list", "ruleset") == before
    assert tm3ctl(near, "status") == "tm3ctl: off\n"


def test_without_the_document_s_table_open_connections_break(two: Two, tmp_path: Path) -> None:
    """As the document says: nothing translates them any more."""
    near, far = two
    document = (ROOT / "docs" / "redirect.md").read_text().replace("10.1.0.2", RP)
    rules = next(text for text in document.split("```") if "hook output" in text)
    with relayed(two, tmp_path), far.open_socket() as listener:
        near.nft(rules.removeprefix("nft"))
        listener.bind((RP, 80))
        listener.listen()
        with near.connect((RP, 80), 20) as sock:
            server, _ = listener.accept()
            with server:
                server.sendall(b"first")
                assert sock.recv(5) == b"first"
                near.run("nft", "delete", "table", "ip", "tm3")
                sock.sendall(b"more")
                with pytest.raises(ConnectionResetError):
                    sock.recv(1)
