# SPDX-License-Identifier: MIT
"""tshark of the Debian that follows this one: `make wireshark`, for tests/dissector.

From the mirror that apt is configured for, into build/wireshark/tree; nothing is installed. The
folder has that release's libraries as well, and is run in by tests/dissector/in_tree.
"""

import shutil
import tempfile
import time
from pathlib import Path

from vm import image, need, shelf
from vm.image import Say
from vm.kernels import FOLLOWS, KEYRING, Archive, mirror
from vm.recipe import Sources, cache, codename

PACKAGES = ("tshark",)
SPACE_MIB = 1000


def wireshark(say: Say) -> Path:
    """The folder, made anew where the mirror has another tshark than the one that is in it."""
    need.root("making a folder with tshark")
    need.programs(("mmdebstrap",))
    suite, target = codename(), cache().parent / "wireshark"
    if suite not in FOLLOWS:
        raise need.GuestError(f"it is not known which release of Debian follows {suite}")
    target.mkdir(parents=True, exist_ok=True)
    with shelf.alone(target), tempfile.TemporaryDirectory(dir=target, prefix=".new-") as name:
        _wireshark(mirror(suite), FOLLOWS[suite], target, Path(name), say)
    return target / "tree"


def _wireshark(uri: str, release: str, target: Path, scratch: Path, say: Say) -> None:
    begun = time.monotonic()
    wanted = Archive(uri, release, scratch / "apt").version(PACKAGES[0])
    made = target / "made"
    if made.is_file() and made.read_text() == wanted:
        return
    need.space(target, SPACE_MIB)
    say(f"fetching tshark {wanted} of {release}, with what it needs")
    lines = f"deb [signed-by={KEYRING}] {uri} {release} main"
    image.bootstrap(scratch / "tree", PACKAGES, Sources(release, lines, ""), scratch)
    made.unlink(missing_ok=True)
    shutil.rmtree(target / "tree", ignore_errors=True)
    (scratch / "tree").rename(target / "tree")
    made.write_text(wanted)
    say(f"fetched in {time.monotonic() - begun:.0f} s: {target}")
