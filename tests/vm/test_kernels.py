# SPDX-License-Identifier: MIT
"""Other kernels: what is said when they cannot be had, and that they are made whole.

The rest is in tests/kmod, for headers, and in `make test-vm KERNEL=...`.
"""

import os
import shutil
from pathlib import Path

import pytest

from vm import debug, kernel, kernels, need, recipe, shelf
from vm.image import Image
from vm.machine import Share, other_modules
from vm.need import GuestError

pytestmark = pytest.mark.skipif(
    os.environ.get("TM3_GUEST") == "1", reason="of the machine that runs guests, not of a guest"
)


def test_a_mirror_without_backports_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(GuestError, match=r"^no packages of x-backports: [EW]: .*") as caught:
        kernels.Archive(f"file:{tmp_path}/none", "x-backports", tmp_path / "state").headers()
    assert "\n" not in str(caught.value)


def test_a_release_that_apt_does_not_know() -> None:
    with pytest.raises(GuestError, match=r"^no packages: apt is configured for no source of Debia"):
        kernels.mirror("nodistro")


def test_headers_that_lie_elsewhere_find_each_other(tmp_path: Path) -> None:
    class Unpacked:
        def headers(self) -> list[str]:
            return ["linux-headers-9.9-amd64"]

        def unpack(self, names: list[str], into: Path) -> None:
            (into / "usr/src" / names[0]).mkdir(parents=True)
            makefile = into / "usr/src" / names[0] / "Makefile"
            makefile.write_text("include /usr/src/linux-headers-9.9-common/Makefile\n")

    kernels.ours(Unpacked(), tmp_path, Path("/later"))  # type: ignore[arg-type]
    (makefile,) = tmp_path.rglob("Makefile")
    assert makefile.read_text() == "include /later/usr/src/linux-headers-9.9-common/Makefile\n"


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The guest's first program, to be changed; kernels here are made of nothing else."""
    here = tmp_path / "here"
    shutil.copytree(recipe.HERE, here)
    monkeypatch.setattr(recipe, "HERE", here)
    monkeypatch.setenv("TM3_BUILD", str(tmp_path))
    monkeypatch.delenv("TM3_VM_CACHE", raising=False)
    init = here / "guest/init"
    monkeypatch.setattr(need, "root", lambda _: None)
    monkeypatch.setattr(need, "programs", lambda _: None)
    monkeypatch.setattr(debug, "made_of", lambda: ("6.1",))
    monkeypatch.setattr(debug, "build", lambda scratch, fresh, say: init)
    monkeypatch.setattr(kernel, "bootable", lambda tree, it: shutil.copy(it, tree / "initrd"))
    return init


def test_another_first_program_is_another_kernel(changed: Path, tmp_path: Path) -> None:
    """And who runs the old one goes on with it."""
    said: list[str] = []
    old = kernel.under(Image(tmp_path), "debug", said.append)
    assert kernel.under(Image(tmp_path), "debug", said.append) == old
    assert len(said) == 1
    before = changed.read_text()
    changed.write_text("another\n")
    with shelf.in_use(old.home):
        new = kernel.under(Image(tmp_path), "debug", said.append)
        assert new.initrd.read_text() == "another\n"
        assert old.initrd.read_text() == before
    assert said[-1] == f"{old.home} is in use: it stays"
    kernel.under(Image(tmp_path), "debug", said.append)
    assert said[-1] == f"removed {old.home}"
    assert [path for path in recipe.cache().iterdir() if path.is_dir()] == [new.home]


def test_a_guest_has_the_modules_of_its_kernel(tmp_path: Path) -> None:
    (tmp_path / "release").write_text("9.9-amd64\n")
    under = kernel.UnderKernel(tmp_path / "image", tmp_path)
    assert (under.disk.parent, under.kernel.parent) == (tmp_path / "image", tmp_path)
    modules = tmp_path / "lib/modules/9.9-amd64"
    assert other_modules(under) == (Share(modules, Path("/lib/modules/9.9-amd64")),)
    assert other_modules(Image(tmp_path)) == ()
