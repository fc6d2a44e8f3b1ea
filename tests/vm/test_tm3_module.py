# SPDX-License-Identifier: MIT
"""tm3.ko: its parameters, and which connections it redirects."""

import errno
import re
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from base.pressure import OwnTime
from tests.relay.netns import Namespace, namespace, veth
from tests.relay.waiting import equals, until
from tests.vm.module import (
    Log,
    configure,
    counters,
    in_guest,
    insmod,
    load,
    loaded,
    of_what_is_free,
    rmmod,
    setting,
)
from tests.vm.module import write as write_proc
from tests.vm.road import DEVICE, RP, Road, curl, fetch, words

Two = tuple[Namespace, Namespace]
pytestmark = [in_guest, pytest.mark.timeout(180)]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"portList": "80"}, "portList=80 localPort=6003"),
        ({"portList": "80,443"}, "portList=80,443 localPort=6003"),
        ({"portList": "8000-8010,80,81"}, "portList=80-81,8000-8010 localPort=6003"),
        ({"portList": "all"}, "portList=1-65535 localPort=6003"),
        ({"portList": "65535", "localPort": "7003"}, "portList=65535 localPort=7003"),
    ],
    ids=lambda value: " ".join(value.values()) if isinstance(value, dict) else "",
)
def test_each_form_of_the_parameters(two: Two, log: Log, given: dict[str, str], kept: str) -> None:
    """At insmod and through /proc/net/tm3; what is shown can be written back."""
    near, far = two
    shown = f"remoteProxyIP={RP} fwdInterface={DEVICE} {kept}"
    load(near, remoteProxyIP=RP, fwdInterface=DEVICE, **given)
    assert setting(near) == shown
    assert setting(far) == "off", "only the namespace that loads it is configured"
    assert counters(near) == {}
    write_proc(near, "off\n")
    assert setting(near) == "off"
    write_proc(near, shown + "\n")
    assert setting(near) == shown


def test_without_parameters_it_waits(way: Road) -> None:
    load(way.near)
    assert setting(way.near) == "off"
    assert fetch(way.near) == way.page
    assert counters(way.near) == {}


@pytest.mark.parametrize("other_name", ["lastmile", "a-name-longer-than-15-bytes"])
def test_an_interface_by_its_other_name(way: Road, other_name: str) -> None:
    way.near.ip("link", "property", "add", "dev", DEVICE, "altname", other_name)
    load(way.near, **{**words(), "fwdInterface": other_name})
    assert f"fwdInterface={DEVICE} " in setting(way.near)
    with pytest.raises(ConnectionRefusedError):
        way.near.connect((RP, 80))


NONSENSE = [
    ({"remoteProxyIP": "10.77.0"}, errno.EINVAL, "remoteProxyIP=10.77.0 is not the IPv4 address"),
    ({"remoteProxyIP": "10.77.0.256"}, errno.EINVAL, "remoteProxyIP=10.77.0.256 is not"),
    ({"remoteProxyIP": "0.0.0.0"}, errno.EINVAL, "remoteProxyIP=0.0.0.0 is not"),
    ({"remoteProxyIP": "224.0.0.1"}, errno.EINVAL, "remoteProxyIP=224.0.0.1 is not"),
    ({"remoteProxyIP": "::1"}, errno.EINVAL, "remoteProxyIP=::1 is not"),
    ({"remoteProxyIP": ""}, errno.EINVAL, "remoteProxyIP= is not"),
    ({"fwdInterface": "wire-x"}, errno.ENODEV, "fwdInterface=wire-x is not there"),
    ({"fwdInterface": "lo"}, errno.EINVAL, "fwdInterface=lo is loopback"),
    ({"fwdInterface": "a/b"}, errno.EINVAL, "fwdInterface=a/b is not the name"),
    ({"fwdInterface": "x" * 300}, errno.EINVAL, f"fwdInterface={'x' * 48} is not the name"),
    ({"portList": ""}, errno.EINVAL, "portList= is not a list of ports"),
    ({"portList": ","}, errno.EINVAL, "portList=, is not a list of ports"),
    ({"portList": "http"}, errno.EINVAL, "portList=http is not a list of ports"),
    ({"portList": "0"}, errno.EINVAL, "portList=0 is not a list of ports"),
    ({"portList": "0-80"}, errno.EINVAL, "portList=0-80 is not a list of ports"),
    ({"portList": "65536"}, errno.EINVAL, "portList=65536 is not a list of ports"),
    ({"portList": "443-80"}, errno.EINVAL, "portList=443-80 is not a list of ports"),
    ({"portList": "80;443"}, errno.EINVAL, "portList=80;443 is not a list of ports"),
    ({"portList": "1-100:2/4"}, errno.EINVAL, "portList=1-100:2/4 is not a list of ports"),
    ({"localPort": "0"}, errno.EINVAL, "localPort=0 is not a port"),
    ({"localPort": "65536"}, errno.EINVAL, "localPort=65536 is not a port"),
    ({"localPort": "+80"}, errno.EINVAL, "localPort=+80 is not a port"),
]


