# SPDX-License-Identifier: MIT
"""The installed services under a systemd that runs: told what they tell, held to their sandbox.

    test ── SOCKS5 ── tm3-lp.service ── 2 pipes ── tm3-rp.service ── the test's server

All on loopback, in the guest with systemd.
"""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.relay.datagrams import answering
from tests.relay.ends import answers, echo, read_exactly, read_to_end, serves, serving, socks
from tests.relay.netns import namespace, veth
from tests.relay.restart_gap import works
from tests.relay.test_path_rules import PROGRAM, Written
from tests.relay.tproxied import NEAR, RP, SERVERS, ask, prepare, program_to
from tests.vm.service import (
    ETC,
    SIDES,
    UNITS,
    Own,
    Service,
    command,
    in_guest,
    install,
    status_of,
    systemctl,
    within,
)

pytestmark = [in_guest, pytest.mark.timeout(600)]

HERE = Path(__file__).parent
RP_FILE = ("pipes 2", "listen 127.0.0.1")
LP_FILE = ("rp-address 127.0.0.1", "pipes 2", "redirect off")
PIPES_UP = "2 pipes to 127.0.0.1:6010"
EXPOSURE_MAX = 1.5  # of 10, as systemd counts
MANY = b"".join(hashlib.sha256(str(n).encode()).digest() for n in range(32_000))
LATER = "192.0.2.1"
SOMEBODY = "somebody"  # another user of the machine
ASKED_BYTES = 200_000
TWO_PATHS = ("path near,src=127.0.0.2,pipes=3", "path far,src=127.0.0.3,pipes=2,cost=9")
NOT_ALL_USERS = "lp is in a user namespace without all users of this host"
NOT_ALL_SHOWN = "/proc does not show lp the processes of other users"
# What root may and a service must not: all that tests/vm/probe.py tries but this.
ALLOWED = {"a netlink socket"}


@pytest.fixture(scope="module")
def installed() -> Iterator[None]:
    if status_of("tm3-proxies") != "installed":
        install("tm3-proxies")
    yield
    command("dpkg", "-P", "tm3-proxies")


@pytest.fixture
def pair(installed: None) -> Iterator[tuple[Service, Service]]:
    """rp and lp, configured and not started; afterwards as they were installed."""
    rp, lp = (Service(side) for side in SIDES)
    rp.configure(*RP_FILE)
    lp.configure(*LP_FILE)
    yield rp, lp
    for service in (lp, rp):
        service.forget()


@pytest.fixture
def rp(pair: tuple[Service, Service]) -> Service:
    return pair[0]


@pytest.fixture
def up(pair: tuple[Service, Service]) -> tuple[Service, Service]:
    """Both of them run, and the pipes are there."""
    rp, lp = pair
    for service in pair:  # rp is ready when lp asks which dialect it speaks
        service.start()
    lp.expect(PIPES_UP)
    return rp, lp


own = Own()


def test_bytes_go_through_both(up: tuple[Service, Service]) -> None:
    """`systemctl start` comes back when they are ready, so what follows need not wait."""
    with serving(own, echo) as server, socks(own, "127.0.0.1", server.port) as sock:
        for at in range(0, len(MANY), 65536):
            sock.sendall(MANY[at : at + 65536])
            assert read_exactly(sock, len(MANY[at : at + 65536])) == MANY[at : at + 65536]
    for service in up:
        told = service.ask("Type", "NRestarts", "WatchdogTimestampMonotonic", "WatchdogUSec")
        assert told.pop("WatchdogTimestampMonotonic") != "0"
        assert told == {"Type": "notify", "NRestarts": "0", "WatchdogUSec": "30s"}
    up[0].expect("1 session")
    for service in up:
        systemctl("stop", service.name)
        assert service.ask("Result", "ExecMainStatus") == {
            "Result": "success",
            "ExecMainStatus": "0",
        }


