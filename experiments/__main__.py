# SPDX-License-Identifier: MIT
"""python -m experiments is tm3lab."""

import sys

try:
    from experiments.cli import main

    sys.exit(main(sys.argv[1:]))
except KeyboardInterrupt:  # also while it is still being read
    sys.exit(130)
