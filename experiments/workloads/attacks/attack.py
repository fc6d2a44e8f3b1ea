# SPDX-License-Identifier: MIT
"""An attack on the rp of this network namespace: `python -m experiments.workloads.attacks.attack
SCENE`, a JSON object.

It says when it is ready, begins with the first line that it reads and ends when there is nothing
more to read, or by itself when the scene's time has been over for long. Then it writes what it
counted.
"""

import json
import sys
import threading
from collections.abc import Callable
from typing import Any

from experiments.workloads.attacks import floods, handshakes, overheard, pipes
from experiments.workloads.attacks.attacker import Attacker
from experiments.workloads.descriptors import descriptors

READY = "ready"
DESCRIPTORS = 4096
AT_MOST_S = 120.0  # and no longer, whatever becomes of who started it

ATTACKS: dict[str, Callable[..., None]] = {
    "half-open": pipes.half_open,
    "waiting": pipes.waiting,
    "slowloris": pipes.slowloris,
    "connects-and-resets": pipes.connects_and_resets,
    "network-of-64": pipes.network_of_64,
    "elsewhere": pipes.elsewhere,
    "pings": floods.pings,
    "stalled-control": floods.stalled_control,
    "opens-and-resets": floods.opens_and_resets,
    "bytes-out-of-order": floods.bytes_out_of_order,
    "no-key": handshakes.no_key,
    "wrong-key": handshakes.wrong_key,
    "replayed-handshake": handshakes.replayed,
    "replayed-hello": overheard.replayed_hello,
    "downgrade": handshakes.downgrade,
    "cut-records": handshakes.cut_records,
    "firewalled": pipes.firewalled,
}
# What more an attack is told.
NAMED = {
    "wrong-key": ("name",),
    "replayed-handshake": ("name", "key"),
    "cut-records": ("name", "key"),
}


def attack(it: Attacker, name: str, told: dict[str, Any]) -> None:
    ATTACKS[name](it, **{word: told[word] for word in NAMED.get(name, ())})


def listen(it: Attacker) -> None:
    sys.stdin.readline()
    it.go.set()
    ending = threading.Timer(AT_MOST_S, it.over.set)
    ending.daemon = True
    ending.start()
    sys.stdin.read()
    it.over.set()


def announce(it: Attacker) -> None:
    it.ready.wait()
    print(READY, flush=True)


def main() -> None:
    told = json.loads(sys.argv[1])
    descriptors(DESCRIPTORS)
    it = Attacker(pipes=told["pipes"], seconds=told["seconds"], processors=told["processors"])
    for work in (listen, announce):
        threading.Thread(target=work, args=(it,), daemon=True).start()
    attack(it, told["attack"], told)
    it.counts["ms of processors"] = round(1000 * it.allowance.used_s())
    json.dump(it.counts, sys.stdout)


if __name__ == "__main__":
    main()
