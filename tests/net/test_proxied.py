# SPDX-License-Identifier: MIT
"""lp and rp inside a lab, a redirected client, and what the record says of it."""

import hashlib
import json
import os
import random
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from base.shell import CommandError, run, until
from tests.net.measure import Wrong, idle_rtt_ms, near, shown_to_hold, tcp_mbps, ways
from topologies import dialect
from topologies.addresses import AT_RP, SERVER, server_address
from topologies.lab import Lab
from topologies.nodes import SettingRefused
from topologies.parameter import ParameterError
from topologies.programs import ProgramError, built, program
from topologies.proxies import made_of
from topologies.redirect import rules
from topologies.topos import LastMile, TwoLastMiles

ROOT = Path(__file__).parents[2]


@contextmanager
def web(lab: Lab, folder: Path, port: int = 80) -> Iterator[Path]:
    """A web server in the server's namespace; its log names who asked."""
    argv = ["python3", "-u", "-m", "http.server", "-d", folder, "-b", SERVER, str(port)]
    with program(lab.state, "server", f"web-{port}", argv) as server:
        until(
            f"port {port} at the server",
            lambda: lab.server.inside("ss", "-Hltn", f"sport = :{port}").strip(),
        )
        yield server.log_path


def fetch(lab: Lab, path: Path, name: str, port: int = 80) -> str:
    """With curl, which knows nothing of proxies; the sum of what arrived."""
    lab.client.inside("curl", "-sS", "--fail", "-o", str(path), f"http://{SERVER}:{port}/{name}")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def payload(folder: Path, size: int) -> str:
    folder.mkdir()
    data = random.Random(size).randbytes(size)
    (folder / "object").write_bytes(data)
    return hashlib.sha256(data).hexdigest()


def test_a_redirected_client(labs: Path, tmp_path: Path) -> None:
    """An unmodified program's bytes go through the pipes and arrive as they are."""
    wanted = payload(tmp_path / "www", 1_500_000)
    with Lab(LastMile("wired"), logs=tmp_path) as lab:
        with web(lab, tmp_path / "www") as log:
            assert fetch(lab, tmp_path / "direct", "object") == wanted
            assert "10.0.1.1 " in log.read_text(), "not the client itself"
            with lab.proxies(4, capture=("pipes", "application")) as pair:
                with lab.redirected() as loaded:
                    assert "redirect to :6003" in loaded
                    assert fetch(lab, tmp_path / "proxied", "object") == wanted
                assert log.read_text().count("10.0.9.1 ") == 1, "rp did not fetch it"
                assert fetch(lab, tmp_path / "again", "object") == wanted
                assert log.read_text().count("10.0.1.1 ") == 2, "still redirected"
                record = lab.record()
        check_record(record)
        check_statistics(pair.statistics("lp"), pair.statistics("rp"))
        check_captures(lab, tmp_path)


@pytest.mark.parametrize(
    ("transport", "pipes", "over_sctp", "words"),
    [
        ("tcp", 8, 0, ()),
        ("mptcp", 8, 0, ("--pipe", "mptcp")),
        ("sctp", 8, 8, ("--pipe", "sctp")),
        ("mixed", 7, 3, ("--pipe", "tcp:4,sctp:3")),
    ],
)
def test_what_pipes_are_made_of(
    transport: str, pipes: int, over_sctp: int, words: tuple[str, ...]
) -> None:
    assert made_of(transport, pipes) == (over_sctp, words)


@pytest.mark.parametrize(("transport", "pipes"), [("udp", 8), ("", 8), ("mixed", 1)])
def test_pipes_cannot_be_made_of(transport: str, pipes: int) -> None:
    with pytest.raises(ParameterError):
        made_of(transport, pipes)


def test_which_dialect_is_asked_for() -> None:
    rp, lp = built("rp"), built("lp")
    serves = ("--extended", "0.0.0.0:6010")
    assert dialect.options("auto", rp, lp) == (serves, ())
    assert dialect.options("never", rp, lp) == ((), ("--extend", "never"))
    assert dialect.options("always", rp, lp) == (serves, ("--extend", "always"))


