# SPDX-License-Identifier: MIT
"""tm3lab trace: what it prints, writes and draws, and how it refuses."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from base.sources import ROOT
from experiments.cli import main
from experiments.trace import watch
from experiments.trace.capture import Capture
from tests.experiments.captures import Connection, Frame, pcap

PIPES = ROOT / "dissector" / "samples" / "download.pcap"


def traffic(**ends: object) -> list[Frame]:
    """An upload of five seconds whose round trips grow from 20 ms by 10 ms each."""
    it = Connection(**ends)
    frames = it.opened(0, 0.02)
    for k in range(10):
        frames += [it.send(0.1 + k / 2, 1000), it.get(0.12 + k / 2 + k / 100, 0)]
    return frames


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    path = tmp_path / "client.pcap"
    path.write_bytes(pcap(traffic()))
    return path


def test_all_it_tells(capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found, plots = tmp_path / "found.json", tmp_path / "plots"
    words = ["trace", str(capture), str(PIPES), "--json", str(found), "--plots", str(plots)]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert f"{capture}: 22 packets, 1 TCP connection, 1 session\n" in out
    assert f"{PIPES}: 202 packets, 4 TCP connections, 1 session\n" in out
    told = json.loads(found.read_text())
    assert [it["name"] for it in told["files"]] == ["client.pcap", "download.pcap"]
    assert told["constants"]["idle_s"] == 60
    plain, pipes = told["kinds"]["connections"], told["kinds"]["pipes"]
    assert (plain["flows"], pipes["flows"]) == (1, 4)
    assert plain["payload_bytes"] == {"up": 10000, "down": 0}
    assert plain["duration_s"]["up"]["all"]["percentiles"]["50"] == 4.5
    assert plain["rate_mbps"]["up"]["percentiles"]["50"] == pytest.approx(0.08 / 4.5)
    assert plain["handshake_s"]["percentiles"]["50"] == 0.02
    assert plain["least_round_trip_s"]["percentiles"]["50"] == 0.02
    assert plain["round_trip_samples"] == 10
    increases = plain["increase_s"]["under 10 KB"]
    # Two samples in each of five seconds: 0 and 10 ms over the least, 20 and 30, ...
    assert increases["count"] == 5
    assert increases["mean"] == pytest.approx(0.045)
    assert plain["slots_by_busy_flows"] == {"1": 5}
    drawn = [Path(line) for line in out.splitlines() if line.endswith(".svg")]
    assert {it.stem for it in drawn} == {
        *("sessions", "durations-up", "durations-down", "rates"),
        *("round-trips", "increase", "concurrency"),
    }
    for path in drawn:
        assert path.stat().st_size > 1000
        assert path.with_suffix(".png").stat().st_size > 1000
    text = (plots / "round-trips.svg").read_text()
    assert "connections" in text
    assert "pipes" in text


@pytest.mark.parametrize(("least", "scale"), [(0.2, "linear"), (0.05, "log")])
def test_panels_have_one_axis(least: float, scale: str) -> None:
    """Pipes and connections are to be compared, whichever has the smaller values."""
    from experiments.plots import sheet
    from experiments.trace import pictures
    from experiments.trace.distribution import Distribution

    panels = [{"up": Distribution([least, 0.9])}, {"up": Distribution([0.8, 1.0])}]
    with sheet.sheet(2, "two") as (_, groups):
        every = [axes for [axes] in groups]
        for axes, curves in zip(every, panels, strict=True):
            axes.plot(curves["up"].values, [0, 1])
        pictures._scale(every, panels)
        first, second = (axes.get_xlim() for axes in every)
        assert [axes.get_xscale() for axes in every] == [scale] * 2
    assert first == second
    assert first[0] <= least
    assert first[1] >= 1


def test_other_ports_of_pipes(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", str(capture), "--pipe-ports", "443"]) == 0
    assert "pipes: rate up, Mbit/s" in capsys.readouterr().out


def test_told_client(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Begun before the capture, and its own port is the smaller one."""
    path, found = tmp_path / "late.pcap", tmp_path / "found.json"
    path.write_bytes(pcap(traffic(port=80, server_port=50000)[2:]))
    for words, ways in (([], (0, 10000)), (["--client", "10.0.1.0/24"], (10000, 0))):
        assert main(["trace", str(path), "--json", str(found), *words]) == 0
        told = json.loads(found.read_text())["kinds"]["connections"]["payload_bytes"]
        assert (told["up"], told["down"]) == ways
    capsys.readouterr()