def test_insmod_refuses_nonsense_in_one_line(two: Two, log: Log) -> None:
    near, _ = two
    log.expected.append(r"^tm3: ")
    for wrong, number, said in NONSENSE:
        done = insmod(near, **{**words(), **wrong})
        reason = {errno.EINVAL: "Invalid parameters", errno.ENODEV: "No such device"}[number]
        assert done.returncode and reason in done.stderr, f"{wrong}: {done.stderr}"
        lines = log.of_module()
        assert len(lines) == 1 and lines[0].startswith(f"tm3: {said}"), f"{wrong}: {lines}"
        assert not loaded()
    for missing in words():
        done = insmod(near, **{name: value for name, value in words().items() if name != missing})
        assert "Invalid parameters" in done.stderr
        assert log.of_module() == [
            "tm3: remoteProxyIP, fwdInterface and portList are needed, all three"
        ]


def test_proc_refuses_nonsense_and_keeps_what_was(two: Two, log: Log) -> None:
    near, _ = two
    log.expected.append(r"^tm3: ")
    load(near, **words())
    before = setting(near)
    texts = [
        (" ".join(f"{name}={value}" for name, value in {**words(), **wrong}.items()), number, said)
        for wrong, number, said in NONSENSE
    ]
    whole = f"remoteProxyIP={RP} fwdInterface={DEVICE} portList=80"
    texts += [
        ("on", errno.EINVAL, "on: not a parameter"),
        ("off now", errno.EINVAL, "off: not a parameter"),
        (f"{whole} colour=red", errno.EINVAL, "colour: not a parameter"),
        (f"{whole} portList=81", errno.EINVAL, "portList=81 comes twice"),
        ("\n", errno.EINVAL, "remoteProxyIP, fwdInterface and portList are needed"),
    ]
    for text, number, said in texts:
        with pytest.raises(OSError) as refused:
            write_proc(near, text)
        assert refused.value.errno == number, text
        lines = log.of_module()
        assert len(lines) == 1 and lines[0].startswith(f"tm3: {said}"), f"{text}: {lines}"
        assert setting(near) == before
    for text in (whole + "," * 5000, whole + "\0 localPort=nonsense"):
        with pytest.raises(OSError):
            write_proc(near, text)
    assert setting(near) == before


def test_loopback_that_is_down(two: Two, log: Log) -> None:
    """Nothing could be redirected to it: connections would hang."""
    near, _ = two
    log.expected.append(r"^tm3: ")
    load(near)
    near.ip("link", "set", "lo", "down")
    with pytest.raises(OSError) as refused:
        configure(near, **words())
    assert refused.value.errno == errno.ENETDOWN


@of_what_is_free
def test_who_configures_without_end_takes_no_memory_without_end(two: Two, log: Log) -> None:
    """What is replaced is freed before the next can come: the owner of any namespace may write."""
    near, _ = two
    load(near, **words())

    def held_kib() -> int:
        (found,) = re.findall(r"^SUnreclaim: +(\d+) kB", Path("/proc/meminfo").read_text(), re.M)
        return int(found)

    before, most, end = held_kib(), 0, time.monotonic() + 3
    while time.monotonic() < end:
        configure(near, **words())
        most = max(most, held_kib() - before)
    print(f"{most} KiB more than before")
    assert most < 4096


