# SPDX-License-Identifier: MIT
"""lp --control: what is said of paths while lp runs, and who may say it."""

import re
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.relay import payload
from tests.relay.control import Client, Scene, controlled, of_a_module, written
from tests.relay.ends import answers, echo, serving, socks
from tests.relay.netns import Namespace
from tests.relay.programs import Program, binary, finish
from tests.relay.proxies import local_proxy, remote_proxy
from tests.relay.two_paths import ALLOW, BOTH_PATHS, UP, WITH_BACKUP, kill
from tests.relay.waiting import until

RP = "127.0.0.1"
TAKEN = "another process (listens|is about to listen) there"
CLIENTS = 8
LINE = 256
NEITHER = "error: this is none of 'list', 'path NAME use|backup|off' and 'hint CONNECTION ...'"
TOO_LONG = f"error: a command is a line of at most {LINE - 1} characters"


def test_list(box: Namespace, tmp_path: Path) -> None:
    with controlled(box, tmp_path, *WITH_BACKUP) as it:
        told = it.client().list()
        assert list(told) == ["near", "far"]
        near, far = told["near"], told["far"]
        assert (near["state"], near["now"], near["pipes"], near["wanted"]) == (
            *("use", "carries", "3", "3"),
        )
        assert (far["state"], far["now"], far["pipes"], far["wanted"]) == (
            *("backup", "rests", "2", "2"),
        )
        assert float(near["rtt_ms"]) < 1000 and near["cost"] == "0"


def test_a_path_is_turned_off_and_on(box: Namespace, tmp_path: Path) -> None:
    """Both ways: rp is told."""
    data = payload.seeded(300_000)
    with (
        controlled(box, tmp_path, *BOTH_PATHS) as it,
        serving(box, echo) as server,
        socks(box, "127.0.0.1", server.port) as sock,
    ):
        client = it.client()
        assert client.says("path near off") == ["ok"]
        assert client.list()["near"]["state"] == "off"
        answers(sock, data)
        before = written(client)
        for _ in range(3):
            answers(sock, data)
        after = written(client)
        assert after["near"] == before["near"], "an idle path carries nothing of connections"
        assert after["far"] >= before["far"] + 3 * len(data)
        assert client.list()["near"] | {"now": "rests", "pipes": "3"} == client.list()["near"]
        assert client.says("path near use") == ["ok"]
        assert client.says("path far off") == ["ok"]
        answers(sock, data)
        before = written(client)
        answers(sock, data)
        assert written(client)["near"] >= before["near"] + len(data)
        assert written(client)["far"] == before["far"]
        answers(sock, data)


def test_a_path_becomes_a_backup(box: Namespace, tmp_path: Path) -> None:
    with controlled(box, tmp_path, *WITH_BACKUP) as it:
        client = it.client()
        assert client.says("path near backup") == ["ok"]
        assert client.says("path far use") == ["ok"]
        told = client.list()
        assert (told["near"]["now"], told["far"]["now"]) == ("rests", "carries")


def test_what_was_said_holds_for_later_sessions(box: Namespace, tmp_path: Path) -> None:
    path = tmp_path / "control"
    with local_proxy(
        box, tmp_path, *BOTH_PATHS, "--control", str(path), ready="trying again"
    ) as lp:
        client = Client(path)
        told = client.list()
        assert {it["now"] for it in told.values()} == {"lacks"}
        assert client.says("path near off") == ["ok"]
        with (
            remote_proxy(box, tmp_path, *ALLOW),
            serving(box, echo) as server,
        ):
            lp.expect(UP, seconds=30)
            lp.expect("over near are up")
            assert client.list()["near"]["now"] == "rests"
            with socks(box, "127.0.0.1", server.port) as sock:
                answers(sock, payload.seeded(100_000))
            assert written(client)["near"] == 0
            client.close()


def test_the_last_one_is_not_turned_off(box: Namespace, tmp_path: Path) -> None:
    with controlled(box, tmp_path, *WITH_BACKUP) as it:
        client = it.client()
        assert client.says("path near off") == ["ok"]
        assert client.says("path far off") == ["error: path far: all others are off"]
        assert client.list()["far"]["now"] == "carries"
        kill(box, "127.0.0.3")
        until("far", lambda: client.list()["far"]["pipes"] == "2")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", NEITHER),
        ("lists", NEITHER),
        ("list all", NEITHER),
        ("path", NEITHER),
        ("path near", NEITHER),
        ("path near off now", NEITHER),
        ("path wlan0 off", "error: there is no path wlan0"),
        ("path near on", "error: path near: 'on' is none of use, backup and off"),
        ("path near OFF", "error: path near: 'OFF' is none of use, backup and off"),
    ],
)
def test_wrong_commands(shared: Scene, line: str, said: str) -> None:
    client = shared.client()
    assert client.says(line) == [said]
    assert client.says("list")[-1] == "ok"