def test_a_build_that_does_not_know_the_extension(tmp_path: Path) -> None:
    old = tmp_path / "rp"
    old.write_text("#!/bin/sh\necho Usage: rp PIPES\n")
    old.chmod(0o755)
    assert dialect.options("auto", old, old) == dialect.options("never", old, old) == ((), ())
    with pytest.raises(ParameterError, match=r"^extend: .*rp do not know the extension"):
        dialect.options("always", old, old)


def test_the_log_tells_the_dialect() -> None:
    both = "lp: 4 pipes to 10.0.1.2:6010 are up\nlp: 1 pipe to [fd00::2]:6000 is up\n"
    assert dialect.spoken(both) == "baseline"
    assert dialect.spoken(both.partition("\n")[0]) == "extension"
    assert dialect.spoken("lp: SOCKS5 on 127.0.0.1:1080") == ""


def test_each_dialect_in_a_lab(labs: Path, tmp_path: Path) -> None:
    with Lab(LastMile("wired"), logs=tmp_path) as lab:
        for extend, spoken in (("auto", "extension"), ("never", "baseline")):
            with lab.proxies(2, extend=extend) as pair:
                assert pair.dialect() == pair.describe()["dialect"] == spoken
                wrong = "never" if spoken == "extension" else "always"
                with pytest.raises(SettingRefused, match=f"extend {wrong}: the pipes speak the"):
                    dialect.check(wrong, spoken)


def test_pipes_with_a_key_in_a_lab(labs: Path, tmp_path: Path) -> None:
    """What is captured is TLS, and the key is nowhere afterwards."""
    wanted = payload(tmp_path / "www", 20_000)
    with Lab(LastMile("wired", mbps=100, rtt_ms=1), logs=tmp_path) as lab:
        with web(lab, tmp_path / "www"), lab.proxies(2, key=True, capture=("pipes",)) as pair:
            assert not list(tmp_path.rglob("*.key"))
            with lab.redirected():
                assert fetch(lab, tmp_path / "got", "object") == wanted
    assert pair.dialect() == "extension"
    sent = b"".join(path.read_bytes() for path in tmp_path.rglob("pipes-*.pcap"))
    assert b"\x16\x03\x01" in sent and b"tm3/1" in sent, "no ClientHello"
    inside = (tmp_path / "got").read_bytes()[:64]
    assert len(inside) == 64 and inside not in sent


def test_mptcp_pipes_in_a_lab(labs: Path, tmp_path: Path) -> None:
    """By the kernel's word, too; where it has MPTCP."""
    with Lab(LastMile("wired"), logs=tmp_path) as lab:
        try:
            lab.client.inside("sysctl", "-n", "net.mptcp.enabled")
        except CommandError:
            pytest.skip("this kernel has no MPTCP")
        with lab.proxies(2, transport="mptcp") as pair:
            assert len(lab.client.inside("ss", "-HMn", "state", "established").splitlines()) >= 2
    kinds = {line["transport"] for line in pair.statistics("rp") if line["type"] == "pipe"}
    assert kinds == {"mptcp"}


def check_statistics(lp: list[dict], rp: list[dict]) -> None:
    """Exactly one connection went through, over four pipes under cubic, and both agree on it."""
    conns = []
    for who in (lp, rp):
        (conn,) = [line for line in who if line["type"] == "conn"]
        conns.append(conn)
        assert conn["dst"] == f"{SERVER}:80"
        last = {line["pipe"]: line for line in who if line["type"] == "pipe"}
        assert sorted(last) == [0, 1, 2, 3]
        assert {line["cc"] for line in last.values()} == {"cubic"}
    assert conns[0]["rx_bytes"] == conns[1]["tx_bytes"] > 1_500_000


