# SPDX-License-Identifier: MIT
"""A new rp takes the place of an old one: what is lost, and that all goes on by itself."""

from pathlib import Path

import pytest

from tests.relay.ends import echo, read_exactly, read_to_end, serving, socks
from tests.relay.netns import Namespace
from tests.relay.proxies import LISTEN, LP_READY, local_proxy, remote_proxy
from tests.relay.restart_gap import gaps


def test_what_was_open_is_reset_and_lp_comes_back(box: Namespace, tmp_path: Path) -> None:
    """--resume keeps a session for an lp that comes back, but not over the end of rp."""
    with serving(box, echo) as server:
        with remote_proxy(box, tmp_path, *LISTEN, "--resume", "60", name="old") as old:
            lp = local_proxy(box, tmp_path)
            with lp as local, socks(box, "127.0.0.1", server.port) as before:
                before.sendall(b"before")
                assert read_exactly(before, 6) == b"before"
                assert old.stop() == 0
                assert read_to_end(before, 10).how == "reset"
                with remote_proxy(box, tmp_path, *LISTEN, "--resume", "60", name="new"):
                    local.expect(LP_READY, count=2)
                    with socks(box, "127.0.0.1", server.port) as after:
                        after.sendall(b"after")
                        assert read_exactly(after, 5) == b"after"


@pytest.mark.parametrize("kind", ["plain", "activated"])
def test_restarts(box: Namespace, tmp_path: Path, kind: str) -> None:
    """As the script of docs/running.md measures them; here only that each of them works."""
    found = gaps(box, tmp_path, kind, 2, asan=True)
    assert len(found) == 2 and all(0 < gap.end_s < gap.works_s for gap in found)
