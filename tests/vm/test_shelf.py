# SPDX-License-Identifier: MIT
"""Where images are kept, and that those which nobody uses or wants do not stay for ever."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from vm import box, image, need, recipe, shelf
from vm.machine import Machine
from vm.need import GuestError

ROOT = Path(__file__).parents[2]
WANTED, OLD, BOX = "0123456789abcdef", "f" * 16, "box-" + "a" * 16
KERNEL, SERVICES = "kernel-backports-" + "c" * 16, "services-" + "b" * 16
RECIPE = recipe.Recipe(("bash",), recipe.Sources("bookworm", "deb x bookworm main", ""), "6.1", b"")
OTHERS = {BOX, SERVICES, KERNEL, "kernel-arm64", "tests"}

pytestmark = pytest.mark.skipif(
    os.environ.get("TM3_GUEST") == "1", reason="of the machine that runs guests, not of a guest"
)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """As a build directory has it: images, a box, a kernel, what a killed maker left."""
    monkeypatch.delenv("TM3_VM_CACHE", raising=False)
    monkeypatch.setenv("TM3_BUILD", str(tmp_path))
    for name in (WANTED, OLD, *OTHERS, ".new-killed"):
        (tmp_path / "vm" / name).mkdir(parents=True)
        (tmp_path / "vm" / name / "release").write_text("6.1\n")
    return tmp_path / "vm"


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.is_dir()}


def test_images_lie_in_the_build_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the variable is there and empty, as `TM3_BUILD= command` has it."""
    monkeypatch.delenv("TM3_VM_CACHE", raising=False)
    for value, folder in (("", ROOT / "build"), ("/somewhere", Path("/somewhere"))):
        monkeypatch.setenv("TM3_BUILD", value)
        assert recipe.cache() == folder / "vm"
    monkeypatch.delenv("TM3_BUILD")
    assert recipe.cache() == ROOT / "build" / "vm"
    monkeypatch.setenv("TM3_VM_CACHE", "/elsewhere")
    assert recipe.cache() == Path("/elsewhere")


def test_a_new_image_takes_the_place_of_the_old(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The box is another thing, and so is the image with systemd."""
    monkeypatch.setattr(need, "root", lambda _: None)
    monkeypatch.setattr(need, "programs", lambda _: None)
    monkeypatch.setattr(image, "_build", lambda _, folder, say: folder.mkdir())
    said: list[str] = []
    made = image.image(said.append, RECIPE)
    assert names(kept) == {RECIPE.name, *OTHERS} and made.folder.name == RECIPE.name
    assert [line for line in said if OLD in line] == [f"removed {kept / OLD}"]
    other = image.image(said.append, replace(RECIPE, kind="services"))
    assert other.folder.name == f"services-{RECIPE.name}"
    assert names(kept) == {RECIPE.name, other.folder.name, *OTHERS} - {SERVICES}


def test_what_is_there_already_removes_nothing(kept: Path) -> None:
    before = names(kept)
    (kept / RECIPE.name).mkdir()
    image.image(print, RECIPE)
    assert names(kept) == before | {RECIPE.name}


def test_another_key_is_another_box(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is written into the box."""
    for name in ("packages", "codename", "kernel_version"):
        monkeypatch.setattr(box, name, str)
    monkeypatch.setattr(box, "sources", lambda _: RECIPE.sources)
    assert (box.HERE / "vagrant.pub").read_bytes() in box.recipe().code


def test_an_image_in_use_stays(kept: Path) -> None:
    """As long as somebody uses it, also one who has no time to say that he does no longer."""
    script = (
        "import sys; from pathlib import Path; from vm.shelf import in_use\n"
        "with in_use(Path(sys.argv[1])): print('it', flush=True); sys.stdin.read()"
    )
    argv = [sys.executable, "-c", script, str(kept / OLD)]
    said: list[str] = []
    with subprocess.Popen(
        argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as user:
        assert user.stdout and user.stdout.readline() == "it\n"
        shelf.make_room(shelf.GUESTS, kept / WANTED, said.append)
        assert said[-1] == f"{kept / OLD} is in use: it stays"
        assert (kept / OLD / "release").read_text() == "6.1\n"
        user.kill()
    shelf.make_room(shelf.GUESTS, kept / WANTED, said.append)
    assert said[-1] == f"removed {kept / OLD}"
    assert names(kept) == {WANTED, *OTHERS}


def test_a_folder_that_trees_share_is_cleaned_only_when_told(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TM3_VM_CACHE", str(kept))
    shelf.make_room(shelf.GUESTS, kept / WANTED, print)
    assert names(kept) == {WANTED, OLD, *OTHERS}
    with shelf.in_use(kept / WANTED):
        shelf.clean(print)
        assert names(kept) == {WANTED, "tests"}
    shelf.clean(print)
    assert names(kept) == {"tests"}


def test_cleaning_what_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TM3_VM_CACHE", str(tmp_path / "nowhere"))
    shelf.clean(print)
    assert not (tmp_path / "nowhere").exists()


def test_a_guest_without_its_image_says_so_in_one_line(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TM3_VM_ACCEL", "tcg")
    monkeypatch.setattr(need, "programs", lambda _: None)
    gone = replace(image.Image(kept / OLD), folder=kept / "gone")
    with pytest.raises(GuestError, match=rf"^no image {kept}/gone: sudo make vm$"):
        with Machine(gone):
            pass
