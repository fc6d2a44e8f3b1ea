# SPDX-License-Identifier: MIT
"""Which sources these are."""

import os

from topologies.programs import ROOT
from topologies.shell import CommandError, run

TOLD = "TM3_COMMIT"


def commit() -> str | None:
    """Their commit; "+" if something is changed. A guest, which has no git, was told."""
    git = ["git", "-C", str(ROOT), "-c", f"safe.directory={ROOT}"]
    try:
        name = run([*git, "rev-parse", "HEAD"]).strip()
        return name + ("+" if run([*git, "status", "--porcelain"]).strip() else "")
    except CommandError:
        return os.environ.get(TOLD) or None
