# SPDX-License-Identifier: MIT
"""Applications that take little: what they take, and how a download beside them is measured."""

import os
import resource
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from base.shell import until
from experiments.catalogue import slow_reader
from experiments.catalogue.slow_reader import longest_silence_s, rate_of, seen
from experiments.labs import Labs
from experiments.workloads import crowd
from experiments.workloads.actors import Scene
from experiments.workloads.descriptors import TooFew, descriptors
from experiments.workloads.exchange import CutShort, Reply, Request
from experiments.workloads.pattern import WrongByte, piece
from experiments.workloads.readers import Reader, Readers
from tests.experiments.workload_run import configuration, live
from tests.net.conftest import labs
from topologies.nodes import read_sysctls

__all__ = ["labs"]

REQUEST = Request("cubic", down=1 << 30, down_start=5)


class Held:
    """What a reader needs of a connection."""

    def __init__(self) -> None:
        self.sock, self.server = socket.socketpair()
        self.sock.setblocking(False)


def reader() -> tuple[Reader, socket.socket]:
    held: Any = Held()
    return Reader(held, REQUEST), held.server


def test_a_reader_takes_no_more_than_it_may() -> None:
    it, server = reader()
    server.sendall(Reply("cubic", 0, 1).packed()[:10])
    it.take(0)
    assert not it.head, "who takes nothing does not even take the reply"
    it.take(1000)
    server.sendall(Reply("cubic", 0, 1).packed()[10:] + piece(5, 0, 5000))
    it.take(1000)
    assert it.taken == 1000
    it.take(10_000)
    assert it.taken == 5000


def test_a_reader_looks_at_its_bytes_and_at_its_end() -> None:
    it, server = reader()
    server.sendall(Reply("cubic", 0, 1).packed() + piece(6, 0, 100))
    with pytest.raises(WrongByte):
        it.take(100)
    it, server = reader()
    server.close()
    with pytest.raises(CutShort):
        it.take(1)


def test_rates_are_of_what_was_taken_between_two_times() -> None:
    taken = [(1.0, 0), (2.0, 1_000_000), (3.0, 2_000_000), (4.0, 9_000_000)]
    assert rate_of(taken, 1.0, 3.1) == pytest.approx(8.0)
    assert rate_of(taken, 3.5, 9.0) == 0.0


def test_silences_are_bins_without_a_byte() -> None:
    bins = [1, 1, 0, 0, 0, 1, 0]
    assert longest_silence_s(bins, 0.0, 0.7) == pytest.approx(0.3)
    assert longest_silence_s(bins, 0.0, 1.5) == pytest.approx(0.9), "nothing after the last byte"
    assert longest_silence_s(bins, 0.0, 0.2) == 0.0


def test_a_download_is_held_against_what_readers_leave() -> None:
    """40 Mbit/s alone; 20 beside a reader that takes 10."""
    bins = [500_000] * 50 + [250_000] * 50
    taken = [(5.0 + n / 10, n * 125_000) for n in range(51)]
    found = seen(bins, {"resets_s": [5.5, 5.2], "taken": taken}, (5.0, 6.0, 4.0), 0)
    assert (found["alone_mbps"], found["beside_mbps"]) == (pytest.approx(40), pytest.approx(20))
    assert found["readers_mbps"] == pytest.approx(10, 0.01)
    assert found["rate_kept"] == pytest.approx(2 / 3, 0.01)
    assert (found["resets"], found["reset_after_s"]) == (2, pytest.approx(0.2))
    nothing_left = [(at, 100 * total) for at, total in taken]
    readers = {"resets_s": [], "taken": nothing_left}
    assert seen(bins, readers, (5.0, 6.0, 4.0), 0)["rate_kept"] is None


def test_what_goes_into_the_buffers_of_readers_is_theirs() -> None:
    """40 Mbit/s alone; 20 while buffers in front of readers who take nothing get 20."""
    bins = [500_000] * 50 + [250_000] * 50
    found = seen(bins, {"resets_s": [], "taken": []}, (5.0, 6.0, 4.0), 10_000_000)
    assert found["buffered_mbps"] == pytest.approx(20)
    assert found["rate_kept"] == pytest.approx(1.0)


def test_memory_is_what_was_resident_at_most() -> None:
    assert 5 < slow_reader.most_resident_mb(os.getpid()) < 5000


def test_who_never_reads_is_still_told_of_a_reset(tmp_path: Path) -> None:
    """Three that take nothing, with small buffers; one of them is reset."""
    scene = Scene("127.0.0.1", "cubic", seed=1, seconds=10.0, began=time.monotonic())
    found: dict[str, Any] = {}
    with socket.create_server(("127.0.0.1", 0)) as server:
        port, path = server.getsockname()[1], tmp_path / "settled"
        it = Readers(port=port, count=3, path=str(path), rcvbuf=4096)
        thread = threading.Thread(target=lambda: found.update(it.run(scene)), daemon=True)
        thread.start()
        sockets = [server.accept()[0] for _ in range(3)]
        until("all to have dialled", path.exists)
        sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        sockets[1].setblocking(False)
        took = send_until_full(sockets[1])
        sockets[0].close()
        began = time.monotonic()
        until("a look at the readers", lambda: time.monotonic() > began + 0.3)
        scene.over.set()
        thread.join(10)
    assert len(found["resets_s"]) == 1
    assert [total for _, total in found["taken"]] == [0] * len(found["taken"])
    assert took < 8_000_000, "the kernel's own would have taken more"


def send_until_full(sock: socket.socket) -> int:
    sent = 0
    while True:
        try:
            sent += sock.send(bytes(65536))
        except BlockingIOError:
            return sent


def test_descriptors_are_raised_and_never_lowered() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        _, hard = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (64, hard))
        descriptors(100, process.pid)
        assert resource.prlimit(process.pid, resource.RLIMIT_NOFILE) == (100, hard)
        descriptors(50, process.pid)
        assert resource.prlimit(process.pid, resource.RLIMIT_NOFILE) == (100, hard)
        with pytest.raises(TooFew, match="2147483648 descriptors are needed"):
            descriptors(1 << 31, process.pid)
        process.kill()


@pytest.fixture
def kept(labs: Path) -> Iterator[Labs]:
    with Labs() as made:
        yield made


def test_a_crowd_has_room_and_small_buffers(kept: Labs, tmp_path: Path) -> None:
    """Buffers of the lab's kernels are small meanwhile, and then as they were."""
    with live(kept, tmp_path / "run", configuration()) as made:
        assert made.pair is not None
        lab = made.lab

        def sizes() -> list[dict[str, str | None]]:
            keys = ["net.ipv4.tcp_wmem", "net.ipv4.tcp_rmem"]
            return [read_sysctls(node.namespace, keys) for node in (lab.client, lab.rp, lab.server)]

        before = sizes()
        crowd.make_room(made, 10_000)
        with crowd.small_buffers(lab):
            client, rp, server = sizes()
            assert client["net.ipv4.tcp_wmem"] == server["net.ipv4.tcp_wmem"] == crowd.SMALL
            assert rp["net.ipv4.tcp_rmem"] == crowd.SMALL
            assert client["net.ipv4.tcp_rmem"] == before[0]["net.ipv4.tcp_rmem"], "of pipes"
            assert rp["net.ipv4.tcp_wmem"] == before[1]["net.ipv4.tcp_wmem"], "of pipes"
        assert sizes() == before
        for each in (made.pair.rp, made.pair.lp):
            assert resource.prlimit(each.pid, resource.RLIMIT_NOFILE)[0] >= 13_334
