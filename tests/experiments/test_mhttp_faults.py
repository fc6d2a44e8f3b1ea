# SPDX-License-Identifier: MIT
"""mHTTP from servers on loopback that are right and wrong: the right bytes come, or none."""

import asyncio
import random
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest

from experiments.workloads.mhttp.account import Account
from experiments.workloads.mhttp.asking import Asking
from experiments.workloads.mhttp.connection import Connection
from experiments.workloads.mhttp.download import Download, Settings
from experiments.workloads.mhttp.failure import Failed
from experiments.workloads.mhttp.message import Answer
from experiments.workloads.mhttp.path import Path
from experiments.workloads.mhttp.plan import chunks
from experiments.workloads.mhttp.scheduler import SCHEDULERS, Scheduler, View
from experiments.workloads.mhttp.sources import Source, Sources
from experiments.workloads.mhttp.target import Target
from tests.experiments.mhttp_server import Server, Told, serving, with_fields

NEAR, FAR = "127.0.0.11", "127.0.0.12"
PATHS = (Path("one", "127.0.0.1"), Path("two", "127.0.0.2"))
CHUNK = 32768
CONTENT = random.Random(17).randbytes(20 * CHUNK + 77)
OTHER = random.Random(18).randbytes(len(CONTENT))
QUICK = Settings(chunk_bytes=CHUNK, silence_s=20.0)  # nobody is silent, and the machine may be slow
SILENT_S = 1.0  # where a server is


def given_up_after(then: str) -> float:
    return SILENT_S if then == "be silent" else QUICK.silence_s


@dataclass
class Memory:
    """A sink."""

    answer: Answer | None = None
    data: bytearray = field(default_factory=bytearray)
    ended: bool = False
    refuses_after: int | None = None

    async def begin(self, answer: Answer) -> None:
        self.answer = answer

    async def write(self, data: bytes) -> None:
        if self.refuses_after is not None and len(self.data) > self.refuses_after:
            raise BrokenPipeError("nobody reads")
        self.data += data

    async def end(self) -> None:
        self.ended = True

    def drop(self) -> None:
        """Nothing."""


@dataclass
class Had:
    sink: Memory
    account: Account
    failed: str | None

    def came(self, address: str) -> int:
        return sum(leg.bytes for leg in self.account.legs.values() if leg.server == address)

    def lost(self, address: str) -> list[str]:
        legs = [leg for leg in self.account.legs.values() if leg.server == address]
        return [told for leg in legs for told in leg.lost]


def had(
    servers: dict[str, Server],
    settings: Settings = QUICK,
    sink: Memory | None = None,
    paths: Sequence[Path] = PATHS,
) -> Had:
    """The first server by the first path, the second by the second."""

    async def work() -> Had:
        async with serving(servers) as port:
            it, account = sink or Memory(), settings.account()
            sources = Sources(paths, [(address,) for address in servers])
            target = Target("example.test", port, "/object")
            asking = Asking(target, (), sources, settings.silence_s, account)
            try:
                await Download(asking, settings, it).run()
            except Failed as failed:
                return Had(it, account, str(failed))
            return Had(it, account, None)

    return asyncio.run(asyncio.wait_for(work(), 30))


def whole(found: Had, content: bytes = CONTENT) -> None:
    assert found.failed is None and found.sink.ended
    assert found.sink.answer is not None
    assert found.sink.answer.status == 200
    assert found.sink.answer.get("content-range") is None
    assert bytes(found.sink.data) == content
    assert found.account.length == len(content)


def from_second_on(change: Callable[[Told], Told]) -> Callable[[int, Told], Told]:
    """Of the first server, whose first answer is right."""
    return lambda number, told: told if number == 1 else change(told)


def test_an_account_has_the_processor_s_time_of_its_own_object() -> None:
    assert time.process_time() > 0.2
    assert Account("T", CHUNK).told()["cpu_s"] < 0.1


