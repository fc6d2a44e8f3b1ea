# SPDX-License-Identifier: MIT
"""The two ways in which a check does not pass."""


class Failure(Exception):
    """The remote proxy did something wrong: what was seen, in words for its author."""


class CannotRun(Exception):
    """This machine does not allow the check: why."""
