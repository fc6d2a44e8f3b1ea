# SPDX-License-Identifier: MIT
"""What goes wrong, told in one line."""


class BadInput(ValueError):
    """What was asked for cannot be; the message names it."""


class WrongAnswer(RuntimeError):
    """A server does not say what it should, or is not of one mind with the others."""


class Failed(RuntimeError):
    """The object could not be had."""
