# SPDX-License-Identifier: MIT
"""Mininet without setuptools, which takes longer to import than all of tm3lab.

Mininet compares versions with distutils. Where setuptools is installed, Python imports the copy of
distutils in setuptools, and with it setuptools. Until Python 3.12 there is also the one of the
standard library: whoever imported that first has it for good.
"""

import sys
import warnings
from importlib.util import find_spec

HOOK = "_distutils_hack"  # of setuptools


def import_distutils() -> None:
    """From the standard library, if it is there."""
    hooks = [finder for finder in sys.meta_path if type(finder).__module__ == HOOK]
    for hook in hooks:
        sys.meta_path.remove(hook)
    try:
        if find_spec("distutils"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                import distutils.version  # noqa: F401
    finally:
        sys.meta_path[:0] = hooks


if "distutils" not in sys.modules:
    import_distutils()
