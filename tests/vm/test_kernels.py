# SPDX-License-Identifier: MIT
"""Other kernels: what is said when they cannot be had, and that they are made whole.

The rest is in tests/kmod, for headers, and in `make test-vm KERNEL=...`.
"""

import os
from pathlib import Path

import pytest

from vm import kernel, kernels
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


def test_a_guest_has_the_modules_of_its_kernel(tmp_path: Path) -> None:
    (tmp_path / "release").write_text("9.9-amd64\n")
    under = kernel.UnderKernel(tmp_path / "image", tmp_path)
    assert (under.disk.parent, under.kernel.parent) == (tmp_path / "image", tmp_path)
    modules = tmp_path / "lib/modules/9.9-amd64"
    assert other_modules(under) == (Share(modules, Path("/lib/modules/9.9-amd64")),)
    assert other_modules(Image(tmp_path)) == ()
