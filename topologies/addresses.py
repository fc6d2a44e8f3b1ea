# SPDX-License-Identifier: MIT
"""Who has which address in every lab, and which ports the proxies use."""

RP_PORT = 6000
RP_PORT_EXTENDED = 6010
# Of ss: the pipes' ends at rp, those at lp, and both.
AT_RP = f"( sport = :{RP_PORT} or sport = :{RP_PORT_EXTENDED} )"
TO_RP = f"( dport = :{RP_PORT} or dport = :{RP_PORT_EXTENDED} )"
AT_EITHER = f"( {AT_RP} or {TO_RP} )"
# Of nftables: rp's ports for pipes.
PIPE_PORTS = f"{{ {RP_PORT}, {RP_PORT_EXTENDED} }}"
# Of tcpdump.
FROM_RP = f"tcp and (src port {RP_PORT} or src port {RP_PORT_EXTENDED})"
OF_PIPES = f"port {RP_PORT} or port {RP_PORT_EXTENDED}"
LP_PORT = 6003  # where redirected connections arrive


SERVERS_MOST = 3


def wan_network(server: int = 0) -> int:
    """The third byte of the addresses between rp and a server: 9, 19, 29."""
    return 9 + 10 * server


def server_address(server: int = 0) -> str:
    return f"10.0.{wan_network(server)}.2"


def server_name(server: int = 0) -> str:
    """Of the node: server, server2, server3."""
    return f"server{server + 1}" if server else "server"


SERVER = server_address()


def client_address(mile: int = 0) -> str:
    return f"10.0.{mile + 1}.1"


def rp_address(mile: int = 0) -> str:
    return f"10.0.{mile + 1}.2"


def mac(network: int, host: int) -> str:
    return f"02:00:00:00:{network:02x}:{host:02x}"