def check_captures(lab: Lab, folder: Path) -> None:
    def packets(name: str, what: str) -> list[str]:
        return run(["tcpdump", "-nnr", folder / f"{name}.pcap", what]).splitlines()

    pipes = packets("pipes-client-eth0", "tcp[tcpflags] & tcp-syn != 0")
    assert len({re.search(r"10\.0\.1\.1\.(\d+)", line)[1] for line in pipes}) == 4  # type: ignore[index]
    assert len(packets("pipes-client-eth0", "src host 10.0.1.2 and greater 1000")) > 1000
    assert packets("application-client", "dst port 6003")
    assert packets("application-server", f"src host {SERVER} and dst host 10.0.9.1")


def check_record(record: dict) -> None:
    """It says what was in force, and json can write it."""
    told = json.loads(json.dumps(record))
    assert told["topology"] == "LastMile" and told["preset"] == "wired"
    assert told["miles"][0]["rtt_ms"] == 50.0
    assert told["link"]["realisation"] in ("linkem", "netem") and told["link"]["why"]
    assert told["machine"]["kernel"] and told["versions"]["rp"] and told["versions"]["mininet"]
    client = told["nodes"]["client"]
    assert client["cc_of_pipes"] == ["cubic"] * 4
    assert "cubic" in client["cc_available"] and client["cc_default"]
    assert client["sysctls"]["net.ipv4.tcp_no_metrics_save"] == "1"
    assert told["nodes"]["rp"]["sysctls"]["net.ipv4.ip_forward"] == "1"
    (device,) = client["devices"]
    assert device["gso_max_segs"] == 1 and not any(device["offloads"].values())
    assert device["qdiscs"][0]["kind"] == "pfifo_fast"
    mile = told["links"]["mile"]
    if mile["realisation"] == "linkem":
        assert mile["truth"]["ba"]["params"]["rate_mbps"] == 10
    (pair,) = told["proxies"]
    assert pair["pipes"] == 4 and "--cc" in pair["lp"]


def test_rules_outlive_what_they_redirect(labs: Path, tmp_path: Path) -> None:
    """lp takes a moment to answer a program's end; without the rules nobody would hear of it."""
    payload(tmp_path / "www", 1)
    with Lab(LastMile("wired"), logs=tmp_path) as lab, lab.proxies(2) as pair:
        with web(lab, tmp_path / "www"):
            with lab.redirected():
                os.kill(pair.lp.pid, signal.SIGSTOP)
                lab.client.inside("bash", "-c", f"exec 3<>/dev/tcp/{SERVER}/80")
                assert lab.client.connections(f"dst {SERVER}"), "it has ended before the rules"
                moment = threading.Timer(0.5, os.kill, (pair.lp.pid, signal.SIGCONT))
                moment.start()
            moment.join()
            assert not lab.client.connections(f"dst {SERVER}")


def test_only_some_ports(labs: Path, tmp_path: Path) -> None:
    wanted = payload(tmp_path / "www", 20_000)
    with Lab(LastMile("wired"), logs=tmp_path) as lab, lab.proxies(2, cc="reno"):
        with web(lab, tmp_path / "www") as log, web(lab, tmp_path / "www", 8080) as other:
            with lab.redirected((80, 443)):
                assert fetch(lab, tmp_path / "a", "object", 80) == wanted
                assert fetch(lab, tmp_path / "b", "object", 8080) == wanted
            assert "10.0.9.1 " in log.read_text()
            assert "10.0.1.1 " in other.read_text()
        assert lab.record()["nodes"]["rp"]["cc_of_pipes"] == ["reno", "reno"]


def test_two_last_miles(labs: Path) -> None:
    """Each address of the client has its own last mile, towards rp and towards the server."""
    with Lab(TwoLastMiles("mobile-dsl")) as lab:
        for number, wanted in ((1, 67.0), (2, 151.0)):
            link = lab.links[f"mile{number}"]
            source = f"10.0.{number}.1"

            def check(link: object = link, source: str = source, wanted: float = wanted) -> None:
                near("RTT", idle_rtt_ms(link), wanted, part=0.02, plus=3.0)  # type: ignore[arg-type]
                argv = ["ping", "-n", "-c", "3", "-i", "0.1", "-I", source, SERVER]
                said = lab.client.inside(*argv)
                best = min(float(ms) for ms in re.findall(r"time=([\d.]+)", said))
                # 98 bytes twice over the link's rate, and 4 ms beyond
                rate = ways(link)[0].bits_per_ms  # type: ignore[arg-type]
                near("RTT to the server", best, wanted + 4 + 2 * 784 / rate, part=0.02, plus=1.5)

            shown_to_hold(lab, f"mile {number}", check)


