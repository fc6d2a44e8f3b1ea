# SPDX-License-Identifier: MIT
"""The guest with systemd as this machine sees it: what is said where its packages cannot be made.

What happens in it is in test_packages.py and test_units.py.
"""

import os
from pathlib import Path

import pytest

from vm import need, services, testing
from vm.image import Image
from vm.need import GuestError

pytestmark = pytest.mark.skipif(
    os.environ.get("TM3_GUEST") == "1", reason="of the machine that runs guests, not of a guest"
)


def test_without_debhelper_the_group_is_skipped_and_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(need.shutil, "which", lambda name: None if name == "dh" else name)
    said: list[str] = []
    assert testing.passes(Image(tmp_path), "services", [], tmp_path, said.append)
    assert said == ["services: skipped: no dh here: sudo apt-get install debhelper"]


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("echo no libbpf here >&2; exit 1", r"^no packages: make deb failed\n(.|\n)*no libbpf"),
        ("mkdir -p $(BUILD)/deb; touch $(BUILD)/deb/tm3-proxies_1.deb", "made no tm3-dkms$"),
    ],
)
def test_packages_that_cannot_be_made_are_a_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rule: str, why: str
) -> None:
    (tmp_path / "Makefile").write_text(f"deb:\n\t@{rule}\n")
    monkeypatch.setattr(services, "ROOT", tmp_path)
    monkeypatch.setattr(testing, "BUILD", tmp_path / "build")
    monkeypatch.setattr(need, "programs", lambda names: None)
    monkeypatch.setattr(services, "image", lambda *_: pytest.fail("an image was made all the same"))
    with pytest.raises(GuestError, match=why) as caught:
        testing.passes(Image(tmp_path), "services", [], tmp_path, lambda _: None)
    assert not isinstance(caught.value, services.NoTools)


def test_each_file_of_tests_belongs_to_one_guest() -> None:
    """pytest would say nothing of a file that no group runs."""
    here = {path.name for path in Path(__file__).parent.glob("test_*.py")}
    there = {Path(word).name for word in testing.GROUPS["services"].what if "/" in word}
    ignored = {Path(word.partition("=")[2]).name for word in testing.ELSEWHERE}
    assert there <= ignored <= here
    assert ignored - there == {f"test_{name}.py" for name in testing.HOST}
