# SPDX-License-Identifier: MIT
"""Manual pages and completions say what --help does, and nobody who reads them has a complaint."""

import os
import pty
import re
import select
import shutil
import subprocess
import time
from functools import cache
from pathlib import Path

import pytest

from install import help
from install.completions import SHELLS, names
from install.man import page
from install.programs import INSTALLED, ROOT
from tests.relay.programs import binary

NAMES = sorted(INSTALLED)
KILL_LINE = "\x15"


def program(name: str) -> Path:
    called = INSTALLED[name].called
    return ROOT / "kmod" / "tm3ctl" if called == "tm3ctl" else binary(called, asan=False)


@cache
def told(name: str) -> help.Help:
    return INSTALLED[name].told(program(name))


def options_of(name: str) -> set[str]:
    """By a look at --help that shares nothing with what is tested."""
    said = subprocess.run([program(name), "--help"], capture_output=True, text=True, check=True)
    return set(re.findall(r"^  (--[a-z0-9-]+)", said.stdout, re.MULTILINE))


def needs(tool: str) -> str:
    path = shutil.which(tool)
    if not path:
        pytest.skip(f"no {tool} on this machine: make setup LISTS=install/packages.debian")
    return path


def run(argv: list[str | Path], stdin: str = "", env: dict[str, str] | None = None) -> str:
    done = subprocess.run(argv, input=stdin, capture_output=True, text=True, env=env, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


# --- what is read ---


def test_help_is_read_as_it_stands() -> None:
    it = help.read(
        "Usage: x [OPTION]... FILE\n       x off\n\nAbout\nit.\n\nThose:\n"
        "  --a FILE                   first\n"
        "                             line\n"
        "  --much-too-long-for-it A|b|c\n"
        "                             words:\n"
        "                               one     the one\n"
        "                                       of it\n"
        "                               longer1 other (default)\n"
        "  --flag                     none\n\nAt last.\nExit status: 0 done.\n"
    )
    assert (it.usage, it.about, it.notes) == (
        ["x [OPTION]... FILE", "x off"],
        ["About it."],
        ["At last."],
    )
    assert it.exit_status == "0 done."
    first, second, third = it.options
    assert (first.argument, first.text, first.words) == ("FILE", "first line", [])
    assert [(c.name, c.text) for c in second.choices] == [
        ("one", "the one of it"), ("longer1", "other (default)"),
    ]  # fmt: skip
    assert (third.name, third.argument) == ("--flag", None)
    assert help.Option("--x", "A|b|c").words == ["b", "c"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x: no usage\n",
        "Usage: x\n\nNo options.\n",
        "Usage: x\n\n  --a FILE                   first\n   nowhere\n",
        "Usage: x\n\n  --a FILE                   first\n                             of\n"
        "                           it\n",
        "Usage: x\n\n  --Odd                      first\n",
    ],
)
def test_what_is_not_understood_is_an_error(text: str) -> None:
    with pytest.raises(help.HelpError):
        help.read(text)


# --- the manual ---


@pytest.fixture(params=NAMES)
def manual(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    installed = INSTALLED[request.param]
    path = tmp_path / f"{installed.name}.{installed.section}"
    path.write_text(page(installed, told(installed.name), "1.2.3"))
    return path


def shown(manual: Path) -> str:
    """As a terminal would, so wide that no line of text is broken."""
    env = {"MANWIDTH": "2000", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}
    return re.sub(r".\x08", "", run([needs("man"), "-l", manual], env=env))


def test_manual_has_every_option_and_its_text(manual: Path) -> None:
    text = re.sub(r"\s+", " ", shown(manual))
    name = manual.stem
    assert options_of(name), f"{name} --help has no options"
    for option in told(name).options:
        assert f" {option.name} {option.argument or ''}".rstrip() in text, option
        assert option.text in text, option
        for choice in option.choices:
            assert f"{choice.name} {choice.text}" in text, choice
    assert {option.name for option in told(name).options} == options_of(name)
    for paragraph in (*told(name).about, *told(name).notes, told(name).exit_status):
        assert paragraph in text, paragraph
    for heading in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "SEE ALSO"):
        assert f" {heading} " in text
    assert f"{name} [" in text and "TM3 1.2.3" in text


def test_man_has_no_warning(manual: Path) -> None:
    env = {"MANWIDTH": "80", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}
    argv = [needs("man"), "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", str(manual)]
    done = subprocess.run(argv, capture_output=True, text=True, env=env)
    assert (done.returncode, done.stderr) == (0, "")


