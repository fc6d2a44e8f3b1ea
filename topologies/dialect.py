# SPDX-License-Identifier: MIT
"""What the pipes of a lab speak: the baseline, or the extension, as users get it by default."""

import re
from pathlib import Path

from base.shell import run
from topologies.addresses import RP_PORT_EXTENDED
from topologies.nodes import SettingRefused
from topologies.parameter import ParameterError
from topologies.parameters import EXTEND

# Of the lines with which lp tells that its pipes are up: rp's port.
_IS_UP = re.compile(r"^lp: \d+ pipes? to \S+:(\d+) (?:over \S+ )?(?:are|is) up", re.MULTILINE)


def options(extend: str, rp: Path, lp: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The options of rp and of lp. Builds from before the extension have none; of those that have,
    lp asks for it by itself, and rp speaks it on other addresses than loopback where it is told."""
    EXTEND.check(extend)
    known = all("--exten" in run([path, "--help"]) for path in (rp, lp))
    if extend == "always" and not known:
        raise ParameterError("extend", f"{rp} and {lp} do not know the extension")
    if not known:
        return (), ()
    serves = () if extend == "never" else ("--extended", f"0.0.0.0:{RP_PORT_EXTENDED}")
    return serves, (() if extend == "auto" else ("--extend", extend))


def check(extend: str, found: str) -> None:
    """Raises SettingRefused where the proxies speak what was not asked for."""
    if extend != "auto" and found != ("extension" if extend == "always" else "baseline"):
        raise SettingRefused(f"extend {extend}: the pipes speak the {found}")


def spoken(log: str) -> str:
    """As lp's log tells of the latest session whose pipes were all up; empty: there was none."""
    ports = _IS_UP.findall(log)
    extended = bool(ports) and int(ports[-1]) == RP_PORT_EXTENDED
    return "extension" if extended else "baseline" if ports else ""
