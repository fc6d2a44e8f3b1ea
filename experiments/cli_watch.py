# SPDX-License-Identifier: MIT
"""tm3lab watch: a page on loopback that shows what the proxies tell, live or from their record."""

import argparse
import threading
from pathlib import Path
from typing import Any

from experiments.campaign import say
from experiments.stopping import Stopped, interruptible
from experiments.watch import door
from experiments.watch.server import Server
from experiments.watch.watched import Watched


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "watch",
        help="a page that shows what the proxies tell, live or from their record",
        description="Serves a page on loopback: pipes, queues, connections and a sweep's progress, "
        "as they change; of what is over, from its record. FOLDER is one of results, or has "
        "rp.stats.jsonl or lp.stats.jsonl in it.",
        allow_abbrev=False,
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    add_port(parser)
    parser.set_defaults(do=_watch)


def add_port(parser: Any) -> None:
    parser.add_argument(
        "--port",
        default=str(door.PORT),
        metavar="[ADDR:]PORT",
        help=f"where the page is; ADDR is of loopback ({door.PORT}; 0: any that is free)",
    )


def add_option(parser: Any, text: str) -> None:
    """To a command that does something worth watching."""
    parser.add_argument("--watch", action="store_true", help=f"{text}, as `tm3lab watch`")
    add_port(parser)


def place(given: argparse.Namespace) -> tuple[str, int] | None:
    """Where the page of such a command is to be; None where none is wanted."""
    return door.place(given.port) if given.watch else None


def _watch(given: argparse.Namespace) -> int:
    where = door.place(given.port)
    watched = Watched(given.folder)
    with Server(where) as server:
        server.watched = watched
        try:
            with interruptible(), server.running():
                say(f"{server.url} shows {watched.folder}")
                threading.Event().wait()
        except Stopped:
            return 0
