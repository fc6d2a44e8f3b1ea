# SPDX-License-Identifier: MIT
"""Objects by HTTP/3: whole, compared, sent again where datagrams are lost; what fails says why."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from experiments.workloads import certificate, http3, http3_client, http3_server
from experiments.workloads.exchange import CutShort
from experiments.workloads.pattern import CHUNK, WrongByte

HERE = "127.0.0.1"
OTHER = {"name": "other.test"}
Found = dict[str, Any]


@pytest.fixture
def shown(tmp_path: Path) -> Path:
    """The server's certificate; key.pem lies beside it."""
    certificate.make(tmp_path / "certificate.pem", tmp_path / "key.pem", [http3.NAME])
    return tmp_path / "certificate.pem"


def run(work: Callable[[], Awaitable[Found]]) -> Found:
    async def within() -> Found:
        return await asyncio.wait_for(work(), 30)

    return asyncio.run(within())


def fetched(shown: Path, **told: Any) -> Found:
    """From a server that is there meanwhile, with Reno."""

    async def work() -> Found:
        configuration = http3_server.configured(False, "reno")
        configuration.load_cert_chain(shown, shown.parent / "key.pem")
        server = await http3_server.serve(
            HERE, 0, configuration=configuration, create_protocol=http3_server.Server
        )
        try:
            port = server._transport.get_extra_info("sockname")[1]
            words = {"name": http3.NAME, "cc": "reno", "seconds": 0.2, "every_s": 0.05, **told}
            fetches = http3_client.Fetches(address=HERE, port=port, authority=str(shown), **words)
            return await fetches.run()
        finally:
            server.close()

    return run(work)


def fetches_of(shown: Path, port: int, **told: Any) -> http3_client.Fetches:
    return http3_client.Fetches(
        address=HERE, port=port, name=http3.NAME, authority=str(shown), **told
    )


@pytest.mark.parametrize("size", [0, 1, 20_000, CHUNK + 1])
def test_objects_come_whole(shown: Path, size: int) -> None:
    found = fetched(shown, size=size)
    assert len(found["seconds"]) == len(found["connect_s"]) >= 1
    pairs = zip(found["connect_s"], found["seconds"], strict=True)
    assert all(0 < connect_s < took_s for connect_s, took_s in pairs)
    measures = http3.measures_of(found)
    assert measures["http3_objects"] == len(found["seconds"])
    assert measures["http3_p50_ms"] <= measures["http3_p90_ms"]


def test_what_is_lost_is_sent_again(shown: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's first datagram, so that its own timer has to notice."""
    sendto, seen = http3_client.Outlet.sendto, []

    def losing(self: http3_client.Outlet, data: bytes, to: Any) -> None:
        seen.append(data)
        if len(seen) > 1:
            sendto(self, data, to)

    monkeypatch.setattr(http3_client.Outlet, "sendto", losing)
    found = fetched(shown, seconds=0.01)
    assert len(found["seconds"]) == 1
    assert found["connect_s"][0] >= 0.1, "less than QUIC's first time-out"
    assert len(seen) >= found["sent"] + 1


def test_datagrams_fit_any_path(shown: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    payload = http3_client.Association.payload

    def measured(self: http3_client.Association, data: bytes) -> bytes:
        sizes.append(len(data))
        return payload(self, data)

    monkeypatch.setattr(http3_client.Association, "payload", measured)
    fetched(shown)
    assert 1200 <= max(sizes) <= 1350


def test_a_wrong_byte_fails(shown: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http3_server, "piece", lambda start, position, size: bytes(size))
    with pytest.raises(WrongByte, match="byte 0 is 0x00"):
        fetched(shown)


def test_an_object_that_is_too_short_fails(shown: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = http3_server.asked_for
    monkeypatch.setattr(http3_server, "asked_for", lambda path: (whole(path)[0], 5000))
    with pytest.raises(CutShort, match="ended after 5000 of 20000 bytes"):
        fetched(shown)


def test_an_object_that_is_not_there_fails(shown: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(path: str) -> tuple[int, int]:
        raise ValueError(path)

    monkeypatch.setattr(http3_server, "asked_for", none)
    with pytest.raises(http3_client.Refused, match="answered 404"):
        fetched(shown)


def test_a_server_of_another_name_fails(shown: Path) -> None:
    with pytest.raises(CutShort, match=r"the connection ended: hostname 'other\.test'"):
        fetched(shown, **OTHER)


def test_a_closed_port_and_a_server_without_an_answer_fail(shown: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((HERE, 0))
        port = sock.getsockname()[1]
        with pytest.raises(CutShort, match="an object had 0 of 20000 bytes in time"):
            run(fetches_of(shown, port, limit_s=0.3).run)
    with pytest.raises(ConnectionRefusedError):
        run(fetches_of(shown, port).run)
