# SPDX-License-Identifier: MIT
"""The course's `gcc -O1 rp/*.c mux/*/*.c -lpthread`: its rp works, and has no --key-file."""

import subprocess
from pathlib import Path

import pytest

from tests.relay.ends import echo, read_exactly, serving
from tests.relay.keyed import key_file, made, refused
from tests.relay.netns import Namespace
from tests.relay.programs import ROOT, program
from tests.relay.proxies import local_proxy

pytestmark = pytest.mark.timeout(600)  # the first of them builds, beside others


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its a.out, of which the compiler says nothing."""
    to = tmp_path_factory.mktemp("plain") / "a.out"
    sources = [*sorted((ROOT / "rp").glob("*.c")), *sorted((ROOT / "mux").glob("*/*.c"))]
    argv = ["gcc", "-O1", *sources, "-lpthread", "-o", to]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return to


def test_it_works(box: Namespace, tmp_path: Path, plain: Path) -> None:
    """`./a.out 4`"""
    with (
        serving(box, echo) as server,
        program(box, [plain, "4"], tmp_path / "a.log", port=6000),
        local_proxy(box, tmp_path, "--forward", f"7000:127.0.0.1:{server.port}"),
        box.connect(("127.0.0.1", 7000)) as sock,
    ):
        sock.sendall(b"x" * 50_000)
        assert read_exactly(sock, 50_000) == b"x" * 50_000


def test_it_says_that_it_has_no_keys(box: Namespace, tmp_path: Path, plain: Path) -> None:
    with_key = [plain, *key_file(tmp_path / "rp.keys", made("laptop")), "4"]
    assert "built without OpenSSL" in refused(with_key, box)
