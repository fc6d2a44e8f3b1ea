# SPDX-License-Identifier: MIT
"""`python3 tests/grade/wrong_rps [--fault NAME+...] PIPES`; quick to start: it is started often."""

import os
import sys

sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120

from wrong_rps.faults import FAULTS, with_faults  # noqa: E402
from wrong_rps.reference import Proxy  # noqa: E402

match sys.argv[1:]:
    case ["--fault", names, pipes] if set(names.split("+")) <= set(FAULTS):
        with_faults(names.split("+"))(int(pipes)).run()
    case [pipes] if pipes.isdecimal():
        Proxy(int(pipes)).run()
    case _:
        sys.exit(f"usage: wrong_rps [--fault NAME+...] PIPES; faults: {', '.join(FAULTS)}")
