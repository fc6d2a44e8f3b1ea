# SPDX-License-Identifier: MIT
"""The checks, a file for each level; importing them fills the registry."""

from . import extra, level1, level2, level3, level4

__all__ = ["extra", "level1", "level2", "level3", "level4"]
