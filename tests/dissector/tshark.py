# SPDX-License-Identifier: MIT
"""Runs tshark with the dissector and reads what it says.

It runs in a home directory of its own, so that no preference and no plug-in of
the user's has a part in it. A Lua error ends no tshark; it shows on stderr or in the
tree, and both are looked at on every run. Tests run with two, see conftest.py, or with the one
in the environment's TSHARK, a command with its first arguments; sharkd stands beside it.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

TOP = Path(__file__).parents[2]
SCRIPT = TOP / "dissector" / "tm3.lua"
COMMAND = shlex.split(os.environ.get("TSHARK", "tshark"))
TREE = Path(os.environ.get("TM3_BUILD") or TOP / "build") / "wireshark" / "tree"
NEWER = [str(TOP / "tests" / "dissector" / "in_tree"), str(TREE), "tshark"]
# Where Debian's tshark has its data. Its names of vendors, ports and companies are 4 MB of lines,
# which 4.0 reads at each start, with -n as well: a third of what a start takes.
DATA = Path("/usr/share/wireshark")
NAMES = ("enterprises.tsv", "manuf", "services")
# Another folder is for who is not root: nobody who may open all files.
NOBODY = (
    *("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"),
    *("--inh-caps", "+dac_override", "--ambient-caps", "+dac_override"),
)
# What tshark says of being run as root; no other line may be on stderr.
HARMLESS = ('Running as user "root" and group "root". This could be dangerous.',)
REASSEMBLE = ("-o", "tcp.reassemble_out_of_order:TRUE")

Message = dict[str, Any]
Rows = list[list[str]]
Asked = Callable[..., Rows]


def missing() -> str | None:
    """Why tshark cannot be run here; None if it can."""
    return None if shutil.which(COMMAND[0]) else "no tshark on this machine: sudo make setup"


def no_newer() -> str | None:
    """Why the tshark of the next Debian cannot be run here; None if it can."""
    if not TREE.is_dir():
        return "no newer tshark on this machine: sudo make wireshark"
    return None if os.geteuid() == 0 else "needs root to run tshark in another system's folder"


def mine(*seeds: int) -> list[int]:
    """Of two seeds: one for each tshark where there are two, both where there is one."""
    if "TSHARK" in os.environ or no_newer():
        return list(seeds)
    return [seeds[COMMAND == NEWER]]


@contextmanager
def without_names() -> Iterator[list[str]]:
    """The command of this system's tshark that finds no names to read, where it can be told so."""
    as_nobody = NOBODY if os.geteuid() == 0 else ()
    if not DATA.is_dir() or (as_nobody and not shutil.which(as_nobody[0])):
        yield COMMAND
        return
    with tempfile.TemporaryDirectory(prefix="tm3-tshark-data-") as path:
        for file in DATA.iterdir():
            if file.name not in NAMES:
                (Path(path) / file.name).symlink_to(file)
        for name in NAMES:
            (Path(path) / name).touch()
        Path(path).chmod(0o755)
        yield ["env", f"WIRESHARK_DATA_DIR={path}", *as_nobody, *COMMAND]


@contextmanager
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tm3-tshark-") as path:
        yield Path(path)


def run(
    capture: Path, *arguments: str, script: Path | None = SCRIPT, seconds: float = 100.0
) -> str:
    """What tshark prints; fails on anything on stderr."""
    with home() as where:
        environment = {**os.environ, "HOME": str(where), "XDG_CONFIG_HOME": str(where)}
        lua = ["-X", f"lua_script:{script}"] if script else []
        command = [*COMMAND, "-n", "-r", str(capture), *lua, *REASSEMBLE, *arguments]
        done = subprocess.run(
            command,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=seconds,
            env=environment,
        )
    said = [line for line in done.stderr.splitlines() if line not in HARMLESS]
    assert not said, f"{' '.join(command)} said:\n" + "\n".join(said)
    assert done.returncode == 0, f"{' '.join(command)}: exit {done.returncode}"
    assert "Lua Error" not in done.stdout, done.stdout[done.stdout.index("Lua Error") :][:500]
    return done.stdout


