# SPDX-License-Identifier: MIT
"""Real programs, started in a namespace and stopped by their own process id."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.relay.netns import Namespace
from tests.relay.waiting import until

ROOT = Path(__file__).parents[2]
BUILD = Path(os.environ.get("TM3_BUILD") or ROOT / "build")
SANITIZER_REPORT = re.compile(
    r"AddressSanitizer|LeakSanitizer|ThreadSanitizer|runtime error:|SUMMARY: "
)
SANITIZER_ENV = {
    "ASAN_OPTIONS": "detect_leaks=1:exitcode=86:detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


def binary(name: str, *, asan: bool = True) -> Path:
    path = BUILD / "asan" / name if asan else BUILD / name
    assert path.exists(), f"{path} is not built: make test-programs"
    return path


class Program:
    """A process of ours: what it logs, what it holds, how it ends."""

    def __init__(
        self,
        ns: Namespace,
        argv: Sequence[str | Path],
        log: Path,
        *,
        name: str | None = None,
        env: Mapping[str, str] | None = None,
        pass_fds: Sequence[int] = (),
    ) -> None:
        self.name = name or Path(argv[0]).name
        self.ns = ns
        self.log_path = log
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *ns.command(argv)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**os.environ, **SANITIZER_ENV, **(env or {})},
                pass_fds=pass_fds,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def lines(self, pattern: str) -> list[str]:
        return [line for line in self.log.splitlines() if re.search(pattern, line)]

    def expect(self, pattern: str, seconds: float = 10.0, count: int = 1) -> str:
        """Waits for the `count`-th line that matches and returns it."""

        def found() -> str | None:
            lines = self.lines(pattern)
            if len(lines) >= count:
                return lines[count - 1]
            code = self.process.poll()
            assert code is None, f"{self.name} ended with {code} before /{pattern}/:\n{self.log}"
            return None

        return until(f"/{pattern}/ in the log of {self.name}", found, seconds)

    def fds(self) -> list[str]:
        """What each descriptor of the process is."""
        targets = []
        for link in Path(f"/proc/{self.pid}/fd").iterdir():
            try:
                targets.append(str(link.readlink()))
            except FileNotFoundError:
                continue
        return sorted(targets)

    def fd_count(self) -> int:
        return len(self.fds())

    def rss_kib(self) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"VmRSS:\s*(\d+) kB", status)
        assert found, f"{self.name} has no VmRSS: {status}"
        return int(found[1])

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def send_signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)
        self.process.wait(timeout=10)

    def running(self) -> bool:
        return self.process.poll() is None

    def stop(self, number: signal.Signals = signal.SIGTERM, seconds: float = 10.0) -> int:
        """Asks it to end; the exit status."""
        if self.running():
            self.send_signal(number)
        try:
            until(f"{self.name} to end", lambda: not self.running(), seconds)
        except AssertionError:
            self.kill()
            raise AssertionError(
                f"{self.name} did not end {seconds:g} s after {number.name}:\n{self.log}"
            ) from None
        return self.process.wait()

    def assert_sane(self) -> None:
        report = SANITIZER_REPORT.search(self.log)
        assert report is None, f"{self.name} has a sanitizer report:\n{self.log[-12000:]}"


@contextmanager
def program(
    ns: Namespace,
    argv: Sequence[str | Path],
    log: Path,
    *,
    name: str | None = None,
    ready: str | None = None,
    port: int | None = None,
    status: int | None = 0,
    env: Mapping[str, str] | None = None,
) -> Iterator[Program]:
    """Runs `argv` until the block ends.

    It is ready when its log matches `ready`, or when `port` is listened on. `status` is what it
    must answer to SIGTERM; None means any (somebody else's program). If the block fails, the
    program is killed and its log printed, so that the failure shows the first cause.
    """
    proc = Program(ns, argv, log, name=name, env=env)
    try:
        if ready is not None:
            proc.expect(ready)
        if port is not None:
            until(
                f"{proc.name} to listen on {port}",
                lambda: ns.listening(port) or not proc.running(),
            )
            assert proc.running(), f"{proc.name} ended at once:\n{proc.log}"
        yield proc
        if not proc.running() and proc.process.returncode == -signal.SIGKILL:
            return  # the test killed it
        code = proc.stop()
        assert status is None or code == status, (
            f"{proc.name} ended with {code}, not {status}:\n{proc.log[-12000:]}"
        )
        proc.assert_sane()
    except BaseException:
        if proc.running():
            proc.kill()
        print(f"--- log of {proc.name} ---\n{proc.log[-6000:]}")
        raise


def finish(
    argv: Sequence[str | Path], ns: Namespace, seconds: float, stdin: Path = Path(os.devnull)
) -> tuple[int, str, str]:
    """Runs a command inside to its end: exit status, standard output, standard error."""
    with stdin.open("rb") as given:
        done = subprocess.run(
            ns.command(argv),
            stdin=given,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            env={**os.environ, **SANITIZER_ENV},
        )
    return done.returncode, done.stdout, done.stderr
