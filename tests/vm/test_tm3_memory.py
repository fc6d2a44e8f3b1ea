# SPDX-License-Identifier: MIT
"""tm3.ko when memory runs out: each allocation on its way is refused once, one after the other.

Each time it says so, leaves nothing behind and does it the next time. Whether what it had already
is freed, the debug kernel's search for lost memory tells: make test-vm-debug.
"""

import ctypes
import errno
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.relay.netns import Namespace
from tests.vm.module import KO, PROC, Log, counters, in_guest, load, loaded, rmmod, setting
from tests.vm.road import RP, words

# How many more allocations of this thread succeed before one is refused; 0: none is.
COUNTDOWN = Path("/proc/thread-self/fail-nth")
FAILSLAB = Path("/sys/kernel/debug/failslab")
FINIT_MODULE = {"x86_64": 313, "aarch64": 273}
MOST = 3000
OWN = 100  # more than the module's own
MANY = 200  # more than a connection's

pytestmark = [
    in_guest,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        not COUNTDOWN.exists(), reason="this kernel refuses no memory on demand: test-vm-debug"
    ),
]

_libc = ctypes.CDLL(None, use_errno=True)


@pytest.fixture
def refusing() -> Iterator[None]:
    """Also memory for which the kernel would wait; without a word, which would be a warning."""
    before = {name: (FAILSLAB / name).read_text() for name in ("ignore-gfp-wait", "verbose")}
    for name in before:
        (FAILSLAB / name).write_text("0")
    yield
    for name, text in before.items():
        (FAILSLAB / name).write_text(text)


def each_refused(once: Callable[[], object], first: int = 1) -> Iterator[int | None]:
    """What became of it, errno or None, with that allocation refused, the next, ..., the last."""
    countdown = os.open(COUNTDOWN, os.O_RDWR)
    try:
        for number in range(first, MOST):
            error = None
            os.write(countdown, str(number).encode())
            try:
                once()
            except OSError as why:
                error = why.errno
            left = int(os.pread(countdown, 20, 0))
            os.write(countdown, b"0")
            if left:  # there were no more
                assert error is None, os.strerror(error)
                return
            yield error
    finally:
        os.close(countdown)
    raise AssertionError(f"{MOST} allocations, and no end")


def allocations(once: Callable[[], object]) -> int:
    """How many there are on its way where none is refused."""
    countdown = os.open(COUNTDOWN, os.O_RDWR)
    try:
        os.write(countdown, str(MOST).encode())
        once()
        left = int(os.pread(countdown, 20, 0))
        os.write(countdown, b"0")
    finally:
        os.close(countdown)
    assert left, f"{MOST} allocations are not enough"
    return MOST - left


def test_when_it_is_configured(two: tuple[Namespace, Namespace], log: Log, refusing: None) -> None:
    """The first time, when hooks are taken and connections begin to be tracked."""
    near, _ = two
    log.expected.append(r"^tm3: ")
    text = " ".join(f"{name}={value}" for name, value in words().items()).encode()
    refused = 0
    files = [loaded_file(near)]
    for error in each_refused(lambda: os.write(files[-1], text)):
        if error is None:  # there was other memory: it is configured all the same
            assert setting(near).startswith("remoteProxyIP=")
            os.close(files.pop())
            rmmod()
            files.append(loaded_file(near))
            continue
        refused += 1
        assert error == errno.ENOMEM, os.strerror(error)
        assert setting(near) == "off"
    assert setting(near).startswith("remoteProxyIP=")
    os.close(files.pop())
    assert refused > 3
    rmmod()


def test_when_a_connection_is_redirected(
    two: tuple[Namespace, Namespace], log: Log, refusing: None
) -> None:
    """It is refused, or made all the same; where it cannot be remembered, that is counted."""
    near, _ = two
    load(near, **words())
    with near.open_socket() as lp, ExitStack() as stack:
        lp.bind(("127.0.0.1", 6003))
        lp.listen(MANY)
        fresh = [stack.enter_context(near.open_socket()) for _ in range(MANY)]
        for sock in fresh:
            sock.settimeout(60)
        for error in each_refused(lambda: fresh.pop().connect((RP, 80))):
            assert error in (None, errno.ENOMEM, errno.ENOBUFS), os.strerror(error)
        assert counters(near)["unwatched"] == 1
    rmmod()


def loaded_file(ns: Namespace) -> int:
    """The module, not configured, and its file."""
    load(ns)
    with ns.entered():
        return os.open(PROC, os.O_WRONLY)


def finit_module(handle: int, text: bytes) -> None:
    if _libc.syscall(FINIT_MODULE[os.uname().machine], handle, text, 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def test_when_it_is_loaded(two: tuple[Namespace, Namespace], log: Log, refusing: None) -> None:
    """By insmod with parameters; of what the kernel's loader itself allocates only the end."""
    near, _ = two
    log.expected += [r"^tm3: ", r"^kobject_\w+(?: failed|: kobject_add error)", r"^sysfs: "]
    text = " ".join(f"{name}={value}" for name, value in words().items()).encode()
    refused = 0
    file = os.open(KO, os.O_RDONLY)
    with near.entered():
        total = allocations(lambda: finit_module(file, text))
        rmmod()
        first = max(1, total - OWN)
        for error in each_refused(lambda: finit_module(file, text), first):
            if error is None:
                rmmod()
                continue
            refused += 1
            assert error == errno.ENOMEM, os.strerror(error)
            assert not loaded()
    os.close(file)
    assert refused > 10
    rmmod()
