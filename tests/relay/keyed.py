# SPDX-License-Identifier: MIT
"""rp and an lp that have a key: the files of both, and what is seen when it is let in or not."""

import base64
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.relay.ends import answers
from tests.relay.netns import Namespace
from tests.relay.programs import binary, finish
from tests.relay.proxies import EXTENDED

UP = EXTENDED
PORT = 7000
FORWARD = ("--forward", f"{PORT}:127.0.0.1:8000")


def needs_tls() -> None:
    """Skips where the proxies were built without OpenSSL."""
    done = subprocess.run(["ldd", binary("rp")], capture_output=True, text=True, check=True)
    if "libssl" not in done.stdout:
        pytest.skip("rp was built without OpenSSL: make setup, make clean")


@pytest.fixture(autouse=True)
def encrypting() -> None:
    needs_tls()


def made(name: str) -> str:
    done = subprocess.run(
        [binary("lp"), "--make-key", name], capture_output=True, text=True, check=True
    )
    return done.stdout


def key_file(path: Path, *lines: str) -> tuple[str, str]:
    path.touch(0o600)
    path.write_text("".join(lines))
    return "--key-file", str(path)


def psk_of(line: str) -> str:
    """As OpenSSL's client wants it."""
    return base64.b64decode(line.split()[1], validate=True).hex()


@dataclass(frozen=True)
class Keys:
    """What rp has, and what an lp of it has."""

    line: str
    rp: tuple[str, str]
    lp: tuple[str, str]
    folder: Path

    def psk(self) -> str:
        return psk_of(self.line)


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    line = made("laptop")
    return Keys(
        line,
        key_file(tmp_path / "rp.keys", "# of the house\n", line, made("phone")),
        key_file(tmp_path / "lp.key", line),
        tmp_path,
    )


def served(ns: Namespace, port: int = PORT) -> None:
    with ns.connect(("127.0.0.1", port)) as sock:
        answers(sock)


def with_psk(psk: str, *more: str, name: str = "laptop") -> tuple[str, ...]:
    return ("-tls1_3", "-psk", psk, "-psk_identity", name, *more)


def refused(argv: Sequence[str | Path], ns: Namespace) -> str:
    code, out, err = finish(argv, ns, 10)
    assert (code, out, err.count("\n")) == (2, "", 1), (code, out, err)
    return err
