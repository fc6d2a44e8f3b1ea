# SPDX-License-Identifier: MIT
"""tm3-proxies and tm3-dkms as `make deb` makes them, installed, upgraded and removed by dpkg where
systemd runs; tests/install/test_deb.py looks at what is in them."""

import os
import platform
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from install.__main__ import version
from tests.relay.ends import echo, serves, serving
from tests.vm.service import (
    ETC,
    SIDES,
    Own,
    Service,
    command,
    in_guest,
    install,
    package,
    status_of,
    systemctl,
)

pytestmark = [in_guest, pytest.mark.timeout(1500)]

PROXIES, DKMS = "tm3-proxies", "tm3-dkms"
LATER = "9.0"
# Where the machine itself goes on writing meanwhile, and what every package leaves to dpkg.
OTHERS = re.compile(
    r"/(proc|sys|dev|tm3|tmp|work|root|run/(tree|systemd|udev|log|user|initctl|utmp|mount|lock))\b"
    r"|/var/(log/journal|log/(dpkg|alternatives|apt|wtmp|btmp|lastlog)|cache/ldconfig)"
    r"|/var/lib/(dpkg/(status|available|diversions|statoverride|triggers|lock|updates)|systemd)"
    r"|/etc/(\.pwd\.lock|ld\.so\.cache)|/var/lib/private$|/var/log/private$"
)
own = Own()


def paths() -> set[str]:
    """All that there are on the machine's own file systems."""
    said = command("find", "/", "/run", "-xdev", "-print")
    return {path for path in said.splitlines() if not OTHERS.match(path)}


@pytest.fixture
def proxies() -> Iterator[tuple[Service, Service]]:
    """Installed, with files to start by; removed afterwards, whatever became of them."""
    install(PROXIES)
    rp, lp = (Service(side) for side in SIDES)
    rp.configure("pipes 2", "listen 127.0.0.1")
    lp.configure("rp-address 127.0.0.1", "pipes 2", "redirect off")
    yield rp, lp
    command("dpkg", "-P", PROXIES)


def repacked(name: str, folder: Path) -> Path:
    """The same package with a later version."""
    tree = folder / "tree"
    command("dpkg-deb", "-R", package(name), tree)
    control = tree / "DEBIAN" / "control"
    text = control.read_text()
    control.write_text(text.replace(f"\nVersion: {version()}\n", f"\nVersion: {LATER}\n"))
    assert control.read_text() != text
    command("dpkg-deb", "-b", tree, folder / "later.deb")
    return folder / "later.deb"


def test_a_life_that_leaves_nothing(tmp_path: Path) -> None:
    """Installed, configured, enabled, run, removed, purged: every path that is new has gone."""
    before = paths()
    said = install(PROXIES)
    assert "rror" not in said and "arning" not in said, said
    assert list(ETC.iterdir()) == []
    rp, lp = services = [Service(side) for side in SIDES]
    for service in services:
        assert service.ask("ActiveState", "UnitFileState") == {
            "ActiveState": "inactive",
            "UnitFileState": "disabled",
        }
    rp.configure("pipes 2", "listen 127.0.0.1", "stats /var/log/tm3-rp/stats.jsonl")
    lp.configure("rp-address 127.0.0.1", "pipes 2", "redirect off")
    key = ETC / "somebodys.key"
    key.write_text(command("tm3-lp", "--make-key", "somebody"))
    systemctl("enable", "--now", rp.name, lp.name)
    lp.expect("2 pipes to 127.0.0.1:6010")
    pids = [service.pid for service in services]
    with serving(own, echo) as server:
        serves(own, server.port)
    command("dpkg", "-r", PROXIES)
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()], "it runs on"
    assert status_of(PROXIES) == "config-files"
    assert sorted(it.name for it in ETC.iterdir()) == ["lp.conf", "rp.conf", key.name]
    assert Path("/var/log/tm3-rp/stats.jsonl").stat().st_size
    # Somebody who installs it again finds it as it was.
    install(PROXIES)
    assert rp.ask("UnitFileState") == {"UnitFileState": "enabled"}
    command("dpkg", "-P", PROXIES)
    assert status_of(PROXIES) == ""
    assert {it for it in paths() - before if it != str(ETC)} == {str(key)}, "of a purge"
    key.unlink()
    ETC.rmdir()
    failed = systemctl("--failed", "--plain", "--no-legend")
    assert "tm3" not in failed + systemctl("list-unit-files", "tm3*", "--no-legend", status=1)


def test_an_upgrade_restarts_what_runs(proxies: tuple[Service, Service], tmp_path: Path) -> None:
    rp, lp = proxies
    rp.start()
    later = repacked(PROXIES, tmp_path)
    first, file = rp.pid, rp.file.read_text()
    command("dpkg", "-i", later)
    assert command("dpkg-query", "-W", "-f=${Version}", PROXIES) == LATER
    assert rp.ask("ActiveState", "Result", "UnitFileState") == {
        "ActiveState": "active",
        "Result": "success",
        "UnitFileState": "disabled",
    }
    assert rp.pid != first and rp.file.read_text() == file
    assert lp.state == "inactive", "who did not run was started"
    lp.start()
    lp.expect("2 pipes to 127.0.0.1:6010")
    with serving(own, echo) as server:
        serves(own, server.port)


def test_the_module_is_built_for_this_kernel_and_goes(tmp_path: Path) -> None:
    """By DKMS with the kernel's headers, which are in the image; loaded by its name."""
    before = paths()
    install(DKMS)
    release = platform.release()
    status = command("dkms", "status", "-m", "tm3")
    assert status == f"tm3/{version()}, {release}, {os.uname().machine}: installed\n"
    (built,) = Path("/lib/modules", release, "updates", "dkms").glob("tm3.ko*")
    assert command("modinfo", "-F", "filename", "tm3").strip() == str(built)
    assert command("modinfo", "-F", "vermagic", "tm3").split()[0] == release
    command("modprobe", "tm3")
    assert Path("/proc/net/tm3").read_text().startswith("off\n")
    command("rmmod", "tm3")
    command("dpkg", "-P", DKMS)
    assert command("dkms", "status", "-m", "tm3") == ""
    assert paths() - before == set()