def test_what_they_are_as_processes(up: tuple[Service, Service]) -> None:
    users = set()
    for service in up:
        text = Path(f"/proc/{service.pid}/status").read_text()
        told = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
        users.add(told["Uid"].split()[0])
        assert told["Uid"].split()[0] not in ("0", "65534") and told["Groups"].strip() != "0"
        assert (told["NoNewPrivs"], told["Seccomp"]) == ("1", "2")
        for capabilities in ("CapEff", "CapPrm", "CapBnd", "CapAmb"):
            assert int(told[capabilities], 16) == 0, f"{service.name}: {capabilities}"
        limits = Path(f"/proc/{service.pid}/limits").read_text()
        assert re.search(r"Max open files +65536 +65536 ", limits)
        assert re.search(r"Max core file size +0 +0 ", limits)
        for space in ("mnt", "user", "uts"):
            ours, theirs = (
                Path(f"/proc/{it}/ns/{space}").readlink() for it in ("self", service.pid)
            )
            assert ours != theirs, f"{service.name} shares the machine's {space}"
        said = systemctl_analyze("security", f"{service.name}.service")
        exposure = re.search(r"Overall exposure level for \S+: (\d+\.\d)", said)
        assert exposure and float(exposure[1]) <= EXPOSURE_MAX, said
    assert len(users) == 2, "both run as one user"


def systemctl_analyze(*words: str) -> str:
    return command("systemd-analyze", "--no-pager", *words)


def test_the_sandbox_is_in_force(rp: Service, tmp_path: Path) -> None:
    """The unit with another program in the place of rp, which tries what rp must not."""
    probe = HERE / "probe.py"
    Path("/tmp/of-the-machine").write_text("x")
    command(sys.executable, "-I", probe, tmp_path / "root.json")
    of_root = json.loads((tmp_path / "root.json").read_text())
    assert {name for name, why in of_root["refused"].items() if why} == set()
    logs = Path("/var/log/tm3-rp")
    rp.add(
        *("Type=oneshot", "WatchdogSec=0", "Restart=no"),
        *("ExecStart=", f"ExecStart={sys.executable} -I {probe} {logs}/probe.json"),
        f"ExecStart={sys.executable} -I {probe} /run/tm3-rp/probe.json",
    )
    rp.start()
    told = json.loads((logs / "probe.json").read_text())
    allowed = {name for name, why in told["refused"].items() if not why}
    assert allowed == ALLOWED, told
    assert told["refused"]["a packet socket"] == "EAFNOSUPPORT", "refused as to any user"
    assert told["status"]["NoNewPrivs"] == "1" and told["status"]["Seccomp"] == "2"
    assert int(told["status"]["CapBnd"], 16) == 0
    assert (logs / "probe.json").stat().st_mode & 0o77 == 0, "others may read statistics"
    assert not Path("/run/tm3-rp").exists(), "what it had there stays"


def test_without_a_file_it_says_so_once(rp: Service) -> None:
    rp.file.unlink()
    systemctl("start", rp.name, status=1)
    assert rp.ask("Result", "ExecMainStatus", "NRestarts", "ActiveState") == {
        "Result": "exit-code",
        "ExecMainStatus": "2",
        "NRestarts": "0",
        "ActiveState": "failed",
    }
    assert rp.log().count("rp: --config: /etc/tm3/rp.conf: No such file or directory\n") == 1


@pytest.mark.parametrize("side", SIDES)
def test_examples_are_right(installed: None, side: str) -> None:
    example = f"/usr/share/doc/tm3-proxies/examples/{side}.conf"
    said = command(f"tm3-{side}", "--config", example, "--check")
    assert said == f"{side}: all is right\n"


def test_a_reload_takes_new_rules_and_no_session(up: tuple[Service, Service]) -> None:
    rp, lp = up
    pids = rp.pid, lp.pid
    with (
        serving(own, echo, ("0.0.0.0", 0)) as server,
        socks(own, "127.0.0.1", server.port) as before,
    ):
        answers(before)
        rp.configure(*RP_FILE, "deny 127.0.0.2")
        systemctl("reload", rp.name)
        rp.said("rp: SIGHUP: going on with new --deny")
        answers(before)
        with socks(own, "127.0.0.2", server.port) as denied:
            assert read_to_end(denied, 60).how == "reset"
        serves(own, server.port)
        lp.configure(*LP_FILE, "names lp")
        systemctl("reload", lp.name)
        lp.said("lp: SIGHUP: going on with new --names")
        answers(before)
    assert (rp.pid, lp.pid) == pids
    assert rp.ask("StatusText", "NRestarts") == {"StatusText": "1 session", "NRestarts": "0"}


