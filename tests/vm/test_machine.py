# SPDX-License-Identifier: MIT
"""The guest as this machine sees it: made, booted, spoken to; and what is said when it cannot be.

this process ── qemu ── agent ── command
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from vm import accel, image, need, recipe
from vm.machine import OWN_THREADS, CommandFailed, Machine, Share
from vm.need import GuestError
from vm.testing import BUILD

ROOT = Path(__file__).parents[2]
NO_WHERE = "of the machine that runs guests, not of a guest"

pytestmark = pytest.mark.skipif(os.environ.get("TM3_GUEST") == "1", reason=NO_WHERE)


@pytest.fixture(scope="module")
def made() -> image.Image:
    """The image, if it was made before: making it belongs to `make vm`."""
    try:
        need.programs(need.TO_RUN)
        found = image.Image(recipe.cache() / recipe.recipe().name)
    except GuestError as why:
        pytest.skip(str(why))
    if not found.folder.is_dir():
        pytest.skip("no image of the guest: sudo make vm")
    return found


@pytest.fixture(scope="module")
def guest(made: image.Image, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    folder = tmp_path_factory.mktemp("results")
    shares = [Share(folder, Path("/results"), True), Share(OWN_THREADS, Path("/run/threads"))]
    with Machine(made, memory_mib=512, shares=shares) as guest:
        yield guest


@pytest.mark.slow
def test_a_command_and_what_it_says(guest: Machine) -> None:
    done = guest.run(["sh", "-c", "cat; echo bad >&2; exit 3"], stdin="given", check=False)
    assert (done.status, done.out, done.err) == (3, "given", "bad\n")
    assert guest.run(["uname", "-r"]).out.strip() == guest.image.release
    with pytest.raises(CommandFailed, match=r"^/no/such: /no/such: No such file"):
        guest.run(["/no/such"])
    assert guest.run(["sh", "-c", "kill -9 $$"], check=False).status == -9


@pytest.mark.slow
def test_many_commands_at_once_and_many_bytes(guest: Machine) -> None:
    """Each gets its own, whole and in order."""
    sizes = [1, 70_000, 1_000_000]
    outs = [bytearray() for _ in sizes]
    script = "import sys; n = int(sys.argv[1]); sys.stdout.write((str(n) + ',') * (n // 8 + 1))"
    remotes = [
        guest.start(["python3", "-c", script, str(size)], out.extend, out.extend)
        for size, out in zip(sizes, outs, strict=True)
    ]
    for remote, size, out in zip(remotes, sizes, outs, strict=True):
        assert remote.wait(60) == 0
        assert out == f"{size},".encode() * (size // 8 + 1)


LATE = """
import time
late = []
for _ in range(40):
    due = time.monotonic() + 0.025
    time.sleep(0.025)
    late.append(time.monotonic() - due)
print(max(late))
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_clock_that_counts_instructions_is_never_late(made: image.Image) -> None:
    """Beside other tests on the same processors, and an hour passes in seconds."""
    with Machine(made, memory_mib=512, by=accel.TCG_COUNTED) as guest:
        guest.move_in("rp", "no-such")
        assert 0 < float(guest.run(["python3", "-c", LATE]).out) < 0.001
        guest.run(["sleep", "3600"], seconds=120)
        assert guest.run(["cat", f"{ROOT}/Makefile"]).out == (ROOT / "Makefile").read_text()
        kept = {it.name for it in (ROOT / "results").iterdir()} - {"curated"}
        assert set(guest.run(["ls", f"{ROOT}/results"]).out.split()) == kept
        assert guest.run(["sh", "-c", f'ls "{BUILD}"']).out == "rp\n"
        assert guest.run([BUILD / "rp", "--version"]).out.startswith("rp ")


@pytest.mark.slow
def test_a_command_that_takes_too_long_is_ended(guest: Machine) -> None:
    with pytest.raises(CommandFailed, match=r"sleep 987: not done in 0\.5 s"):
        guest.run(["sleep", "987"], seconds=0.5)
    guest.run(
        ["sh", "-c", "for i in $(seq 50); do pgrep -f 'sleep 98[7]' || exit 0; sleep .1; done"]
    )


