# SPDX-License-Identifier: MIT
"""The guest for arm64: how what it said is judged, and what is said where there can be none.

The guest itself: make test-vm KERNEL=arm64.
"""

import os
from pathlib import Path

import pytest

from vm import arm64

pytestmark = pytest.mark.skipif(
    os.environ.get("TM3_GUEST") == "1", reason="of the machine that runs guests, not of a guest"
)

WARNING = "WARNING: CPU: 1 PID: 99 at lib/refcount.c:25 refcount_warn_saturate+0x84/0x110"
ARM64_LOG = f"""arm64: the log
<4>[    0.1] This system shows unhashed kernel memory addresses
<6>[    8.0] {arm64.BEGINS}
<4>[    9.0] %s
arm64: passed
"""


def test_a_guest_of_arm64_that_is_well() -> None:
    said = ARM64_LOG % "tm3: loading out-of-tree module taints kernel."
    assert arm64.faults(said) == []
    assert arm64.faults(said.replace("\n", "\r\n")) == []


def test_a_guest_of_arm64_that_is_not() -> None:
    assert arm64.faults(ARM64_LOG % WARNING) == [f"the kernel warns: {WARNING}"]
    assert arm64.faults("arm64: the log\narm64: passed\n") == ["it did not show its kernel's log"]
    stopped = arm64.faults("Booting\nKernel panic\n")
    assert stopped[0].startswith("it did not come") and "Kernel panic" in stopped


def test_arm64_is_skipped_with_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    said: list[str] = []
    assert arm64.test(tmp_path, said.append)
    (why,) = said
    assert why.startswith("arm64: skipped: no qemu-system-aarch64") and "apt-get install" in why
