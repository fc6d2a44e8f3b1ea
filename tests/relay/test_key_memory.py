# SPDX-License-Identifier: MIT
"""What the encryption of pipes takes of lp's --memory: too little of it is refused at the start."""

from pathlib import Path

import pytest

from tests.relay.keyed import key_file, made, needs_tls
from tests.relay.netns import Namespace
from tests.relay.programs import binary, finish

PIPE = 132 * 1024


@pytest.mark.parametrize(("pipes", "needed"), [(1, 2), (8, 10), (64, 76)])
def test_memory_that_does_not_hold_the_pipes_is_refused(
    box: Namespace, tmp_path: Path, pipes: int, needed: int
) -> None:
    """They have an eighth that nothing else takes, of what those leave who have not said HELLO."""
    needs_tls()
    assert (needed - 1 << 20) * 7 / 8 / 8 < pipes * PIPE <= (needed << 20) * 7 / 8 / 8
    key = key_file(tmp_path / "lp.key", made("laptop"))

    def started(memory: int, *more: str) -> tuple[int, str]:
        argv = [binary("lp"), *more, "--memory", str(memory), "--check", "127.0.0.1", str(pipes)]
        code, _, said = finish(argv, box, 20)
        return code, said.partition("\n")[0]

    words = "1 pipe with a key needs" if pipes == 1 else f"{pipes} pipes with a key need"
    said = f"lp: --memory: {words} {needed} MiB, and it is {needed - 1}"
    assert started(needed - 1, *key) == (2, said)
    assert started(needed, *key)[0] == 0
    assert started(needed - 1)[0] == 0, "without a key they take nothing of it"
