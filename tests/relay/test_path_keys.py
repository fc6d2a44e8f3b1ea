# SPDX-License-Identifier: MIT
"""Several paths with a key: it says whose pipes they are, wherever they come from."""

from pathlib import Path

from tests.relay import payload
from tests.relay.ends import answers, echo, serving
from tests.relay.keyed import FORWARD, PORT, encrypting, key_file, made
from tests.relay.netns import Namespace
from tests.relay.proxies import local_proxy, remote_proxy

__all__ = ["encrypting"]  # a fixture that skips where there is no OpenSSL

PATHS = ("--path", "near,src=127.0.0.2,pipes=2", "--path", "far,src=127.0.0.3,pipes=2")
UP = "2 pipes to 127.0.0.1:6010 over {} are up"


def test_each_path_is_killed_and_comes_back(box: Namespace, tmp_path: Path) -> None:
    data = payload.seeded(200_000)
    line = made("laptop")
    rp_keys = key_file(tmp_path / "rp.keys", line, made("phone"))
    lp_key = key_file(tmp_path / "lp.key", line)
    with (
        serving(box, echo, ("127.0.0.1", 8000)),
        remote_proxy(box, tmp_path, *rp_keys) as rp,
        local_proxy(box, tmp_path, *lp_key, *PATHS, *FORWARD, ready=UP.format("far")) as lp,
        box.connect(("127.0.0.1", PORT)) as sock,
    ):
        lp.expect(UP.format("near"))
        answers(sock, data)
        for name, address in (("near", "127.0.0.2"), ("far", "127.0.0.3")):
            box.run("ss", "-K", "src", address, "dport", "=", ":6010")
            answers(sock, data)
            lp.expect(UP.format(name), count=2)
        assert not rp.lines("session 2|was sent away")
