# SPDX-License-Identifier: MIT
"""What the server of `tm3lab watch` answers, whom, and with what: without a browser."""

import fcntl
import http.client
import json
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from statistics import median
from typing import Any, cast

import pytest

from experiments.folder import FolderError
from experiments.watch import beside, door, stream
from experiments.watch.server import LOOKING_MAX, Server
from experiments.watch.watched import Watched
from tests.experiments import watch_told
from tests.experiments.synthetic import planned
from tests.experiments.watch_server import ANY, Events, asked, serving
from topologies.parameter import ParameterError
from topologies.programs import built


def test_the_events_are_the_lines_of_the_statistics(tmp_path: Path) -> None:
    watch_told.record(tmp_path, ticks=2000)
    (tmp_path / "rp.log").write_text("rp: listening\n")
    with serving(tmp_path) as server:
        for who in ("rp", "lp"):
            wanted = watch_told.read(tmp_path, who)
            assert len(json.dumps(wanted)) > 1_000_000, "more than comes in one piece"
            events = Events(server)
            assert events.until("run")["run"] == tmp_path.name
            assert events.records(who, len(wanted)) == wanted
            events.close()
        assert Events(server).until("said")["lines"] == ["rp: listening"]


def test_what_is_written_is_told_within_a_second(tmp_path: Path) -> None:
    """Most of the time: a machine that halts keeps some waiting."""
    watch_told.record(tmp_path, ticks=1)
    with serving(tmp_path) as server:
        events = Events(server)
        events.until("lp")
        took = []
        for tick in range(10):
            before = time.time()
            watch_told.write(tmp_path, "rp", [watch_told.pipe(0, before, tick)])
            assert events.until("rp")[-1]["time"] == before
            took.append(time.time() - before)
        assert median(took) < 1.0, took


def test_who_comes_again_is_told_the_rest_alone(tmp_path: Path) -> None:
    at = watch_told.record(tmp_path)
    with serving(tmp_path) as server:
        events = Events(server)
        first = events.records("rp", len(watch_told.read(tmp_path, "rp")))
        events.until("lp")
        events.close()
        more = watch_told.sample(at + 100, 100)
        watch_told.write(tmp_path, "rp", more)
        again = Events(server, since=events.last)
        name, told = again.next()
        assert name == "folder"
        name, told = again.next()
        assert (name, told) == ("rp", more), "neither `run`, which forgets, nor what is known"
        assert first + told == watch_told.read(tmp_path, "rp")
        which = events.last.rsplit(" ", 4)[0]
        strangers = ("three", "²", "9" * 30)  # "²" is a digit to Python, and no number
        said = [f"{which} 1 2 {it} 4" for it in strangers]
        for strange in ("x", '["other", "run"] 1 2 3 4', *said, "9 9 9 9"):
            assert Events(server, since=strange).until("run")


def test_files_that_are_made_anew_are_another_recording(tmp_path: Path) -> None:
    watch_told.record(tmp_path)
    with serving(tmp_path) as server:
        events = Events(server)
        events.until("lp")
        for who in ("rp", "lp"):
            (tmp_path / f"{who}.stats.jsonl").unlink()
        watch_told.write(tmp_path, "rp", [watch_told.start("rp", 5.0)])
        assert events.until("run")["run"] == tmp_path.name
        assert events.until("rp") == [watch_told.start("rp", 5.0)]


def test_half_a_line_is_waited_for(tmp_path: Path) -> None:
    watch_told.record(tmp_path, ticks=1)
    path = tmp_path / "rp.stats.jsonl"
    with serving(tmp_path) as server:
        events = Events(server)
        events.until("lp")
        line = json.dumps(watch_told.pipe(1, 7.0, 1))
        with path.open("a") as file:
            file.write(line[:40])
            file.flush()
            time.sleep(0.3)
            file.write(f"{line[40:]}\n{line}\n")
        assert events.until("rp") == [json.loads(line)] * 2


def test_no_line_of_a_file_is_an_event() -> None:
    """Whatever is in it, it is data of the event that tells of it."""
    told = stream.event("rp", "a\r\revent: run\rdata: 1\n\nid: 2", "3").decode()
    assert "\r" not in told
    first, *data = told.removesuffix("\n\n").split("\n")[1:]
    assert first == "event: rp"
    assert len(data) == 3
    assert all(it.startswith("data: ") for it in data)


