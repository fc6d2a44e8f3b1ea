# SPDX-License-Identifier: MIT
"""What an image is made of, and the name that follows from it.

Everything that decides what is in an image goes into its hash: the list of packages, the files
put beside them, the apt sources, the version of the kernel that these offer, the code that builds.
An image with that name is there already or is made once.
"""

import functools
import hashlib
import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from base.shell import CommandError, run
from vm.need import GuestError

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
APT = Path("/etc/apt")
KERNEL = "linux-image-amd64"
# What the guest has no use for and takes long to unpack.
EXCLUDED = (
    *(f"/usr/share/{what}/*" for what in ("doc", "man", "info", "locale", "lintian")),
    *(
        f"/lib/modules/*/kernel/drivers/{what}/*"
        for what in ("gpu", "media", "infiniband", "iio", "staging", "scsi", "hwmon", "usb")
    ),
    *(f"/lib/modules/*/kernel/drivers/net/{what}/*" for what in ("wireless", "can", "wwan")),
    "/lib/modules/*/kernel/sound/*",
)


@dataclass(frozen=True)
class Sources:
    """Where packages come from: what this machine's apt is configured for, of its own release."""

    suite: str
    lines: str  # as in sources.list
    stanzas: str  # as in *.sources


@dataclass(frozen=True)
class Recipe:
    packages: tuple[str, ...]
    sources: Sources
    kernel: str  # the package's version
    code: bytes
    kind: str = ""  # of the guest, where it is not the one of most tests

    @property
    def name(self) -> str:
        digest = hashlib.sha256()
        for part in (
            *("\n".join(self.packages), "\n".join(EXCLUDED), self.kernel),
            *(self.sources.suite, self.sources.lines, self.sources.stanzas),
        ):
            digest.update(part.encode() + b"\0")
        digest.update(self.code)
        return (f"{self.kind}-" if self.kind else "") + digest.hexdigest()[:16]


def names_in(path: Path) -> tuple[str, ...]:
    """A list of packages, one a line."""
    lines = (line.partition("#")[0].strip() for line in path.read_text().splitlines())
    return tuple(sorted(line for line in lines if line))


def codename() -> str:
    release = platform.freedesktop_os_release()
    if "VERSION_CODENAME" not in release or release.get("ID") != "debian":
        raise GuestError(f"the guest is made from this machine's Debian; this is {release['NAME']}")
    return release["VERSION_CODENAME"]


def _of_suite(words: list[str], suite: str) -> bool:
    return any(re.split("[-/]", word)[0] == suite for word in words)


def sources(suite: str, apt: Path = APT) -> Sources:
    """Other people's repositories, which name no suite of Debian, are left out."""
    lines, stanzas = [], []
    for path in (apt / "sources.list", *sorted((apt / "sources.list.d").glob("*.list"))):
        text = path.read_text() if path.exists() else ""
        for line in text.splitlines():
            words = re.sub(r"\[[^]]*\]", "", line.partition("#")[0]).split()
            if words[:1] == ["deb"] and _of_suite(words[2:3], suite):
                lines.append(line)
    for path in sorted((apt / "sources.list.d").glob("*.sources")):
        for stanza in re.split(r"\n\s*\n", path.read_text()):
            kept = "\n".join(ln for ln in stanza.splitlines() if not ln.startswith("#"))
            suites = re.search(r"^Suites:(.*)$", kept, re.MULTILINE | re.IGNORECASE)
            if suites and _of_suite(suites[1].split(), suite):
                stanzas.append(kept)
    if not lines and not stanzas:
        raise GuestError(f"no packages: apt is configured for no source of Debian {suite} ({apt})")
    return Sources(suite, "\n".join(lines), "\n\n".join(stanzas))


@functools.cache
def kernel_version() -> str:
    """Modules are built here for the kernel there: a new one is a new image. Where apt keeps no
    index of its lists, as in containers, it reads them all to answer, which at idle priority beside
    busy programs takes minutes."""
    try:
        text = run(["apt-cache", "policy", KERNEL], seconds=120)
    except CommandError as why:
        raise GuestError(f"apt does not answer: {why}") from None
    found = re.search(r"Candidate: (\S+)", text)
    if not found or found[1] == "(none)":
        raise GuestError(f"apt knows no {KERNEL}: sudo apt-get update")
    return found[1]


def recipe(kind: str = "") -> Recipe:
    parts = [HERE / "guest" / "init", HERE / "image.py"]
    return Recipe(
        kind=kind,
        packages=names_in(HERE / f"{kind or 'guest'}.debian"),
        sources=sources(codename()),
        kernel=kernel_version(),
        code=b"\0".join(path.read_bytes() for path in parts),
    )


def kernel_home(name: str, made_of: Sequence[str], code: Sequence[str]) -> Path:
    """The folder of a kernel: what it is made of, and the files of vm/ that make it."""
    digest = hashlib.sha256("\0".join(made_of).encode())
    for it in code:
        digest.update(b"\0" + (HERE / it).read_bytes())
    return cache() / f"kernel-{name}-{digest.hexdigest()[:16]}"


def cache() -> Path:
    """Where images are kept."""
    chosen = os.environ.get("TM3_VM_CACHE")
    return Path(chosen) if chosen else Path(os.environ.get("TM3_BUILD") or ROOT / "build") / "vm"
