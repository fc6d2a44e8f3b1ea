# SPDX-License-Identifier: MIT
"""`python3 tests/grade/wrong_rps [--fault NAME] PIPES`; quick to start, for it is started often."""

import os
import sys

sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120

from wrong_rps.faults import FAULTS  # noqa: E402
from wrong_rps.reference import Proxy  # noqa: E402

match sys.argv[1:]:
    case ["--fault", name, pipes] if name in FAULTS:
        FAULTS[name](int(pipes)).run()
    case [pipes] if pipes.isdecimal():
        Proxy(int(pipes)).run()
    case _:
        sys.exit(f"usage: wrong_rps [--fault NAME] PIPES; faults: {', '.join(FAULTS)}")
