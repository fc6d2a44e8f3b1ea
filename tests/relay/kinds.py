# SPDX-License-Identifier: MIT
"""Of which kinds pipes can be on this machine."""

import socket

import pytest


def why_not(protocol: int) -> str | None:
    """Why no such socket can be made here; None if it can."""
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol).close()
    except OSError as error:
        return str(error)
    return None


SCTP_MISSING = why_not(socket.IPPROTO_SCTP)
IPPROTO_MPTCP = 262  # socket.IPPROTO_MPTCP of Python 3.10 and later, not on every system
mptcp = pytest.mark.skipif(
    why_not(IPPROTO_MPTCP) is not None, reason=f"MPTCP: {why_not(IPPROTO_MPTCP)}"
)