@pytest.mark.parametrize("side", SIDES)
def test_a_reload_of_a_wrong_file_fails(up: tuple[Service, Service], side: str) -> None:
    """Who reloads is told; the service goes on as it was."""
    service = up[SIDES.index(side)]
    service.configure(*(RP_FILE if side == "rp" else LP_FILE), "no-such-option 1")
    pid = service.pid
    systemctl("reload", service.name, status=1)
    service.said(f"{side}: /etc/tm3/{side}.conf:{3 if side == 'rp' else 4}: ")
    assert service.ask("ActiveState", "MainPID") == {"ActiveState": "active", "MainPID": str(pid)}
    with serving(own, echo) as server:
        serves(own, server.port)


def test_the_watchdog_ends_one_that_hangs(pair: tuple[Service, Service]) -> None:
    rp, lp = pair
    rp.add("WatchdogSec=5")
    for service in pair:
        service.start()
    lp.expect(PIPES_UP)
    hung = rp.pid
    os.kill(hung, signal.SIGSTOP)
    within("another rp", lambda: rp.pid not in (0, hung))
    rp.expect("1", "NRestarts")
    rp.expect("1 session")
    assert "Watchdog timeout" in rp.log()
    with serving(own, echo) as server:
        within("bytes through the new rp", lambda: works(own, server.port))


def test_one_that_is_killed_is_started_anew(up: tuple[Service, Service]) -> None:
    _, lp = up
    with serving(own, echo) as server:
        for service in up:
            os.kill(service.pid, signal.SIGKILL)
            service.expect("1", "NRestarts")
        lp.expect(PIPES_UP)
        within("bytes through both again", lambda: works(own, server.port))


def test_a_restart_and_its_gap(up: tuple[Service, Service]) -> None:
    rp, lp = up
    with serving(own, echo) as server:
        serves(own, server.port)
        first = rp.pid
        restart = subprocess.Popen(["systemctl", "restart", rp.name])
        within("rp to be another", lambda: rp.pid not in (0, first))
        gap_s = within("bytes through it", lambda: works(own, server.port))
        assert restart.wait(60) == 0
        print(f"after the new rp was there nothing came through for another {gap_s:.2f} s")
    assert lp.ask("NRestarts") == {"NRestarts": "0"}


def test_an_address_that_comes_later_is_waited_for(rp: Service) -> None:
    """Longer than systemd would wait: it is asked for more time."""
    rp.configure("pipes 2", f"listen {LATER}")
    rp.add("TimeoutStartSec=8")
    systemctl("start", "--no-block", rp.name)
    rp.said(f"rp: waiting for {LATER}:6000, which is no address of this host yet")
    begun = int(rp.ask("InactiveExitTimestampMonotonic")["InactiveExitTimestampMonotonic"])

    def passed_s() -> float:
        return float(Path("/proc/uptime").read_text().split()[0]) - begun / 1e6

    within("15 s to pass", lambda: passed_s() > 15 or rp.state != "activating")
    assert rp.ask("ActiveState", "NRestarts") == {"ActiveState": "activating", "NRestarts": "0"}
    own.ip("address", "add", f"{LATER}/32", "dev", "lo")
    try:
        rp.expect("active", "ActiveState")
        assert own.listening(6000)
    finally:
        own.ip("address", "del", f"{LATER}/32", "dev", "lo")


# --- what install/README.md and docs/running.md propose -----------------------


def test_a_socket_of_systemd_s(pair: tuple[Service, Service]) -> None:
    """A port below 1024 without any capability, and connections wait while rp is away."""
    rp, lp = pair
    rp.configure("pipes 2")
    lp.configure("rp-address 127.0.0.1:81", "pipes 2", "redirect off")
    (UNITS / f"{rp.name}.socket").write_text(
        "[Socket]\nListenStream=127.0.0.1:81\nFileDescriptorName=pipes\n"
    )
    systemctl("daemon-reload")
    systemctl("start", f"{rp.name}.socket")
    assert rp.state == "inactive"
    lp.start()
    with serving(own, echo) as server:
        within("bytes through rp, which was not started", lambda: works(own, server.port))
        assert rp.state == "active"
        assert not own.listening(6000)
        listener = own.run("ss", "-Hltnp", "sport = :81")
        assert '"systemd"' in listener and '"tm3-rp"' in listener
        systemctl("restart", rp.name)
        within("bytes through rp again", lambda: works(own, server.port))


