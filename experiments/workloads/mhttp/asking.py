# SPDX-License-Identifier: MIT
"""Asking sources for an object, and the account of what they answered."""

from dataclasses import dataclass, field

from experiments.workloads.mhttp.account import Account, Leg
from experiments.workloads.mhttp.connection import LOST, Connection, why
from experiments.workloads.mhttp.failure import Failed
from experiments.workloads.mhttp.message import Answer, Fields, written
from experiments.workloads.mhttp.plan import Range
from experiments.workloads.mhttp.sources import Source, Sources
from experiments.workloads.mhttp.target import Target


@dataclass
class Asking:
    """`fields` go with every request, beside Host and Range."""

    target: Target
    fields: Fields
    sources: Sources
    silence_s: float
    account: Account
    mptcp: bool = False
    failures: list[str] = field(default_factory=list)

    async def first(self, part: Range | None) -> tuple[Connection, Answer]:
        """A connection to the first source that answers, and the answer. Raises Failed."""
        while (source := self.sources.take()) is not None:
            connection = None
            try:
                connection = await self.open(source)
                self.ask(connection, part)
                answer = await connection.head()
                answer.body()
            except LOST as error:
                self.lost(source, connection, error, good=False)
                continue
            return connection, answer
        raise self.failed()

    async def open(self, source: Source) -> Connection:
        self.leg(source).connections += 1
        to = source, self.target.port, self.silence_s
        return await Connection.open(*to, mptcp=self.mptcp)

    def ask(self, connection: Connection, part: Range | None) -> None:
        """A range is of the object's own bytes, so nobody is to encode them."""
        fields = [("Host", self.target.authority), *self.fields]
        if part is not None:
            fields = [it for it in fields if it[0].lower() != "accept-encoding"]
            fields += [("Accept-Encoding", "identity"), ("Range", part.field())]
        self.leg(connection.source).requests += 1
        connection.send(written(f"GET {self.target.path} HTTP/1.1", fields))

    def leg(self, source: Source) -> Leg:
        return self.account.leg(source, source.path.name, source.address)

    def done(self, connection: Connection) -> None:
        connection.close()
        self.sources.release(connection.source, good=True)

    def lost(
        self, source: Source, connection: Connection | None, error: BaseException, *, good: bool
    ) -> None:
        """Unless `good`, the source is not asked again."""
        if connection is not None:
            connection.close()
        self.leg(source).lost.append(why(error))
        self.failures.append(f"{source}: {why(error)}")
        self.sources.release(source, good=good)

    def failed(self) -> Failed:
        told = "; ".join(dict.fromkeys(self.failures)) or "there is no source"
        return Failed(f"http://{self.target.authority}{self.target.path}: {told}")
