# SPDX-License-Identifier: MIT
"""How far a file is read: lines on the error output, or one that changes on a terminal."""

import sys
import time

from experiments.trace.capture import Capture

FIRST_S, TERMINAL_S, LINE_S = 2.0, 0.5, 10.0
MB = 10**6


class Watch:
    """Called from time to time; says nothing of a file that takes less than FIRST_S."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._began = time.monotonic()
        self._next = self._began + FIRST_S
        self._terminal = sys.stderr.isatty()
        self._told = False

    def __call__(self) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + (TERMINAL_S if self._terminal else LINE_S)
        self._told = True
        text = self.text(now - self._began)
        end = "\033[K\r" if self._terminal else "\n"
        print(text, end=end, file=sys.stderr, flush=True)

    def text(self, seconds: float) -> str:
        read, size = self._capture.read, self._capture.size
        rate = read / seconds
        if size <= read or not rate:  # a pipe has no size
            return f"{self._capture.path}: {read / MB:.0f} MB, {rate / MB:.1f} MB/s"
        return (
            f"{self._capture.path}: {read / MB:.0f} of {size / MB:.0f} MB, "
            f"{rate / MB:.1f} MB/s, {(size - read) / rate:.0f} s left"
        )

    def end(self) -> None:
        if self._told and self._terminal:
            print("\033[K", end="", file=sys.stderr, flush=True)
