# SPDX-License-Identifier: MIT
"""The checks, a file for each level; importing them fills the registry."""

from . import browsing, extra, level1, level2, level3, level4

__all__ = ["browsing", "extra", "level1", "level2", "level3", "level4"]
