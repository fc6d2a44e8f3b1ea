# SPDX-License-Identifier: MIT
"""Messages with dependencies over several connections: the server, and the client that measures.

python -m experiments.workloads.smt server [OPTION]...
python -m experiments.workloads.smt client HOST:PORT [OPTION]...
"""

import argparse
import asyncio
import json
import random
import socket
import sys
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any

from experiments import parameters
from experiments.workloads.mhttp.failure import BadInput as BadPath
from experiments.workloads.mhttp.path import ANY, Path
from experiments.workloads.smt import described, generator, sizes
from experiments.workloads.smt.client import TRANSPORTS, Client
from experiments.workloads.smt.failure import BadInput, Failed
from experiments.workloads.smt.generator import Arrivals, Mixture, Wanted
from experiments.workloads.smt.policies import POLICIES
from experiments.workloads.smt.priorities import Class
from experiments.workloads.smt.server import need_quic, serve_at
from experiments.workloads.smt.settings import Settings
from experiments.workloads.stopping import until_told
from topologies.parameter import Parameter, ParameterError

_SERVER = (
    Parameter("port", 7000, "whole", "where it listens; 0: any that is free", low=0, high=65535),
    Parameter(
        "pause_s", 0.0, "number", "how long an application is busy with a message", low=0, high=60
    ),
)
_CLIENT = (
    Parameter("connections", 1, "whole", "to each path", low=1, high=64),
    Parameter("messages", 1000, "whole", "in all", low=1, high=10**6),
    Parameter("seconds", None, "number", "in which messages are made, if shorter", low=0.01),
    Parameter("block", 10, "whole", "messages of a stream or parallel group", low=1, high=10**4),
    Parameter("streams", None, "whole", "that go on side by side, instead of blocks", low=1),
    Parameter(
        "size", 1024, "size", "of a message", low=described.SMALLEST, high=4 << 20, noun="size"
    ),
    Parameter(
        "distribution",
        None,
        "whole",
        "of the sizes, by Table 4.1, instead",
        low=0,
        high=len(sizes.PERCENT) - 1,
    ),
    Parameter("batch", 20, "whole", "messages between two rests", low=1, high=10**6),
    Parameter("pause_s", 0.0, "number", "after each message of a batch", low=0, high=60),
    Parameter("rest_s", 0.0, "number", "after each batch", low=0, high=60),
    Parameter("queued", 256, "whole", "messages that wait: then no more is made", low=1),
    Parameter("most_messages", 1024, "whole", "not acknowledged, at most", low=1),
    Parameter("most_bytes", 4 << 20, "size", "of these, at most", low=1),
    Parameter("bulk_bytes", 32 << 10, "size", "from which on a message is bulk", low=1),
    Parameter("buffer", 1024, "whole", "messages in an application's buffer", low=1),
    Parameter(
        "silence_s", 5.0, "number", "a connection without an answer is lost", low=0.1, high=60
    ),
    Parameter("limit_s", 600.0, "number", "until all is to be over", low=0.1),
    Parameter("seed", 1, "whole", "of what is drawn", low=0),
)
EPILOG = """\
  python -m experiments.workloads.smt server --port 7000
  python -m experiments.workloads.smt client 10.0.0.2:7000 --path eth0 --path eth1 --distribution 8

A path is the address that its connections come from, or the interface that has it. A graph is a
file of JSON: [{"name": "A", "size": 100}, {"name": "B", "size": 99, "needs": ["A"]}]. A kind of
block is one of stream, parallel and barrier. KB is 1000 bytes, KiB 1024.
"""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m experiments.workloads.smt",
        description="Messages with dependencies over several connections.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    roles = made.add_subparsers(dest="role", required=True, metavar="server|client")
    server = roles.add_parser("server", help="answers each message", allow_abbrev=False)
    server.add_argument("--address", default="0.0.0.0", help="where it listens (0.0.0.0)")
    server.add_argument("--quic", action="store_true", help="listen by QUIC at the same port, too")
    server.add_argument("--once", action="store_true", help="end with the first association")
    _add(server, _SERVER)
    client = roles.add_parser(
        "client", help="sends messages and tells as JSON how long each took", allow_abbrev=False
    )
    client.add_argument("server", metavar="HOST:PORT", help="an address, and a port")
    client.add_argument("--path", action="append", default=[], metavar="ADDRESS|INTERFACE")
    client.add_argument("--transport", default="tcp", help=f"{', '.join(TRANSPORTS)} (tcp)")
    client.add_argument("--policy", default="closure", help=f"{', '.join(POLICIES)} (closure)")
    client.add_argument("--cc", default="", help="TCP's congestion control (the system's)")
    client.add_argument(
        "--printed", action="store_true", help="the loss's estimate as printed in the thesis"
    )
    client.add_argument(
        "--priority",
        action="append",
        default=[],
        metavar="NAME=PRIORITY[:WEIGHT]",
        help="of messages; blocks take those that are named in turn (any=0)",
    )
    client.add_argument(
        "--blocks", default=",".join(generator.KINDS), help="the kinds (stream,parallel,barrier)"
    )
    client.add_argument("--graph", metavar="FILE", help="the messages, instead of blocks")
    _add(client, _CLIENT)
    return made


