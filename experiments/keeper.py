# SPDX-License-Identifier: MIT
"""Work that makes labs, in a process of its own, and one beside it that removes what it leaves.

    tm3lab ── orders ──▶ keeper ── orders ──▶ worker ──▶ labs and their programs
           ◀─ answers ──        ◀─ answers ──

Work is broken off by killing the worker, never by an exception out of a signal's handler, which
would come in the middle of some tidying as well. The keeper then removes the worker's labs by
what is written down of them, as `tm3lab clean` does. It does so when tm3lab wants to stop, when
the work takes too long, and when tm3lab or the worker was killed. It has a session of its own, so
that what is sent to the others' does not reach it; should it be killed, the kernel ends the worker
and tm3lab removes what is left.
"""

import contextlib
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Protocol

from base.processes import Identity, end, end_with_parent, identify
from base.scope import Scope
from experiments.stopping import SIGNALS, Stop, held_back
from topologies.registry import clean_of, folders_of

_fork = multiprocessing.get_context("fork")
OFF_S = 30.0  # for a worker that has nothing more to do, to take its lab down
SPARE_S = 0.5  # beyond what is allowed: for the worker to write down where it hangs


class Doer(Protocol):
    """What a worker is, once it has begun."""

    def allowed_s(self, order: Any) -> float:
        """What an order may take."""

    def do(self, order: Any) -> Any:
        """Its answer."""


Begin = Callable[[], AbstractContextManager[Doer]]
Aside = Callable[[Any, list[Path]], None]  # an order that broke, and the labs' folders


class Broken(RuntimeError):
    """The worker is gone without an answer; `late`: because its time was up."""

    def __init__(self, text: str, *, late: bool = False) -> None:
        super().__init__(text)
        self.late = late


class Keeper(Scope):
    """tm3lab's end. `aside` may save what is to be seen in labs before they are removed."""

    def __init__(self, begin: Begin, aside: Aside) -> None:
        self._begin, self._aside = begin, aside
        self._process: Any = None

    def open(self) -> None:
        self._worker: Identity | None = None
        self._scratch = Path(tempfile.mkdtemp(prefix="tm3lab-"))
        self._orders, theirs = _fork.Pipe()
        arguments = (theirs, self._orders, self._begin, self._aside, self._scratch)
        with held_back():
            self._process = _fork.Process(target=_keep, args=arguments)
            self._process.start()
        theirs.close()

    def close(self, error: BaseException | None = None) -> None:
        """The keeper sees that there are no more orders, and ends with everything."""
        self._orders.close()
        self._process.join()
        if self._process.exitcode:
            _remove(self._worker, self._scratch)

    def ask(self, order: Any, stop: Stop) -> Any:
        """The answer. Raises Stopped, after which there is nothing more to ask, and Broken."""
        if not self._process.is_alive():
            self.close()
            self.open()
        try:
            self._orders.send(order)
            while True:
                wait([self._orders, stop])
                stop.check("during a run")
                what, told = self._orders.recv()
                if what == "worker":
                    self._worker = told
                elif what == "answer":
                    return told
                else:
                    raise Broken(told, late=what == "late")
        except (EOFError, BrokenPipeError, ConnectionResetError):
            self._process.join()  # its pipe ends a moment before it does
            raise Broken("the keeper of the run's process was killed") from None


# --- the keeper ---


def _keep(orders: Connection, ours: Connection, begin: Begin, aside: Aside, scratch: Path) -> None:
    ours.close()
    _stand_apart()
    worker: _Worker | None = None
    try:
        while True:
            order = orders.recv()
            if worker is None:
                worker = _Worker(orders, begin, scratch)
                orders.send(("worker", worker.identity))
            what, told = worker.outcome(order, orders)
            if what != "answer":
                aside(order, folders_of(worker.identity))
                worker.remove()
                worker = None
            orders.send((what, told))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass  # tm3lab has no more orders, or is gone
    finally:
        if worker:
            worker.remove()
        shutil.rmtree(scratch, ignore_errors=True)


