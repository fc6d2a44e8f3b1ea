# SPDX-License-Identifier: MIT
"""How many descriptors a process may have."""

import resource


class TooFew(OSError):
    """Who started us allows no more."""


def descriptors(count: int, pid: int = 0) -> None:
    """At least so many for a process; raises TooFew."""
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    if soft >= count:
        return
    try:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (count, max(count, hard)))
    except (PermissionError, ValueError):
        raise TooFew(f"{count} descriptors are needed, {hard} allowed (ulimit -Hn)") from None