def test_beside_a_sweep_it_is_last_for_a_core(tmp_path: Path) -> None:
    """Among all others, and not only among the processes of its own session."""
    watch_told.record(tmp_path)
    with beside.beside(tmp_path, beside.found(ANY)) as pid:
        assert os.getpriority(os.PRIO_PROCESS, pid) == 19
        group = Path(f"/proc/{pid}/autogroup")
        assert os.getsid(pid) == pid
        assert not group.is_file() or group.read_text().split()[1:] == ["nice", "19"]


def test_a_sweep_is_told_as_it_goes(tmp_path: Path) -> None:
    folder = planned(tmp_path)
    lines = (folder / "runs.jsonl").read_text().splitlines(keepends=True)
    (folder / "runs.jsonl").write_text("".join(lines[:5]))
    with serving(folder) as server:
        events = Events(server)
        sweep = events.until("sweep")
        assert sweep["total"] == len(lines)
        assert len(sweep["configurations"]) == len(lines) // 3
        assert len(events.until("ended")["runs"]) == 5
        with (folder / "runs.jsonl").open("a") as file:
            file.write("".join(lines[5:7]))
        told = events.until("ended")
        records = [json.loads(line) for line in lines[5:7]]
        assert [it["value"] for it in told["runs"]] == [it["completion_s"] for it in records]
        assert [it["id"] for it in told["runs"]] == [it["id"] for it in records]
        assert all(it["configuration"] in sweep["configurations"] for it in told["runs"])


def drawn(folder: Path, name: str, text: str) -> str:
    (folder / "plots").mkdir(exist_ok=True)
    svg = f"<svg xmlns='http://www.w3.org/2000/svg'><text>{text}</text></svg>"
    path = folder / "plots" / name
    before = path.stat().st_mtime_ns if path.is_file() else 0
    anew = path.with_suffix(".new")
    anew.write_text(svg)
    os.utime(anew, ns=(before + 10**9, before + 10**9))
    anew.replace(path)  # at once: who looks between has seen two pictures
    return svg


def test_plots_are_told_when_they_are_drawn(tmp_path: Path) -> None:
    """Not only beside a run that ends: the plots of a sweep are drawn after the last one. And
    again when they are drawn anew by the same names."""
    folder = planned(tmp_path)
    with serving(folder) as server:
        events = Events(server)
        events.until("ended")
        one = drawn(folder, "one.svg", "so far")
        assert events.until("plots") == {"names": ["one.svg"], "drawn": {"one.svg": one}}
        two = drawn(folder, "two.svg", "another")
        told = events.until("plots")
        assert told == {"names": ["one.svg", "two.svg"], "drawn": {"two.svg": two}}
        one = drawn(folder, "one.svg", "at the end")
        assert events.until("plots")["drawn"] == {"one.svg": one}
        (folder / "plots" / "two.svg").unlink()
        assert events.until("plots") == {"names": ["one.svg"], "drawn": {}}
    with serving(folder) as server:
        assert Events(server).until("plots")["drawn"] == {"one.svg": one}, "who comes later, too"


def test_half_a_plot_is_waited_for(tmp_path: Path) -> None:
    folder = planned(tmp_path)
    with serving(folder) as server:
        events = Events(server)
        one = drawn(folder, "one.svg", "whole")
        assert events.until("plots")["drawn"] == {"one.svg": one}
        (folder / "plots" / "one.svg").write_text("<svg><text>ha")
        (folder / "plots" / "two.svg").write_text("")
        time.sleep(3 * stream.SEARCH_EVERY_S)
        two = drawn(folder, "two.svg", "whole")
        told = events.until("plots")
        assert told == {"names": ["one.svg", "two.svg"], "drawn": {"two.svg": two}}


def test_the_last_plots_are_told_to_who_looks_when_it_ends(tmp_path: Path) -> None:
    """`run --watch` ends its page when the plots are drawn."""
    folder = planned(tmp_path)
    with serving(folder) as server:
        events = Events(server)
        events.until("ended")
        svg = drawn(folder, "one.svg", "the only one")
    assert events.until("plots")["drawn"] == {"one.svg": svg}


