# SPDX-License-Identifier: MIT
"""The kernel's table of tracked connections, emptied as `conntrack -F` or a firewall would."""

import os
import socket
import struct

from tests.relay.netns import Namespace

NETLINK_NETFILTER = 12
DELETE = 1 << 8 | 2  # NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_DELETE; without a tuple: all of them
REQUEST_AND_ACK = 1 | 4
NLMSGHDR = struct.Struct("=IHHII")
NFGENMSG = struct.pack("=BBH", socket.AF_UNSPEC, 0, 0)


def flush(ns: Namespace) -> None:
    """The kernel forgets every connection of that namespace, and how it translated it."""
    with ns.open_socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER) as netlink:
        size = NLMSGHDR.size + len(NFGENMSG)
        netlink.send(NLMSGHDR.pack(size, DELETE, REQUEST_AND_ACK, 1, 0) + NFGENMSG)
        (error,) = struct.unpack_from("=i", netlink.recv(4096), NLMSGHDR.size)
    if error:
        raise OSError(-error, f"conntrack flush: {os.strerror(-error)}")
