# SPDX-License-Identifier: MIT
"""What goes wrong, told in one line."""


class BadInput(ValueError):
    """What was asked for cannot be; the message names it."""


class WrongAnswer(RuntimeError):
    """What came is not the answer to a query that was asked; the message says how."""


class Unanswered(RuntimeError):
    """A connection ended, or time was up, before all answers had come."""