def test_each_server_has_a_way_of_its_own(labs: Path) -> None:
    """From either address of the client; what changes one wide-area link changes no other."""
    topo = TwoLastMiles("wired", servers=3, rtt_ms=10.0, second_rtt_ms=20.0, wan_rtt_ms=2.0)
    with Lab(topo) as lab:
        assert [it.name for it in lab.servers] == ["server", "server2", "server3"]
        assert list(lab.links) == ["mile1", "mile2", "wan", "wan2", "wan3"]
        assert list(lab.miles) == ["mile1", "mile2"]
        lab.change("wan2", rtt_ms=40.0)
        lab.check()

        def check() -> None:
            for number, beyond_ms in enumerate((2.0, 40.0, 2.0)):
                for source, rtt_ms in (("10.0.1.1", 10.0), ("10.0.2.1", 20.0)):
                    to = server_address(number)
                    argv = ["ping", "-n", "-c", "3", "-i", "0.1", "-I", source, to]
                    said = lab.client.inside(*argv)
                    best = min(float(ms) for ms in re.findall(r"time=([\d.]+)", said))
                    near(f"RTT {source} {to}", best, rtt_ms + beyond_ms, part=0.02, plus=1.5)

        shown_to_hold(lab, "ways to three servers", check)
        assert set(lab.record()["nodes"]) == {"client", "rp", "server", "server2", "server3"}


def test_the_rules_are_those_of_the_document(labs: Path) -> None:
    document = (ROOT / "docs" / "redirect.md").read_text().replace("10.1.0.2", "10.0.1.2")
    assert rules(None, 1) in document
    with pytest.raises(ParameterError, match=r"^ports: 0 is no port"):
        rules((0,), 1)


def test_what_goes_wrong_is_said(labs: Path, tmp_path: Path) -> None:
    with Lab(LastMile("wired"), logs=tmp_path) as lab:
        with pytest.raises(ParameterError, match=r"^pipes: 65 is not from"), lab.proxies(65):
            pass
        with pytest.raises(ParameterError, match=r"^capture: 'all' is none of"):
            with lab.proxies(2, capture=("all",)):
                pass
        with pytest.raises(ProgramError, match=r"rp ended with 2"), lab.proxies(2, rp=["--bogus"]):
            pass
        with pytest.raises((ProgramError, SettingRefused)), lab.proxies(2, cc="nonsense"):
            pass
        with pytest.raises(CommandError, match=r"ping: 10.0.9.99|100% packet loss|Unreachable"):
            lab.client.inside("ping", "-c", "1", "-W", "1", "10.0.9.99")
    with pytest.raises(ParameterError, match=r"^logs: "):
        Lab(LastMile("wired"), logs=tmp_path / "nowhere")


def test_the_initial_window_is_what_is_sent_first(labs: Path) -> None:
    """Read off the kernel's own account of a connection that has just begun."""
    with Lab(LastMile("wired", initcwnd=33)) as lab, lab.proxies(1):
        said = lab.rp.inside("ss", "-Htin", "state", "established", AT_RP)
        assert "cwnd:33" in said, said


def test_goodput_through_the_pipes_is_bounded_by_the_link(labs: Path, tmp_path: Path) -> None:
    """A direct TCP flow between client and rp while idle proxies hold their pipes."""
    with Lab(LastMile("wired"), logs=tmp_path) as lab, lab.proxies(4):
        way = ways(lab.links["mile"])[0]

        def check() -> None:
            near("goodput", tcp_mbps(way, 50.0, tmp_path), 9.564, part=0.03)

        shown_to_hold(lab, "goodput", check)
        assert issubclass(Wrong, AssertionError)