class _Worker:
    """The keeper's end."""

    def __init__(self, orders: Connection, begin: Begin, scratch: Path) -> None:
        self._scratch = scratch
        self._pipe, theirs = _fork.Pipe()
        arguments = (theirs, (self._pipe, orders), begin, scratch, os.getpid())
        with held_back():
            self._process = _fork.Process(target=_work, args=arguments)
            self._process.start()
        theirs.close()
        self._idle = True
        found = identify(self._process.pid)
        self.identity = found or Identity(self._process.pid, -1)

    def outcome(self, order: Any, orders: Connection) -> tuple[str, Any]:
        """What became of an order. EOFError: nobody waits for it any more."""
        self._idle = False
        try:
            self._pipe.send(order)
            limit_s = self._answer(orders, None)
            answer = self._answer(orders, limit_s + SPARE_S)
        except TimeoutError:
            return "late", f"not done after {limit_s:g} s"
        except (_Ended, BrokenPipeError, ConnectionResetError):
            self._process.join()
            return "died", f"the run's process ended with {_status(self._process.exitcode)}"
        self._idle = True
        return "answer", answer

    def _answer(self, orders: Connection, seconds: float | None) -> Any:
        ready = wait([self._pipe, orders], seconds)
        if not ready:
            raise TimeoutError
        if self._pipe not in ready:
            raise EOFError
        try:
            return self._pipe.recv()
        except EOFError:
            raise _Ended from None

    def remove(self) -> None:
        """Ends it, in order if it does nothing, and whatever it leaves."""
        self._pipe.close()
        if self._idle:
            self._process.join(OFF_S)
        _remove(self.identity, self._scratch)
        self._process.join()
        self._scratch.mkdir(mode=0o700, exist_ok=True)


class _Ended(Exception):
    """The worker did, before it answered."""


def _status(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else str(code)


def _remove(worker: Identity | None, scratch: Path) -> None:
    if worker:
        try:
            with contextlib.suppress(ProcessLookupError):
                worker.send(signal.SIGKILL)
            end(lambda: {worker} if worker.alive() else set())
            clean_of(worker)
        except (OSError, RuntimeError) as why:
            print(f"tm3lab: something is left of a lab: {why}; tm3lab clean", file=sys.stderr)
    shutil.rmtree(scratch, ignore_errors=True)


# --- the worker ---


def _work(
    orders: Connection, others: tuple[Connection, ...], begin: Begin, scratch: Path, keeper: int
) -> None:
    for other in others:
        other.close()
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    end_with_parent(signal.SIGKILL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    if os.getppid() != keeper:
        return
    tempfile.tempdir = os.environ["TMPDIR"] = str(scratch)
    with begin() as doer:
        while True:
            try:
                order = orders.recv()
            except EOFError:
                return
            orders.send(doer.allowed_s(order))
            orders.send(doer.do(order))


# --- a lab in this very process ---


@contextlib.contextmanager
def guarded(scratch: Path) -> Iterator[None]:
    """This process may be killed at any time: its labs and `scratch` are removed all the same."""
    me = identify(os.getpid())
    assert me is not None
    ours, theirs = _fork.Pipe()
    with held_back():
        process = _fork.Process(target=_guard, args=(theirs, ours, me, scratch))
        process.start()
    theirs.close()
    try:
        yield
    finally:
        ours.send("all is gone")
        process.join()


def _guard(news: Connection, ours: Connection, whose: Identity, scratch: Path) -> None:
    ours.close()
    _stand_apart()
    try:
        news.recv()
    except EOFError:
        _remove(whose, scratch)


def _stand_apart() -> None:
    """What is sent to a terminal's or a session's processes is not for a keeper."""
    os.setsid()
    for number in SIGNALS:  # not SIG_IGN, which programs of a lab would inherit
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
