# SPDX-License-Identifier: MIT
"""`python3 tests/grade/wrong_rps [--fault NAME] PIPES`."""

import argparse
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent)

from wrong_rps.faults import FAULTS  # noqa: E402
from wrong_rps.reference import Proxy  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(prog="wrong_rps")
    parser.add_argument("--fault", choices=sorted(FAULTS))
    parser.add_argument("pipes", type=int)
    options = parser.parse_args()
    kind = FAULTS[options.fault] if options.fault else Proxy
    kind(options.pipes).run()


main()
