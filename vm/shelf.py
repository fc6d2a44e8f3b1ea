# SPDX-License-Identifier: MIT
"""The folder where images are kept: which of them are in use, and which may go.

An image is half a gigabyte, a box one and a half: of other recipes than today's none stays that
nobody uses. Where TM3_VM_CACHE names the folder, trees with different recipes may share it: then
nothing goes but by `make vm-clean`.
"""

import fcntl
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from vm.need import GuestError
from vm.recipe import cache

GUESTS, BOXES = re.compile(r"[0-9a-f]{16}"), re.compile(r"box-[0-9a-f]{16}")
SERVICES = re.compile(r"services-[0-9a-f]{16}")
LEFT_OVER = re.compile(r"\.(new|old)-.*")  # by one that was killed while it made or removed


def kernels(name: str = "[a-z0-9]+") -> re.Pattern[str]:
    """All of that name, also one without a hash, as they were once."""
    return re.compile(rf"kernel-{name}(-[0-9a-f]{{16}})?")


@contextmanager
def in_use(folder: Path) -> Iterator[None]:
    """Nobody removes it until the block or this process ends."""
    try:
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        raise GuestError(f"no image {folder}: sudo make vm") from None
    try:
        fcntl.flock(held, fcntl.LOCK_SH)
        if not folder.exists():
            raise GuestError(f"no image {folder}: removed just now; sudo make vm")
        yield
    finally:
        os.close(held)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Who makes or removes: two at once would do the same work twice."""
    with (folder / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def make_room(kind: re.Pattern[str], wanted: Path, say: Callable[[str], None]) -> None:
    """By who is alone: what others left half made, and what `wanted` takes the place of."""
    _remove(wanted.parent, LEFT_OVER, say)
    if not os.environ.get("TM3_VM_CACHE"):
        _remove(wanted.parent, kind, say, keep=wanted)


def clean(say: Callable[[str], None]) -> None:
    """Everything that nobody uses."""
    folder = cache()
    if not folder.is_dir():
        return
    try:
        with alone(folder):
            for kind in (LEFT_OVER, GUESTS, SERVICES, BOXES, kernels()):
                _remove(folder, kind, say)
    except PermissionError as why:
        raise GuestError(f"not allowed to remove {why.filename}: sudo make vm-clean") from None


def _remove(
    folder: Path, kind: re.Pattern[str], say: Callable[[str], None], keep: Path | None = None
) -> None:
    for path in sorted(folder.iterdir()):
        if path != keep and path.is_dir() and kind.fullmatch(path.name):
            removed = _removed(path)
            say(f"removed {path}" if removed else f"{path} is in use: it stays")


def _removed(path: Path) -> bool:
    """Out of sight first: what is half removed is no image."""
    held = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        hidden = path.with_name(f".old-{path.name.removeprefix('.old-')}")
        shutil.rmtree(path.rename(hidden))
    except BlockingIOError:
        return False
    finally:
        os.close(held)
    return True
