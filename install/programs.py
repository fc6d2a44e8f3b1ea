# SPDX-License-Identifier: MIT
"""What is installed, by its names.

`lp` prints, on machines with CUPS, and `rp` is short enough to be somebody's as well: the proxies
are installed as tm3-lp and tm3-rp. In their own messages they keep their names.
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from install import help

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Installed:
    name: str
    section: int  # of the manual
    summary: str
    called: str  # what it calls itself
    see_also: tuple[str, ...]
    example: Path | None = None  # a configuration file

    def told(self, program: Path) -> help.Help:
        """What `program` tells about itself when it is called by the name it is installed under."""
        done = subprocess.run(
            [self.name, "--help"], executable=program, capture_output=True, text=True, check=True
        )
        return help.read(done.stdout)


INSTALLED = {
    it.name: it
    for it in (
        Installed(
            "tm3-rp",
            1,
            "the remote proxy of TM3, which connects to servers for local proxies",
            "rp",
            ("tm3-lp(1)",),
            ROOT / "install" / "examples" / "rp.conf",
        ),
        Installed(
            "tm3-lp",
            1,
            "the local proxy of TM3, which carries TCP connections over several pipes",
            "lp",
            ("tm3-rp(1)", "tm3ctl(8)"),
            ROOT / "install" / "examples" / "lp.conf",
        ),
        Installed(
            "tm3ctl",
            8,
            "redirect outgoing connections and datagrams to the local proxy of TM3",
            "tm3ctl",
            ("tm3-lp(1)", "nft(8)"),
        ),
    )
}
