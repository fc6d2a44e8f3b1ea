# SPDX-License-Identifier: MIT
"""The client of a lab as a real machine, with tm3.ko in its kernel.

    guest: curl, tm3.ko, lp ── TAP ══ last mile ══ rp ── server

Figures are on `pytest -rP`.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from base.shell import CommandError, until
from tests.net.conftest import why_no_lab
from topologies.addresses import SERVER
from topologies.lab import Lab
from topologies.parameter import ParameterError
from topologies.programs import program
from topologies.topos import LastMile
from vm import image, need, recipe
from vm.need import GuestError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.environ.get("TM3_GUEST") == "1", reason="runs a guest itself"),
]
PAYLOAD = b"".join(hashlib.sha256(str(n).encode()).digest() for n in range(32_000))
PIPES = (1, 4, 8)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """1 % of packets lost: more pipes shall be worth something."""
    try:
        need.programs(need.TO_RUN)
        found = image.Image(recipe.cache() / recipe.recipe().name)
    except GuestError as why:
        pytest.skip(str(why))
    if not found.folder.is_dir():
        pytest.skip("no image of the guest: sudo make vm")
    if reason := why_no_lab():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("lab")
    (folder / "served").mkdir()
    (folder / "served" / "object").write_bytes(PAYLOAD)
    with Lab(LastMile("wired", loss=0.01, link="linkem", client="vm"), logs=folder) as lab:
        argv = ["python3", "-u", "-m", "http.server", "80", "--directory", folder / "served"]
        with program(lab.state, "server", "web", argv):
            until("the web server", lambda: ":80 " in lab.server.inside("ss", "-Htln"))
            yield lab


def download(lab: Lab) -> float:
    """Seconds, as curl in the guest has it; the bytes are compared."""
    target = lab.state.log_folder / "got"
    words = ("-sf", "-o", target, "-w", "%{time_total}")
    took = float(lab.client.inside("curl", *words, f"http://{SERVER}/object"))
    assert target.read_bytes() == PAYLOAD
    target.unlink()
    return took


def test_it_is_another_kernel_at_the_client_address(lab: Lab) -> None:
    told = lab.client.describe()
    assert lab.client.inside("uname", "-r").strip() == told["kernel"]
    assert told["kernel"] != lab.rp.inside("uname", "-r").strip()
    (link,) = [x for x in json.loads(lab.client.inside("ip", "-j", "addr")) if x["ifname"] != "lo"]
    assert link["ifname"] == "client-eth0"
    assert [a["local"] for a in link["addr_info"]] == ["10.0.1.1"]


def test_the_last_mile_is_what_it_was(lab: Lab) -> None:
    """Its delay is in front of the guest; the machine adds its own few milliseconds."""
    said = lab.client.inside("ping", "-n", "-c", "15", "-i", "0.1", "10.0.1.2")
    times = sorted(float(ms) for ms in re.findall(r"time=([\d.]+)", said))
    print(f"least RTT {times[0]} ms")
    assert 50.0 <= times[0] <= 65.0, times


def test_it_reaches_the_lab_and_nothing_else(lab: Lab) -> None:
    devices = lab.client.inside("ls", "/sys/class/net").split()
    assert sorted(devices) == ["client-eth0", "lo"]
    routes = lab.client.inside("ip", "route").splitlines()
    assert {line.split()[0] for line in routes} == {"default", "10.0.1.0/24"}


@pytest.mark.parametrize("pipes", PIPES)
def test_a_download_through_the_module(lab: Lab, pipes: int) -> None:
    """An unmodified curl; the kernel says that it was redirected, lp that it came."""
    if not (Path(os.environ.get("TM3_BUILD") or "build") / "tm3.ko").exists():
        pytest.skip("tm3.ko is not built: make kmod")
    with lab.proxies(pipes) as pair:
        with lab.client.module((80,)):
            took = download(lab)
            status = lab.client.inside("cat", "/proc/net/tm3")
    print(f"{pipes} pipes: {len(PAYLOAD)} bytes in {took:.2f} s")
    assert re.search(r"^redirected 1$", status, re.MULTILINE), status
    (conn,) = [line for line in pair.statistics("lp") if line["type"] == "conn"]
    assert conn["dst"] == f"{SERVER}:80" and conn["rx_bytes"] >= len(PAYLOAD)


def test_a_download_through_nftables(lab: Lab) -> None:
    with lab.proxies(4, capture=("pipes",)) as pair, lab.redirected():
        download(lab)
    assert pair.captures[0].stat().st_size > len(PAYLOAD)


def test_a_program_that_fails_there_fails_here(lab: Lab) -> None:
    with pytest.raises(CommandError, match="no-such-file"):
        lab.client.inside("cat", "/no-such-file")
    with program(lab.state, "client", "failing", ["sh", "-c", "echo why >&2; exit 3"]) as failing:
        assert failing.process.wait(timeout=20) == 3
        assert failing.log == "why\n"


def test_a_record_says_what_the_client_is(lab: Lab) -> None:
    record = json.loads(json.dumps(lab.record()))
    told = record["nodes"]["client"]
    assert told["machine"]["kernel"] == lab.client.machine.image.release
    assert told["sysctls"]["net.ipv4.tcp_no_metrics_save"] == "1"


def test_its_own_queue_is_not_the_bottleneck() -> None:
    with pytest.raises(ParameterError, match=r"^bottleneck: "):
        LastMile("wired", bottleneck="sender", client="vm")
    with pytest.raises(ParameterError, match=r"^client: "):
        LastMile("wired", client="phone")
