# SPDX-License-Identifier: MIT
"""Completions for bash, zsh and fish, made of what --help says."""

import re
import shlex
from collections.abc import Iterator

from install.help import Help, Option
from install.programs import Installed

SHORT = 60
USERS = "--user"


def is_file(option: Option) -> bool:
    return bool({"FILE", "PATH"} & set((option.argument or "").split("|")))


def short(option: Option) -> str:
    """The first thing that is said of it, behind what it is about ("early: ")."""
    about = re.match(r"(?:\w+: )?", option.text)
    start = about.end() if about else 0
    end = re.compile(r"[;:] | \(|, \[|[:;]?$").search(option.text, start)
    text = option.text[: end.start() if end else None]
    return text if len(text) <= SHORT else text[:SHORT].rpartition(" ")[0] + " ..."


def commands(told: Help) -> list[str]:
    """What may stand in the first place, such as `tm3ctl off`."""
    second = [line.split()[1] for line in told.usage]
    return [it for it in second if re.fullmatch(r"[a-z]+", it)]


def names(told: Help) -> list[str]:
    """All options: also those that only the usage names."""
    used = re.findall(r"--[a-z][a-z-]*", " ".join(told.usage))
    return list(dict.fromkeys([*(it.name for it in told.options), *used]))


def arguments(told: Help) -> list[str]:
    """What stands behind the options."""
    words = told.usage[0].split()[1:]
    return [] if "[OPTION]..." not in words else words[words.index("[OPTION]...") + 1 :]


# --- bash ---


def bash_reply(what: str) -> str:
    return f'mapfile -t COMPREPLY < <(compgen {what} -- "$cur")'


def bash_words(words: list[str]) -> str:
    return bash_reply(f'-W "{" ".join(words)}"')


def bash_cases(told: Help) -> Iterator[str]:
    silent = []
    for it in told.options:
        if it.name == USERS:
            yield f"{it.name}) {bash_reply('-u')} ;;"
        elif is_file(it):
            yield f"{it.name}) compopt -o filenames; {bash_reply('-f')} ;;"
        elif it.words:
            yield f"{it.name}) {bash_words(it.words)} ;;"
        elif it.argument:
            silent.append(it.name)
    if silent:
        yield f"{'|'.join(silent)}) ;;"


def bash(installed: Installed, told: Help) -> str:
    function = "_" + installed.name.replace("-", "_")
    first = ""
    if commands(told):
        first = f"""
	[[ $COMP_CWORD -ne 1 || $cur == -* ]] || {bash_words(commands(told))}"""
    cases = "\n\t".join(bash_cases(told))
    return f"""\
# SPDX-License-Identifier: MIT
# Made of `{installed.name} --help`.
{function}()
{{
	local cur=${{COMP_WORDS[COMP_CWORD]}} option=${{COMP_WORDS[COMP_CWORD-1]}}

	# bash makes three words of "--option=value".
	if [[ $cur == = ]]; then
		cur=
	elif [[ $option == = ]]; then
		option=${{COMP_WORDS[COMP_CWORD-2]}}
	fi
	COMPREPLY=()
	case $option in
	{cases}
	*)
		[[ $cur != -* ]] || {bash_words(names(told))}
		;;
	esac{first}
}}
complete -F {function} {installed.name}
"""


# --- zsh ---


def zsh_action(option: Option) -> str:
    if option.name == USERS:
        return "_users"
    if is_file(option):
        return "_files"
    return f"({' '.join(option.words)})" if option.words else " "


def zsh_escaped(text: str, those: str) -> str:
    return "".join("\\" + it if it in those + "\\" else it for it in text)


def zsh_spec(option: Option) -> str:
    told = f"[{zsh_escaped(short(option), '[]')}]"
    if not option.argument:
        return f"{option.name}{told}"
    return f"*{option.name}={told}:{zsh_escaped(option.argument, ':')}:{zsh_action(option)}"


def zsh(installed: Installed, told: Help) -> str:
    specs = [zsh_spec(it) for it in told.options]
    known = {it.name for it in told.options}
    specs += [it for it in names(told) if it not in known]
    specs += [f":{zsh_escaped(it, ':')}: " for it in arguments(told)]
    if commands(told):
        specs.append(f":command:({' '.join(commands(told))})")
    body = " \\\n\t".join(shlex.quote(it) for it in specs)
    return f"""\
#compdef {installed.name}
# SPDX-License-Identifier: MIT
# Made of `{installed.name} --help`.
_arguments \\
	{body}
"""


# --- fish ---


def fish_line(installed: Installed, option: Option) -> str:
    words = ["complete", "-c", installed.name, "-l", option.name.removeprefix("--")]
    if option.name == USERS:
        words += ["-x", "-a", "'(__fish_complete_users)'"]
    elif is_file(option):
        words += ["-r", "-F"]
    elif option.words:
        words += ["-x", "-a", f"'{' '.join(option.words)}'"]
    elif option.argument:
        words.append("-x")
    told = short(option).replace("\\", "\\\\").replace("'", "\\'")
    return " ".join(words) + (f" -d '{told}'" if told else "")


def fish(installed: Installed, told: Help) -> str:
    known = {it.name for it in told.options}
    lines = [f"complete -c {installed.name} -f"]
    lines += [fish_line(installed, it) for it in told.options]
    lines += [fish_line(installed, Option(it, None)) for it in names(told) if it not in known]
    if commands(told):
        lines.append(
            f"complete -c {installed.name} -n __fish_is_first_arg -a '{' '.join(commands(told))}'"
        )
    head = f"# SPDX-License-Identifier: MIT\n# Made of `{installed.name} --help`.\n"
    return head + "\n".join(lines) + "\n"


SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}
