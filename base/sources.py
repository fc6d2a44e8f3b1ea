# SPDX-License-Identifier: MIT
"""Which sources these are, and where."""

import os
from pathlib import Path

from base.shell import CommandError, run

ROOT = Path(__file__).resolve().parent.parent
TOLD = "TM3_COMMIT"


def commit() -> str | None:
    """Their commit; "+" if something is changed. A guest, which has no git, was told."""
    git = ["git", "-C", str(ROOT), "-c", f"safe.directory={ROOT}"]
    try:
        name = run([*git, "rev-parse", "HEAD"]).strip()
        return name + ("+" if run([*git, "status", "--porcelain"]).strip() else "")
    except CommandError:
        return os.environ.get(TOLD) or None
