# SPDX-License-Identifier: MIT
"""Fetches objects: names looked up by all paths, then a download from the sources found."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from experiments.workloads.mhttp.account import Account
from experiments.workloads.mhttp.asking import Asking
from experiments.workloads.mhttp.download import Download, Settings
from experiments.workloads.mhttp.message import Fields
from experiments.workloads.mhttp.names import look_up
from experiments.workloads.mhttp.path import Path, Resolver
from experiments.workloads.mhttp.sink import Sink
from experiments.workloads.mhttp.sources import Sources
from experiments.workloads.mhttp.target import Target


@dataclass(frozen=True)
class Client:
    """`public`: resolvers that every path asks beside its own."""

    paths: Sequence[Path]
    public: Sequence[Resolver]
    settings: Settings

    async def sources(self, target: Target) -> Sources:
        """Raises Failed where the host has no address."""
        if target.literal is not None:
            return Sources(self.paths, [(target.literal,)] * len(self.paths))
        return Sources(self.paths, await look_up(target.host, self.paths, self.public))

    async def fetch(self, target: Target, fields: Fields, sink: Sink, account: Account) -> None:
        """Raises Failed; what the sink has is then to be dropped."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        sources = await self.sources(target)
        account.look_up_s = loop.time() - began
        told = self.settings
        asking = Asking(target, fields, sources, told.silence_s, account, told.mptcp)
        await Download(asking, self.settings, sink).run()