def test_an_unmodified_curl_goes_through_lp(way: Road) -> None:
    with way.server(6001), way.proxies() as both:
        load(way.near, **words("80,6001"))
        assert fetch(way.near) == way.page
        assert fetch(way.near, port=6001) == way.page, "a server beside rp, as in the hand-out"
        both.settled()
        assert counters(way.near) == {"redirected": 2}
    assert way.relayed() == [f"{RP}:80", f"{RP}:6001"]


def test_what_is_not_asked_for_is_left_alone(way: Road) -> None:
    """Another port, interface, this machine's own address, and a socket bound to a device."""
    with namespace("side") as side, way.proxies() as both:
        veth(way.near, "10.78.0.1/24", side, "10.78.0.2/24", name="side")
        load(way.near, **words("81"))
        assert fetch(way.near) == way.page
        configure(way.near, **words("80"))
        for ns, address in ((side, "10.78.0.2"), (way.near, "10.77.0.1")):
            with listening(ns, address, 80) as server:
                client = way.near.connect((address, 80))
                server.accept()[0].close()
                client.close()
        assert counters(way.near) == {}
        code, got, err = curl(way.near, "--interface", f"if!{DEVICE}")
        assert (code, got) == (0, way.page), err
        assert counters(way.near) == {"bound": 1}
        both.settled()
    assert way.relayed() == []


def listening(ns: Namespace, address: str, port: int) -> socket.socket:
    sock = ns.open_socket()
    sock.settimeout(10)
    sock.bind((address, port))
    sock.listen()
    return sock


def test_the_pipes_go_out_when_everything_is_redirected(way: Road) -> None:
    load(way.near, **words("all"))
    with way.proxies():
        # lp asks for the extension, which is refused, before and after it dials its four pipes.
        assert counters(way.near)["pipes"] == 2 + 4
        assert fetch(way.near) == way.page
    assert way.relayed() == [f"{RP}:80"]


def test_pipes_to_the_other_port_too(way: Road) -> None:
    load(way.near, **words("6010"))
    with pytest.raises(ConnectionRefusedError):  # by far, where nobody listens
        way.near.connect((RP, 6010))
    assert counters(way.near) == {"pipes": 1}


def test_one_source_port_to_two_servers(way: Road) -> None:
    """Redirected, both would be the same connection: one must get another source port."""
    with way.server(81), way.proxies() as both, ExitStack() as stack:
        load(way.near, **words("80,81"))
        for port in (80, 81):
            sock = stack.enter_context(way.near.open_socket())
            sock.settimeout(20)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(("10.77.0.1", 45678))
            sock.connect((RP, port))
            sock.sendall(b"GET /page HTTP/1.0\r\n\r\n")
            assert sock.recv(12) == b"HTTP/1.1 200"
        stack.close()
        both.settled()
    assert sorted(way.relayed()) == [f"{RP}:80", f"{RP}:81"]


