# SPDX-License-Identifier: MIT
"""A page load without a browser: the same tree, the same connections, every body compared.

    python -m experiments.workloads.web.loader --manifest FILE --hosts FILE --protocol http1 ...

An object is asked for when the one that names it is there whole and thought about; the thinking
about all objects is done one after another, as on a browser's main thread. The load lasts from the
first connect() to the last byte. On standard output one line of JSON comes at the end; the
connections stay open until standard input ends, so that they can be looked at.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments.workloads import line
from experiments.workloads.web.hints import Hints
from experiments.workloads.web.http1 import Http1
from experiments.workloads.web.http2 import Http2
from experiments.workloads.web.page import Item, Manifest
from experiments.workloads.web.transport import Dialling, LoadError, Reply, Transport


class Load:
    """One page on its way in."""

    def __init__(self, manifest: Manifest, transport: Transport, hints: Hints | None) -> None:
        self.manifest = manifest
        self.page = manifest.page
        self.transport = transport
        self.hints = hints
        self.thread = asyncio.Lock()  # the browser's main thread
        self.replies: list[Reply] = []

    async def run(self) -> None:
        if self.hints is None:
            return await self._load()
        async with asyncio.TaskGroup() as group:
            listening = group.create_task(self.hints.listen())
            await self._load()
            await self.hints.all_told()
            listening.cancel()

    async def _load(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._visit(group, self.page.items[0]))

    async def _visit(self, group: asyncio.TaskGroup, item: Item) -> None:
        reply = await self.transport.fetch(self.page.hosts[item.host], item)
        self._compare(reply)
        self.replies.append(reply)
        if item.think_ms:
            async with self.thread:
                await asyncio.sleep(item.think_ms / 1000)
        for named in self.page.named[item.index]:
            group.create_task(self._visit(group, named))

    def _compare(self, reply: Reply) -> None:
        item = reply.item
        where = f"{self.page.hosts[item.host]}{item.path}"
        if reply.size != item.size:
            raise LoadError(f"{where}: {reply.size} bytes, not {item.size}")
        if reply.digest.hexdigest() != self.manifest.sha256[item.index]:
            raise LoadError(f"{where}: the bytes are not those of the page")

    def account(self) -> dict[str, Any]:
        began = min(connection.began for connection in self.transport.connections)
        replies = sorted(self.replies, key=lambda reply: reply.item.index)
        return {
            "load_s": max(reply.last_byte for reply in replies) - began,
            "first_byte_s": replies[0].first_byte - began,
            "html_s": replies[0].last_byte - began,
            "bytes": sum(reply.size for reply in replies),
            "hints": self.hints.told if self.hints else None,
            "objects": [_times(reply, began) for reply in replies],
            "connections": [
                {**asdict(it), "began": it.began - began, "ready": it.ready - began}
                for it in self.transport.connections
            ],
        }


def _times(reply: Reply, began: float) -> dict[str, Any]:
    return {
        "index": reply.item.index,
        "asked_s": round(reply.asked - began, 6),
        "first_byte_s": round(reply.first_byte - began, 6),
        "last_byte_s": round(reply.last_byte - began, 6),
        "connection": reply.connection,
    }


async def load(
    manifest: Manifest, transport: Transport, seconds: float, hints: Hints | None = None
) -> dict[str, Any]:
    """Loads a page, tells how it went, and waits until it may let go of the connections."""
    it = Load(manifest, transport, hints)
    cpu_before_s = time.process_time()
    error: LoadError | None = None
    try:
        async with asyncio.timeout(seconds):
            try:
                await it.run()
            except* LoadError as errors:
                error = first(errors)
        if error:
            raise error
        account = {**it.account(), "cpu_s": round(time.process_time() - cpu_before_s, 4)}
        print(json.dumps(account), flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        return account
    finally:
        await transport.close()
        if hints:
            hints.writer.close()


def first(errors: BaseExceptionGroup[LoadError]) -> LoadError:
    """What went wrong first; the rest is what followed from it."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, LoadError)
    return error


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="loader", description="Loads a page.")
    parser.add_argument("--manifest", type=Path, required=True)
    parser.add_argument("--hosts", type=Path, required=True, help="json: address of each host")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--protocol", choices=("http1", "http2"), required=True)
    parser.add_argument("--one", action="store_true", help="one connection for all hosts")
    parser.add_argument("--authority", help="certificate to believe; without it, cleartext")
    parser.add_argument("--cc", help="congestion control of our end")
    parser.add_argument("--mptcp", action="store_true")
    parser.add_argument("--first-port", type=int, help="of our end, one a connection from here on")
    parser.add_argument("--hints", type=Path, help="lp's control socket: tell it of each answer")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--line", type=Path, help="wait at the start line of this folder")
    return parser.parse_args(argv)


def main() -> int:
    args = arguments()
    manifest = Manifest.read(args.manifest)
    addresses = json.loads(args.hosts.read_text())
    dialling = Dialling(addresses, args.port, args.cc, args.authority, args.mptcp, args.first_port)
    scheme = "https" if args.authority else "http"
    page = f"{scheme}://{manifest.page.hosts[0]}/"

    def transport(hints: Hints | None) -> Transport:
        if args.protocol == "http1":
            return Http1(dialling, page, hints)
        return Http2(dialling, page, args.one)

    async def run() -> None:
        hints = await Hints.open(args.hints) if args.hints else None
        await load(manifest, transport(hints), args.seconds, hints)

    if args.line:
        line.wait(args.line)
    try:
        asyncio.run(run())
    except LoadError as error:
        print(f"loader: {error}", file=sys.stderr)
        return 1
    except TimeoutError:
        print(f"loader: not loaded after {args.seconds:g} s", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