def test_a_port_below_1024_by_a_capability(rp: Service) -> None:
    rp.configure("pipes 2", "listen 127.0.0.1:81")
    rp.refuses_to_start()
    assert "Permission denied; ports below 1024 are for root" in rp.log()
    word = "CAP_NET_BIND_SERVICE"
    rp.add(
        *("PrivateUsers=no", f"CapabilityBoundingSet={word}", f"AmbientCapabilities={word}"),
        "LimitNOFILE=262144",
    )
    rp.start()
    assert own.listening(81)
    limits = Path(f"/proc/{rp.pid}/limits").read_text()
    assert re.search(r"Max open files +262144 +262144 ", limits)


def test_a_congestion_control_by_a_capability(rp: Service) -> None:
    """Of one that the kernel keeps for root; bbr is everybody's as soon as its module is loaded."""
    command("modprobe", "tcp_vegas")
    rp.configure(*RP_FILE, "cc vegas")
    systemctl("start", rp.name, status=1)
    assert "rp.conf:3: --cc: 'vegas' is for root alone on this system" in rp.log()
    word = "CAP_NET_ADMIN"
    rp.add("PrivateUsers=no", f"CapabilityBoundingSet={word}", f"AmbientCapabilities={word}")
    rp.start()
    systemctl("reload", rp.name)


def test_a_key_that_one_user_may_read(pair: tuple[Service, Service]) -> None:
    """The file of a user who is there takes the place of the one that systemd makes."""
    rp, lp = pair
    key = command("tm3-lp", "--make-key", "laptop")
    files = {}
    try:
        for service in pair:
            command("adduser", "--system", "--group", "--quiet", service.name)
            files[service] = ETC / f"{service.side}.key"
            files[service].write_text(key)
            command("chown", f"root:{service.name}", files[service])
            files[service].chmod(0o640)
        rp.configure(*RP_FILE, f"key-file {files[rp]}")
        lp.configure(*LP_FILE, f"key-file {files[lp]}")
        systemctl("start", rp.name, lp.name)
        lp.expect(PIPES_UP)
        with serving(own, echo) as server:
            serves(own, server.port)
            # Taken away, and reloaded: whoever had it has to go.
            other = command("tm3-lp", "--make-key", "other")
            files[rp].write_text(other)
            systemctl("reload", rp.name)
            rp.expect("0 sessions")
        uid = Path(f"/proc/{rp.pid}").stat().st_uid
        assert str(uid) == command("id", "-u", rp.name).strip()
    finally:
        for service in pair:
            systemctl("stop", service.name)
            with suppress(KeyError):
                files[service].unlink()
            command("deluser", "--quiet", service.name)


def capabilities(*words: str) -> tuple[str, ...]:
    """The lines below [Service] for them."""
    named = " ".join(words)
    return ("PrivateUsers=no", f"CapabilityBoundingSet={named}", f"AmbientCapabilities={named}")


@pytest.fixture
def two_hosts(pair: tuple[Service, Service]) -> Iterator[tuple[Service, Service]]:
    """lp's, which is this one, and another one with rp and the servers that programs ask."""
    rp, lp = pair
    with namespace("far") as far:
        veth(own, f"{NEAR}/24", far, f"{RP}/24")
        prepare((own, far))
        rp.add(f"NetworkNamespacePath={far.path}")
        permitted = [f"permit {address}" for address in SERVERS.values()]
        rp.configure("pipes 2", f"listen {RP}", f"allow {NEAR}", *permitted)
        lp.configure(f"rp-address {RP}", *LP_FILE[1:], "tproxy 6003", "tproxy [::1]:6003")
        rp.start()
        with ExitStack() as servers:
            for address in SERVERS.values():
                servers.enter_context(answering(far, address=(address, 443)))
            yield rp, lp
        for service in (lp, rp):
            systemctl("stop", service.name)


def test_datagrams_of_programs_by_two_capabilities(two_hosts: tuple[Service, Service]) -> None:
    """They are answered from the servers' addresses, and from a port below 1024."""
    _, lp = two_hosts
    lp.refuses_to_start()
    assert "--tproxy takes CAP_NET_RAW or CAP_NET_ADMIN" in lp.log()
    lp.add(*capabilities("CAP_NET_RAW", "CAP_NET_BIND_SERVICE"))
    lp.begun = time.time()
    lp.start()
    lp.expect(f"2 pipes to {RP}:6010")
    command("tm3ctl", "--udp", RP, "wire-l", "all")
    try:
        for address in SERVERS.values():
            with program_to(own, address, 443) as sock:
                assert ask(sock, b"who is there") == b"who is there"
    finally:
        command("tm3ctl", "off")
    assert "CAP_" not in lp.log(), "it says that a right is missing"


