# SPDX-License-Identifier: MIT
"""Who may reach a scheduler and its workers: only this machine, until one says otherwise."""

import os
import sys
from pathlib import Path

import pytest

from experiments.cli import main

Calls = list[list[str]]
FILES = ("--tls-ca-file", "--tls-cert", "--tls-key")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """What would have become of this process."""
    pytest.importorskip("distributed")
    found: Calls = []
    monkeypatch.setattr(os, "execv", lambda path, argv: found.append(argv[argv.index("dask") :]))
    return found


def files(tmp_path: Path) -> list[str]:
    path = tmp_path / "it.pem"
    path.touch()
    return [word for flag in FILES for word in (flag, str(path))]


def value(argv: list[str], flag: str) -> str:
    return argv[argv.index(flag) + 1]


def test_a_scheduler_is_on_loopback(calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scheduler"]) == 0
    assert value(calls[0], "--host") == "127.0.0.1"
    assert value(calls[0], "--dashboard-address") == "127.0.0.1:0"
    assert "warning" not in capsys.readouterr().err


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "lab.example.net"])
def test_elsewhere_it_warns(calls: Calls, capsys: pytest.CaptureFixture[str], host: str) -> None:
    assert main(["scheduler", "--host", host, "--port", "1234"]) == 0
    assert value(calls[0], "--host") == host
    assert value(calls[0], "--dashboard-address") == "127.0.0.1:0"
    (line,) = [it for it in capsys.readouterr().err.splitlines() if "warning" in it]
    assert f"warning: whoever reaches {host}:1234 can run any code on the workers, as root" in line
    assert all(flag in line for flag in FILES)


def test_with_tls_it_does_not(
    calls: Calls, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["scheduler", "--host", "0.0.0.0", *files(tmp_path)]) == 0
    assert value(calls[0], "--protocol") == "tls"
    assert all(value(calls[0], flag) == f"{tmp_path}/it.pem" for flag in FILES)
    assert "warning" not in capsys.readouterr().err


@pytest.mark.parametrize("command", [
    ("scheduler",), ("worker", "--as-root", "tls://127.0.0.1:8786"),
    ("run", "download", "--spread", "tls://127.0.0.1:8786"),
])  # fmt: skip
@pytest.mark.parametrize("left", FILES)
def test_tls_is_whole_or_not_at_all(
    calls: Calls,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    command: tuple[str, ...],
    left: str,
) -> None:
    words = files(tmp_path)
    at = words.index(left)
    assert main([*command, *words[:at], *words[at + 2 :]]) == 2
    assert "TLS needs --tls-ca-file, --tls-cert, --tls-key" in capsys.readouterr().err
    assert main([*command, *words[: at + 1], "/no/such", *words[at + 2 :]]) == 2
    assert "/no/such is no file" in capsys.readouterr().err
    assert calls == []


@pytest.mark.skipif(os.geteuid() != 0, reason="says first that it needs root")
def test_a_worker_is_root_only_when_told(calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["worker", "tcp://127.0.0.1:8786"]) == 1
    assert "can run any code here as root; --as-root says that this is meant" in (
        capsys.readouterr().err
    )
    assert calls == []
    assert main(["worker", "--as-root", "tcp://127.0.0.1:8786"]) == 0
    assert value(calls[0], "--host") == "127.0.0.1"
    assert value(calls[0], "--dashboard-address") == "127.0.0.1:0"


def test_tls_is_named_by_the_address_too(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for words in (["tls://127.0.0.1:1"], ["tcp://127.0.0.1:1", *files(tmp_path)]):
        assert main(["worker", "--as-root", *words]) == 2
        assert "tls:// is with TLS's files, and only so" in capsys.readouterr().err


def test_dask_is_not_needed_for_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(SystemExit, match="0"):
        main(["scheduler", "--help"])
