# SPDX-License-Identifier: MIT
"""The client of the transfers: `python -m experiments.workloads.play SCENE`, a JSON object.

It waits at its start line, if it has one, runs the actors together and writes what each found. The
first failure ends it.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from experiments.workloads import actors as kinds
from experiments.workloads import line
from experiments.workloads.actors import Actor, Scene
from experiments.workloads.batch import Batch
from experiments.workloads.bursts import Bursts
from experiments.workloads.connects import Connects
from experiments.workloads.player import Player
from experiments.workloads.readers import Readers
from experiments.workloads.redialling import BulkAgain, EchoAgain
from experiments.workloads.steady import Steady
from experiments.workloads.talk import Flow, Queries
from experiments.workloads.thin import Thin
from experiments.workloads.udp_download import UdpDownload
from experiments.workloads.written import Written

ACTORS = {
    cls.__name__: cls
    for cls in (
        *(kinds.Transfer, kinds.Bulk, kinds.Objects, kinds.Video, kinds.Churn),
        *(kinds.Pause, kinds.Until, kinds.Wire, Batch, Thin),
        *(BulkAgain, Connects, EchoAgain, Player, Readers, Flow, Queries),
        *(Bursts, Steady, UdpDownload, Written),
    )
}


def actor_of(described: dict[str, Any]) -> Actor:
    words = dict(described)
    return ACTORS[words.pop("do")](**words)


def fail(error: BaseException) -> None:
    """At once, with whatever other actors are waiting for."""
    print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    os._exit(1)


def act(actor: Actor, scene: Scene, found: dict[str, Any], name: str) -> None:
    try:
        for other in actor.after:
            scene.done[other].wait()
        if actor.after_s:
            time.sleep(actor.after_s)
        found[name] = actor.run(scene)
        scene.done[name].set()
    except BaseException as error:
        fail(error)


def play(described: dict[str, Any]) -> dict[str, Any]:
    scene = Scene(**{key: described[key] for key in ("address", "cc", "seed", "seconds")})
    found: dict[str, Any] = {}
    actors = {name: actor_of(words) for name, words in described["actors"].items()}
    scene.done.update({name: threading.Event() for name in actors})
    if "line" in described:
        line.wait(Path(described["line"]))
    scene.began = time.monotonic()
    threads = {
        name: threading.Thread(target=act, args=(actor, scene, found, name), daemon=True)
        for name, actor in actors.items()
    }
    for thread in threads.values():
        thread.start()
    for name, thread in threads.items():
        if not actors[name].background:
            thread.join()
    scene.end()
    for thread in threads.values():
        thread.join()
    if "line" in described:
        line.done(Path(described["line"]))
    return found


def main() -> None:
    json.dump(play(json.loads(sys.argv[1])), sys.stdout)


if __name__ == "__main__":
    main()
