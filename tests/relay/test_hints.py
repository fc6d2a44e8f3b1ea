# SPDX-License-Identifier: MIT
"""What lp is told of a connection by --control, and what rp makes of it."""

import itertools
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.relay import payload, records
from tests.relay.control import Client, Scene, controlled, name_of, of_a_module, written
from tests.relay.ends import answers, echo, serving, socks
from tests.relay.netns import Namespace
from tests.relay.proxies import EXTENDED, LP_READY, local_proxy, remote_proxy
from tests.relay.two_paths import ALLOW, BOTH_PATHS
from tests.relay.waiting import until

MOST = 1 << 50
FORWARD = 7100


def hints(tmp: Path, side: str) -> dict[str, int]:
    [counters] = records.of(tmp / f"{side}.jsonl", "counters")
    return {key: counters[f"hints_{key}"] for key in ("sent", "received", "dropped")}


def test_one_path_carries_what_is_named_for_it(box: Namespace, tmp_path: Path) -> None:
    data = payload.seeded(300_000)
    with (
        controlled(box, tmp_path, *BOTH_PATHS) as it,
        serving(box, echo) as server,
        socks(box, "127.0.0.1", server.port) as sock,
    ):
        client = it.client()
        for only, other in (("far", "near"), ("near", "far")):
            assert client.says(f"hint {name_of(sock)} paths={only} urgency=7") == ["ok"]
            answers(sock, data)  # what was under way before is done
            before = written(client)
            answers(sock, data)
            after = written(client)
            assert after[other] == before[other]
            assert after[only] >= before[only] + len(data)
        assert client.says(f"hint {name_of(sock)} paths=any size=1M") == ["ok"]
        answers(sock, data)


def test_copies_of_one_connection_go_over_both_paths(box: Namespace, tmp_path: Path) -> None:
    """Either way, and of no other one."""
    data = payload.seeded(300_000)
    with (
        controlled(box, tmp_path, *BOTH_PATHS) as it,
        serving(box, echo) as server,
        socks(box, "127.0.0.1", server.port) as sock,
        socks(box, "127.0.0.1", server.port) as other,
    ):
        client = it.client()
        before = written(client)
        assert client.says(f"hint {name_of(sock)} copies=on") == ["ok"]
        rounds = itertools.count(1)

        def copied() -> bool:
            """What is known to have arrived goes over no second path: of a slow one it is less."""
            answers(sock, data)
            went = {path: count - before[path] for path, count in written(client).items()}
            once = 1.01 * next(rounds) * len(data)
            return min(went.values()) > len(data) and sum(went.values()) > once + len(data)

        until("both paths to carry what is copied", copied)
        assert client.says(f"hint {name_of(sock)} copies=off") == ["ok"]
        answers(sock, data)
        before = written(client)
        answers(sock, data)
        answers(other, data)
        assert sum(written(client).values()) < sum(before.values()) + 2.2 * len(data)


def test_a_connection_that_just_came_is_known(box: Namespace, tmp_path: Path) -> None:
    """Its application has it before a busy lp accepts it, and may tell of it at once."""
    with (
        serving(box, echo) as server,
        controlled(
            box, tmp_path, *BOTH_PATHS, "--forward", f"{FORWARD}:127.0.0.1:{server.port}"
        ) as it,
        box.open_socket() as sock,
    ):
        client = it.client()
        assert client.says("list")[-1] == "ok"
        sock.bind(("127.0.0.1", 0))
        it.lp.send_signal(signal.SIGSTOP)
        client.sock.sendall(f"hint {name_of(sock)} size=5\n".encode())
        sock.connect(("127.0.0.1", FORWARD))
        it.lp.send_signal(signal.SIGCONT)
        assert client.answer() == ["ok"]
        answers(sock, payload.seeded(5))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with of_a_module(tmp_path_factory.mktemp("hints")) as scene:
        yield scene