def _add(to: argparse.ArgumentParser, own: Sequence[Parameter]) -> None:
    for it in own:
        default = "" if it.default is None else f" ({it.default:g})"
        name = f"--{it.name.replace('_', '-')}"
        to.add_argument(name, metavar=it.name.upper(), help=f"{it.help}{default}")


def _read(own: Sequence[Parameter], given: argparse.Namespace) -> dict[str, Any]:
    """Raises ParameterError."""
    told = {it.name: getattr(given, it.name) for it in own}
    return {
        it.name: it.default if told[it.name] is None else parameters.read(it, told[it.name])
        for it in own
    }


def _one_of(name: str, value: str, known: Sequence[str]) -> str:
    if value not in known:
        raise BadInput(f"{name} {value!r} is none of {', '.join(known)}")
    return value


def _known_cc(name: str) -> str:
    """Raises BadInput."""
    if name:
        with socket.socket() as sock:
            try:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
            except OSError:
                raise BadInput(f"congestion control {name!r} is none of this kernel's") from None
    return name


def place_of(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise BadInput(f"server {text!r} is not HOST:PORT")
    return host.strip("[]"), int(port)


def paths_of(told: Sequence[str]) -> tuple[Path, ...]:
    for it in told:
        if "," in it:
            raise BadInput(f"path {it!r}: a resolver is of no use here")
    found = tuple(Path.of(it) for it in told) or (ANY,)
    if len({it.address for it in found}) < len(found):
        raise BadInput(f"path {', '.join(told)}: an address is named twice")
    return found


def classes_of(told: Sequence[str]) -> tuple[Class, ...]:
    found = tuple(Class.of(it) for it in told) or (Class("any"),)
    if len({it.name for it in found}) < len(found):
        raise BadInput(f"priority {', '.join(told)}: a name is there twice")
    return found


def wanted_of(
    given: argparse.Namespace, told: dict[str, Any], names: tuple[str, ...]
) -> Iterator[Wanted]:
    if given.graph is not None:
        return generator.fixed(described.read(given.graph, names))
    kinds = tuple(_one_of("block", it, generator.KINDS) for it in given.blocks.split(","))
    by_table = told["distribution"] is not None
    mixture = Mixture(
        kinds=kinds,
        block=told["block"],
        size=None if by_table else told["size"],
        distribution=told["distribution"] or 0,
        priorities=names,
        streams=told["streams"],
    )
    return mixture.messages(random.Random(told["seed"]))


def client_of(given: argparse.Namespace) -> tuple[Client, Iterator[Wanted]]:
    """Raises ParameterError, BadInput and BadPath."""
    told = _read(_CLIENT, given)
    settings = Settings(
        policy=_one_of("policy", given.policy, list(POLICIES)),
        printed=given.printed,
        **{it: told[it] for it in ("most_messages", "most_bytes", "bulk_bytes", "buffer")},
        silence_s=told["silence_s"],
        cc=_known_cc(given.cc),
    )
    classes = classes_of(given.priority)
    if _one_of("transport", given.transport, TRANSPORTS) != "tcp":
        need_quic()
    client = Client(
        server=place_of(given.server),
        paths=paths_of(given.path),
        connections=told["connections"],
        transport=given.transport,
        settings=settings,
        classes=classes,
        arrivals=Arrivals(told["batch"], told["pause_s"], told["rest_s"]),
        queued=told["queued"],
        most=told["messages"],
        seconds=told["seconds"],
        limit_s=told["limit_s"],
        seed=told["seed"],
    )
    return client, wanted_of(given, told, tuple(it.name for it in classes))


async def measure(client: Client, wanted: Iterator[Wanted]) -> None:
    print(json.dumps(await client.run(wanted)), flush=True)


def work(given: argparse.Namespace) -> Coroutine[Any, Any, None]:
    if given.role == "client":
        return measure(*client_of(given))
    told = _read(_SERVER, given)
    if given.quic:
        need_quic()
    return serve_at(given.address, told["port"], given.quic, told["pause_s"], given.once)


def main(argv: list[str]) -> int:
    given = parser().parse_args(argv)
    try:
        asyncio.run(until_told(work(given)))
    except (BadInput, BadPath, ParameterError) as wrong:
        print(f"smt: {wrong}", file=sys.stderr)
        return 2
    except (Failed, OSError) as wrong:
        print(f"smt: {wrong}", file=sys.stderr)
        return 1
    except asyncio.CancelledError:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
