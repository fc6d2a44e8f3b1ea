# SPDX-License-Identifier: MIT
"""Last miles in Mininet that are what they say: see README.md in this folder."""

from topologies import start  # noqa: F401 (before anything imports Mininet)
from topologies.mile import Mile
from topologies.parameter import ParameterError
from topologies.presets import PRESETS

__all__ = ["PRESETS", "Mile", "ParameterError"]
