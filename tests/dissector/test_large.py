# SPDX-License-Identifier: MIT
"""Messages of up to 16392 bytes, where HELLO and WELCOME have feature 0x800."""

import pytest

from tests.dissector import messages as m
from tests.dissector import tshark
from tests.dissector.scenes import IN_ORDER, Rows, Scene, column, dissected, odd

pytestmark = pytest.mark.skipif(tshark.missing() is not None, reason=str(tshark.missing()))

LARGE = b"z" * 16384
BOTH = m.VERSION_1 | m.LARGE


def begin(s: Scene, offered: int, taken: int) -> None:
    s.open(1, port=6010)
    s.up(0, m.hello(s.address.encode().ljust(16), 0, 1, features=offered))
    s.down(0, m.welcome(features=taken))
    s.up(0, m.open_name(1, "host", 80))
    s.down(0, m.synack(1))


def agreed(s: Scene) -> None:
    begin(s, BOTH, BOTH)
    s.down(0, m.data(1, 1, LARGE), m.data(1, 2, LARGE), m.data(1, 3, b"small"))
    s.up(0, m.data(1, 1, LARGE))


def larger(s: Scene) -> None:
    begin(s, BOTH, BOTH)
    s.down(0, m.data(1, 1, LARGE + b"z"))


def of_the_session(s: Scene) -> None:
    begin(s, BOTH, BOTH)
    s.down(0, m.extension(b"\xee" * 4097))


def not_agreed(s: Scene) -> None:
    begin(s, BOTH, m.VERSION_1)
    s.down(0, m.data(1, 1, LARGE))


SCENES = {it.__name__: it for it in (agreed, larger, of_the_session, not_agreed)}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    return dissected(SCENES, tmp_path_factory.mktemp("large") / "large.pcap")


def test_they_are_messages_like_others(found: dict[str, Rows]) -> None:
    rows = found["agreed"]
    assert column(rows, "len")[4:] == ["16392", "16392", "13", "16392"]
    assert column(rows, "order")[4:] == [IN_ORDER] * 4
    assert odd(rows)[4:] == [[]] * 4


@pytest.mark.parametrize("scene", ["larger", "of_the_session", "not_agreed"])
def test_all_else_breaks_the_framing(found: dict[str, Rows], scene: str) -> None:
    assert any("length" in it for it in odd(found[scene])), odd(found[scene])
