# SPDX-License-Identifier: MIT
"""A test that has the machine for itself: the workers of pytest-xdist wait between two tests.

What is measured by the clock may be wrong where others take the processor, and most of a run they
do. So it is measured beside them first, and alone where it was wrong and something was late.

Two files are locks that all workers of a run have. Each test has `inside` with the others; who
wants to be alone takes `gate`, at which tests that are to begin wait, and then `inside` for itself.
"""

import fcntl
import os
import tempfile
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


class Turns:
    """A plugin of each worker."""

    def __init__(self, run: str) -> None:
        self._files = [Path(tempfile.gettempdir()) / f"tm3-{run}.{it}" for it in ("gate", "inside")]
        self._gate, self._inside = (
            os.open(it, os.O_CREAT | os.O_RDONLY | os.O_CLOEXEC, 0o600) for it in self._files
        )
        self._item: pytest.Item | None = None
        self._mutex = threading.Lock()
        self._within = 0  # threads that are alone together

    def pytest_sessionfinish(self) -> None:
        """All workers have begun by then; one that takes the place of a crashed one may be alone
        with others. Whoever waits for a worker is told of its end after this, and may kill what
        it does later."""
        for file in self._files:
            file.unlink(missing_ok=True)

    def begin(self) -> None:
        fcntl.flock(self._gate, fcntl.LOCK_SH)
        fcntl.flock(self._inside, fcntl.LOCK_SH)
        fcntl.flock(self._gate, fcntl.LOCK_UN)

    def end(self) -> None:
        fcntl.flock(self._inside, fcntl.LOCK_UN)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Until every other test has ended, and while none begins. Threads of one test are alone
        together."""
        with self._mutex:
            if not self._within:
                self._begin_alone()
            self._within += 1
        try:
            yield
        finally:
            with self._mutex:
                self._within -= 1
                if not self._within:
                    self._end_alone()

    def _begin_alone(self) -> None:
        try:
            with self._untimed():
                self.end()
                fcntl.flock(self._gate, fcntl.LOCK_EX)
                fcntl.flock(self._inside, fcntl.LOCK_EX)
        except BaseException:
            self._end_alone()
            raise

    def _end_alone(self) -> None:
        fcntl.flock(self._inside, fcntl.LOCK_SH)
        fcntl.flock(self._gate, fcntl.LOCK_UN)

    @contextmanager
    def _untimed(self) -> Iterator[None]:
        """Waiting for others is none of the test's time; pytest-timeout's begins anew. Its signal
        is the main thread's: a test that measures in others has a limit with room for that wait."""
        item = self._item
        if item is None or threading.current_thread() is not threading.main_thread():
            yield
            return
        import pytest_timeout

        hook = item.config.pluginmanager.hook
        hook.pytest_timeout_cancel_timer(item=item)
        try:
            yield
        finally:
            settings = pytest_timeout._get_item_settings(item)
            if settings.timeout:
                hook.pytest_timeout_set_timer(item=item, settings=settings)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, None]:
        self.begin()
        self._item = item
        try:
            yield
        finally:
            self._item = None
            self.end()


_turns: Turns | None = None


def begin(config: pytest.Config) -> None:
    """In a worker of pytest-xdist; elsewhere there is nobody beside."""
    global _turns
    if hasattr(config, "workerinput"):
        _turns = Turns(config.workerinput["testrunuid"])
        config.pluginmanager.register(_turns)


@contextmanager
def alone() -> Iterator[None]:
    if _turns is None:
        yield
        return
    with _turns.alone():
        yield
