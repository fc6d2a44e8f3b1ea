# SPDX-License-Identifier: MIT
"""Programs that end one direction and go on in the other: over the extension as without proxies."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.relay import payload
from tests.relay.netns import Namespace
from tests.relay.programs import finish, program
from tests.relay.proxies import extended_pair
from tests.relay.servers import sshd
from tests.relay.waiting import until

SIZE = 3_000_000
SERVER, RELAYED = 7777, 7000
PATIENCE = ("-t", "20")  # what socat waits for the other direction once one has ended
BOTH = pytest.mark.parametrize("port", [SERVER, RELAYED], ids=["direct", "relayed"])


@pytest.fixture
def relayed(box: Namespace, tmp_path: Path) -> Iterator[Namespace]:
    """What listens on port 7777 is also reached at port 7000, through lp and rp."""
    forward = ("--forward", f"{RELAYED}:127.0.0.1:{SERVER}")
    with extended_pair(box, tmp_path, lp=forward) as proxies:
        yield box
        proxies.settled()


@contextmanager
def listening(ns: Namespace, tmp: Path, what: str) -> Iterator[None]:
    """What socat connects with whoever comes first."""
    listen = f"TCP-LISTEN:{SERVER},bind=127.0.0.1,reuseaddr"
    argv = ["socat", *PATIENCE, listen, what]
    with program(ns, argv, tmp / "socat.log", port=SERVER, status=None) as server:
        yield
        until("the server to end", lambda: not server.running(), 20)


def shell(ns: Namespace, script: str, *args: str | Path) -> str:
    """What the script, whose arguments are $1 and so on, writes."""
    code, out, err = finish(["bash", "-c", script, "bash", *args], ns, 40)
    assert code == 0, err
    return out


@BOTH
def test_a_file_is_piped_into_a_connection(relayed: Namespace, tmp_path: Path, port: int) -> None:
    """`cat file | nc`: who reads to the end answers, and the answer arrives."""
    wanted = payload.write(tmp_path / "file", SIZE)
    with listening(relayed, tmp_path, "EXEC:sha256sum"):
        client = f'cat "$1" | socat {" ".join(PATIENCE)} - "TCP:127.0.0.1:$2"'
        answer = shell(relayed, client, tmp_path / "file", str(port))
    assert answer.split()[0] == wanted


@BOTH
def test_http_1_0(relayed: Namespace, tmp_path: Path, port: int) -> None:
    """The answer ends with the connection, and comes although the asking side has ended."""
    wanted = payload.write(tmp_path / "file", SIZE)
    argv = [sys.executable, "-m", "http.server", str(SERVER), "--bind", "127.0.0.1"]
    argv += ["--directory", str(tmp_path)]
    with program(relayed, argv, tmp_path / "http.log", port=SERVER, status=None):
        asking = (
            f"printf 'GET /file HTTP/1.0\\r\\n\\r\\n' | socat {' '.join(PATIENCE)}"
            ' - "TCP:127.0.0.1:$1" | sed "1,/^\\r$/d" | sha256sum'
        )
        assert shell(relayed, asking, str(port)).split()[0] == wanted
        curl = 'curl -sS --fail --http1.0 "http://127.0.0.1:$1/file" | sha256sum'
        assert shell(relayed, curl, str(port)).split()[0] == wanted


@BOTH
def test_a_server_ends_its_side_first(relayed: Namespace, tmp_path: Path, port: int) -> None:
    """It says all it has to say, and then reads for as long as somebody writes."""
    wanted = payload.write(tmp_path / "file", SIZE)
    said = payload.write(tmp_path / "said", SIZE, seed=2)
    got = tmp_path / "got"
    with listening(relayed, tmp_path, f"FILE:{tmp_path}/said!!CREATE:{got}"):
        client = 'exec 3<>"/dev/tcp/127.0.0.1/$2"; sha256sum <&3; cat "$1" >&3'
        assert shell(relayed, client, tmp_path / "file", str(port)).split()[0] == said
    assert payload.file_digest(got) == wanted


def test_ssh_writes_a_file_there(box: Namespace, tmp_path: Path) -> None:
    """`ssh host 'cat > file'`, which ends when its standard input does."""
    wanted = payload.write(tmp_path / "file", SIZE)
    forward = ("--forward", f"{RELAYED}:127.0.0.1:2222")
    with sshd(box, tmp_path) as options, extended_pair(box, tmp_path, lp=forward):
        argv = ["ssh", *options, "-p", str(RELAYED), "root@127.0.0.1", f"cat > {tmp_path}/there"]
        code, _, err = finish(argv, box, 30, stdin=tmp_path / "file")
        assert code == 0, err
    assert payload.file_digest(tmp_path / "there") == wanted
