# SPDX-License-Identifier: MIT
"""python -m experiments is tm3lab."""

import os
import signal
import sys

try:
    from experiments.cli import main

    status = main(sys.argv[1:])
    sys.stdout.flush()
except KeyboardInterrupt:  # also while it is still being read
    status = 130
except BrokenPipeError:  # who reads it has seen enough: | head
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    status = 1
signal.signal(signal.SIGINT, signal.SIG_IGN)  # nothing is left to stop but the interpreter
sys.exit(status)
