# SPDX-License-Identifier: MIT
"""How a run says that it came to nothing."""


class RunFailed(RuntimeError):
    """A run that did not do what it should: wrong bytes, a time-out, a program that ended."""
