# SPDX-License-Identifier: MIT
"""What queries are carried by."""

from typing import Literal, get_args

Kind = Literal["udp", "tcp", "tls", "fresh"]
KINDS: tuple[str, ...] = get_args(Kind)
