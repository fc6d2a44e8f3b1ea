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
from importlib import import_module
from pathlib import Path
from typing import Any

from experiments.workloads import line
from experiments.workloads.actors import Actor, Scene


def actor_of(described: dict[str, Any]) -> Actor:
    """Only its module is read: reading those of all kinds is a quarter of this program's start."""
    words = dict(described)
    module, _, kind = words.pop("do").rpartition(".")
    return getattr(import_module(module), kind)(**words)


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
