# SPDX-License-Identifier: MIT
"""Whom a session counts for where keys are asked for: the key, not the address."""

from pathlib import Path

from tests.relay.keyed import UP, key_file, made, needs_tls
from tests.relay.netns import Namespace
from tests.relay.proxies import local_proxy, remote_proxy


def test_a_key_is_one_peer_wherever_it_is(box: Namespace, tmp_path: Path) -> None:
    """At its limit from another address, too, and no limit for another key from there."""
    needs_tls()
    laptop, tablet = made("laptop"), made("tablet")
    rp_keys = key_file(tmp_path / "rp.keys", laptop, tablet)
    own, other = (key_file(tmp_path / line.split()[0], line) for line in (laptop, tablet))
    beside = ("--redirect", "off", "--path", "x,src=127.0.0.2")
    with (
        remote_proxy(box, tmp_path, *rp_keys, "--max-sessions-each", "1") as rp,
        local_proxy(box, tmp_path, *own) as lp,
    ):
        lp.expect(UP)
        with local_proxy(
            *(box, tmp_path, *own, *beside, "--socks", "1081"),
            name="again",
            ready="SOCKS5 on",
        ) as again:
            rp.expect(r"a session of 127\.0\.0\.2 was told to come later: its key has as many")
            with local_proxy(
                *(box, tmp_path, *other, *beside, "--socks", "1082"),
                name="other",
                ready="SOCKS5 on",
            ):
                rp.expect(r"session \d+: .* from 127\.0\.0\.2, with the key of tablet")
            again.expect("rp has no room for another session")
