# SPDX-License-Identifier: MIT
"""A page of the manual, made of what --help says."""

import os
import re
import time

from install.help import Help, Option
from install.programs import Installed


def escaped(text: str) -> str:
    """As troff wants it: a dash is one that can be copied, nothing is taken for a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


def usage_of(line: str) -> str:
    """Words in capitals are what to put in."""
    command, _, rest = line.partition(" ")
    rest = re.sub(r"\b([A-Z][A-Z_]+)\b", r"\\fI\1\\fR", escaped(rest))
    return f"\\fB{escaped(command)}\\fR {rest}"


def option_of(option: Option) -> list[str]:
    argument = f" \\fI{escaped(option.argument)}\\fR" if option.argument else ""
    lines = [".TP", f"\\fB{escaped(option.name)}\\fR{argument}", escaped(option.text)]
    if option.choices:
        lines.append(".RS")
        for it in option.choices:
            lines += [".TP", f".B {escaped(it.name)}", escaped(it.text)]
        lines.append(".RE")
    return lines


def day() -> str:
    when = os.environ.get("SOURCE_DATE_EPOCH")
    return time.strftime("%Y-%m-%d", time.gmtime(int(when) if when else None))


def files_of(installed: Installed) -> list[str]:
    """What --config reads, and a whole one."""
    if not installed.example:
        return []
    example = installed.example.read_text().splitlines()
    of_licence = [line for line in example if "SPDX" in line]
    return [
        ".SH FILES",
        ".TP",
        f".I /etc/tm3/{installed.called}.conf",
        f"what the service {escaped(installed.name)} reads, by",
        f".BR {escaped('--config')} .",
        "It may look like this:",
        ".PP",
        ".EX",
        *(escaped(line) or "\\&" for line in example if line not in of_licence),
        ".EE",
    ]


def page(installed: Installed, told: Help, version: str) -> str:
    name = escaped(installed.name)
    lines = [
        '.\\" SPDX-License-Identifier: MIT',
        f'.\\" Made of `{installed.name} --help`.',
        f'.TH {name.upper()} {installed.section} {day()} "TM3 {version}" "TM3"',
        ".SH NAME",
        f"{name} \\- {escaped(installed.summary)}",
        ".SH SYNOPSIS",
        ".nf",
        *(usage_of(line) for line in told.usage),
        ".fi",
        ".SH DESCRIPTION",
    ]
    paragraphs = [escaped(it) for it in told.about]
    if installed.called != installed.name:
        paragraphs.append(
            f"In its messages, and below, it is called {installed.called}: "
            "this is its name where it is built."
        )
    lines += "\n.PP\n".join(paragraphs).splitlines()
    lines.append(".SH OPTIONS")
    for section in told.sections:
        lines += [f".SS {escaped(section.heading)}"] if section.heading else []
        for option in section.options:
            lines += option_of(option)
    if told.notes:
        lines += [".SH NOTES", *"\n.PP\n".join(escaped(it) for it in told.notes).splitlines()]
    if told.exit_status:
        lines += [".SH EXIT STATUS", escaped(told.exit_status)]
    lines += files_of(installed)
    also = [re.sub(r"(.*)\((\d)\)", r".BR \1 (\2)", escaped(it)) for it in installed.see_also]
    lines += [".SH SEE ALSO", *(f"{it} ," for it in also[:-1]), also[-1]]
    return "\n".join(lines) + "\n"
