# SPDX-License-Identifier: MIT
"""A network namespace for one check, entered by the calling process, without root where allowed.

Inside, port 6000 is free whatever runs on the host, and nothing that is sent can leave it. The
process keeps its user and group, so that a remote proxy is run as the one who grades it. No
program is called: everything is done by the system calls themselves.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
from pathlib import Path

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
SIOCGIFFLAGS, SIOCSIFFLAGS = 0x8913, 0x8914
SIOCSIFADDR = 0x8916
SIOCSIFMTU = 0x8922
IFF_UP = 1
# Loopback's own 65,536 would hide what an Ethernet does to messages: cut them anywhere.
MTU = 1500
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

libc = ctypes.CDLL(None, use_errno=True)


def _unshare(flags: int) -> None:
    if libc.unshare(flags) != 0:
        err = ctypes.get_errno()
        raise OSError(err, f"unshare: {os.strerror(err)}")


def _ioctl(request: int, interface: bytes, argument: bytes) -> bytes:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        return fcntl.ioctl(sock, request, struct.pack("16s24s", interface, argument))


def raise_loopback() -> None:
    """Of the namespace that this thread is in."""
    (flags,) = struct.unpack_from("h", _ioctl(SIOCGIFFLAGS, b"lo", b""), 16)
    _ioctl(SIOCSIFFLAGS, b"lo", struct.pack("h", flags | IFF_UP))


def enter() -> str:
    """Move this process to a namespace of its own; OSError says why that cannot be."""
    how = "network namespaces"
    try:
        _unshare(CLONE_NEWNET)
    except PermissionError:
        uid, gid = os.getuid(), os.getgid()
        _unshare(CLONE_NEWUSER | CLONE_NEWNET)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
        how = "network namespaces without root"
    raise_loopback()
    _ioctl(SIOCSIFMTU, b"lo", struct.pack("i", MTU))
    return how


def add_address(address: str) -> None:
    """One more address of this namespace's loopback."""
    argument = struct.pack("=HH4s", socket.AF_INET, 0, socket.inet_aton(address))
    _ioctl(SIOCSIFADDR, b"lo:1", argument)


def set_sysctl(name: str, value: str) -> None:
    Path("/proc/sys", name.replace(".", "/")).write_text(value)


def die_with_parent() -> None:
    """Should the parent be killed, so is this process: nothing that was started may stay."""
    libc.prctl(PR_SET_PDEATHSIG, 9, 0, 0, 0)


def adopt_orphans() -> None:
    """What a descendant left behind becomes this process's child, so that it can be ended."""
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
