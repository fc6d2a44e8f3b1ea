# SPDX-License-Identifier: MIT
"""What goes wrong, told in one line."""


class BadInput(ValueError):
    """What was asked for cannot be; the message names it."""


class BadMessage(ValueError):
    """The peer sent what no peer may send."""


class Failed(RuntimeError):
    """The messages could not be delivered."""
