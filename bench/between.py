# SPDX-License-Identifier: MIT
"""What goes between a relay's two halves, headers included, counted by nftables."""

import contextlib
import json
import subprocess
from collections.abc import Callable, Iterator

from bench.programs import Trouble

MTU = 1_500
LOOPBACK = {"mtu": 65_536, "gso_max_segs": 65_535}
ORDINARY = {"mtu": MTU, "gso_max_segs": 1}  # so each packet is counted with its headers
TABLE = """
table inet bench {{
	counter between {{ }}
	chain out {{
		type filter hook output priority 0
		tcp sport {{ {ports} }} counter name between
		tcp dport {{ {ports} }} counter name between
		udp sport {{ {ports} }} counter name between
		udp dport {{ {ports} }} counter name between
	}}
}}
"""


def told(*argv: str, words: str = "") -> str:
    try:
        done = subprocess.run(argv, input=words, capture_output=True, text=True, check=True)
    except subprocess.CalledProcessError as error:
        raise Trouble(f"{argv[0]}: {error.stderr.strip()}") from None
    except OSError as error:
        raise Trouble(f"{argv[0]}: {error.strerror}") from None
    return done.stdout


def shape(settings: dict[str, int]) -> None:
    words = [word for name, value in settings.items() for word in (name, str(value))]
    told("ip", "link", "set", "lo", *words)


def parse_counter(text: str) -> int:
    found = [it["counter"] for it in json.loads(text)["nftables"] if "counter" in it]
    return int(found[0]["bytes"])


@contextlib.contextmanager
def counted(ports: tuple[int, ...]) -> Iterator[Callable[[], int]]:
    """Bytes of IP to and from these ports so far. Meanwhile loopback has packets as others have
    them: connections that count have to begin within."""
    told("nft", "-f", "-", words=TABLE.format(ports=", ".join(map(str, ports))))
    try:
        shape(ORDINARY)
        yield lambda: parse_counter(told("nft", "-j", "list", "counters", "table", "inet", "bench"))
    finally:
        shape(LOOPBACK)
        told("nft", "delete", "table", "inet", "bench")
