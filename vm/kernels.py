# SPDX-License-Identifier: MIT
"""Headers of kernels newer than this Debian's, and checkpatch: `make kernels`, for tests/kmod.

From the mirror that apt is configured for, into build/kernels/; nothing is installed:

    bookworm-backports/   headers, for this Debian's compiler
    trixie-backports/     those of the next release, with its compiler: to be built in there
    bookworm-arm64/       of this Debian's kernel for arm64, for the cross compiler
    checkpatch/           the one of the former's source
"""

import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from base.shell import run
from vm import image, need, shelf
from vm.image import Say
from vm.recipe import Sources, cache, codename

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
FOLLOWS = {"bookworm": "trixie"}
ARM64 = "arm64"
COMPILER = ("gcc", "make", "pahole")
SPACE_MIB = 1500
CHECKPATCH = ("checkpatch.pl", "spelling.txt", "const_structs.checkpatch")
APT = """
Dir::Etc::SourceList "{state}/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::State::Lists "{state}/lists";
Dir::State::Status "{state}/status";
Dir::Cache "{state}/cache";
APT::Sandbox::User "root";
APT::Architecture "{architecture}";
APT::Architectures:: "{architecture}";
"""


def mirror(suite: str) -> str:
    """Where apt has this release from."""
    told = run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)"])
    for line in told.splitlines():
        uri, *rest = line.split()
        if rest == [suite, "main"]:
            return uri
    raise need.GuestError(f"no packages: apt is configured for no source of Debian {suite}")


class Archive:
    """apt with one suite of the mirror, beside this machine's own."""

    def __init__(self, uri: str, suite: str, state: Path, architecture: str = "amd64") -> None:
        self.suite, self._state, self._architecture = suite, state, architecture
        for name in ("lists/partial", "cache/archives/partial", "debs"):
            (state / name).mkdir(parents=True)
        (state / "status").write_text("")  # nothing is installed
        (state / "sources.list").write_text(f"deb [signed-by={KEYRING}] {uri} {suite} main\n")
        (state / "apt.conf").write_text(APT.format(state=state, architecture=architecture))
        self._ask("apt-get", "update")

    def headers(self) -> list[str]:
        """The packages that are the headers of the suite's newest kernel; not that kernel."""
        meta = self._depends(f"linux-headers-{self._architecture}")
        first = next(name for name in meta if name.startswith("linux-headers-"))
        others = [name for name in self._depends(first) if re.search("-common|-kbuild", name)]
        return [first, *others]

    def image(self) -> str:
        """The package that is the suite's newest kernel."""
        meta = f"linux-image-{self._architecture}"
        return next(name for name in self._depends(meta) if name.startswith("linux-image-"))

    def version(self, name: str) -> str:
        """Of the package that would be installed."""
        text = self._ask("apt-cache", "show", "--no-all-versions", name)
        found = re.search(r"^Version: (.*)$", text, re.MULTILINE)
        if not found:
            raise need.GuestError(f"no package {name} in {self.suite}")
        return found[1]

    def unpack(self, names: Sequence[str], into: Path) -> None:
        self._ask("apt-get", "download", *names)
        for name in names:
            (package,) = (self._state / "debs").glob(f"{name}_*.deb")
            run(["dpkg-deb", "-x", package, into], seconds=120)

    def _depends(self, name: str) -> list[str]:
        text = self._ask("apt-cache", "show", "--no-all-versions", name)
        found = re.search(r"^Depends: (.*)$", text, re.MULTILINE)
        return [word.split()[0] for word in found[1].split(",")] if found else []

    def _ask(self, program: str, *words: str) -> str:
        argv = [program, "-q", "-c", str(self._state / "apt.conf"), *words]
        debs = self._state / "debs"
        done = subprocess.run(argv, capture_output=True, text=True, cwd=debs, check=False)
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.startswith(("E:", "W:"))]
            raise need.GuestError(f"no packages of {self.suite}: {'; '.join(lines[:3])}")
        return done.stdout


def ours(archive: Archive, into: Path, final: Path) -> None:
    archive.unpack(archive.headers(), into)
    relocate(into, final)


def relocate(headers: Path, final: Path) -> None:
    """Headers name each other by where they would be installed."""
    for makefile in (headers / "usr/src").glob("linux-headers-*64/Makefile"):
        makefile.write_text(makefile.read_text().replace("include /usr", f"include {final}/usr"))


def crossed(archive: Archive, tools: Archive, into: Path, final: Path) -> None:
    """Headers for the other architecture, the programs of the kernel's build for this one."""
    of_headers = archive.headers()
    archive.unpack([name for name in of_headers if "-kbuild" not in name], into)
    tools.unpack([name for name in of_headers if "-kbuild" in name], into)
    relocate(into, final)


def theirs(archive: Archive, uri: str, release: str, into: Path, scratch: Path) -> None:
    """Its tools need its libraries."""
    lines = f"deb [signed-by={KEYRING}] {uri} {release} main"
    image.bootstrap(into, COMPILER, Sources(release, lines, ""), scratch)
    archive.unpack(archive.headers(), into)


def checkpatch(archive: Archive, into: Path, scratch: Path) -> None:
    """A few files out of the whole source."""
    version = re.search(r"\d+\.\d+", archive.headers()[0])
    assert version
    name = f"linux-source-{version[0]}"
    archive.unpack([name], scratch)
    members = [f"{name}/scripts/{file}" for file in CHECKPATCH]
    source = scratch / "usr/src" / f"{name}.tar.xz"
    run(["tar", "-C", into, "--strip-components=2", "-xf", source, *members], seconds=300)


def kernels(say: Say) -> Path:
    """All four, made anew where there are newer headers than those that are there."""
    need.root("making a folder with a compiler")
    need.programs(need.TO_BUILD)
    suite, target = codename(), cache().parent / "kernels"
    if suite not in FOLLOWS:
        raise need.GuestError(f"it is not known which release of Debian follows {suite}")
    target.mkdir(parents=True, exist_ok=True)
    with shelf.alone(target), tempfile.TemporaryDirectory(dir=target, prefix=".new-") as name:
        _kernels(mirror(suite), suite, target, Path(name), say)
    return target


def _kernels(uri: str, suite: str, target: Path, scratch: Path, say: Say) -> None:
    begun = time.monotonic()
    near, far = (f"{release}-backports" for release in (suite, FOLLOWS[suite]))
    here, there, this = (Archive(uri, name, scratch / "apt" / name) for name in (near, far, suite))
    other = f"{suite}-{ARM64}"
    foreign = Archive(uri, suite, scratch / "apt" / other, ARM64)
    archives = (here, there, foreign)
    wanted = "\n".join((*(name for it in archives for name in it.headers()), *COMPILER, ""))
    made = target / "made"
    if made.is_file() and made.read_text() == wanted:
        return
    need.space(target, SPACE_MIB)
    say(f"fetching {', '.join(it.headers()[0] for it in archives)} and checkpatch")
    fresh = scratch / "fresh"
    for name in (near, far, other, "checkpatch"):
        (fresh / name).mkdir(parents=True)
    ours(here, fresh / near, target / near)
    theirs(there, uri, FOLLOWS[suite], fresh / far, scratch)
    crossed(foreign, this, fresh / other, target / other)
    checkpatch(here, fresh / "checkpatch", scratch)
    made.unlink(missing_ok=True)
    for path in fresh.iterdir():
        shutil.rmtree(target / path.name, ignore_errors=True)
        path.rename(target / path.name)
    made.write_text(wanted)
    say(f"fetched in {time.monotonic() - begun:.0f} s: {target}")
