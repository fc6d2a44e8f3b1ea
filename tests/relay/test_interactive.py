# SPDX-License-Identifier: MIT
"""Traffic that waits for every answer: ssh, socat, iperf3."""

import json
import socket
from pathlib import Path

import pytest

from tests.relay import payload
from tests.relay.ends import echo, read_exactly, serving
from tests.relay.netns import Namespace
from tests.relay.programs import finish, program
from tests.relay.proxies import extended_pair
from tests.relay.servers import iperf3, sshd


def test_ssh_runs_commands_and_copies_files(box: Namespace, tmp_path: Path) -> None:
    sent = tmp_path / "sent"
    wanted = payload.write(sent, 3_000_000)
    with (
        sshd(box, tmp_path) as options,
        extended_pair(box, tmp_path, lp=["--forward", "2022:127.0.0.1:2222"]),
    ):
        for n in range(3):
            argv = ["ssh", *options, "-p", "2022", "root@127.0.0.1", f"echo answer {n}"]
            code, out, err = finish(argv, box, 30)
            assert (code, out) == (0, f"answer {n}\n"), err
        code, _, err = finish(
            ["scp", *options, "-P", "2022", sent, f"root@127.0.0.1:{tmp_path}/there"], box, 30
        )
        assert code == 0, err
        code, _, err = finish(
            ["scp", *options, "-P", "2022", f"root@127.0.0.1:{tmp_path}/there", tmp_path / "back"],
            box,
            30,
        )
        assert code == 0, err
    assert payload.file_digest(tmp_path / "back") == wanted


@pytest.mark.parametrize("binding", ["late", "early"])
def test_socat_echoes_single_bytes(box: Namespace, tmp_path: Path, binding: str) -> None:
    echo_server = ["socat", "TCP-LISTEN:7777,bind=127.0.0.1,reuseaddr,fork", "EXEC:cat"]
    with (
        program(box, echo_server, tmp_path / "socat.log", port=7777, status=None),
        extended_pair(
            box, tmp_path, lp=["--forward", "7000:127.0.0.1:7777"], both=["--binding", binding]
        ),
        box.connect(("127.0.0.1", 7000)) as sock,
    ):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for n in range(500):
            byte = bytes([n % 256])
            sock.sendall(byte)
            assert read_exactly(sock, 1) == byte


def test_an_echo_beside_a_bulk_transfer_keeps_moving(box: Namespace, tmp_path: Path) -> None:
    """Bytes of another connection never wait for the end of a bulk transfer."""
    bulk = payload.seeded(1 << 20)

    def endless(sock: socket.socket) -> int:
        sent = 0
        try:
            while True:
                sock.sendall(bulk)
                sent += len(bulk)
        except OSError:
            return sent

    with (
        serving(box, endless) as flood,
        serving(box, echo) as mirror,
        extended_pair(
            box,
            tmp_path,
            lp=[
                *("--forward", f"7000:127.0.0.1:{mirror.port}"),
                *("--forward", f"7001:127.0.0.1:{flood.port}"),
            ],
        ),
    ):
        argv = ["socat", "-u", "TCP:127.0.0.1:7001", "OPEN:/dev/null"]
        with (
            program(box, argv, tmp_path / "sink.log", name="sink", status=None) as sink,
            box.connect(("127.0.0.1", 7000)) as sock,
        ):
            for n in range(50):
                byte = bytes([n])
                sock.sendall(byte)
                assert read_exactly(sock, 1) == byte
            assert sink.running(), "the bulk transfer ended by itself"


@pytest.mark.parametrize("direction", ["up", "down"])
def test_iperf3(box: Namespace, tmp_path: Path, direction: str) -> None:
    argv = ["iperf3", "--client", "127.0.0.1", "--port", "5999", "--time", "2", "--json"]
    argv += ["--parallel", "4"] + (["--reverse"] if direction == "down" else [])
    with (
        iperf3(box, tmp_path),
        extended_pair(box, tmp_path, lp=["--forward", "5999:127.0.0.1:5201"], asan=False),
    ):
        code, out, err = finish(argv, box, 40)
        report = json.loads(out)
        assert code == 0 and "error" not in report, f"{err} {report.get('error')}"
        assert report["end"]["sum_received"]["bytes"] > 10_000_000
        assert len(report["end"]["streams"]) == 4
