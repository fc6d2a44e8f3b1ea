# SPDX-License-Identifier: MIT
"""python -m experiments.workloads.rtapp serve ADDRESS PORT SEED
python -m experiments.workloads.rtapp ask ADDRESS PORT SEED TOLD OVER LINE

TOLD: the file that says where to dial from. OVER: the file that ends it. LINE: the folder of the
start line. What `ask` found is JSON.
"""

import json
import sys
from pathlib import Path

from experiments.workloads import line
from experiments.workloads.rtapp.client import Application
from experiments.workloads.rtapp.server import serve


def main(words: list[str]) -> None:
    what, address, port, seed, *files = words
    if what == "serve":
        serve(address, int(port), int(seed))
    told, over, at = map(Path, files)
    line.wait(at)
    application = Application((address, int(port)), int(seed), told)
    application.run(over)
    json.dump(application.found(), sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