@pytest.mark.slow
def test_the_tree_is_there_and_stays_as_it_is(guest: Machine) -> None:
    assert guest.run(["cat", "README.md"]).out == (ROOT / "README.md").read_text()
    guest.run(["sh", "-c", "echo changed >README.md; echo new >new"])
    assert guest.run(["cat", "README.md"]).out == "changed\n"
    assert (ROOT / "README.md").read_text().strip() != "changed"
    assert not (ROOT / "new").exists()
    assert guest.run(["cat", ROOT / "new"]).out == "new\n"


@pytest.mark.slow
def test_results_come_out(guest: Machine) -> None:
    guest.run(["sh", "-c", "echo measured >/results/one"])
    (share,) = (share for share in guest.shares if share.guest == Path("/results"))
    assert (share.host / "one").read_text() == "measured\n"


@pytest.mark.slow
def test_it_sees_how_long_its_processors_waited(guest: Machine) -> None:
    """Those of its own qemu, not of another one."""
    threads = guest.processors()
    assert len(threads) == guest.cpus == 2
    for thread in threads:
        before = waited_ns(Path(f"/proc/{guest.pid}/task/{thread}/schedstat").read_text())
        seen = waited_ns(guest.run(["cat", f"/run/threads/{thread}/schedstat"]).out)
        after = waited_ns(Path(f"/proc/{guest.pid}/task/{thread}/schedstat").read_text())
        assert 0 < before <= seen <= after


def waited_ns(schedstat: str) -> int:
    return int(schedstat.split()[1])


@pytest.mark.slow
def test_there_is_no_network_but_what_it_was_given(guest: Machine) -> None:
    assert guest.run(["ls", "/sys/class/net"]).out.split() == ["lo"]


@pytest.mark.slow
def test_it_runs_the_kernel_that_modules_are_built_for(guest: Machine) -> None:
    """And has what this machine's kernel may lack."""
    for module in ("sch_netem", "openvswitch", "sctp", "tcp_bbr", "nf_nat"):
        guest.run(["modprobe", module])


@pytest.mark.slow
def test_one_that_does_not_come_up_is_stopped_and_its_console_shown(made: image.Image) -> None:
    machine = Machine(made, memory_mib=256, kernel_words=["rdinit=/nowhere"], ready_s=60)
    with pytest.raises(GuestError) as caught, machine:
        pass
    said = str(caught.value).splitlines()
    assert said[0] == "the guest ended before it was up"
    assert any("Kernel panic" in line for line in said[1:]), said
    assert machine.process.poll() is not None


@pytest.mark.slow
def test_a_deadline_is_kept(made: image.Image) -> None:
    machine = Machine(made, memory_mib=256, ready_s=1.0)
    begun = time.monotonic()
    with pytest.raises(GuestError, match=r"^the guest did not come up within 1 s"), machine:
        pass
    assert machine.process.poll() is not None
    assert time.monotonic() - begun < 30


@pytest.mark.slow
def test_it_ends_with_who_started_it(made: image.Image, tmp_path: Path) -> None:
    """Also where that has no time to clean up."""
    script = (
        "import sys; from pathlib import Path;"
        "from vm.image import Image; from vm.machine import Machine;"
        "m = Machine(Image(Path(sys.argv[1])), memory_mib=256); m.__enter__();"
        "print(m.pid, flush=True); sys.stdin.read()"
    )
    argv = [sys.executable, "-c", script, str(made.folder)]
    runner = subprocess.Popen(
        argv,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    with runner:
        pid = int(runner.stdout.readline())
        assert Path(f"/proc/{pid}").exists()
        runner.kill()
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline, "qemu outlives its runner"
        time.sleep(0.05)


# --- what is said when there can be no guest --------------------------------------------------


def test_no_qemu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GuestError) as caught:
        need.programs(need.TO_RUN)
    said = str(caught.value)
    assert said.startswith("no qemu-system-x86_64, setpriv here: sudo apt-get install qemu-system")
    assert "\n" not in said