KNOWN = "size=BYTES, urgency=0-255, paths=NAME,...|any and copies=on|off"
NOTHING = (
    "error: hint: a connection is to be named, and what is known of it:"
    " size=BYTES, urgency=0-255, paths=NAME,...|any or copies=on|off"
)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("hint", NOTHING),
        ("hint 1", NOTHING),
        ("hint 1 size=5", "error: there is no connection 1"),
        ("hint 127.0.0.1:9 size=5", "error: there is no connection 127.0.0.1:9"),
        ("hint [::1]:9 size=5", "error: there is no connection [::1]:9"),
        ("hint 0 size=5", "error: '0' is neither ADDRESS:PORT nor an id from 1 to 65535"),
        ("hint near size=5", "error: 'near' is neither ADDRESS:PORT nor an id from 1 to 65535"),
        ("hint x:y size=5", "error: 'x:y' is neither ADDRESS:PORT nor an id from 1 to 65535"),
    ],
)
def test_no_connection(shared: Scene, line: str, said: str) -> None:
    assert shared.client().says(line) == [said]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("size=", f"error: size=: it is no number of bytes up to {MOST}"),
        ("size=-1", f"error: size=-1: it is no number of bytes up to {MOST}"),
        (f"size={MOST + 1}", f"error: size={MOST + 1}: it is no number of bytes up to {MOST}"),
        ("urgency=256", "error: urgency=256: it is no number from 0 to 255"),
        ("urgency=high", "error: urgency=high: it is no number from 0 to 255"),
        ("paths=", "error: paths=: no path is named; any path is 'any'"),
        ("paths=near,wlan0", "error: there is no path wlan0"),
        ("paths=near,", "error: there is no path "),
        (
            "colour=red",
            f"error: 'colour' is none of {KNOWN}",
        ),
        ("now", f"error: 'now' is none of {KNOWN}"),
        ("copies=2", "error: copies=2: it is on or off"),
        (f"size={MOST}", "ok"),
        ("size=0 urgency=255 paths=far,near", "ok"),
    ],
)
def test_what_is_said(shared: Scene, words: str, said: str) -> None:
    box = shared.box
    with serving(box, echo) as server, socks(box, "127.0.0.1", server.port) as sock:
        answers(sock)
        assert shared.client().says(f"hint {name_of(sock)} {words}") == [said]
        answers(sock)


def test_rp_counts_what_it_is_told(box: Namespace, tmp_path: Path) -> None:
    path = tmp_path / "control"
    stats = [["--stats", str(tmp_path / f"{side}.jsonl")] for side in ("rp", "lp")]
    with (
        remote_proxy(box, tmp_path, *ALLOW, "--conn-policy", "srpt", *stats[0]),
        local_proxy(box, tmp_path, "--control", str(path), *stats[1], ready=EXTENDED),
        serving(box, echo) as server,
        socks(box, "127.0.0.1", server.port) as sock,
        closing(Client(path)) as client,
    ):
        answers(sock)
        for size in (1, 10**6, 5):
            assert client.says(f"hint {name_of(sock)} size={size}") == ["ok"]
            answers(sock, payload.seeded(200_000))
    assert hints(tmp_path, "lp") == {"sent": 3, "received": 0, "dropped": 0}
    assert hints(tmp_path, "rp") == {"sent": 0, "received": 3, "dropped": 0}


def test_the_baseline_has_no_hints(box: Namespace, tmp_path: Path) -> None:
    path = tmp_path / "control"
    with (
        remote_proxy(box, tmp_path),
        local_proxy(box, tmp_path, "--control", str(path), "--extend", "never", ready=LP_READY),
        serving(box, echo) as server,
        socks(box, "127.0.0.1", server.port) as sock,
        closing(Client(path)) as client,
    ):
        answers(sock)
        said = client.says(f"hint {name_of(sock)} size=5")
        assert said == ["error: rp does not understand hints"]


def test_without_a_session(box: Namespace, tmp_path: Path) -> None:
    path = tmp_path / "control"
    with (
        local_proxy(box, tmp_path, "--control", str(path), ready="trying again"),
        closing(Client(path)) as client,
    ):
        until("an answer", lambda: client.says("list") == ["ok"])
        assert client.says("hint 1 size=5") == ["error: there is no session with rp"]
