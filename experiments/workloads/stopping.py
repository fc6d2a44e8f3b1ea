# SPDX-License-Identifier: MIT
"""A program of its own that is told to end."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any


async def until_told(task: Coroutine[Any, Any, None]) -> None:
    """SIGTERM and Ctrl-C cancel it, so that it tidies up."""
    running = asyncio.ensure_future(task)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, running.cancel)
    await running
