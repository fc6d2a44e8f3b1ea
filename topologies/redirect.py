# SPDX-License-Identifier: MIT
"""A redirected client: nftables in its own namespace, the rules of docs/redirect.md."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from base.shell import until
from topologies.addresses import LP_PORT, PIPE_PORTS, rp_address
from topologies.nodes import LabNode, SettingRefused
from topologies.parameter import ParameterError

ENDS_S = 3.0  # what programs that are over may leave to be closed


def rules(ports: tuple[int, ...] | None, miles: int) -> str:
    """Every TCP connection, or those to `ports`, goes to lp; the pipes themselves do not."""
    if ports is None:
        match = "meta l4proto tcp"
    else:
        for port in ports:
            if isinstance(port, bool) or not isinstance(port, int) or not 1 <= port <= 65535:
                raise ParameterError("ports", f"{port!r} is no port")
        match = "tcp dport {{ {} }}".format(", ".join(map(str, ports)))
    pipes = "\n".join(
        f"\t\tip daddr {rp_address(mile)} tcp dport {PIPE_PORTS} return" for mile in range(miles)
    )
    return (
        "table ip tm3 {\n"
        "\tchain output {\n"
        "\t\ttype nat hook output priority -100; policy accept;\n"
        "\t\tip daddr 127.0.0.0/8 return\n"
        f"{pipes}\n"
        f"\t\t{match} redirect to :{LP_PORT}\n"
        "\t}\n"
        "}\n"
    )


def let_end(client: LabNode) -> None:
    """Waits until lp has closed what was redirected. Without the rules a program's end would never
    hear of it, and stay half-closed for a minute."""
    at_lp = f"sport = :{LP_PORT}"
    with suppress(TimeoutError):  # somebody still uses one
        until("redirected connections to end", lambda: not client.connections(at_lp), ENDS_S)


@contextmanager
def redirected(client: LabNode, ports: tuple[int, ...] | None = None) -> Iterator[str]:
    """The rules while the block runs, as nft tells them."""
    if ports is not None and not ports:
        raise ParameterError("ports", "no port at all; None is every one")
    client.inside("nft", "-f", "-", stdin=rules(ports, len(client.intfList())))
    try:
        listed = client.inside("nft", "-j", "list", "table", "ip", "tm3")
        redirects = [
            expression["redirect"]
            for item in json.loads(listed)["nftables"]
            for expression in item.get("rule", {}).get("expr", ())
            if "redirect" in expression
        ]
        if redirects != [{"port": LP_PORT}]:
            raise SettingRefused(f"nftables redirects {redirects}, not to {LP_PORT}")
        yield client.inside("nft", "list", "table", "ip", "tm3")
        let_end(client)
    finally:
        client.inside("nft", "delete", "table", "ip", "tm3")
