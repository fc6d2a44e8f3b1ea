# SPDX-License-Identifier: MIT
"""Copies of objects: an nginx on each server of a lab, all of one folder, which serve ranges.

They agree on ETag and Last-Modified, which nginx makes of a file's time and size. Port 80 speaks
TCP; ports from 8000 on speak MPTCP, each under one congestion control, as those of web/site.py.
"""

import hashlib
import random
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from experiments.workloads.web.serving import serving, temporary
from topologies.lab import Lab

PORT = 80
FIRST_MPTCP = 8000
CONFIGURATION = """\
user root;
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 1024; }}
http {{
	access_log off;
	sendfile off;
	keepalive_timeout 75s;
	keepalive_requests 100000;
	{temporary}
	server {{
		{listens}
		root {root};
	}}
}}
"""


@dataclass
class Replicas:
    """What the servers have: an object of each size that was asked for, named by its size."""

    root: Path
    mptcp: dict[str, int]  # ports by congestion control; none where the kernel has no MPTCP
    digests: dict[int, str] = field(default_factory=dict)

    def digest(self, size: int) -> str:
        """SHA-256 of the object /SIZE, which is there from now on."""
        if size not in self.digests:
            content = random.Random(f"tm3 object {size}").randbytes(size)
            (self.root / str(size)).write_bytes(content)
            self.digests[size] = hashlib.sha256(content).hexdigest()
        return self.digests[size]


@contextmanager
def replicas(lab: Lab) -> Iterator[Replicas]:
    """All servers, ready, while the block runs."""
    with tempfile.TemporaryDirectory(prefix="tm3-replicas-") as name, ExitStack() as stack:
        above = Path(name)
        above.chmod(0o755)
        root = above / "root"
        root.mkdir()
        it = Replicas(root, mptcp_ports())
        ports = [str(PORT), *(f"mptcp:{cc}:{port}" for cc, port in it.mptcp.items())]
        listens = "\n\t\t".join(f"listen {port};" for port in (PORT, *it.mptcp.values()))
        for node in lab.servers:
            folder = above / node.name
            folder.mkdir()
            told = CONFIGURATION.format(
                folder=folder, root=root, listens=listens, temporary=temporary(folder)
            )
            (folder / "nginx.conf").write_text(told)
            stack.enter_context(serving(lab, node.name, f"nginx-{node.name}", folder, *ports))
        yield it


def mptcp_ports() -> dict[str, int]:
    if not Path("/proc/sys/net/mptcp/enabled").exists():
        return {}
    controls = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    return {cc: FIRST_MPTCP + number for number, cc in enumerate(controls)}
