# SPDX-License-Identifier: MIT
"""tm3ctl --udp: what it sets up, says, and leaves behind."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.relay.datagrams import answering
from tests.relay.programs import finish
from tests.relay.tproxied import (
    NEAR,
    RP,
    SERVERS,
    TM3CTL,
    Two,
    ask,
    left_of,
    program_to,
    relayed,
    tm3ctl,
)

REAL_IP = shutil.which("ip")
ASKED = ("--udp", RP, "wire-l")


def test_off_leaves_nothing_behind(lane: Two, tmp_path: Path) -> None:
    near, far = lane
    address = SERVERS["IPv4"]
    before = left_of(near)
    with answering(far, address=(address, 0)) as server, relayed(lane, tmp_path):
        tm3ctl(near, "--udp", RP, "wire-l", "all")
        tm3ctl(near, "--udp", RP, "wire-l", "1000-65535")  # in the place of the first
        assert "on (UDP, nftables)" in tm3ctl(near, "status")
        with program_to(near, address, server.port) as sock:
            assert ask(sock, b"x") == b"x"
            assert tm3ctl(near, "off") == "tm3ctl: off (UDP)\n"
            assert ask(sock, b"y") == b"y"
        assert [host for host, _ in server.clients] == [address, NEAR]
    assert left_of(near) == before
    assert tm3ctl(near, "status") == "tm3ctl: off\n"


def test_name_servers_have_to_be_named(lane: Two) -> None:
    near, _ = lane
    for ports, named in (("1-65535", False), ("53", True), ("53-53", True)):
        assert ("not those to port 53" in tm3ctl(near, *ASKED, ports)) is not named


def test_beside_connections(lane: Two) -> None:
    """Both ways stand and fall together with `off`, and neither takes the other away."""
    near, _ = lane
    tm3ctl(near, "--with", "nftables", RP, "wire-l", "80")
    tm3ctl(near, "--udp", RP, "wire-l", "443")
    said = tm3ctl(near, "status")
    assert "on (nftables)" in said and "on (UDP, nftables)" in said
    assert tm3ctl(near, "off") == "tm3ctl: off (nftables, UDP)\n"
    assert left_of(near) == ""


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["--udp", "--with", "module", "10.0.0.1", "eth0", "80"], "not by the module"),
        (["--lp-user", "nobody", "10.0.0.1", "eth0", "80"], "--lp-user is for --udp"),
        (["--udp", "10.0.0.1", "eth0", "0"], "not a port from 1 to 65535"),
        (["--udp", "off"], "without --udp"),
    ],
)
def test_wrong_arguments_of_tm3ctl(args: list[str], why: str) -> None:
    done = subprocess.run([TM3CTL, *args], capture_output=True, text=True, timeout=10)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert why in done.stderr


def test_tm3ctl_says_what_is_missing(lane: Two, tmp_path: Path) -> None:
    """The right, or the kernel's part: one line, and nothing is left half done."""
    near, _ = lane
    asked = [TM3CTL, "--udp", RP, "wire-l", "443"]
    without = ["setpriv", "--inh-caps=-all", "--bounding-set=-net_admin"]
    code, out, err = finish([*without, *asked], near, 10)
    assert (code, out, err) == (1, "", "tm3ctl: needs CAP_NET_ADMIN, which this root has not\n")
    # An nft as of a kernel that has all but this: it refuses what names tproxy.
    nft = tmp_path / "nft"
    nft.write_text(
        "#!/bin/sh\nrules=$(cat)\ncase $rules in *tproxy*)\n"
        "echo '/dev/stdin:4:3-9: Error: Could not process rule: No such file or directory' >&2\n"
        'exit 1 ;; esac\nprintf "%s\\n" "$rules" | /usr/sbin/nft "$@"\n'
    )
    nft.chmod(0o755)
    code, out, err = finish(["env", f"PATH={tmp_path}:{os.environ['PATH']}", *asked], near, 10)
    assert (code, out, err.count("\n")) == (1, "", 1), err
    assert "nftables has no tproxy here (the kernel's nft_tproxy, CONFIG_NFT_TPROXY)" in err
    code, _, err = finish([*asked[:2], "--lp-user", "no-such-user", *asked[2:]], near, 10)
    assert (code, err) == (1, "tm3ctl: there is no such user as --lp-user names\n")
    assert left_of(near) == ""


