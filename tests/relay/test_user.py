# SPDX-License-Identifier: MIT
"""--user: root's only as long as root is needed."""

import re
from pathlib import Path

import pytest

from tests.relay.ends import echo, read_exactly, serving
from tests.relay.netns import Namespace
from tests.relay.programs import Program, binary, finish, program
from tests.relay.proxies import LP_READY, RP_READY

NOBODY = 65534
CC = Path("/proc/sys/net/ipv4")


def status(proxy: Program, name: str) -> list[str]:
    """Of every thread, if they are the same."""
    found = set()
    for task in Path(f"/proc/{proxy.pid}/task").iterdir():
        found |= set(re.findall(rf"^{name}:\s*(.*)$", (task / "status").read_text(), re.MULTILINE))
    assert len(found) == 1, found
    return found.pop().split()


def test_both_proxies_as_nobody(box: Namespace, tmp_path: Path) -> None:
    """With ports and a statistics file that nobody may open, and names looked up by a thread."""
    stats = tmp_path / "rp.jsonl"
    user = ("--user", "nobody")
    off = ("--socks", "off", "--redirect", "off")
    with serving(box, echo) as server:
        rp = [binary("rp"), *user, "--stats", str(stats), "--listen", "127.0.0.1:81", "4"]
        # The name is one that getaddrinfo() has to look at.
        forward = f"82:localhost:{server.port}"
        at = "127.0.0.1:81"
        lp = [binary("lp"), *user, *off, "--names", "lp", "--forward", forward, at, "4"]
        with (
            program(box, rp, tmp_path / "rp.log", name="rp", ready=RP_READY) as remote,
            program(box, lp, tmp_path / "lp.log", name="lp", ready=LP_READY) as local,
            box.connect(("127.0.0.1", 82)) as sock,
        ):
            sock.sendall(b"as nobody")
            assert read_exactly(sock, 9) == b"as nobody"
            for proxy in (remote, local):
                assert status(proxy, "Uid") == [str(NOBODY)] * 4
                assert status(proxy, "Gid") == [str(NOBODY)] * 4
                assert "0" not in status(proxy, "Groups")
                assert status(proxy, "CapPrm") == ["0" * 16]
                assert status(proxy, "NoNewPrivs") == ["1"]
    assert '"end"' in stats.read_text()


def test_who_gave_root_up_leaves_no_core(box: Namespace, tmp_path: Path) -> None:
    """A limit from outside does not bring core dumps back; without --user they are as they were."""
    limits = {}
    for user in ([], ["--user", "nobody"]):
        argv = ["prlimit", "--core=unlimited", binary("rp", asan=False), *user]
        argv += ["--listen", "127.0.0.1", "4"]
        with program(box, argv, tmp_path / "rp.log", name="rp", port=6000) as rp:
            text = Path(f"/proc/{rp.pid}/limits").read_text()
            limits[bool(user)] = re.findall(r"^Max core file size +(\w+) +(\w+) ", text, re.M)
            if user:
                assert Path(f"/proc/{rp.pid}/mem").stat().st_uid == 0
    assert limits == {False: [("unlimited", "unlimited")], True: [("0", "0")]}


@pytest.mark.parametrize(
    ("name", "said"),
    [("no-such-user", "there is no user 'no-such-user'"), ("root", "'root' is allowed everything"),
     ("", "there is no user ''"), ("x" * 300, "there is no user 'xxx")],
    ids=["unknown", "root", "empty", "long"],
)  # fmt: skip
@pytest.mark.parametrize("side", ["rp", "lp"])
def test_users_that_will_not_do(box: Namespace, side: str, name: str, said: str) -> None:
    end = ["4"] if side == "rp" else ["127.0.0.1", "4"]
    code, out, err = finish([binary(side), "--user", name, *end], box, 10)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"{side}: --user: {said}"), err


def as_nobody(box: Namespace, *argv: str) -> tuple[int, str, str]:
    nobody = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    return finish([*nobody, binary("rp"), "--listen", "127.0.0.1:6001", *argv, "4"], box, 10)


def test_only_root_becomes_another(box: Namespace) -> None:
    code, _, err = as_nobody(box, "--user", "daemon")
    assert code == 2 and "cannot become daemon: Operation not permitted" in err


def test_a_congestion_control_of_root_alone(box: Namespace) -> None:
    """Pipes of later on would be without it, and nobody would hear of it."""
    everybodys = (CC / "tcp_allowed_congestion_control").read_text().split()
    roots = set((CC / "tcp_available_congestion_control").read_text().split()) - set(everybodys)
    if not roots:
        pytest.skip("this kernel has no congestion control that is for root alone")
    argv = ["--user", "nobody", "--cc", min(roots), "--listen", "127.0.0.1:6001", "4"]
    code, _, err = finish([binary("rp"), *argv], box, 10)
    assert code == 2 and f"--cc: {min(roots)} is not for --user nobody" in err