@dataclass(frozen=True)
class Frame:
    number: int
    layers: dict[str, Any]

    @property
    def messages(self) -> list[Message]:
        found = self.layers.get("tm3", [])
        return found if isinstance(found, list) else [found]


def frames(capture: Path, *arguments: str, only: str = "tm3") -> list[Frame]:
    """All frames with their layers."""
    text = run(capture, *arguments, "-T", "json", "--no-duplicate-keys", "-J", f"frame {only}")
    assert "_ws.lua.error" not in text
    rows = json.loads(text)
    return [
        Frame(int(row["_source"]["layers"]["frame"]["frame.number"]), row["_source"]["layers"])
        for row in rows
    ]


def messages(capture: Path, *arguments: str) -> list[tuple[int, Message]]:
    """All messages of a capture, each with the number of its frame."""
    found = frames(capture, "-Y", "tm3", *arguments)
    return [(frame.number, message) for frame in found for message in frame.messages]


def field_values(
    capture: Path, fields: Sequence[str], *arguments: str, script: Path | None = SCRIPT
) -> Rows:
    """`-T fields`: a row a frame, columns separated by tabs."""
    wanted = [part for name in fields for part in ("-e", name)]
    text = run(capture, *arguments, "-T", "fields", *wanted, script=script)
    return [line.split("\t") for line in text.splitlines()]


def asked(capture: Path, *fields: str) -> Asked:
    """`field_values` for several tests, which share a fixture: a start of tshark costs a quarter of
    a second, so each set of arguments is asked for once. The fixture is of one tshark; it takes
    `which_tshark`, else what the first said would pass for what the next one says."""

    @cache
    def rows(*arguments: str) -> Rows:
        return field_values(capture, fields, *arguments)

    return rows


def columns(capture: Path, *arguments: str) -> Rows:
    """Protocol and info as the packet list has them; since 4.2 fields _ws.col.* may differ."""
    wanted = ("-o", 'gui.column.format:"Protocol","%p","Info","%i"', "-T", "tabs")
    return [line.split("\t") for line in run(capture, *wanted, *arguments).splitlines()]


def sharkd(capture: Path, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Wireshark's dissection engine behind JSON: frames may be asked for in any order."""
    with home() as where:
        plugins = where / ".local" / "lib" / "wireshark" / "plugins"
        plugins.mkdir(parents=True)
        (plugins / "tm3.lua").write_bytes(SCRIPT.read_bytes())
        config = where / "wireshark"
        config.mkdir()
        (config / "preferences").write_text("tcp.reassemble_out_of_order: TRUE\n")
        command = [*COMMAND[:-1], str(Path(COMMAND[-1]).with_name("sharkd")), "-"]
        lines = [{"method": "load", "params": {"file": str(capture)}}, *requests]
        text = "".join(
            json.dumps({"jsonrpc": "2.0", "id": number, **line}) + "\n"
            for number, line in enumerate(lines, 1)
        )
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=100,
            env={**os.environ, "HOME": str(where), "XDG_CONFIG_HOME": str(where)},
        )  # fmt: skip
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert "Lua Error" not in done.stdout + done.stderr, done.stderr
    return answers[1:]


def body(cell: str) -> str:
    """What http.file_data says of a body: of 4.0 the text, since 4.2 its bytes in hex."""
    if not re.fullmatch("([0-9a-f]{2})+", cell):
        return cell
    return bytes.fromhex(cell).decode().replace("\n", "\\n")


def experts(message: Message) -> list[str]:
    """Names of the expert items anywhere inside a message."""
    found = []

    def walk(value: Any) -> None:
        if isinstance(value, list):
            for each in value:
                walk(each)
        elif isinstance(value, dict):
            for key, inner in value.items():
                if key.startswith("tm3.expert."):
                    found.append(key.removeprefix("tm3.expert."))
                walk(inner)

    walk(message)
    return found