def test_no_space(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=7 << 20))
    with pytest.raises(GuestError, match=r"^no space in /.*: 7 MiB free, 3000 MiB needed$"):
        need.space(tmp_path, image.SPACE_MIB)


def test_no_packages(tmp_path: Path) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list").write_text("deb http://elsewhere.invalid/x nodistro main\n")
    with pytest.raises(GuestError, match=r"^no packages: apt is configured for no source of Debi"):
        recipe.sources("bookworm", tmp_path)


def test_sources_that_do_not_answer(tmp_path: Path) -> None:
    try:
        need.root("making an image")
        need.programs(need.TO_BUILD)
    except GuestError as why:
        pytest.skip(str(why))
    nowhere = recipe.Sources(
        "bookworm", f"deb [trusted=yes] file:{tmp_path}/none bookworm main", ""
    )
    with pytest.raises(GuestError, match=r"^no packages: mmdebstrap failed: E") as caught:
        image.bootstrap(tmp_path / "root", ["bash"], nowhere, tmp_path)
    assert "\n" not in str(caught.value)


def test_sources_of_this_release_only(tmp_path: Path) -> None:
    """As apt reads them: both formats, comments, other people's repositories."""
    folder = tmp_path / "sources.list.d"
    folder.mkdir()
    (tmp_path / "sources.list").write_text(
        "# deb http://a.invalid/debian bookworm main\n"
        "deb [signed-by=/k.gpg] http://b.invalid/debian bookworm-updates main # why\n"
        "deb-src http://b.invalid/debian bookworm main\n"
    )
    (folder / "debian.sources").write_text(
        "Types: deb\n# old\nURIs: http://c.invalid/debian\nSuites: bookworm\nComponents: main\n"
        "\nTypes: deb\nURIs: http://d.invalid/x\nSuites: nodistro\nComponents: main\n"
    )
    found = recipe.sources("bookworm", tmp_path)
    assert found.lines.startswith("deb [signed-by=/k.gpg] http://b.invalid/debian bookworm-updates")
    assert "deb-src" not in found.lines and "a.invalid" not in found.lines
    assert "c.invalid" in found.stanzas and "d.invalid" not in found.stanzas


def test_what_decides_about_an_image_decides_about_its_name() -> None:
    sources = recipe.Sources("bookworm", "deb http://x.invalid bookworm main", "")
    one = recipe.Recipe(("a", "b"), sources, "6.1", b"code")
    assert one.name == recipe.Recipe(("a", "b"), sources, "6.1", b"code").name
    for other in (
        replace(one, packages=("a",)),
        replace(one, kernel="6.2"),
        replace(one, code=b"edoc"),
        replace(one, sources=replace(sources, suite="trixie")),
    ):
        assert other.name != one.name


def test_virtualisation_that_does_not_run_is_not_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The device answers, the guest does not come up: the emulator; asked once."""
    asked = []
    monkeypatch.delenv("TM3_VM_ACCEL", raising=False)
    monkeypatch.setattr(accel, "DEVICE", Path("/dev/null"))
    monkeypatch.setattr(accel, "runs", lambda *_: asked.append(1))
    found = image.Image(tmp_path)
    assert accel.accel(found) is accel.TCG
    assert accel.accel(found) is accel.TCG
    assert accel.accel(found, accel.TCG_IN_TURN) is accel.TCG_IN_TURN
    assert asked == [1]
    monkeypatch.setenv("TM3_VM_ACCEL", "kvm")
    assert accel.accel(found) is accel.KVM


def test_a_command_line_says_it_in_one_line(tmp_path: Path) -> None:
    env = {**os.environ, "PATH": str(tmp_path), "TM3_VM_CACHE": str(tmp_path)}
    argv = [sys.executable, "-m", "vm", "run", "--", "true"]
    done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("vm: ") and done.stderr.count("\n") == 1, done.stderr
