# SPDX-License-Identifier: MIT
"""The names that are asked for, and their addresses.

A query's number in its run tells its name, and its id: 16 bits, so as many queries a run.
"""

ZONE = "tm3.test"
NAMES = 256
MOST = 1 << 16


def name(number: int) -> str:
    return f"q{number % NAMES}.{ZONE}."


def address(number: int) -> str:
    return f"192.0.2.{number % NAMES}"
