# SPDX-License-Identifier: MIT
"""The house: which way the arrows run, what every file starts with, what README promises."""

import re
import shlex
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What becomes part of the kernel or of Wireshark; tools beside it are under MIT as all else.
LICENCES = {
    ("kmod", ".c"): "GPL-2.0",
    ("kmod", ".h"): "GPL-2.0",
    ("dissector", ".lua"): "GPL-2.0-or-later",
}
LINES_MAX = 600
# Files that a stranger finds by looking through a folder; where there are more a map helps.
NOUNS_MAX = 20
SOURCE = re.compile(r"\.(c|h|py|lua|sh)$|^Makefile$|^\.ci/(run|setup)$")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
# What only the wire format may know: where in a message a field starts, and its special lengths.
WIRE_NUMBERS = re.compile(r"\b0x(ffff|fffe)\b|\b(4104|65534|65535)\b", re.IGNORECASE)


@cache
def tracked() -> list[Path]:
    """The files of the project, as git knows them; all there are where git knows nothing."""
    done = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, text=True, check=False
    )
    if done.returncode == 0 and done.stdout:
        found = [ROOT / name for name in done.stdout.split("\0") if name]
    else:
        found = [path for path in ROOT.rglob("*") if "build" not in path.parts]
    return [path for path in found if path.is_file()]


def sources(*folders: str) -> list[Path]:
    return [p for p in tracked() if p.relative_to(ROOT).parts[0] in folders and p.suffix in ".c.h"]


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize(
    ("room", "may"),
    [("mux", {"mux"}), ("rp", {"rp", "mux"}), ("lp", {"lp", "mux"}), ("tls", {"tls", "mux"})],
)
def test_arrows(room: str, may: set[str]) -> None:
    """rp -> mux <- lp: by quotes a file includes only from its own room and from mux.

    What encrypts is chosen in main alone.
    """
    files = sources(room)
    assert files, f"{room}/ is empty"
    for path in files:
        for kind, target in INCLUDE.findall(path.read_text()):
            if kind == "<":
                continue
            reached = (path.parent / target).resolve()
            assert reached.is_file(), f"{name(path)} includes {target}, which is not there"
            where = reached.relative_to(ROOT).parts[0]
            chosen = path.name == "main.c" and target == "../tls/tls.h"
            assert where in may or chosen, f"{name(path)} includes {target}"


def test_only_libc_and_pthread() -> None:
    """The proxies include no header of another library: each is in libc6-dev or the kernel's."""
    for path in sources("rp", "lp", "mux"):
        for kind, target in INCLUDE.findall(path.read_text()):
            if kind == "<":
                found = [
                    root / target
                    for root in (Path("/usr/include"), Path("/usr/include/x86_64-linux-gnu"))
                    if (root / target).exists()
                ]
                own = target in ("stdarg.h", "stdbool.h", "stddef.h", "stdint.h", "limits.h")
                assert found or own, f"{name(path)} includes <{target}>"


def rooms() -> dict[str, set[str]]:
    """mux's rooms and what each may include, as their READMEs say."""
    found = {}
    for readme in sorted((ROOT / "mux").glob("*/README.md")):
        line = re.search(r"^May include: (.+)\.$", readme.read_text(), re.MULTILINE)
        assert line, f"{name(readme)} does not say what its files may include"
        told = set() if line[1] == "nothing else of mux" else set(line[1].split(", "))
        found[readme.parent.name] = told
    return found


def test_mux_is_made_of_rooms_in_order() -> None:
    """Each file lies in a room, and no room reaches itself through those that it may include."""
    for path in sources("mux"):
        assert path.parent.name in rooms(), f"{name(path)} lies in no room"
        assert path.parent.parent == ROOT / "mux", name(path)
        assert not re.search(r"^int main\(", path.read_text(), re.MULTILINE), name(path)

    def below(room: str) -> set[str]:
        return set().union(*({it} | below(it) for it in rooms()[room]))

    for room, may in rooms().items():
        assert may <= rooms().keys(), f"mux/{room}/README.md names a room that is not there: {may}"
        assert room not in below(room), f"mux/{room} reaches itself"