def test_connections_older_than_the_module_stay_with_their_server(way: Road) -> None:
    """Tracking begins with the module: the first packet it sees of them is not their first."""
    with way.proxies() as both, way.near.connect((RP, 80), 20) as sock:
        sock.sendall(b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n")
        assert sock.recv(12) == b"HTTP/1.1 200"
        load(way.near, **words())
        got = 12
        while got < len(way.page):
            got += len(sock.recv(65536))
        sock.sendall(b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n")
        assert sock.recv(1), "and goes on"
        rmmod()
        sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert sock.recv(1)
        both.settled()
    assert way.relayed() == []


def test_a_connection_that_was_tried_before_the_module_came_is_not_counted(way: Road) -> None:
    """A firewall has tracked it already: its SYNs, sent again, can no longer be redirected."""
    way.near.nft("table ip t { chain o { type filter hook output priority 0; ct state new; }; }")
    way.far.nft(
        "table ip t { chain i { type filter hook input priority 0;"
        " tcp dport 81 tcp flags syn counter drop; }; }"
    )

    def syns() -> int:
        (count,) = re.findall(r"counter packets (\d+)", way.far.run("nft", "list", "ruleset"))
        return int(count)

    with way.near.open_socket() as sock:
        sock.setblocking(False)
        assert sock.connect_ex((RP, 81)) == errno.EINPROGRESS
        until("the first SYN", syns)
        load(way.near, **words("81"))
        before = syns()
        until("a SYN sent again", lambda: syns() > before, seconds=20)
    assert counters(way.near) == {}


def test_without_lp_connections_are_refused_at_once(way: Road) -> None:
    load(way.near, **words())
    clock = OwnTime()
    with pytest.raises(ConnectionRefusedError):
        way.near.connect((RP, 80), 30)
    assert clock.passed_s() < 1
    code, _, err = curl(way.near, "--verbose")
    assert code == 7 and "Connection refused" in err, err
    assert counters(way.near) == {"refused": 2}


def test_lp_killed_and_restarted(way: Road) -> None:
    load(way.near, **words())
    with way.rp():
        with way.lp() as lp, way.near.connect((RP, 80), 20) as sock:
            sock.sendall(b"GET /slow/page HTTP/1.1\r\nHost: x\r\n\r\n")
            assert sock.recv(1)
            lp.kill()
            with pytest.raises(ConnectionResetError):
                while sock.recv(65536):
                    pass
            assert curl(way.near)[0] == 7
        with way.lp(name="lp-2"):
            assert fetch(way.near) == way.page
            until("lp's record", lambda: way.relayed() == [f"{RP}:80"])
    assert counters(way.near) == {"redirected": 2, "refused": 1}


@pytest.mark.timeout(300)
def test_through_netem_byte_for_byte(way: Road) -> None:
    """curl, tm3.ko, lp, a last mile of 20 Mbit/s, 50 ms and 1 % loss, rp, nginx."""
    for ns, device in ((way.near, DEVICE), (way.far, "wire-r")):
        ns.run("ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off")
        ns.run(*f"tc qdisc add dev {device} root netem delay 25ms loss 1% rate 20mbit".split())
    load(way.near, **words())
    with way.proxies():
        for _ in range(3):
            assert fetch(way.near, seconds=60) == way.page
    assert way.relayed() == [f"{RP}:80"] * 3
    assert "loss 1%" in way.near.run("tc", "qdisc", "show", "dev", DEVICE)


SYNS = 1000


@pytest.mark.parametrize("source", ["10.77.0.1", "198.18.%d.%d"], ids=["own", "forged"])
def test_syn_flood(way: Road, source: str) -> None:
    """It costs entries of connection tracking, and honest connections still get through."""
    way.log.expected.append("Possible SYN flooding on port")
    with way.proxies():
        load(way.near, **words())
        with way.near.entered():
            raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        with raw:
            for number in range(SYNS):
                from_ip = source % divmod(number, 250) if "%" in source else source
                raw.sendto(syn(from_ip, 20000 + number, RP, 80), (RP, 0))
        equals("SYNs redirected", lambda: counters(way.near).get("redirected"), SYNS)
        assert fetch(way.near) == way.page
        assert counters(way.near) == {"redirected": SYNS + 1}
    assert f"{RP}:80" in way.relayed()


def syn(source: str, source_port: int, to: str, port: int) -> bytes:
    """An IPv4 packet; the kernel fills in its length and checksum, not those of TCP."""
    tcp = source_port.to_bytes(2) + port.to_bytes(2) + (1).to_bytes(4) + bytes(4)
    tcp += bytes([5 << 4, 0x02]) + (64240).to_bytes(2)
    addresses = socket.inet_aton(source) + socket.inet_aton(to)
    whole = addresses + bytes([0, socket.IPPROTO_TCP, 0, 20]) + tcp + bytes(4)
    total = sum(int.from_bytes(whole[at : at + 2]) for at in range(0, len(whole), 2))
    total = (total & 0xFFFF) + (total >> 16)
    checksum = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    ip = bytes([0x45, 0, 0, 40, 0, 0, 0, 0, 64, socket.IPPROTO_TCP, 0, 0]) + addresses
    return ip + tcp + checksum.to_bytes(2) + bytes(2)
