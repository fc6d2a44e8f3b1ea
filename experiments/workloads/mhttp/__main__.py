# SPDX-License-Identifier: MIT
"""One object over several paths, or a proxy that fetches objects so.

python -m experiments.workloads.mhttp URL [-o FILE] [OPTION]...
python -m experiments.workloads.mhttp --proxy PORT [OPTION]...
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from experiments import parameters
from experiments.workloads.mhttp import names
from experiments.workloads.mhttp.client import Client
from experiments.workloads.mhttp.download import Settings
from experiments.workloads.mhttp.failure import BadInput, Failed
from experiments.workloads.mhttp.path import ANY, FORM, Resolver
from experiments.workloads.mhttp.path import Path as Way
from experiments.workloads.mhttp.proxy import serve
from experiments.workloads.mhttp.scheduler import SCHEDULERS
from experiments.workloads.mhttp.sink import File, Output
from experiments.workloads.mhttp.target import Target
from experiments.workloads.stopping import until_told
from topologies.parameter import Parameter, ParameterError

_CHUNK = Parameter("chunk", 1 << 20, "size", "bytes of a chunk", low=1)
_HELD = Parameter("held", 64 << 20, "size", "bytes that wait for earlier ones", low=1)
_CONNECTIONS = Parameter("connections", 2, "whole", "connections at a time", low=1, high=64)
_SILENCE = Parameter("silence_s", 5.0, "number", "seconds without a byte", low=0.01, high=3600)
EPILOG = """\
  python -m experiments.workloads.mhttp http://example.test/big -o big \\
      --path 10.0.1.1,10.0.1.53 --path 10.0.2.1,10.0.2.53
  python -m experiments.workloads.mhttp --proxy 8080 --path eth0 --path eth1 --scheduler ahead
  http_proxy=http://127.0.0.1:8080 wget http://example.test/big

A path is the address that its connections come from, or the interface that has it, and the
resolvers of its access network; without any it asks the system's. KB is 1000 bytes, KiB 1024.
"""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m experiments.workloads.mhttp",
        description="An object by HTTP range requests over several paths, from several servers.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("url", nargs="?", metavar="URL", help="the object: http://HOST[:PORT]/...")
    made.add_argument("-o", metavar="FILE", help="where it goes once it is whole (standard output)")
    made.add_argument("--proxy", metavar="PORT", help="be an HTTP proxy on 127.0.0.1 instead")
    made.add_argument("--path", action="append", default=[], metavar=FORM)
    made.add_argument(
        "--public",
        action="append",
        default=[],
        metavar="RESOLVER[#PORT]",
        help="a resolver that every path asks as well",
    )
    made.add_argument("--scheduler", default="T", help=f"{', '.join(SCHEDULERS)} (T)")
    made.add_argument("--chunk", default="1024KiB", metavar="SIZE", help="of a range (1024KiB)")
    made.add_argument("--connections", default="2", metavar="N", help="at a time (2)")
    made.add_argument(
        "--always", action="store_true", help="by ranges also where there is one source alone"
    )
    made.add_argument(
        "--mptcp", action="store_true", help="connections speak MPTCP where the server does, too"
    )
    made.add_argument(
        "--held", default="64MiB", metavar="SIZE", help="most bytes that wait for others (64MiB)"
    )
    made.add_argument(
        "--silence", default="5", metavar="S", help="a connection without a byte is lost (5)"
    )
    made.add_argument(
        "--account", metavar="FILE", help="what each object took, as a line of JSON each"
    )
    return made


def settings(given: argparse.Namespace) -> Settings:
    """Raises ParameterError or BadInput."""
    if given.scheduler not in SCHEDULERS:
        raise BadInput(f"scheduler {given.scheduler!r} is none of {', '.join(SCHEDULERS)}")
    return Settings(
        given.scheduler,
        chunk_bytes=_read(_CHUNK, given.chunk),
        connections=_read(_CONNECTIONS, given.connections),
        silence_s=_read(_SILENCE, given.silence),
        most_held=_read(_HELD, given.held),
        always=given.always,
        mptcp=given.mptcp,
    )


def _read(parameter: Parameter, text: str) -> Any:
    return parameters.read(parameter, text)


def port_of(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise BadInput(f"proxy: {text!r} is no port")
    return int(text)


def client(given: argparse.Namespace) -> Client:
    paths = [Way.of(it) for it in given.path] or [ANY]
    if len({it.address for it in paths}) < len(paths):
        raise BadInput(f"path {', '.join(given.path)}: an address is named twice")
    public = [Resolver.of(it) for it in given.public]
    if public or any(it.resolvers for it in paths):
        names.need_dns()
    return Client(paths, public, settings(given))


async def fetch(given: argparse.Namespace) -> None:
    it, target = client(given), Target.of(given.url)
    sink = File(Path(given.o)) if given.o else Output()
    account = it.settings.account()
    try:
        await it.fetch(target, (("Accept", "*/*"),), sink, account)
    except BaseException:
        sink.drop()
        raise
    finally:
        write_account(given.account, account.told())


def write_account(file: str | None, told: dict[str, Any]) -> None:
    if file:
        with Path(file).open("a") as out:
            out.write(json.dumps(told) + "\n")


async def proxy(given: argparse.Namespace) -> None:
    def account(told: dict[str, Any]) -> None:
        write_account(given.account, told)

    await serve(client(given), port_of(given.proxy), account)


def work(given: argparse.Namespace) -> Coroutine[Any, Any, None]:
    if given.proxy is not None and (given.url or given.o):
        raise BadInput("either URL or --proxy PORT")
    if given.proxy is None and not given.url:
        raise BadInput("which URL, or --proxy on which PORT? see --help")
    return fetch(given) if given.proxy is None else proxy(given)


def main(argv: list[str]) -> int:
    given = parser().parse_args(argv)
    try:
        asyncio.run(until_told(work(given)))
    except (BadInput, ParameterError) as wrong:
        print(f"mhttp: {wrong}", file=sys.stderr)
        return 2
    except (Failed, OSError) as wrong:
        print(f"mhttp: {wrong}", file=sys.stderr)
        return 1
    except asyncio.CancelledError:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
