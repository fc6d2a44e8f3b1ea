# SPDX-License-Identifier: MIT
"""The pages' hosts: one nginx in the server's namespace, an address for each host.

Addresses are 10.0.10.1 and on, all the server's own, reached through it. Port 80 speaks HTTP/1.1,
port 81 cleartext HTTP/2 (this nginx has no port for both), port 443 either under TLS, for browsers,
which speak HTTP/2 only there. Every request is written down: by which connection, and when.
Ports from 8000 on speak MPTCP, each under one congestion control: that of a connection's later
subflows is the listening socket's, whatever the routes say.

No sendfile: with it, the kernel holds the last segment of an HTTP/2 response back until the one
before it is acknowledged, a round trip that a nearby proxy would seem to save.
"""

import base64
import hashlib
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from base.shell import run
from experiments.workloads import certificate
from experiments.workloads.web import bodies
from experiments.workloads.web.page import Manifest, Page
from experiments.workloads.web.pages import NAMES
from experiments.workloads.web.pages import page as page_of
from experiments.workloads.web.serving import serving, temporary
from topologies.addresses import SERVER
from topologies.lab import Lab

NETWORK = "10.0.10"
PORTS = {("http1", False): 80, ("http2", False): 81, ("http1", True): 443, ("http2", True): 443}
FIRST_MPTCP = 8000
CONFIGURATION = """\
user root;
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 1024; }}
http {{
	types {{
		text/html html; text/css css; text/javascript js; image/png png; font/woff2 woff2;
	}}
	log_format requests escape=json '{{"time":$msec,"connection":$connection,'
		'"nth":$connection_requests,"client":"$remote_addr:$remote_port",'
		'"host":"$host","path":"$uri","protocol":"$server_protocol",'
		'"status":$status,"bytes":$body_bytes_sent,"seconds":$request_time}}';
	access_log {folder}/requests.jsonl requests;
	sendfile off;
	keepalive_timeout 75s;
	keepalive_requests 10000;
	{temporary}
	server {{
		listen 80;
		listen 81 http2;
		listen 443 ssl http2;
		{mptcp}
		ssl_protocols TLSv1.3;
		ssl_certificate {certificate};
		ssl_certificate_key {key};
		root {root}/$host;
		add_header Access-Control-Allow-Origin *;
		add_header Cache-Control no-store;
	}}
}}
"""


@dataclass
class Site:
    """A running server and the pages that were written for it."""

    folder: Path
    mptcp: dict[tuple[str, str], int]  # ports by protocol and congestion control; none without it
    manifests: dict[str, Manifest] = field(default_factory=dict)

    @property
    def root(self) -> Path:
        return self.folder / "root"

    @property
    def certificate(self) -> Path:
        return self.folder / "certificate.pem"

    def key_digest(self) -> str:
        """What Chromium is told of the key, to believe it."""
        public = run(["openssl", "x509", "-in", self.certificate, "-pubkey", "-noout"])
        der = base64.b64decode("".join(public.strip().splitlines()[1:-1]))
        return base64.b64encode(hashlib.sha256(der).digest()).decode()

    def manifest(self, name: str) -> Path:
        """The file that tells a loader about a page, which is there from now on."""
        path = self.folder / f"{name}.json"
        if name not in self.manifests:
            self.manifests[name] = bodies.write(page_of(name), self.root)
            self.manifests[name].write(path)
        return path

    def requests(self) -> list[dict[str, Any]]:
        """What was asked for so far."""
        text = (self.folder / "requests.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]


def addresses(page: Page, one: bool = False) -> dict[str, str]:
    """Of each host of a page; `one`: all the same, so that one connection serves them all."""
    return {host: f"{NETWORK}.{1 if one else number}" for number, host in enumerate(page.hosts, 1)}


@contextmanager
def site(lab: Lab) -> Iterator[Site]:
    """The server, ready, while the block runs."""
    with tempfile.TemporaryDirectory(prefix="tm3-web-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        it = Site(folder, _mptcp_ports())
        it.root.mkdir()
        certificate.make(it.certificate, it.folder / "key.pem", _names())
        (folder / "nginx.conf").write_text(_configuration(it))
        ports = [*map(str, sorted(set(PORTS.values()))), *_mptcp_words(it)]
        with _routes(lab), serving(lab, "server", "nginx-web", folder, *ports):
            yield it


def _configuration(it: Site) -> str:
    listens = [
        f"listen {port}{' http2' * (protocol == 'http2')};"
        for (protocol, _), port in it.mptcp.items()
    ]
    return CONFIGURATION.format(
        folder=it.folder,
        root=it.root,
        certificate=it.certificate,
        key=it.folder / "key.pem",
        temporary=temporary(it.folder),
        mptcp="\n\t\t".join(listens),
    )


def _names() -> list[str]:
    """All hosts of all pages: they may share a connection."""
    return [f"*.{name}.test" for name in NAMES]


@contextmanager
def _routes(lab: Lab) -> Iterator[None]:
    """The hosts' addresses belong to the server; rp knows the way, the client asks rp."""
    network = f"{NETWORK}.0/24"
    words = lab.topo.settings.route_words()
    lab.server.inside("ip", "route", "add", "local", network, "dev", "lo")
    lab.rp.inside("ip", "route", "add", network, "via", SERVER, *words)
    try:
        yield
    finally:
        lab.rp.inside("ip", "route", "del", network)
        lab.server.inside("ip", "route", "del", "local", network, "dev", "lo", "table", "local")


def _mptcp_ports() -> dict[tuple[str, str], int]:
    if not Path("/proc/sys/net/mptcp/enabled").exists():
        return {}
    controls = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    both = product(("http1", "http2"), controls)
    return {which: FIRST_MPTCP + number for number, which in enumerate(both)}


def _mptcp_words(it: Site) -> list[str]:
    return [f"mptcp:{cc}:{port}" for (_, cc), port in it.mptcp.items()]
