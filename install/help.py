# SPDX-License-Identifier: MIT
"""What a program's --help says, taken apart.

It begins with `Usage:`. Behind it paragraphs and lists of options stand in any order, with empty
lines between them. A list of options may have a heading:

    Ways in for applications:
      --socks [ADDR:]PORT|off    take SOCKS5 CONNECT, names included (default
                                 127.0.0.1:1080)
      --conn-policy NAME         which connection's bytes go next:
                                   las     least attained service first
                                   fifo    first come, first served

What reads in another way is an error: nothing is left out in silence.
"""

import re
from dataclasses import dataclass, field

OPTION = re.compile(r"  (--[a-z][a-z0-9-]*)(?: (\S+))?(?:  +(\S.*))?")
CHOICE = re.compile(r"([a-z][a-z0-9-]*(?::[A-Z]+)?) +(\S.*)")


class HelpError(ValueError):
    """A line of --help is none of what this file knows."""


@dataclass
class Choice:
    name: str
    text: str


@dataclass
class Option:
    name: str  # with its dashes
    argument: str | None
    text: str = ""
    choices: list[Choice] = field(default_factory=list)

    @property
    def words(self) -> list[str]:
        """The values it takes that are written as here: of `[ADDR:]PORT|off` it is `off`."""
        if self.choices:
            return [it.name for it in self.choices if ":" not in it.name]
        parts = (self.argument or "").split("|")
        return [it for it in parts if len(parts) > 1 and re.fullmatch(r"[a-z][a-z0-9-]*", it)]


@dataclass
class Section:
    heading: str  # without its colon; empty if there is none
    options: list[Option] = field(default_factory=list)


@dataclass
class Help:
    usage: list[str]  # "tm3-rp [OPTION]... PIPES"
    about: list[str]  # paragraphs before the first option
    sections: list[Section]
    notes: list[str]  # paragraphs behind them, but the exit status
    exit_status: str

    @property
    def options(self) -> list[Option]:
        return [option for section in self.sections for option in section.options]


def indent_of(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def joined(one: str, other: str) -> str:
    return f"{one} {other}".strip()


def text_column(lines: list[str]) -> int:
    """Of the first option's text, which may begin in the line below."""
    option = OPTION.fullmatch(lines[0])
    if option and option[3]:
        return option.start(3)
    return indent_of(lines[1]) if len(lines) > 1 else 0


def read_options(lines: list[str]) -> list[Option]:
    """Their text begins in one column, that of their choices two to the right of it."""
    options: list[Option] = []
    column = text_column(lines)
    for line in lines:
        option = OPTION.fullmatch(line)
        deep = indent_of(line) - column
        choice = CHOICE.fullmatch(line.strip()) if deep == 2 else None
        if option:
            options.append(Option(option[1], option[2], option[3] or ""))
        elif not options or deep < 0:
            raise HelpError(f"neither an option nor more of one: {line!r}")
        elif choice:
            options[-1].choices.append(Choice(choice[1], choice[2]))
        elif deep == 0 and not options[-1].choices:
            options[-1].text = joined(options[-1].text, line.strip())
        elif deep > 2 and options[-1].choices:
            last = options[-1].choices[-1]
            last.text = joined(last.text, line.strip())
        else:
            raise HelpError(f"it is not where the text of options is: {line!r}")
    return options


def read_usage(block: str) -> list[str]:
    if not block.startswith("Usage: "):
        raise HelpError(f"it does not begin with 'Usage: ' but with {block[:40]!r}")
    return [line.strip() for line in block.removeprefix("Usage: ").splitlines()]


def read(text: str) -> Help:
    first, *blocks = text.strip("\n").split("\n\n")
    told = Help(read_usage(first), [], [], [], "")
    for block in blocks:
        lines = block.splitlines()
        heading = ""
        if len(lines) > 1 and lines[0].endswith(":") and lines[1].startswith("  -"):
            heading = lines.pop(0).removesuffix(":")
        if lines[0].startswith("  -"):
            told.sections.append(Section(heading, read_options(lines)))
            continue
        paragraph, _, status = " ".join(lines).partition("Exit status: ")
        told.exit_status = told.exit_status or status
        if paragraph:
            (told.notes if told.sections else told.about).append(paragraph.strip())
    if not told.sections:
        raise HelpError("it has no options")
    return told
