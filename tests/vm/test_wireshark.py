# SPDX-License-Identifier: MIT
"""The next Debian's tshark: fetched once, anew where the mirror has another one."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from vm import image, wireshark
from vm.recipe import Sources

pytestmark = pytest.mark.skipif(
    os.environ.get("TM3_GUEST") == "1", reason="of the machine that runs guests, not of a guest"
)


def test_it_is_fetched_when_the_mirror_has_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has, made = ["4.4.1-1"], []

    class Mirror:
        def __init__(self, uri: str, suite: str, state: Path) -> None:
            assert (uri, suite) == ("http://mirror.invalid", "trixie")

        def version(self, name: str) -> str:
            assert name == "tshark"
            return has[-1]

    def bootstrap(tree: Path, packages: Sequence[str], sources: Sources, scratch: Path) -> None:
        assert sources.lines.endswith("http://mirror.invalid trixie main")
        tree.mkdir()
        (tree / has[-1]).touch()
        made.append(has[-1])

    monkeypatch.setattr(wireshark, "Archive", Mirror)
    monkeypatch.setattr(image, "bootstrap", bootstrap)
    for number, version in enumerate(("4.4.1-1", "4.4.1-1", "4.4.2-1")):
        has.append(version)
        scratch = tmp_path / f"new-{number}"
        scratch.mkdir()
        wireshark._wireshark("http://mirror.invalid", "trixie", tmp_path, scratch, lambda _: None)
        assert [path.name for path in (tmp_path / "tree").iterdir()] == [version]
    assert made == ["4.4.1-1", "4.4.2-1"]