def test_rules_of_routing_that_were_there_do_not_take_what_is_marked(
    lane: Two, tmp_path: Path
) -> None:
    """As hosts with several uplinks have them: a table for each source address."""
    near, far = lane
    address = SERVERS["IPv4"]
    near.ip("rule", "add", "from", NEAR, "lookup", "main", "priority", "100")
    with answering(far, address=(address, 0)) as server, relayed(lane, tmp_path):
        tm3ctl(near, *ASKED, "all")
        with program_to(near, address, server.port) as sock:
            assert ask(sock, b"x") == b"x"
        assert [host for host, _ in server.clients] == [address]


def test_rp_on_the_same_machine_needs_a_user(lane: Two) -> None:
    """What rp sends would be brought to lp, which hands it to rp, and so on for ever."""
    near, _ = lane
    said = tm3ctl(near, "--udp", NEAR, "wire-l", "all", status=1)
    assert (
        said == f"tm3ctl: {NEAR} is this machine: what rp sends would come to lp again, "
        "and go round in circles; run rp as a user, and name it by --lp-user\n"
    )
    assert left_of(near) == ""
    tm3ctl(near, "--udp", "--lp-user", "nobody", NEAR, "wire-l", "all")


def with_tool(tmp_path: Path, name: str, script: str) -> list[str]:
    """A command's beginning that lets this script take the place of a tool."""
    tool = tmp_path / name
    tool.write_text(f"#!/bin/sh\n{script}")
    tool.chmod(0o755)
    return ["env", f"PATH={tmp_path}:{os.environ['PATH']}", str(TM3CTL)]


def test_on_again_leaves_no_gap(lane: Two, tmp_path: Path) -> None:
    """At no moment is the mark without its route: then datagrams would go out as they are."""
    near, _ = lane
    tm3ctl(near, *ASKED, "443")
    before = left_of(near)
    seen = tmp_path / "seen"
    tables = "route show table all"
    look = "; ".join(f"{REAL_IP} {f} rule; {REAL_IP} {f} {tables}" for f in ("-4", "-6"))
    script = f'{REAL_IP} "$@"; status=$?\n{{ {look}; echo END; }} >>{seen}\nexit $status\n'
    code, _, err = finish([*with_tool(tmp_path, "ip", script), *ASKED, "443"], near, 20)
    assert (code, err) == (0, "")
    states = seen.read_text().split("END\n")[:-1]
    assert len(states) > 2
    assert {state.count("lookup 7463") for state in states} == {2}
    assert {state.count("table 7463") for state in states} == {2}
    assert left_of(near) == before


def test_refused_rules_leave_the_earlier_ones_in_use(lane: Two, tmp_path: Path) -> None:
    near, _ = lane
    refuse = "rules=$(cat)\ncase $rules in *'add table inet tm3ctl_udp'*) exit 1 ;; esac\n"
    refuse += 'printf "%s\\n" "$rules" | /usr/sbin/nft "$@"\n'
    nft = with_tool(tmp_path, "nft", refuse)
    for earlier in ("", "443"):
        if earlier:
            tm3ctl(near, *ASKED, earlier)
        before = left_of(near)
        code, out, err = finish([*nft, *ASKED, "80"], near, 20)
        assert (code, out, err) == (1, "", "tm3ctl: nftables refused this\n")
        assert left_of(near) == before


def test_off_after_others_flushed_the_rules(lane: Two) -> None:
    """As `systemctl reload nftables` does: tables go, while rules of routing stay."""
    near, _ = lane
    tm3ctl(near, *ASKED, "443")
    near.run("nft", "flush", "ruleset")
    assert "7463" in left_of(near)
    said = tm3ctl(near, "status")
    assert "datagrams are not redirected any more" in said and "tm3ctl: off\n" in said
    assert tm3ctl(near, "off") == "tm3ctl: off (UDP)\n"
    assert left_of(near) == ""
    assert tm3ctl(near, "status") == "tm3ctl: off\n"