def test_a_run_of_the_folder_alone(tmp_path: Path) -> None:
    folder = planned(tmp_path)
    kept = Watched(folder).kept()
    assert kept
    with serving(folder) as server:
        events = Events(server, f"/events?run={kept[0]}")
        assert events.until("folder")["runs"] == kept
        assert events.until("run")["run"] == kept[0]
        wanted = watch_told.read(folder / "logs" / kept[0], "rp")
        assert events.records("rp", len(wanted)) == wanted
        for wrong in ("none", "..", ".", "../logs/" + kept[0], "/etc"):
            status, said, _ = asked(server, f"/events?run={wrong}")
            assert (status, said) == (404, "no statistics of this run are here\n")


def test_a_run_that_is_gone_stays_until_the_next_begins(tmp_path: Path) -> None:
    """Most runs' statistics go when they end; an earlier one that was kept is not shown then."""
    folder = planned(tmp_path)
    shutil.rmtree(folder / "logs")
    now = time.time()
    for age, name in ((30, "first"), (10, "second")):
        watch_told.record(folder / "logs" / name)
        os.utime(folder / "logs" / name, (now - age, now - age))
    with serving(folder) as server:
        events = Events(server)
        assert events.until("run")["run"] == "second"
        events.until("lp")
        shutil.rmtree(folder / "logs" / "second")
        time.sleep(3 * stream.SEARCH_EVERY_S)
        watch_told.record(folder / "logs" / "third")
        assert events.until("run")["run"] == "third"


def test_a_line_that_is_no_run_ends_the_sweep_alone(tmp_path: Path) -> None:
    folder = planned(tmp_path)
    with serving(folder) as server:
        events = Events(server)
        events.until("ended")
        with (folder / "runs.jsonl").open("a") as file:
            file.write('{"id": 5}\n')
        assert "a line that is no run" in events.until("trouble")


def test_a_folder_that_is_written_to_is_live(tmp_path: Path) -> None:
    """As long as a sweep has it, however long a run writes nothing."""
    folder = planned(tmp_path)
    for path in folder.rglob("*.jsonl"):
        os.utime(path, (1e9, 1e9))
    assert not Watched(folder).is_live()
    with (folder / "runs.jsonl").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert Watched(folder).is_live()
    assert not Watched(folder).is_live()


def test_plots_are_pictures_and_nothing_else_is_served(tmp_path: Path) -> None:
    folder = planned(tmp_path)
    (folder / "plots").mkdir()
    (folder / "plots" / "one.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    with serving(folder) as server:
        (folder / "plots" / "link.svg").symlink_to("/etc/hostname")
        status, picture, headers = asked(server, "/plots/one.svg")
        assert (status, headers["Content-Type"]) == (200, "image/svg+xml")
        assert picture.startswith("<svg")
        assert "script" not in headers["Content-Security-Policy"]
        wrong = ("link.svg", "../meta.json", "%2e%2e/meta.json", "none.svg", "")
        for path in (*(f"/plots/{it}" for it in wrong), "/meta.json", "/../server.py", "/."):
            assert asked(server, path)[0] == 404, path
        status, _, headers = asked(server, "/")
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        for name in ("page.js", "style.css", "record.js"):
            assert asked(server, f"/{name}")[0] == 200


@pytest.mark.parametrize(
    "host", ["localhost:1", "127.0.0.1", "127.9.9.9:80", "[::1]:80", "LOCALHOST."]
)
def test_pages_of_this_host_are_answered(tmp_path: Path, host: str) -> None:
    watch_told.record(tmp_path)
    with serving(tmp_path) as server:
        assert asked(server, "/", Host=host)[0] == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "192.0.2.1", "127.0.0.1.evil.example", "", "[", "localhost.evil.example"],
)
def test_a_page_asked_for_from_elsewhere_is_one_clear_line(tmp_path: Path, host: str) -> None:
    """As a browser asks whose page's name was made to lead to loopback."""
    watch_told.record(tmp_path)
    with serving(tmp_path) as server:
        for path in ("/", "/events", "/page.js"):
            status, said, _ = asked(server, path, Host=host)
            assert (status, said) == (
                403,
                f"this page is for loopback only: ask for {server.url}\n",
            )


def test_nothing_can_be_changed_without_a_lab(tmp_path: Path) -> None:
    watch_told.record(tmp_path)
    change = '{"mile": "mile", "parameter": "rtt_ms", "value": 5}'
    with serving(tmp_path) as server:
        for origin in ("http://evil.example", "null", "https://" + server.address, ""):
            status, said, _ = asked(server, "/link", "POST", change, Origin=origin)
            assert status == 403
            assert said.startswith("only the page itself may change the link")
        status, said, _ = asked(server, "/link", "POST", change, Origin=f"http://{server.address}")
        assert status == 404
        assert "up --watch" in said


