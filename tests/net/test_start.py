# SPDX-License-Identifier: MIT
"""What is imported with Mininet: each start of tm3lab waits for it."""

import importlib.util
import subprocess
import sys

import pytest

from base.sources import ROOT

IMPORTED = "import sys; import topologies.lab; print('mininet.net' in sys.modules, *sys.modules)"


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python has no distutils of its own")
def test_mininet_comes_without_setuptools() -> None:
    if importlib.util.find_spec("mininet") is None:
        pytest.skip("no Mininet for this Python: make setup")
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED], cwd=ROOT, capture_output=True, text=True, check=True
    )
    mininet, *modules = done.stdout.split()
    assert mininet == "True" and not done.stderr
    assert "distutils.version" in modules and "setuptools" not in modules