def with_paths(pair: tuple[Service, Service], tmp: Path, *rules: str) -> None:
    """Both run, over two paths, and what they write is where Written looks."""
    rp, lp = pair
    for service, options in (
        (rp, ("listen 127.0.0.1", "allow 127.0.0.0/8", "pipes 5")),
        (lp, ("rp-address 127.0.0.1", "pipes 5", "redirect off", *TWO_PATHS, *rules)),
    ):
        stats = Path(f"/var/log/{service.name}/stats.jsonl")
        service.configure(*options, f"stats {stats}", "stats-interval 0.05")
        (tmp / f"{service.side}.jsonl").symlink_to(stats)
        service.start()
    for path in ("3 pipes to 127.0.0.1:6010 over near", "2 pipes to 127.0.0.1:6010 over far"):
        lp.said(f"{path} are up")


def ask_as(user: str, port: int) -> None:
    """By a program of that user's."""
    group = command("id", "-g", user).strip()
    who = ("setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups")
    command(*who, sys.executable, "-m", "tests.vm.asker", str(port), str(ASKED_BYTES))


@pytest.fixture
def somebody(pair: tuple[Service, Service]) -> Iterator[str]:
    command("adduser", "--system", "--group", "--quiet", SOMEBODY)
    yield SOMEBODY
    for service in pair:
        systemctl("stop", service.name)
    command("deluser", "--quiet", SOMEBODY)


@pytest.mark.parametrize("criterion", [f"user {SOMEBODY}", f"program {PROGRAM}"])
def test_a_unit_as_installed_says_which_rules_nobody_meets(
    pair: tuple[Service, Service], somebody: str, tmp_path: Path, criterion: str
) -> None:
    with_paths(pair, tmp_path, f"rule {criterion} paths far")
    log = pair[1].log()
    assert log.count(NOT_ALL_USERS) == 1
    assert log.count(NOT_ALL_SHOWN) == criterion.startswith("program")
    with serving(own, echo) as server:
        written = Written(tmp_path)
        ask_as(somebody, server.port)
        # The path that costs less, as if there were no rule.
        within("a sample", lambda: written.since("lp", 0) > ASKED_BYTES / 2)


@pytest.mark.parametrize(
    ("criterion", "user", "lines"),
    [
        (f"user {SOMEBODY}", SOMEBODY, ("PrivateUsers=no",)),
        (
            f"program {PROGRAM}",
            "root",
            ("ProtectProc=default", *capabilities("CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH")),
        ),
        (f"program {PROGRAM}", SOMEBODY, ("PrivateUsers=no", f"User={SOMEBODY}")),
    ],
    ids=["user", "program", "program-of-one-user"],
)
def test_a_rule_for_a_user_or_a_program(
    pair: tuple[Service, Service],
    somebody: str,
    tmp_path: Path,
    criterion: str,
    user: str,
    lines: tuple[str, ...],
) -> None:
    """All bytes go over the path that the rule names, both ways."""
    pair[1].add(*lines)
    with_paths(pair, tmp_path, f"rule {criterion} paths far")
    with serving(own, echo) as server:
        written = Written(tmp_path)
        ask_as(user, server.port)
        written.is_all_over(1, ASKED_BYTES)
    # One that has the rights of one user alone says that it sees no other user's programs.
    log = pair[1].log()
    assert log.count("--rule") == log.count(NOT_ALL_SHOWN) == any("User=" in it for it in lines)


def test_places_for_statistics_and_metrics(up: tuple[Service, Service]) -> None:
    """Those that the example files name; nobody else reads what is there."""
    rp, _ = up
    stats, metrics = Path("/var/log/tm3-rp/stats.jsonl"), Path("/run/tm3-rp/metrics.sock")
    rp.configure(*RP_FILE, f"stats {stats}", f"metrics {metrics}")
    systemctl("restart", rp.name)
    rp.expect("1 session")
    assert stats.is_file() and metrics.is_socket()
    for path in (stats, metrics):
        assert path.stat().st_mode & 0o07 == 0, f"others may read {path}"