@pytest.mark.parametrize(
    "garbage",
    [b"\0", b"list\0\n", b"\xff\xfe\n", b"GET / HTTP/1.1\r\n\x01", b"l" * LINE, b"l" * 100_000],
    ids=["nul", "nul-within", "no-text", "half-http", "long", "very-long"],
)
def test_garbage(shared: Scene, garbage: bytes) -> None:
    client = shared.client()
    try:
        client.sock.sendall(garbage)
        said = client.answer()
    except (BrokenPipeError, ConnectionResetError):
        said = [TOO_LONG]  # it was sent away before it had said all
    assert said[-1] == TOO_LONG or said == []
    assert client.is_sent_away()
    assert shared.client().says("list")[-1] == "ok"
    assert shared.lp.running()


def test_several_lines_at_once_and_by_halves(shared: Scene) -> None:
    client = shared.client()
    client.sock.sendall(b"path near backup\npath near use\r\nli")
    assert client.answer() == client.answer() == ["ok"]
    client.sock.sendall(b"st\n")
    assert client.answer()[-1] == "ok"


def test_a_line_without_an_end_is_told(shared: Scene) -> None:
    """As of `printf list | nc -U`. It may be half of another command, and is not done."""
    client = shared.client()
    client.sock.sendall(b"list\npath near off")
    client.sock.shutdown(socket.SHUT_WR)
    assert client.answer()[-1] == "ok"
    assert client.answer() == ["error: a command is a line, and the last one has no end"]
    assert client.is_sent_away()
    assert shared.client().list()["near"]["state"] != "off"


def test_two_clients(shared: Scene) -> None:
    one, other = shared.client(), shared.client()
    one.sock.sendall(b"path near ")
    assert other.says("path near backup") == ["ok"]
    one.sock.sendall(b"use\n")
    assert one.answer() == ["ok"]
    assert other.list() and other.list()["near"]["state"] == "use"


def test_who_is_silent_holds_up_nobody(shared: Scene) -> None:
    """The one that was silent longest goes when another one comes."""
    clients = [shared.client() for _ in range(CLIENTS)]
    assert all(client.says("list")[-1] == "ok" for client in clients)
    assert clients[0].says("list")[-1] == "ok"
    assert shared.client().says("list")[-1] == "ok"
    assert clients[1].is_sent_away()
    assert clients[0].says("list")[-1] == "ok"


def test_who_does_not_read_is_sent_away(shared: Scene) -> None:
    client = shared.client()
    client.sock.settimeout(0.5)
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        for _ in range(100_000):
            client.sock.sendall(b"list\n" * 20)
    assert shared.client().says("list")[-1] == "ok"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with of_a_module(tmp_path_factory.mktemp("control")) as scene:
        yield scene


# --- the socket ---


def test_it_is_its_owners_alone_and_gone_at_the_end(box: Namespace, tmp_path: Path) -> None:
    with controlled(box, tmp_path, *BOTH_PATHS) as it:
        assert stat.S_IMODE(it.path.stat().st_mode) == 0o600
        code, _, err = finish(
            [binary("lp"), *BOTH_PATHS, "--control", it.path, "--socks", "off", "127.0.0.1", "4"],
            box,
            10,
        )
        assert (code, err) == (
            2,
            f"lp: --control: cannot listen on {it.path}: another process listens there\n",
        )
        assert it.client().says("list")[-1] == "ok"
    assert not it.path.exists()


@pytest.mark.parametrize("option", ["--control", "--metrics"])
def test_of_those_that_start_at_once_one_has_it(
    box: Namespace, tmp_path: Path, option: str
) -> None:
    """Over a socket that a killed one left there. The others say so in a line, and end."""
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    started = [
        Program(
            box,
            [binary("lp"), option, path, "--redirect", "off", "--socks", f"{port}", RP, "4"],
            tmp_path / f"{port}.log",
            name="lp",
        )
        for port in range(7001, 7005)
    ]
    try:
        until("all but one to end", lambda: sum(it.running() for it in started) <= 1, 20)
        (winner,) = (it for it in started if it.running())
        winner.expect("trying again")
        for it in started:
            if it is not winner:
                assert it.process.wait() == 2
                assert re.fullmatch(rf"lp: {option}: cannot listen on {path}: {TAKEN}\n", it.log)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
        assert winner.stop() == 0
    finally:
        for it in started:
            it.kill()
    assert {it.name for it in tmp_path.iterdir()} == {f"{port}.log" for port in range(7001, 7005)}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--control", ""], "--control: '' is no path of 1 to 107 characters"),
        (["--control", "x" * 108], "is no path of 1 to 107 characters"),
    ],
)
def test_wrong_arguments(box: Namespace, args: list[str], said: str) -> None:
    code, out, err = finish([binary("lp"), *args, "127.0.0.1", "4"], box, 10)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err


def test_what_is_in_the_way_stays(box: Namespace, tmp_path: Path) -> None:
    there = tmp_path / "file"
    there.write_text("mine")
    argv = [binary("lp"), *BOTH_PATHS, "--control", there, "127.0.0.1", "4"]
    code, _, err = finish(argv, box, 10)
    assert code == 2 and "something is there that is no socket" in err
    assert there.read_text() == "mine"
