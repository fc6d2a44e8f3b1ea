# SPDX-License-Identifier: MIT
"""`python3 -m tests.grade` from the project's root, or `python3 tests/grade` from anywhere."""

import sys

if __package__:
    from .cli import main
else:
    from pathlib import Path

    # The folder itself is sys.path[0] now; its parent is where the package is found.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from grade.cli import main

if __name__ == "__main__":
    sys.exit(main())
