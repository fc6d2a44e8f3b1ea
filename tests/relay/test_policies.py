# SPDX-License-Identifier: MIT
"""Every number of pipes with every binding and policy delivers the same bytes.

Two pipes are of the baseline, which has each policy of pipes once so, all others of the extension.
"""

import threading
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from tests.relay import payload, records
from tests.relay.ends import Ending, read_to_end, sending, serving
from tests.relay.netns import Namespace
from tests.relay.proxies import extended_pair, pair

BULK = payload.seeded(700_000, seed=7)
BASELINE_PIPES = 2


def run(box: Namespace, tmp_path: Path, pipes: int, options: list[str]) -> None:
    """Three connections up and three down at the same time."""
    down = Ending("eof", len(BULK), payload.digest(BULK))
    ends: list[Ending] = []

    def download(port: int) -> None:
        with box.connect(("127.0.0.1", port)) as sock:
            ends.append(read_to_end(sock))

    proxies = pair if pipes == BASELINE_PIPES else extended_pair
    with (
        serving(box, sending(BULK)) as source,
        serving(box, read_to_end) as sink,
        proxies(
            box,
            tmp_path,
            pipes=pipes,
            both=options,
            rp=["--stats", str(tmp_path / "rp.jsonl")],
            lp=[
                *("--stats", str(tmp_path / "lp.jsonl")),
                *("--forward", f"7001:127.0.0.1:{source.port}"),
                *("--forward", f"7002:127.0.0.1:{sink.port}"),
            ],
        ),
    ):
        threads = [threading.Thread(target=download, args=(7001,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        uploads = [box.connect(("127.0.0.1", 7002)) for _ in range(3)]
        for sock in uploads:
            sock.sendall(BULK)
            sock.close()
        for thread in threads:
            thread.join(timeout=30)
        assert ends == [down] * 3
        assert [sink.results.get(timeout=20) for _ in uploads] == [down] * 3


BINDINGS = ("late", "early")
PIPE_POLICIES = ("soonest", "least", "rr", "random", "fixed")


def combinations() -> Iterator[tuple[int, str, str, str]]:
    """Every policy of connections over four pipes, and the usual one over other numbers of them."""
    for binding, pipe_policy in product(BINDINGS, PIPE_POLICIES):
        for conn_policy in ("las", "drr", "fifo", "rr", "srpt"):
            yield 4, binding, pipe_policy, conn_policy
        for pipes in (1, 2, 8):
            yield pipes, binding, pipe_policy, "las"


@pytest.mark.parametrize(("pipes", "binding", "pipe_policy", "conn_policy"), [*combinations()])
def test_every_combination_delivers(
    box: Namespace, tmp_path: Path, pipes: int, binding: str, pipe_policy: str, conn_policy: str
) -> None:
    options = ["--binding", binding, "--pipe-policy", pipe_policy, "--conn-policy", conn_policy]
    run(box, tmp_path, pipes, options)
    for side in ("rp", "lp"):
        start = records.of(tmp_path / f"{side}.jsonl", "start")[0]
        assert start["pipes"] == pipes
        assert start["binding"] == binding
        assert start["pipe_policy"] == pipe_policy
        assert start["conn_policy"] == conn_policy


@pytest.mark.parametrize("policy", PIPE_POLICIES)
def test_pipes_are_used_as_the_policy_says(box: Namespace, tmp_path: Path, policy: str) -> None:
    run(box, tmp_path, 4, ["--pipe-policy", policy, "--seed", "3"])
    sent = [p["tx_bytes"] for p in records.last_of_pipes(tmp_path / "rp.jsonl")]
    assert len(sent) == 4
    assert sum(sent) > 3 * len(BULK)
    if policy in ("rr", "random"):
        assert min(sent) > 0.1 * sum(sent) / 4, f"{policy} left a pipe out: {sent}"


@pytest.mark.parametrize(
    "options",
    [
        ["--app-buffer", "2M"],
        ["--pipe-sndbuf", "16K"],
        ["--app-buffer", "64K", "--pipe-sndbuf", "250K"],
    ],
    ids=" ".join,
)
def test_early_binding_with_buffers_of_any_size(
    box: Namespace, tmp_path: Path, options: list[str]
) -> None:
    run(box, tmp_path, 4, ["--binding", "early", *options])


@pytest.mark.parametrize("cc", ["reno", "cubic"])
def test_congestion_control_of_the_pipes(box: Namespace, tmp_path: Path, cc: str) -> None:
    run(box, tmp_path, 3, ["--cc", cc])
    for side in ("rp", "lp"):
        samples = records.of(tmp_path / f"{side}.jsonl", "pipe")
        assert {sample["cc"] for sample in samples} == {cc}
