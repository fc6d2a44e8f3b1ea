# SPDX-License-Identifier: MIT
"""python -m experiments is tm3lab."""

import sys

from experiments.cli import main

sys.exit(main(sys.argv[1:]))
