# SPDX-License-Identifier: MIT
"""multiDNS: all addresses of a name that any resolver tells, for each path in the order got.

Every path asks the resolvers of its own access network, and the public ones, from its own address.
A path without any asks the system.
"""

import asyncio
import random
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field

from experiments.workloads.mhttp.failure import BadInput, Failed
from experiments.workloads.mhttp.path import Path, Resolver

TRIES_S = (1.0, 2.0, 2.0)  # how long an answer to each query is waited for
LATE_S = 0.1  # for the other resolvers, once each path has an address

Addresses = tuple[tuple[str, ...], ...]  # of each path


def need_dns() -> None:
    """Raises BadInput where dnspython is missing, which only resolvers that are named need.

    It loads what the first look-up would, whose time is measured."""
    try:
        import dns.asyncbackend
        import dns.asyncquery
        import dns.rdtypes.IN.A
        import dns.rdtypes.IN.AAAA

        dns.asyncbackend.get_backend("asyncio")
    except ImportError:
        raise BadInput("resolvers: no dnspython in Python: sudo make setup") from None


@dataclass
class Found:
    """What came so far: addresses of each path, and what went wrong."""

    paths: Sequence[Path]
    addresses: list[list[str]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.addresses = [[] for _ in self.paths]

    def add(self, number: int, told: Sequence[str]) -> None:
        mine = self.addresses[number]
        mine += [it for it in dict.fromkeys(told) if it not in mine]

    @property
    def enough(self) -> bool:
        return all(self.addresses)


async def look_up(host: str, paths: Sequence[Path], public: Sequence[Resolver]) -> Addresses:
    """Raises Failed where no path has an address."""
    found = Found(paths)
    asking = {
        asyncio.create_task(_ask(host, number, resolver, found))
        for number, path in enumerate(paths)
        for resolver in ((*path.resolvers, *public) or (None,))
    }
    try:
        waiting = asking
        while waiting and not found.enough:
            _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if waiting:
            await asyncio.wait(waiting, timeout=LATE_S)
    finally:
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
    if not any(found.addresses):
        raise Failed(f"{host}: no address: {'; '.join(dict.fromkeys(found.wrong))}")
    return tuple(map(tuple, found.addresses))


async def _ask(host: str, number: int, resolver: Resolver | None, found: Found) -> None:
    path = found.paths[number]
    try:
        if resolver is None:
            found.add(number, await _system(host, path))
        else:
            found.add(number, await _query(host, path, resolver))
    except Failed as why:
        found.wrong.append(str(why))


async def _system(host: str, path: Path) -> list[str]:
    loop = asyncio.get_running_loop()
    try:
        told = await loop.getaddrinfo(host, None, family=path.family, type=socket.SOCK_STREAM)
    except OSError as why:
        raise Failed(f"the system's resolver: {why.strerror}") from None
    return [str(it[4][0]) for it in told]


async def _query(host: str, path: Path, resolver: Resolver) -> list[str]:
    """Asks again where no answer comes: a datagram may be lost."""
    import dns.asyncquery
    import dns.exception
    import dns.message
    import dns.rcode
    import dns.rdatatype

    kind = "AAAA" if path.family == socket.AF_INET6 else "A"
    name = f"resolver {resolver.address} by path {path.name}"
    for seconds in TRIES_S:
        try:
            query = dns.message.make_query(host, kind, id=random.getrandbits(16))
            answer, _ = await dns.asyncquery.udp_with_fallback(
                query, resolver.address, timeout=seconds, port=resolver.port, source=path.address
            )
        except dns.exception.Timeout:
            continue
        except (dns.exception.DNSException, OSError) as why:
            raise Failed(f"{name}: {why}") from None
        if answer.rcode() != dns.rcode.NOERROR:
            raise Failed(f"{name}: {dns.rcode.to_text(answer.rcode())}")
        wanted = dns.rdatatype.from_text(kind)
        told = [it.address for rrset in answer.answer if rrset.rdtype == wanted for it in rrset]
        if not told:
            raise Failed(f"{name}: no {kind} record")
        return told
    raise Failed(f"{name}: no answer")
