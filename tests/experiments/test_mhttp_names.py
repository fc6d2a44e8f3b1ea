# SPDX-License-Identifier: MIT
"""multiDNS: each path asks its own resolvers from its own address, and keeps all that they tell."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from base.sources import ROOT
from experiments.workloads.mhttp import names
from experiments.workloads.mhttp.failure import Failed
from experiments.workloads.mhttp.path import ANY, Path, Resolver
from experiments.workloads.mhttp.sources import Source, Sources
from topologies.nodes import has_ipv6

pytest.importorskip("dns", reason="no dnspython in Python: sudo make setup")
import dns.flags
import dns.message
import dns.rcode
import dns.rrset

NAME = "big.test"


@dataclass
class Local(asyncio.DatagramProtocol):
    """A resolver that knows one name. `asked` has who asked."""

    addresses: tuple[str, ...]
    deaf: int = 0  # so many queries are lost
    after_s: float = 0.0
    asked: list[str] = field(default_factory=list)

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, who: tuple[str, int]) -> None:
        self.asked.append(who[0])
        if len(self.asked) <= self.deaf:
            return
        query = dns.message.from_wire(data)
        answer = dns.message.make_response(query)
        answer.flags |= dns.flags.RA
        if str(query.question[0].name) != f"{NAME}.":
            answer.set_rcode(dns.rcode.NXDOMAIN)
        else:  # one by one: dnspython shuffles those of one set
            for it in self.addresses:
                kind = "AAAA" if ":" in it else "A"
                answer.answer.append(dns.rrset.from_text(f"{NAME}.", 60, "IN", kind, it))
        loop = asyncio.get_running_loop()
        loop.call_later(self.after_s, self._transport.sendto, answer.to_wire(), who)


@asynccontextmanager
async def resolving(*all_: Local, here: str = "127.0.0.1") -> AsyncIterator[list[Resolver]]:
    loop, made = asyncio.get_running_loop(), []
    transports = []
    for it in all_:
        transport, _ = await loop.create_datagram_endpoint(lambda it=it: it, local_addr=(here, 0))
        transports.append(transport)
        made.append(Resolver(here, transport.get_extra_info("sockname")[1]))
    try:
        yield made
    finally:
        for transport in transports:
            transport.close()


def look_up(*all_: Local, public: int = 0, name: str = NAME) -> names.Addresses:
    """A path to each of the resolvers but the last `public` ones, which all paths ask."""

    async def work() -> names.Addresses:
        async with resolving(*all_) as made:
            own = made[: len(made) - public]
            paths = [Path(f"p{n}", f"127.0.0.{n}", (it,)) for n, it in enumerate(own, 1)]
            return await names.look_up(name, paths, made[len(own) :])

    return asyncio.run(asyncio.wait_for(work(), 20))


FIRST = """
import asyncio, sys
from experiments.workloads.mhttp import names
from experiments.workloads.mhttp.path import Path, Resolver
names.need_dns()
before = {*sys.modules}
path = Path("p", sys.argv[1], (Resolver(sys.argv[1], int(sys.argv[2])),))
assert asyncio.run(names.look_up(sys.argv[3], [path], [])) == ((sys.argv[4],),)
print(*sorted({*sys.modules} - before))
"""


@pytest.mark.parametrize(
    ("here", "told"), [("127.0.0.1", "192.0.2.1"), ("::1", "2001:db8::1")], ids=["A", "AAAA"]
)
def test_the_first_look_up_loads_nothing(here: str, told: str) -> None:
    """It would count as the network's time."""
    if ":" in here and not has_ipv6():
        pytest.skip("this kernel has no IPv6")

    async def work() -> bytes:
        async with resolving(Local((told,)), here=here) as made:
            words = (here, str(made[0].port), NAME, told)
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", FIRST, *words, cwd=ROOT, stdout=asyncio.subprocess.PIPE
            )
            return (await process.communicate())[0]

    assert asyncio.run(asyncio.wait_for(work(), 20)) == b"\n"


def test_each_path_asks_from_its_own_address() -> None:
    one, two = Local(("192.0.2.1", "192.0.2.2")), Local(("192.0.2.3",))
    assert look_up(one, two) == (("192.0.2.1", "192.0.2.2"), ("192.0.2.3",))
    assert (one.asked, two.asked) == (["127.0.0.1"], ["127.0.0.2"])


def test_public_resolvers_are_asked_as_well_in_the_order_got() -> None:
    one, two = Local(("192.0.2.1",), after_s=0.05), Local(("192.0.2.2",))
    public = Local(("192.0.2.9", "192.0.2.1"), after_s=0.02)
    found = look_up(one, two, public, public=1)
    assert found == (("192.0.2.9", "192.0.2.1"), ("192.0.2.2", "192.0.2.9", "192.0.2.1"))
    assert sorted(public.asked) == ["127.0.0.1", "127.0.0.2"]


def test_a_lost_query_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "TRIES_S", (0.1, 2.0))
    it = Local(("192.0.2.1",), deaf=1)
    assert look_up(it) == (("192.0.2.1",),)
    assert len(it.asked) == 2


def test_a_late_resolver_is_not_waited_for_long() -> None:
    late = Local(("192.0.2.9",), after_s=5.0)
    assert look_up(Local(("192.0.2.1",)), late, public=1) == (("192.0.2.1",),)


def test_one_path_without_an_address_leaves_the_other() -> None:
    assert look_up(Local(("192.0.2.1",)), Local(())) == (("192.0.2.1",), ())


def test_no_address_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "TRIES_S", (0.1,))
    with pytest.raises(Failed, match=r"none\.test: no address: .*NXDOMAIN"):
        look_up(Local(("192.0.2.1",)), name="none.test")
    with pytest.raises(Failed, match="no A record"):
        look_up(Local(()))
    with pytest.raises(Failed, match="by path p1: no answer"):
        look_up(Local(("192.0.2.1",), deaf=9))


def test_without_resolvers_the_system_is_asked() -> None:
    found = asyncio.run(names.look_up("localhost", [ANY], []))
    assert {*found[0]} & {"127.0.0.1", "::1"}


def test_sources_are_of_paths_in_turn_and_of_servers_in_turn() -> None:
    one, two = Path("one", "10.0.1.1"), Path("two", "10.0.2.1")
    sources = Sources((one, two), (("192.0.2.1", "192.0.2.2"), ("192.0.2.1", "192.0.2.3", "::1")))
    first, second = sources.take(), sources.take()
    assert first == Source(one, "192.0.2.1")
    assert second == Source(two, "192.0.2.3"), "a server that is not in use yet, of its family"
    assert sources.take() is None, "one connection a path"
    sources.release(Source(one, "192.0.2.1"), good=False)
    assert sources.take() == Source(one, "192.0.2.2")
    sources.release(Source(two, "192.0.2.3"), good=True)
    assert sources.take() == Source(two, "192.0.2.1"), "nobody uses it now"
