# SPDX-License-Identifier: MIT
"""A client's program, which a test starts as some user: python3 -m tests.vm.asker PORT BYTES

It sends so many bytes to that port of loopback, by SOCKS5 through lp, and wants them back.
"""

import socket
import sys

from tests.relay.datagrams import LP
from tests.relay.ends import answers, read_exactly, socks_reply, socks_request

port, size = map(int, sys.argv[1:])
with socket.create_connection(LP, 60) as sock:
    sock.sendall(b"\x05\x01\x00")
    assert read_exactly(sock, 2) == b"\x05\x00"
    sock.sendall(socks_request("127.0.0.1", port))
    assert socks_reply(sock) == 0
    answers(sock, bytes(size))
