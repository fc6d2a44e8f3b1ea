# SPDX-License-Identifier: MIT
"""Two paths of one session, which are addresses of loopback: how lp is told, what kills them."""

import itertools
import time
from collections.abc import Callable
from pathlib import Path

from tests.relay import records
from tests.relay.netns import Namespace
from tests.relay.proxies import LISTEN

NEAR, FAR = "127.0.0.2", "127.0.0.3"
KILLS = 21  # at least, however late the cores are
ALLOW = (*LISTEN, "--allow", "127.0.0.0/8")
BOTH_PATHS = ("--path", f"near,src={NEAR},pipes=3", "--path", f"far,src={FAR},pipes=2,cost=9")
WITH_BACKUP = (*BOTH_PATHS[:3], f"far,src={FAR},pipes=2,backup")
UP = r"lp: 2 pipes to 127.0.0.1:6010 over far are up"


def pipes_from(box: Namespace, address: str) -> int:
    told = box.run("ss", "-Htn", "state", "established", "src", address, "dport", "=", ":6010")
    return len(told.splitlines())


def kill(box: Namespace, address: str) -> None:
    """All pipes from there are reset, at both ends at once."""
    box.run("ss", "-K", "src", address, "dport", "=", ":6010")


def kill_by_turns(
    box: Namespace,
    seconds: float,
    *,
    first: str = NEAR,
    each: Callable[[], object] = lambda: None,
) -> None:
    """Every 200 ms all pipes of a path, and `each` after it."""
    turns = itertools.cycle((NEAR, FAR) if first == NEAR else (FAR, NEAR))
    end = time.monotonic() + seconds
    kills = 0
    while time.monotonic() < end or kills < KILLS:
        kill(box, next(turns))
        kills += 1
        each()
        time.sleep(0.2)


def refuse_pipes(box: Namespace, address: str) -> None:
    """What pipes from there send is rejected, until take_pipes()."""
    box.nft(
        "table inet gone {\nchain out {\ntype filter hook output priority 0\n"
        f"ip saddr {address} tcp dport 6010 reject\n}}\n}}\n"
    )


def take_pipes(box: Namespace) -> None:
    box.run("nft", "delete", "table", "inet", "gone")


def bytes_by_path(stats: Path) -> dict[int, int]:
    """What pipes were given beside messages of the session itself."""
    return {it["path"]: it["written"] for it in records.of(stats, "path")}
