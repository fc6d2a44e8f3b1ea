# SPDX-License-Identifier: MIT
"""Writes a manual page or a completion to standard output.

python -m install man|bash|zsh|fish NAME PROGRAM    NAME as installed, PROGRAM as built
"""

import re
import sys
from pathlib import Path

from install.completions import SHELLS
from install.man import page
from install.programs import INSTALLED, ROOT


def version() -> str:
    """Of the tree; it stands in one place."""
    text = (ROOT / "mux" / "settings" / "settings.h").read_text()
    found = re.search(r'#define TM3_VERSION "([^"]+)"', text)
    assert found, "mux/settings/settings.h has no TM3_VERSION"
    return found[1]


def main(words: list[str]) -> int:
    if len(words) != 3 or words[0] not in ("man", *SHELLS) or words[1] not in INSTALLED:
        sys.stderr.write(f"{__doc__}NAME is one of {', '.join(INSTALLED)}\n")
        return 2
    what, name, program = words
    installed = INSTALLED[name]
    told = installed.told(Path(program))
    if what == "man":
        sys.stdout.write(page(installed, told, version()))
    else:
        sys.stdout.write(SHELLS[what](installed, told))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
