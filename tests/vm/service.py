# SPDX-License-Identifier: MIT
"""A service of the installed packages as who runs the machine sees it: its file, systemctl, the
journal. In the guest with systemd alone: everything here is the machine's own."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.relay.netns import Namespace
from tests.relay.waiting import until

ETC = Path("/etc/tm3")
UNITS = Path("/run/systemd/system")
SIDES = ("rp", "lp")
# Against what hangs. Emulated beside others systemctl takes seconds, a start with its sandbox
# several, and the build of the module, which is part of dpkg's work, 5 minutes.
SECONDS = 300.0
DPKG_S = 1200.0

in_guest = pytest.mark.skipif(
    os.environ.get("TM3_GUEST") != "1" or not UNITS.is_dir(),
    reason="installs services: in the guest with systemd, make test-vm ARGS='--only services'",
)


class Own(Namespace):
    """The network namespace that this process is in, as the services are."""

    def __init__(self) -> None:
        self.name = "own"
        self.path = Path("/proc/self/ns/net")


def command(*argv: str | Path, status: int = 0, seconds: float = SECONDS) -> str:
    """What it says on both its outputs."""
    done = subprocess.run(
        [str(word) for word in argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=seconds,
        env={**os.environ, "SYSTEMD_COLORS": "0", "DEBIAN_FRONTEND": "noninteractive"},
    )
    assert done.returncode == status, f"{argv} ended with {done.returncode}: {done.stdout}"
    return done.stdout


def systemctl(*words: str, status: int = 0) -> str:
    return command("systemctl", "--no-pager", *words, status=status)


def package(name: str) -> Path:
    (found,) = Path(os.environ["TM3_DEB"]).glob(f"{name}_*.deb")
    return found


def install(name: str) -> str:
    """All of its files: what the image was made without, such as documentation, is wanted here."""
    for path in Path("/etc/dpkg/dpkg.cfg.d").glob("*mmdebstrap*"):
        path.unlink()
    return command("dpkg", "-i", package(name), seconds=DPKG_S)


def status_of(name: str) -> str:
    """The package's, as dpkg has it: installed, config-files, or nothing."""
    argv = ["dpkg-query", "-W", "-f=${db:Status-Status}", name]
    said = subprocess.run(argv, capture_output=True, text=True).stdout
    return "" if said == "not-installed" else said


class Service:
    def __init__(self, side: str) -> None:
        self.side, self.name = side, f"tm3-{side}"
        self.file = ETC / f"{side}.conf"
        self.folder = UNITS / f"{self.name}.service.d"
        self.begun = time.time()

    def configure(self, *lines: str) -> None:
        self.file.write_text("".join(f"{line}\n" for line in lines))

    def add(self, *lines: str) -> None:
        """Lines below [Service], as `systemctl edit` adds them; until the next boot."""
        self.folder.mkdir(exist_ok=True)
        text = "".join(f"{line}\n" for line in lines)
        (self.folder / "test.conf").write_text(f"[Service]\n{text}")
        systemctl("daemon-reload")

    def forget(self) -> None:
        """As it was installed."""
        socket = UNITS / f"{self.name}.socket"
        systemctl("stop", *([socket.name] if socket.exists() else []), self.name)
        self.file.unlink(missing_ok=True)
        if self.folder.exists() or socket.exists():
            shutil.rmtree(self.folder, ignore_errors=True)
            socket.unlink(missing_ok=True)
            systemctl("daemon-reload")
        if self.state == "failed":
            systemctl("reset-failed", self.name)

    def start(self) -> None:
        try:
            systemctl("start", self.name)
        except AssertionError as why:
            why.add_note(self.log())
            raise

    def refuses_to_start(self) -> None:
        """It ends with 2, for what gets no better by itself, and is not started again."""
        systemctl("start", self.name, status=1)
        assert self.ask("ExecMainStatus", "ActiveState") == {
            "ExecMainStatus": "2",
            "ActiveState": "failed",
        }, "it is started again and again"

    def ask(self, *names: str) -> dict[str, str]:
        said = systemctl("show", self.name, *(f"--property={name}" for name in names))
        return dict(line.split("=", 1) for line in said.splitlines())

    @property
    def pid(self) -> int:
        return int(self.ask("MainPID")["MainPID"])

    @property
    def state(self) -> str:
        return self.ask("ActiveState")["ActiveState"]

    def expect(self, wanted: str, name: str = "StatusText") -> None:
        until(f"{self.name}'s {name} {wanted}", lambda: self.ask(name)[name] == wanted, SECONDS)

    def log(self) -> str:
        """Of the program and, about it, of systemd, since this test began."""
        command("journalctl", "--sync")
        since = f"--since=@{self.begun:.6f}"
        return command("journalctl", "-q", "-o", "cat", "--no-pager", "-u", self.name, since)

    def said(self, text: str) -> None:
        until(f"{text!r} in the journal of {self.name}", lambda: text in self.log(), SECONDS)


def within(what: str, condition: Callable[[], bool]) -> float:
    """How long it took, in seconds."""
    begun = time.monotonic()
    until(what, condition, SECONDS)
    return time.monotonic() - begun