def test_mandoc_has_no_warning(manual: Path) -> None:
    done = subprocess.run(
        [needs("mandoc"), "-Tlint", "-W", "warning", str(manual)], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_examples_in_the_manual_are_right(tmp_path: Path) -> None:
    """Each is whole: the proxy itself says so."""
    for name in ("tm3-rp", "tm3-lp"):
        example = INSTALLED[name].example
        assert example
        said = run([program(name), "--config", example, "--check"])
        assert said == f"{INSTALLED[name].called}: all is right\n"


# --- completions ---


def completion(name: str, shell: str, tmp_path: Path) -> Path:
    path = tmp_path / f"{name}.{shell}"
    path.write_text(SHELLS[shell](INSTALLED[name], told(name)))
    return path


def bash_offers(name: str, tmp_path: Path, *words: str) -> list[str]:
    """What bash would offer for the last of the words."""
    path = completion(name, "bash", tmp_path)
    script = f"""
        compopt() {{ :; }}  # there is no line that is edited here
        source {path}
        COMP_WORDS=("$@")
        COMP_CWORD=$(($# - 1))
        $(complete -p {name} | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    said = run([needs("bash"), "--norc", "-u", "-c", script, "bash", name, *words])
    return said.split("\n")[:-1] if said.strip() else []


@pytest.mark.parametrize("name", NAMES)
def test_bash_offers_every_option(name: str, tmp_path: Path) -> None:
    offered = bash_offers(name, tmp_path, "--")
    assert options_of(name) <= set(offered) and len(offered) == len(set(offered))
    assert set(offered) == set(names(told(name)))


def test_bash_offers_values(tmp_path: Path) -> None:
    (tmp_path / "with blank").touch()
    for words, wanted in (
        (["--binding", ""], ["late", "early"]),
        (["--binding", "=", "l"], ["late"]),
        (["--binding", "="], ["late", "early"]),
        (["--pipe-policy", "r"], ["rr", "random"]),
        (["--user", "roo"], ["root"]),
        (["--stats", f"{tmp_path}/wi"], [f"{tmp_path}/with blank"]),
        (["--allow", "1"], []),
        (["--verbose", "--qui"], ["--quiet"]),
        (["4"], []),
    ):
        assert bash_offers("tm3-rp", tmp_path, *words) == wanted, words
    assert bash_offers("tm3-lp", tmp_path, "--socks", "") == ["off"]
    assert bash_offers("tm3ctl", tmp_path, "") == ["off", "status"]
    assert bash_offers("tm3ctl", tmp_path, "--with", "m") == ["module"]


@pytest.mark.parametrize("name", NAMES)
def test_fish_offers_every_option(name: str, tmp_path: Path) -> None:
    path = completion(name, "fish", tmp_path)
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    said = run(
        [needs("fish"), "--no-config", "-c", f"source {path}; complete -C '{name} --'"], env=env
    )
    offered = dict(line.partition("\t")[::2] for line in said.splitlines())
    assert set(offered) == set(names(told(name)))
    assert all(offered[option] for option in options_of(name)), "one is told nothing of"
    if name == "tm3-rp":
        argv = [
            needs("fish"),
            "--no-config",
            "-c",
            f"source {path}; complete -C '{name} --binding '",
        ]
        values = [line.partition("\t")[0] for line in run(argv, env=env).splitlines()]
        assert sorted(values) == ["early", "late"]


@pytest.mark.parametrize("name", NAMES)
def test_zsh_offers_every_option(name: str, tmp_path: Path) -> None:
    """_arguments itself is zsh's: it is given a specification of each option that zsh can read."""
    path = completion(name, "zsh", tmp_path)
    zsh = needs("zsh")
    run([zsh, "-f", "-n", str(path)])
    said = run([zsh, "-f", "-c", f"_arguments() {{ printf '%s\\n' \"$@\" }}; source {path}"])
    specs = [it.lstrip("*") for it in said.splitlines()]
    offered = {match[0] for it in specs if (match := re.match(r"--[a-z-]+", it))}
    assert offered == set(names(told(name)))


def test_zsh_completes_a_line(tmp_path: Path) -> None:
    """Typed on a terminal: zsh reads the specifications, and finds the file by its name."""
    completion("tm3-rp", "zsh", tmp_path).rename(tmp_path / "_tm3-rp")
    zsh = needs("zsh")
    child, terminal = pty.fork()
    if child == 0:
        os.execve(zsh, ["zsh", "-f", "-i"], {"PATH": "/usr/bin:/bin", "TERM": "dumb"})
    try:
        for typed, shown_then in (
            (f"cd {tmp_path}; fpath=($PWD $fpath); autoload -Uz compinit; compinit -D -u\n", "-u"),
            ("tm3-rp --verb\t", "--verbose"),
            (f"{KILL_LINE}tm3-rp --bind\t", "--binding"),
            (f"{KILL_LINE}tm3-rp --binding \t", "early"),
            (f"{KILL_LINE}tm3-rp --user roo\t", "root"),
        ):
            os.write(terminal, typed.encode())
            said = read_until(terminal, shown_then)
            assert shown_then in said, f"after {typed!r}: {said!r}"
    finally:
        os.close(terminal)
        os.waitpid(child, 0)


def read_until(terminal: int, wanted: str, seconds: float = 20) -> str:
    """What is shown on the terminal from now on, without what moves its cursor."""
    said = ""
    deadline = time.monotonic() + seconds
    while wanted not in said and time.monotonic() < deadline:
        if select.select([terminal], [], [], 1)[0]:
            said += os.read(terminal, 4096).decode(errors="replace").replace("\b", "")
    return said
