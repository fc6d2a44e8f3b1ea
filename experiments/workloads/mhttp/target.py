# SPDX-License-Identifier: MIT
"""What is asked for: a URL's host, port and path."""

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from experiments.workloads.mhttp.failure import BadInput

_KEPT = "/%:=&?~#+!$,;'@()*[]"  # what stands in a request line as it is
_NAME = re.compile(r"[A-Za-z0-9._:%-]+")


@dataclass(frozen=True)
class Target:
    host: str
    port: int
    path: str  # with its query

    @property
    def authority(self) -> str:
        """As the field Host has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == 80 else f"{host}:{self.port}"

    @property
    def literal(self) -> str | None:
        """The host, if it is an address already."""
        try:
            return str(ipaddress.ip_address(self.host))
        except ValueError:
            return None

    @classmethod
    def of(cls, url: str) -> "Target":
        """Raises BadInput, whose message names the URL."""
        try:
            parts = urlsplit(url)
            port = 80 if parts.port is None else parts.port
        except ValueError as why:
            raise BadInput(f"{url}: {why}") from None
        if parts.scheme.lower() != "http":
            told = f"of the scheme {parts.scheme!r}" if parts.scheme else "without a scheme"
            raise BadInput(f"{url}: a URL {told}; ranges are asked for by http:// alone")
        if not parts.hostname:
            raise BadInput(f"{url}: a URL without a host")
        if parts.username is not None:
            raise BadInput(f"{url}: a URL with a user's name, which would go in the clear")
        if port == 0:
            raise BadInput(f"{url}: there is no port 0")
        query = f"?{parts.query}" if parts.query else ""
        return cls(_name(url, parts.hostname), port, quote((parts.path or "/") + query, _KEPT))


def _name(url: str, host: str) -> str:
    """In ASCII, as resolvers and servers want it."""
    try:
        found = host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        found = ""
    if not _NAME.fullmatch(found):
        raise BadInput(f"{url}: {host!r} is no name of a host")
    return found


def authority(text: str) -> tuple[str, int]:
    """HOST:PORT, as CONNECT names it."""
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname, parts.port
    except ValueError as why:
        raise BadInput(f"{text}: {why}") from None
    if not host or not port:
        raise BadInput(f"{text}: CONNECT wants HOST:PORT")
    return _name(text, host), port