def test_rooms_of_mux_include_what_they_may() -> None:
    for path in sources("mux"):
        own = path.parent.name
        for kind, target in INCLUDE.findall(path.read_text()):
            if kind == "<":
                continue
            room = (path.parent / target).resolve().parent.name
            assert room in rooms()[own] | {own}, f"{name(path)} includes {target}"


def nouns(room: Path) -> list[str]:
    """What the files of a folder are called; a package's own files and tests apart."""
    here = [path for path in tracked() if path.parent == room]
    stems = {path.stem for path in here if path.suffix in {".c", ".h", ".py"}}
    return sorted(stem for stem in stems if not stem.startswith(("__", "test_")))


def large_rooms() -> list[Path]:
    rooms = {path.parent for path in sources("mux", "lp", "rp", "topologies")}
    python = ("topologies", "experiments", "experiments/workloads", "bench")
    rooms |= {ROOT / room for room in python}
    return sorted(room for room in rooms if len(nouns(room)) > NOUNS_MAX)


def test_a_large_room_says_what_is_where() -> None:
    """Its README names each of its files once: in the first column of a table."""
    # Asked here: each worker reads this file, and one runs the test.
    rooms = large_rooms()
    assert rooms
    for room in rooms:
        told = (room / "README.md").read_text().partition("## What is where\n")[2]
        cells = re.findall(r"^\| (`[^|]+) \|", told.partition("\n## ")[0], re.MULTILINE)
        assert sorted(re.findall(r"`(\w+)`", " ".join(cells))) == nouns(room), name(room)


def test_only_wire_knows_the_numbers_of_the_wire() -> None:
    for path in sources("rp", "lp", "mux"):
        if path.parent.name == "wire":
            continue
        code = re.sub(r'/\*.*?\*/|"[^"\n]*"', "", path.read_text(), flags=re.DOTALL)
        found = [
            line.strip()
            for line in code.splitlines()
            if WIRE_NUMBERS.search(line)
            and "port" not in line.lower()
            and "max" not in line.lower()
        ]
        assert not found, f"{name(path)}: {found}"


def test_every_source_names_its_licence() -> None:
    for path in tracked():
        where = path.relative_to(ROOT)
        if not SOURCE.search(str(where)):
            continue
        head = "\n".join(path.read_text(errors="replace").splitlines()[:3])
        found = re.search(r"SPDX-License-Identifier: ([\w.-]+)", head)
        assert found, f"{where} has no SPDX line at its top"
        wanted = LICENCES.get((where.parts[0], where.suffix), "MIT")
        assert found[1].startswith(wanted), f"{where} says {found[1]}, not {wanted}"


def test_files_are_about_one_thing() -> None:
    long = {
        name(path): lines
        for path in tracked()
        if path.suffix in {".c", ".h", ".py"}  # a dissector is one file by nature
        and (lines := len(path.read_text().splitlines())) > LINES_MAX
    }
    assert not long, f"each probably two nouns: {long}"


def test_no_cast_of_a_struct_onto_a_buffer_of_the_wire() -> None:
    for path in sources("mux"):
        if path.parent.name == "wire":
            assert "__attribute__((packed))" not in path.read_text(), name(path)


def test_python_is_clean() -> None:
    ruff = ROOT / "build" / "venv" / "bin" / "ruff"
    if not ruff.exists():
        pytest.skip("no ruff in build/venv: make setup")
    for command in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [ruff, *command, "--no-cache", ROOT], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


@cache
def targets() -> set[str]:
    done = subprocess.run(
        ["make", "--no-print-directory", "-C", ROOT, "help"],
        capture_output=True,
        text=True,
        check=True,
    )
    return {line.split()[0] for line in done.stdout.splitlines() if line.strip()}