@pytest.mark.parametrize("length", ["²", "1²", "-1", "+1", "1e1", "1_0", "9" * 30, ""])
def test_a_length_that_is_no_number_is_one_line(tmp_path: Path, length: str) -> None:
    """ "²" is a digit to Python, and no number."""
    watch_told.record(tmp_path)
    with Server(ANY, links=cast(Any, object())) as server:
        server.watched = Watched(tmp_path)
        with server.running(), socket.create_connection(server.server_address[:2], 5) as to:
            head = f"POST /link HTTP/1.1\r\nHost: {server.address}\r\n"
            head += f"Origin: http://{server.address}\r\nContent-Length: {length}\r\n\r\n"
            to.sendall(head.encode("latin-1"))
            assert to.recv(4096).startswith(b"HTTP/1.1 400 "), length


def test_so_many_may_look(tmp_path: Path) -> None:
    watch_told.record(tmp_path)
    with serving(tmp_path) as server:
        looking = [Events(server) for _ in range(LOOKING_MAX)]
        assert asked(server, "/events")[:2] == (503, f"{LOOKING_MAX} pages look already\n")
        for events in looking:
            events.until("lp")
            events.close()
        watch_told.write(tmp_path, "rp", watch_told.sample(9.0, 9) * 400)
        end = time.monotonic() + 20
        while asked_status(server) != 200:
            assert time.monotonic() < end, "who went is still counted"
            time.sleep(0.1)


def asked_status(server: Server) -> int:
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=10)
    connection.request("GET", "/events")
    status = connection.getresponse().status
    connection.close()
    return status


def test_it_ends_while_somebody_looks(tmp_path: Path) -> None:
    watch_told.record(tmp_path)
    before = time.monotonic()
    with serving(tmp_path) as server:
        events = Events(server)
        events.until("lp")
    assert time.monotonic() - before < 5
    with pytest.raises(OSError):
        socket.create_connection(server.server_address[:2], 1)


def test_places() -> None:
    assert door.place("9680") == ("127.0.0.1", 9680)
    assert door.place("localhost:1") == ("127.0.0.1", 1)
    assert door.place("[::1]:80") == ("::1", 80)
    for wrong in ("x", "70000", "-1", "", "127.0.0.1", "1:", "²", "9" * 5000):
        with pytest.raises(ParameterError, match="port: "):
            door.place(wrong)
    for elsewhere in ("0.0.0.0:80", "192.0.2.1:80", "[::]:80"):
        with pytest.raises(ParameterError, match="only who is on this host may ask"):
            door.place(elsewhere)


# --- the command ---


def command(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [built("tm3lab"), "watch", *words], capture_output=True, text=True, timeout=60
    )


def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    watch_told.record(tmp_path)
    with socket.create_server(ANY) as taken:
        port = taken.getsockname()[1]
        done = command(tmp_path, "--port", str(port))
    assert done.returncode == 2
    assert done.stderr == (
        f"tm3lab: port {port} of 127.0.0.1 is in use: --port names another one\n"
    )


def test_folders_that_cannot_be_watched(tmp_path: Path) -> None:
    done = command(tmp_path / "none")
    assert (done.returncode, done.stderr) == (1, f"tm3lab: {tmp_path}/none: no such folder\n")
    done = command(tmp_path)
    assert done.returncode == 1
    assert "neither a folder of results nor one with rp.stats.jsonl" in done.stderr
    folder = planned(tmp_path)
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps(meta | {"format": 99}))
    done = command(folder)
    assert done.returncode == 1
    assert done.stderr == f"tm3lab: {folder}: format 99; this version reads 1 only\n"
    shutil.rmtree(folder)
    with pytest.raises(FolderError):
        Watched(folder)


def test_statistics_that_others_may_not_read(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, who can become somebody else")
    tmp_path.chmod(0o755)
    watch_told.record(tmp_path)
    (tmp_path / "rp.stats.jsonl").chmod(0o600)
    with serving(tmp_path) as server:
        os.seteuid(65534)
        try:
            told = Events(server).until("trouble")
        finally:
            os.seteuid(0)
    assert told.endswith("only its owner may read it: sudo tm3lab watch")
