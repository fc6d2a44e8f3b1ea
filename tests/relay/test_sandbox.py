# SPDX-License-Identifier: MIT
"""--seccomp: what a proxy never needs, nobody within it may do. What else it does goes on."""

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.relay.ends import echo, read_exactly, serving, socks
from tests.relay.netns import Namespace
from tests.relay.programs import BUILD, Program, binary, finish, program
from tests.relay.proxies import LP_READY, RP_READY

BASE = "pipes 2\nlisten 127.0.0.1\n"
WAYS_IN = ("--redirect", "off", "--names", "lp")
TRIED = ("fork", "execve", "ptrace", "mmap")
REFUSED = dict.fromkeys(TRIED, "Operation not permitted")
# Their arguments are no good, and this is what the kernel says of them.
DONE = dict(zip(TRIED, ("Success", "Bad address", "No such process", "Success"), strict=True))


def of_threads(proxy: Program, name: str) -> list[str]:
    tasks = Path(f"/proc/{proxy.pid}/task").iterdir()
    found = [
        re.findall(rf"^{name}:\s*(\d+)$", (task / "status").read_text(), re.M) for task in tasks
    ]
    return [value for values in found for value in values]


@contextmanager
def two(
    box: Namespace, tmp: Path, *argv: str, asan: bool, env: dict[str, str] | None = None
) -> Iterator[tuple[Program, Program]]:
    """Both, with names to look up on both sides."""
    (tmp / "rp.conf").write_text(BASE)
    rp = [binary("rp", asan=asan), "--config", str(tmp / "rp.conf"), *argv]
    lp = [binary("lp", asan=asan), *WAYS_IN, *argv, "localhost", "2"]
    with (
        program(box, rp, tmp / "rp.log", name="rp", ready=RP_READY, env=env) as remote,
        program(box, lp, tmp / "lp.log", name="lp", ready=LP_READY, env=env) as local,
    ):
        yield remote, local


def works(box: Namespace, host: str) -> None:
    with serving(box, echo) as server, socks(box, host, server.port) as sock:
        sock.sendall(b"goes on")
        assert read_exactly(sock, 7) == b"goes on"


@pytest.mark.parametrize("asan", [True, False], ids=["asan", "plain"])
@pytest.mark.parametrize("user", [[], ["--user", "nobody"]], ids=["root", "nobody"])
def test_every_thread_is_in_it(box: Namespace, tmp_path: Path, user: list[str], asan: bool) -> None:
    """Those that look up names too; it is one filter more than whoever starts them has."""
    own = re.search(r"^Seccomp_filters:\s*(\d+)$", Path("/proc/self/status").read_text(), re.M)
    with two(box, tmp_path, *user, asan=asan) as (rp, lp):
        works(box, "localhost")
        assert len(of_threads(lp, "Seccomp")) > 1, "nobody looked up a name beside the loop"
        for proxy in (rp, lp):
            assert set(of_threads(proxy, "Seccomp")) == {"2"}
            assert set(of_threads(proxy, "NoNewPrivs")) == {"1"}
            if own:
                assert set(of_threads(proxy, "Seccomp_filters")) == {str(int(own[1]) + 1)}
            assert not proxy.lines("seccomp")
        (tmp_path / "rp.conf").write_text(f"{BASE}deny 127.0.0.2\n")
        rp.send_signal(signal.SIGHUP)
        # What is the test's own, nobody else may read.
        rp.expect("Permission denied; all stays as" if user else "going on with new --deny$")
        works(box, "localhost")


def tried(proxy: Program, thread: str) -> dict[str, str]:
    proxy.expect(f"^intruder in {thread}: {TRIED[-1]}: ")
    lines = proxy.lines(f"^intruder in {thread}: ")
    return dict(re.findall(r": (\w+): (.+)", "\n".join(lines)))


@pytest.mark.parametrize(("switch", "expected"), [("on", REFUSED), ("off", DONE)])
def test_a_strangers_code(
    box: Namespace, tmp_path: Path, switch: str, expected: dict[str, str]
) -> None:
    """tests/relay/intruder.c tries, in the thread of the loop and in one that looks up names."""
    preload = BUILD / "intruder.so"
    assert preload.exists(), f"{preload} is not built: make test-programs"
    env = {"LD_PRELOAD": str(preload.resolve())}
    with two(box, tmp_path, "--seccomp", switch, asan=False, env=env) as (rp, lp):
        works(box, "localhost")
        assert tried(rp, "loop") == expected
        assert tried(lp, "loop") == expected
        assert tried(lp, "resolver") == expected


def test_a_kernel_without_it(box: Namespace, tmp_path: Path) -> None:
    """Said in one line, and all goes on; with --seccomp off there is nothing to say."""
    env = {"LD_PRELOAD": str((BUILD / "intruder.so").resolve()), "INTRUDER_NO_FILTERS": "1"}
    for switch, lines in (("on", 1), ("off", 0)):
        argv = ("--seccomp", switch, "--quiet")
        with program(
            box,
            [binary("rp", asan=False), "--listen", "127.0.0.1", *argv, "2"],
            tmp_path / f"{switch}.log",
            name="rp",
            port=6000,
            env=env,
        ) as rp:
            said = rp.lines("^rp: --seccomp: no filter is in force: Invalid argument$")
            assert len(said) == lines, rp.log
            with box.connect(("127.0.0.1", 6000)):
                pass


@pytest.mark.parametrize("side", ["rp", "lp"])
def test_on_or_off(box: Namespace, side: str) -> None:
    code, out, err = finish([binary(side), "--seccomp", "maybe", "127.0.0.1", "2"], box, 10)
    assert (code, out) == (2, "")
    assert err.startswith(f"{side}: --seccomp: 'maybe' is neither on nor off"), err