def test_remarks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frames = traffic()
    frames += [(frames[-1][0] - 1000, b"\2" * 12 + b"\x08\x06" + bytes(28), 42)]
    path = tmp_path / "cut.pcap"
    path.write_bytes(pcap([*frames, (frames[0][0], *frames[3][1:])])[:-1])
    assert main(["trace", str(path), "--cut-short"]) == 0
    out = capsys.readouterr().out
    assert "\n  1 packet left out: neither TCP nor UDP over IP\n" in out
    assert "\n  the file ends within a packet: it was cut short\n" in out


def test_nothing_of_ip(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "arp.pcap"
    path.write_bytes(pcap([(0, b"\2" * 12 + b"\x08\x06" + bytes(28), 42)]))
    words = ["trace", str(path), "--json", str(tmp_path / "j"), "--plots", str(tmp_path / "p")]
    assert main(words) == 0
    assert "no packet of TCP or UDP in it" in capsys.readouterr().out
    assert json.loads((tmp_path / "j").read_text())["kinds"] == {}
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        ((), 2, "the following arguments are required: FILE"),
        (("none.pcap",), 1, "none.pcap: No such file or directory"),
        (("GOOD", "empty.pcap"), 1, "empty.pcap: the file is empty"),
        (("wifi.pcap",), 1, "wifi.pcap: link type 105 (IEEE 802.11) is not read; "),
        (("GOOD", "--pipe-ports", "http"), 2, "'http' is no list of ports, say 6000,6010"),
        (("GOOD", "--pipe-ports", "0"), 2, "'0' is no list of ports"),
        (("GOOD", "--client", "me"), 2, "'me' is no address and no network"),
        (("GOOD", "--json", "no/such/folder.json"), 1, "no/such/folder.json: No such file"),
        (("GOOD", "--plots", "empty.pcap/x"), 1, "empty.pcap/x: Not a directory"),
        (("GOOD", "--plot", "x"), 2, "--plot: no such argument"),
    ],
)
def test_wrong_words(
    capture: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    status: int,
    says: str,
) -> None:
    monkeypatch.chdir(capture.parent)
    Path("empty.pcap").touch()
    Path("wifi.pcap").write_bytes(pcap(traffic(), link=105))
    try:
        found = main(["trace", *(str(capture) if it == "GOOD" else it for it in words)])
    except SystemExit as left:
        found = int(str(left.code))
    err = capsys.readouterr().err
    assert (found, err.count("\n")) == (status, 1)
    assert err.startswith("tm3lab: ")
    assert says in err


def test_progress_of_a_large_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], capture: Path
) -> None:
    now = iter([0.0, 1.9, 2.0, 5.0, 12.0])
    monkeypatch.setattr(watch.time, "monotonic", lambda: next(now))
    it = Capture(capture)
    it.size, it.read = 300_000_000, 100_000_000
    said = watch.Watch(it)
    for _ in range(4):  # at 1.9 s not yet, at 5 s not again
        said()
    assert capsys.readouterr().err.splitlines() == [
        f"{capture}: 100 of 300 MB, 50.0 MB/s, 4 s left",
        f"{capture}: 100 of 300 MB, 8.3 MB/s, 24 s left",
    ]


def test_memory_follows_flows_and_not_packets(tmp_path: Path) -> None:
    """Ten times the packets of the same flows: the same memory, but for what Python frees late."""
    script = """
import sys, tracemalloc
from pathlib import Path
from experiments.trace.capture import Capture
from experiments.trace.trace import Trace
tracemalloc.start()
trace = Trace()
trace.read(Capture(Path(sys.argv[1])))
print(tracemalloc.get_traced_memory()[1])
"""
    most = []
    for packets in (2000, 20000):
        its = [Connection(port=40000 + k) for k in range(10)]
        frames = []
        for k in range(packets // 2):
            it, at = its[k % 10], 20 * k / packets
            frames += [it.send(at, 100), it.get(at + 1e-5, 100)]
        path = tmp_path / f"{packets}.pcap"
        path.write_bytes(pcap(frames))
        done = subprocess.run(
            [sys.executable, "-c", script, path],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        most.append(int(done.stdout))
    assert most[1] < 1.2 * most[0], most
    assert (tmp_path / "20000.pcap").stat().st_size > 1.5 * (most[1] - most[0])
