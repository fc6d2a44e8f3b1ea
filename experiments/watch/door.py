# SPDX-License-Identifier: MIT
"""Who may ask: programs of this host, and pages that came from here.

The port is on loopback, but a browser of this host runs pages of strangers. One whose name was made
to lead to 127.0.0.1 is told by its Host (DNS rebinding), one that posts to us by its Origin.
"""

import ipaddress
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from topologies.parameter import ParameterError

PORT = 9680
_DIGITS = re.compile(r"[0-9]{1,5}")


def is_loopback(host: str) -> bool:
    if host.rstrip(".").lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _host_of(authority: str) -> str:
    try:
        return urlsplit(f"//{authority}").hostname or ""
    except ValueError:
        return ""


def refuses(headers: Mapping[str, str], address: str, *, changes: bool) -> str | None:
    """Why a request is not answered; None if it is. `changes`: it asks for more than to look."""
    told = f"ask for http://{address}/"
    if not is_loopback(_host_of(headers.get("Host", ""))):
        return f"this page is for loopback only: {told}"
    if not changes:
        return None
    origin = headers.get("Origin", "")
    if urlsplit(origin).netloc != headers.get("Host") or not origin.startswith("http://"):
        return f"only the page itself may change the link: {told}"
    return None


def place(text: str) -> tuple[str, int]:
    """[ADDR:]PORT of loopback. Raises ParameterError."""
    host, _, port = text.rpartition(":")
    if not _DIGITS.fullmatch(port) or int(port) > 65535:
        raise ParameterError("port", f"{text!r} is not [ADDR:]PORT, say {PORT}")
    host = host.strip("[]") or "127.0.0.1"
    if not is_loopback(host):
        raise ParameterError(
            "port",
            f"{host} is not of loopback, and only who is on this host may ask; from elsewhere: "
            f"ssh -L {port}:127.0.0.1:{port} HOST",
        )
    return "127.0.0.1" if host == "localhost" else host, int(port)