def test_the_processor_s_time_begins_where_the_seconds_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the first connection: to look names up may have taken a minute of it."""
    before = Account("T", CHUNK, cpu_before_s=time.process_time() - 60)
    monkeypatch.setattr(Settings, "account", lambda self: before)
    found = had({NEAR: Server(CONTENT), FAR: Server(CONTENT)})
    whole(found)
    assert 0 < found.account.told()["cpu_s"] < 60


@pytest.mark.parametrize("always", [False, True])
def test_one_source_alone_is_asked_for_ranges_if_they_are_wanted(always: bool) -> None:
    server = Server(CONTENT)
    found = had({NEAR: server}, replace(QUICK, always=always), paths=PATHS[:1])
    whole(found)
    assert found.account.plain == (None if always else "one source")
    wanted = [f"bytes={it.start}-{it.end - 1}" for it in chunks(len(CONTENT), CHUNK)]
    assert server.asked == (wanted if always else [None])
    assert server.connections == 1
    assert found.account.peak_bytes == 0


@pytest.mark.parametrize("policy", SCHEDULERS)
def test_both_servers_have_their_part(policy: str) -> None:
    servers = {NEAR: Server(CONTENT), FAR: Server(CONTENT)}
    found = had(servers, replace(QUICK, scheduler=policy))
    whole(found)
    assert found.account.plain is None
    assert found.came(NEAR) + found.came(FAR) == len(CONTENT)
    assert found.came(FAR) > 0
    asked = servers[NEAR].asked + servers[FAR].asked
    assert len(asked) == len(set(asked)) == 21, "each chunk is asked for once"
    assert servers[NEAR].asked[0] == f"bytes=0-{CHUNK - 1}"
    assert servers[NEAR].connections == servers[FAR].connections == 1
    assert found.sink.answer is not None
    assert found.sink.answer.get("content-length") == str(len(CONTENT))


def test_who_was_given_nothing_asks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else happens meanwhile: its own chunk is whole, and nobody else is at work."""
    answers: list[int | None] = [*[None] * 9, 0]

    def choose(own: View, others: Sequence[View], sizes: Sequence[int]) -> int | None:
        answers.append(answers.pop(0))
        return answers[-1]

    monkeypatch.setitem(SCHEDULERS, "hesitant", Scheduler("hesitant", choose, early=False))
    settings = replace(QUICK, always=True, scheduler="hesitant")
    whole(had({NEAR: Server(CONTENT)}, settings, paths=PATHS[:1]))


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK])
@pytest.mark.parametrize("policy", SCHEDULERS)
def test_sizes(policy: str, size: int) -> None:
    """Up to a chunk one request does; of an empty object the range is refused."""
    servers = {NEAR: Server(CONTENT[:size]), FAR: Server(CONTENT[:size])}
    found = had(servers, replace(QUICK, scheduler=policy))
    whole(found, CONTENT[:size])
    asked = servers[NEAR].asked + servers[FAR].asked
    assert len(asked) == (2 if size == 0 else -(-size // CHUNK))
    assert (found.account.plain is not None) == (size == 0)
    if size <= CHUNK:
        assert servers[FAR].connections == 0


def short(told: Told) -> Told:
    return with_fields(replace(told, body=told.body[:-9]), content_length=str(len(told.body) - 9))


def long(told: Told) -> Told:
    return with_fields(replace(told, body=told.body + b"x"), content_length=str(len(told.body) + 1))


def shifted(told: Told) -> Told:
    first, _, rest = told.fields["Content-Range"].removeprefix("bytes ").partition("-")
    last, _, total = rest.partition("/")
    there = f"bytes {int(first) + 1}-{int(last) + 1}/{int(total) + 1}"
    return with_fields(told, content_range=there)


def chunked(told: Told, size: int) -> Told:
    """In the transfer coding, in which only the bytes tell the length."""
    body = told.body[:size] + b"y" * (size - len(told.body))
    coded = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    plain = with_fields(replace(told, body=coded), content_length=None)
    return _coded(plain)


def _coded(told: Told) -> Told:
    return replace(told, fields=told.fields | {"Transfer-Encoding": "chunked"})


WRONG = {
    "200": (lambda it: replace(it, status="200 OK"), "200 OK for a range"),
    "404": (lambda it: replace(it, status="404 Not Found"), "404 Not Found for a range"),
    "416": (
        lambda _: Told("416 No", {"Content-Range": "bytes */7", "Content-Length": "0"}, b""),
        "416 No for a range",
    ),
    "Content-Range of other bytes": (shifted, "Content-Range bytes"),
    "no Content-Range": (lambda it: with_fields(it, content_range=None), "Content-Range None"),
    "nonsense": (lambda it: with_fields(it, content_range="bytes x-y/z"), "Content-Range bytes x"),
    "another length": (
        lambda it: with_fields(it, content_range=it.fields["Content-Range"] + "9"),
        "another object: length",
    ),
    "another ETag": (lambda it: with_fields(it, etag='"two"'), 'ETag "two", not "one"'),
    "no ETag": (lambda it: with_fields(it, etag=None), 'ETag missing, not "one"'),
    "another date": (lambda it: with_fields(it, last_modified="today"), "Last-Modified today"),
    "encoded": (
        lambda it: replace(it, fields=it.fields | {"Content-Encoding": "gzip"}),
        "Content-Encoding gzip",
    ),
    "told too short": (short, f"Content-Length {CHUNK - 9} for {CHUNK} bytes"),
    "told too long": (long, f"Content-Length {CHUNK + 1} for {CHUNK} bytes"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_server_that_is_wrong_gives_no_byte(wrong: str) -> None:
    """The second one, whose bytes are other ones: not one of them is taken."""
    change, told = WRONG[wrong]
    servers = {NEAR: Server(CONTENT), FAR: Server(OTHER, lambda _, it: change(it))}
    found = had(servers)
    whole(found)
    assert found.came(FAR) == 0
    assert len(found.lost(FAR)) == 1 and told in found.lost(FAR)[0]
    assert servers[FAR].connections == 1, "it is asked no more"


@pytest.mark.parametrize("policy", SCHEDULERS)
def test_the_first_server_changes_its_mind(policy: str) -> None:
    """The object is replaced there after two chunks: the second server goes on with the first's."""

    def fault(number: int, told: Told) -> Told:
        return told if number < 3 else replace(with_fields(told, etag='"new"'), body=OTHER[:CHUNK])

    found = had(
        {NEAR: Server(CONTENT, fault), FAR: Server(CONTENT)}, replace(QUICK, scheduler=policy)
    )
    whole(found)
    assert found.lost(NEAR) == ['another object: ETag "new", not "one"']


@pytest.mark.parametrize("then", ["reset", "close", "die", "be silent"])
@pytest.mark.parametrize("who", [NEAR, FAR])
@pytest.mark.parametrize("policy", SCHEDULERS)
def test_a_chunk_is_cut(policy: str, who: str, then: str) -> None:
    """Its rest comes from the other, or from the same server by another connection."""

    def fault(number: int, told: Told) -> Told:
        return replace(told, cut=9000, then=then) if number == 2 else told

    servers = {it: Server(CONTENT, fault if it == who else lambda _, x: x) for it in (NEAR, FAR)}
    settings = replace(QUICK, scheduler=policy, silence_s=given_up_after(then))
    found = had(servers, settings)
    whole(found)
    assert len(found.lost(who)) >= 1
    assert found.came(NEAR) + found.came(FAR) == len(CONTENT), "no byte came twice"


@pytest.mark.parametrize("then", ["reset", "be silent"])
def test_the_first_chunk_is_cut(then: str) -> None:
    """The second path has not begun then; it takes all that is left."""

    def fault(number: int, told: Told) -> Told:
        return replace(told, cut=CHUNK // 2, then=then)

    servers = {NEAR: Server(CONTENT, fault), FAR: Server(CONTENT)}
    found = had(servers, replace(QUICK, silence_s=given_up_after(then)))
    whole(found)
    assert found.came(NEAR) == CHUNK // 2
    assert servers[NEAR].connections == 1


@pytest.mark.parametrize("size", [CHUNK - 1, CHUNK + 1])
def test_a_chunk_whose_bytes_are_too_few_or_too_many(size: int) -> None:
    """As the transfer coding tells them. What is right of them is kept."""
    servers = {NEAR: Server(CONTENT), FAR: Server(CONTENT, lambda _, it: chunked(it, size))}
    found = had(servers)
    whole(found)
    told = found.lost(FAR)
    assert len(told) == 1 and ("short" if size < CHUNK else "more than") in told[0]


def test_bytes_behind_a_chunk_are_no_answer() -> None:
    def fault(_: int, told: Told) -> Told:
        return replace(told, body=told.body + b"more\r\n\r\n")

    servers = {NEAR: Server(CONTENT), FAR: Server(CONTENT, fault)}
    found = had(servers)
    whole(found)
    assert found.lost(FAR) == ["answered 'more', which is no HTTP/1.1"]


def test_a_chunk_in_the_transfer_coding_is_taken() -> None:
    servers = {NEAR: Server(CONTENT), FAR: Server(CONTENT, lambda _, it: chunked(it, len(it.body)))}
    found = had(servers)
    whole(found)
    assert found.came(FAR) > 0 and not found.lost(FAR)


def test_a_server_that_closes_after_each_answer_is_asked_again() -> None:
    def fault(_: int, told: Told) -> Told:
        return replace(told, fields=told.fields | {"Connection": "close"}, then="close")

    servers = {NEAR: Server(CONTENT, fault), FAR: Server(CONTENT, fault)}
    found = had(servers, replace(QUICK, scheduler="ahead"))
    whole(found)
    assert not found.lost(NEAR) and not found.lost(FAR)
    assert servers[FAR].connections > 1


class Absent(Server):
    """Nobody listens."""

    async def start(self, where: object) -> None:
        """Not at all."""

    def die(self) -> None:
        """Nobody did."""


@pytest.mark.parametrize("who", [NEAR, FAR])
def test_a_server_is_not_there(who: str) -> None:
    servers = {it: Absent(CONTENT) if it == who else Server(CONTENT) for it in (NEAR, FAR)}
    found = had(servers)
    whole(found)
    assert found.lost(who) == ["Connection refused"]
    assert found.came(who) == 0


class Deaf(Server):
    """Its queue of connections is full, so that the kernel drops each SYN."""

    async def start(self, where: tuple[str, int]) -> None:
        self._listener = socket.create_server(where, backlog=0)
        self._only = socket.create_connection(where)

    def die(self) -> None:
        self._only.close()
        self._listener.close()


def test_a_handshake_that_does_not_end_is_not_waited_for() -> None:
    """The first server has sent all of the object meanwhile."""
    found = had({NEAR: Server(CONTENT), FAR: Deaf(CONTENT)})
    whole(found)
    assert found.account.seconds is not None
    assert found.account.seconds < QUICK.silence_s / 2
    assert found.came(NEAR) == len(CONTENT) and not found.lost(FAR)


def test_a_server_that_ends_an_idle_connection_harms_no_other() -> None:
    """Its round trip is asked for all the same, on behalf of the others."""

    async def work() -> tuple[float, float]:
        async with serving({NEAR: Server(CONTENT)}) as port:
            connection = await Connection.open(Source(PATHS[0], NEAR), port, 1.0)
            before = connection.rtt_s()
            connection.writer.transport.abort()
            await asyncio.sleep(0.01)
            return before, connection.rtt_s()

    before, after = asyncio.run(work())
    assert before == after > 0


def test_no_server_is_left() -> None:
    def fault(number: int, told: Told) -> Told:
        return told if number < 3 else replace(told, cut=100, then="die")

    found = had({NEAR: Server(CONTENT, fault), FAR: Server(CONTENT, fault)})
    assert found.failed is not None and not found.sink.ended
    assert NEAR in found.failed and FAR in found.failed
    assert CONTENT.startswith(found.sink.data)


def test_all_are_silent() -> None:
    def fault(_: int, told: Told) -> Told:
        return replace(told, cut=0, then="be silent")

    servers = {it: Server(CONTENT, fault) for it in (NEAR, FAR)}
    found = had(servers, replace(QUICK, silence_s=SILENT_S))
    assert found.failed is not None and f"{FAR} by two: " in found.failed


# The first answer decides whether ranges are asked for at all.


@pytest.mark.parametrize("far", [CONTENT, OTHER])
def test_200_for_the_first_range_is_taken_as_it_is(far: bytes) -> None:
    def fault(_: int, told: Told) -> Told:
        fields = {"Content-Length": str(len(CONTENT))}
        return Told("200 OK", fields, CONTENT)

    servers = {NEAR: Server(CONTENT, fault), FAR: Server(far)}
    found = had(servers)
    whole(found)
    assert found.account.plain == "200 OK for a range"
    assert len(servers[NEAR].asked) == 1 and servers[FAR].connections == 0


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("Content-Range of other bytes", "Content-Range bytes 1-"),
        ("no Content-Range", "Content-Range None"),
        ("told too short", "Content-Length"),
        ("told too long", "Content-Length"),
        ("416", "416 No for a range"),
    ],
)
def test_a_first_range_that_is_wrong_is_no_range(wrong: str, told: str) -> None:
    change, _ = WRONG[wrong]

    def fault(number: int, right: Told) -> Told:
        return change(right) if number == 1 else right

    servers = {NEAR: Server(CONTENT, fault), FAR: Server(CONTENT)}
    found = had(servers)
    whole(found)
    assert found.account.plain is not None and told in found.account.plain
    assert servers[NEAR].asked == [f"bytes=0-{CHUNK - 1}", None]
    assert servers[FAR].connections == 0


def test_a_range_without_the_whole_length() -> None:
    def fault(number: int, told: Told) -> Told:
        return with_fields(told, content_range=f"bytes 0-{CHUNK - 1}/*") if number == 1 else told

    servers = {NEAR: Server(CONTENT, fault), FAR: Server(CONTENT)}
    found = had(servers)
    whole(found)
    assert found.account.plain == "a range without the whole length"


@pytest.mark.parametrize("coded", [False, True])
def test_no_length_at_all(coded: bool) -> None:
    """The connection's end is the object's, or a chunk of size 0 is."""

    def fault(_: int, told: Told) -> Told:
        plain = Told("200 OK", {"ETag": told.fields["ETag"]}, CONTENT, then="close")
        if not coded:
            return plain
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(CONTENT), CONTENT)
        return _coded(replace(plain, body=body))

    whole(had({NEAR: Server(CONTENT, fault), FAR: Server(CONTENT)}))


@pytest.mark.parametrize("coded", [False, True])
def test_a_plain_answer_that_is_cut_short_fails(coded: bool) -> None:
    def fault(_: int, told: Told) -> Told:
        plain = Told("200 OK", {"Content-Length": str(len(CONTENT))}, CONTENT, 5000, "close")
        if not coded:
            return plain
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(CONTENT), CONTENT)
        return _coded(with_fields(replace(plain, body=body), content_length=None))

    found = had({NEAR: Server(CONTENT, fault), FAR: Server(CONTENT)})
    assert found.failed is not None and "the connection ended early after" in found.failed
    assert not found.sink.ended


@pytest.mark.parametrize("one", ["source", "connection"])
def test_one_source_or_one_connection_is_one_plain_get(one: str) -> None:
    servers = {NEAR: Server(CONTENT)} | ({FAR: Server(CONTENT)} if one == "connection" else {})
    settings = replace(QUICK, connections=1 if one == "connection" else 2)

    async def work() -> Account:
        async with serving(servers) as port:
            account, sink = settings.account(), Memory()
            sources = Sources(PATHS[: len(servers)], [(it,) for it in servers])
            asking = Asking(Target("x", port, "/"), (), sources, 1.0, account)
            await Download(asking, settings, sink).run()
            assert bytes(sink.data) == CONTENT
            return account

    assert asyncio.run(work()).plain == f"one {one}"
    assert servers[NEAR].asked == [None]


def test_one_path_has_a_connection_to_each_of_two_addresses() -> None:
    servers = {NEAR: Server(CONTENT), FAR: Server(CONTENT)}

    async def work() -> Memory:
        async with serving(servers) as port:
            sink = Memory()
            sources = Sources(PATHS[:1], [(NEAR, FAR)])
            asking = Asking(Target("x", port, "/"), (), sources, 1.0, QUICK.account())
            await Download(asking, QUICK, sink).run()
            return sink

    assert bytes(asyncio.run(work()).data) == CONTENT
    assert servers[NEAR].connections == servers[FAR].connections == 1


def test_who_reads_goes_away() -> None:
    sink = Memory(refuses_after=3 * CHUNK)
    found = had({NEAR: Server(CONTENT), FAR: Server(CONTENT)}, sink=sink)
    assert found.failed is not None and found.failed.startswith("writing: ")
    assert not sink.ended


def test_a_slow_reader_bounds_what_is_held() -> None:
    """The second server is fast, the first one slow, and only two chunks may wait."""
    servers = {NEAR: Server(CONTENT, piece_s=0.02), FAR: Server(CONTENT, piece_s=0)}
    found = had(servers, replace(QUICK, scheduler="next", most_held=2 * CHUNK))
    whole(found)
    assert found.account.peak_bytes <= 3 * CHUNK