def test_make_help_lists_every_target() -> None:
    phony = re.findall(r"^\.PHONY: (\S+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(phony) - {"test-programs"} == targets()


def test_make_grade_hands_a_whole_command_on() -> None:
    """The proxy to be graded may be a command with arguments."""
    done = subprocess.run(
        ["make", "-n", "--no-print-directory", "-C", ROOT, "grade", "RP=./x y"],
        capture_output=True,
        text=True,
        check=True,
    )
    words = shlex.split(done.stdout.strip().splitlines()[-1])
    assert words[words.index("-m") + 1] == "tests.grade", words
    assert words[words.index("--rp") + 1 :] == ["./x y"], words


def test_documents_name_only_targets_that_are_there() -> None:
    documents = [path for path in tracked() if path.suffix == ".md"]
    assert ROOT / "README.md" in documents
    for path in documents:
        for target in re.findall(r"\bmake ([a-z][a-z-]*)\b", code_of(path.read_text())):
            assert target in targets(), f"{name(path)} says `make {target}`"
    readme = (ROOT / "README.md").read_text()
    for command in ("make demo", "make test"):
        assert command in readme, f"README.md does not name `{command}`"


def code_of(text: str) -> str:
    """What is set as code: fenced and indented blocks, and what is between backticks."""
    fenced = re.findall(r"^```.*?\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    indented = re.findall(r"^ {4}(.*)$", text, re.MULTILINE)
    return "\n".join(fenced + indented + re.findall(r"`([^`\n]+)`", text))


@cache
def headings(path: Path) -> set[str]:
    """A document's headings as links name them: lower case, words joined, nothing but words."""
    found = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    plain = [re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", heading) for heading in found]
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in plain}


def test_documents_point_to_what_is_there() -> None:
    """Files, and headings in them."""
    for path in tracked():
        if path.suffix != ".md":
            continue
        for target, heading in re.findall(r"\]\(([^)#:\s]*)(?:#([^)]*))?\)", path.read_text()):
            there = path.parent / target if target else path
            assert there.exists(), f"{name(path)} points to {target}"
            known = headings(there) if heading and there.suffix == ".md" else {heading}
            assert heading in known, f"{name(path)} points to {target}#{heading}"


def test_each_decision_is_in_their_index() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = re.findall(r"^\| \[\d+\]\((.+?)\)", (folder / "README.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(path.name for path in folder.glob("[0-9]*.md"))


@cache
def words_of_options() -> set[str]:
    """What may be an option: whatever a source quotes as a word, or writes behind two dashes."""
    found = set()
    for path in tracked():
        if path.suffix == ".md" or path.relative_to(ROOT).parts[0] == "results":
            continue
        text = path.read_text(errors="replace")
        found |= set(re.findall(r"""["'](?:--)?([a-z][\w-]+)["'= ]""", text))
        found |= set(re.findall(r"--([a-z][\w-]+)", text))
    return {word.replace("_", "-") for word in found}


def test_documents_name_only_options_that_are_there() -> None:
    """Decisions apart, which also name what was not taken."""
    of_others = {"inject-secrets", "purge"}  # editcap's, dpkg's
    for path in tracked():
        where = path.relative_to(ROOT)
        if path.suffix != ".md" or where.parts[0] == "results" or "decisions" in where.parts:
            continue
        named = re.findall(r"(?<![\w-])--([a-z][a-z0-9-]+)", code_of(path.read_text()))
        unknown = set(named) - words_of_options() - of_others
        assert not unknown, f"{where}: {unknown}"


def test_the_table_of_sighup_has_every_option_that_may_change() -> None:
    """Each in the row of those that have it; an older name for another one needs no place."""
    told = (ROOT / "docs" / "running.md").read_text().partition("## SIGHUP")[2]
    told = told.partition("\n## ")[0]
    for where, row in (
        ("rp/options.c", "`rp`"),
        ("lp/options.c", "`lp`"),
        ("mux/options/options.c", "both"),
    ):
        source = (ROOT / where).read_text()
        listed = re.search(r"_changing\[\] = \{(.*?)NULL", source, re.DOTALL)
        (line,) = re.findall(rf"^\| {row} \| .*$", told, re.MULTILINE)
        assert listed, where
        for option in set(re.findall(r'"([a-z-]+)"', listed[1])) - {"max-memory"}:
            assert f"`{option}`" in line, f"{row}: {option}"


def test_ci_runs_what_readme_says() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert "set -euo pipefail" in script
    assert re.search(r"^as_root make test ", script, re.MULTILINE)
    assert "sudo make test" in (ROOT / "README.md").read_text()
