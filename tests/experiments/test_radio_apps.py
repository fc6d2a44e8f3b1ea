# SPDX-License-Identifier: MIT
"""What a player has and shows, what it dares to ask for; a download by datagrams; the cases."""

import socket
import threading
import time

import pytest

from experiments.catalogue import find
from experiments.workloads import player, udp_download
from experiments.workloads.actors import Scene
from experiments.workloads.exchange import CutShort
from experiments.workloads.pattern import WrongByte
from experiments.workloads.player import AGAIN_S, LADDER_KBPS, STARTS_S, Playback
from experiments.workloads.udp_download import SIZE, UdpDownload, checked, packet

HERE = "127.0.0.1"


def test_a_player_begins_when_it_has_enough() -> None:
    playback = Playback()
    playback.came(1.0, STARTS_S - 0.5)
    playback.upto(9.0)
    assert playback.began_s is None and playback.shown_s == 0
    playback.came(9.0, 0.5)
    assert playback.began_s == 9.0
    playback.upto(10.0)
    assert (playback.shown_s, playback.ahead_s) == (1.0, STARTS_S - 1.0)
    assert (playback.stalls, playback.stalled_s) == (0, 0), "to wait for the first is no stall"


def test_a_player_stands_still_until_it_has_more() -> None:
    playback = Playback()
    playback.came(0.0, 3.0)
    playback.upto(4.0)  # all was shown at 3 s
    assert (playback.stalls, playback.stalled_s, playback.shown_s) == (1, 1.0, 3.0)
    playback.came(6.0, AGAIN_S - 1.0)  # not enough to go on
    playback.came(7.5, 1.0)
    assert (playback.stalls, playback.stalled_s) == (1, 4.5)
    playback.upto(7.5 + AGAIN_S - 0.5)
    assert playback.stalled_s == 4.5 and playback.ahead_s == pytest.approx(0.5)
    playback.upto(7.5 + AGAIN_S)
    assert playback.stalls == 2 and playback.stalled_s == 4.5


def test_a_player_asks_for_what_the_latest_rates_allow() -> None:
    assert player.quality([]) == LADDER_KBPS[0]
    assert player.quality([4000 / 3]) == 1000
    assert player.quality([4000 / 3 - 1]) == 500
    assert player.quality([1.0]) == LADDER_KBPS[0]
    assert player.quality([1e6, *[1400.0] * player.LAST]) == 1000, "what was long ago counts"


def test_a_datagram_is_compared() -> None:
    data = packet(17, 3)
    assert len(data) == SIZE and checked(data, 17) == 3
    with pytest.raises(WrongByte):
        checked(data[:-1] + bytes([data[-1] ^ 1]), 17)
    with pytest.raises(WrongByte):
        checked(data, 18)
    with pytest.raises(CutShort, match="of 1471 bytes, not 1472"):
        checked(data[:-1], 17)


def serve_one(sock: socket.socket, ignored: int) -> None:
    """The first few times it was not heard."""
    for _ in range(ignored):
        sock.recvfrom(SIZE)
    ask, peer = sock.recvfrom(SIZE)
    udp_download.send(sock, peer, ask)


def test_a_download_by_datagrams_has_its_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks again, and the time counts from the first datagram on."""
    monkeypatch.setattr(udp_download, "AGAIN_S", 0.1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((HERE, 0))
        threading.Thread(target=serve_one, args=(sock, 2), daemon=True).start()
        scene = Scene(HERE, "cubic", 5, 10.0, began=time.monotonic())
        found = UdpDownload(port=sock.getsockname()[1], mbps=4.0, seconds=1.0).run(scene)
    assert found["began_s"] >= 0.2
    wanted = 4e6 / 8 / SIZE
    assert 0.5 * wanted < found["came"] <= wanted + 1
    assert sum(found["bins"]) == found["came"] * SIZE


def test_a_port_that_comes_again_is_served_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel gives it to another client, which may ask for the very same."""
    monkeypatch.setattr(udp_download, "AGAIN_S", 0.1)
    serving = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    serving.bind((HERE, 0))
    threading.Thread(target=udp_download.serve, args=(serving,), daemon=True).start()
    ask = udp_download._ASK.pack(udp_download._MAGIC, 17, 1, 0.0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect(serving.getsockname())
        for _ in range(2):
            scene = Scene(HERE, "cubic", 5, 5.0, began=time.monotonic())
            assert checked(UdpDownload(port=0)._first(sock, ask, scene), 17) == 0


def test_a_download_that_nobody_sends_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(udp_download, "AGAIN_S", 0.05)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((HERE, 0))
        scene = Scene(HERE, "cubic", 5, 0.2, began=time.monotonic())
        with pytest.raises(CutShort, match="no datagram"):
            UdpDownload(port=sock.getsockname()[1]).run(scene)


def test_each_application_is_compared_with_itself_alone() -> None:
    claims = [it for it in find("radio-apps").claims if it.paper is not None]
    assert {it.of["app"] for it in claims} == {"page", "video", "download", "udp"}
    for it in claims:
        assert it.over is not None
        assert (it.of["load"], it.over["load"]) == ("upload", "alone")
        for name in ("app", "up_mbps", "queue_up_ms", "interactive", "way"):
            assert it.of[name] == it.over[name], name
    pages = {(it.of["up_mbps"], it.of["host"]): it.paper for it in claims if "pages" in it.says}
    assert pages == {
        **{(8.0, "fifo"): 1.78, (8.0, "codel"): 1.75, (8.0, "prio"): 1.0},
        **{(2.0, "fifo"): 2.59, (2.0, "codel"): 2.71, (2.0, "prio"): 1.0},
    }
