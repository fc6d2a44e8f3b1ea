# SPDX-License-Identifier: MIT
"""python -m experiments is tm3lab."""

import os
import sys

try:
    from experiments.cli import main

    status = main(sys.argv[1:])
    sys.stdout.flush()
    sys.exit(status)
except KeyboardInterrupt:  # also while it is still being read
    sys.exit(130)
except BrokenPipeError:  # who reads it has seen enough: | head
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(1)
