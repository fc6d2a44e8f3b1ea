# SPDX-License-Identifier: MIT
"""What `mn --custom topologies/lastmile.py --topo lastmile,preset=lte` reads.

mn executes this file without __file__ and without the working directory in sys.path; the code
itself knows where it came from. Every name here becomes one of mn's own, `cleanup` on purpose:
mn's would end other people's networks by name, ours ends what this mn made.
"""

import sys
from pathlib import Path

_ROOT = str(Path(sys._getframe().f_code.co_filename).resolve().parent.parent)
if _ROOT not in sys.path:
    sys.path.append(_ROOT)

from topologies.registry import clean_ours as cleanup  # noqa: E402
from topologies.topos import LastMile, TwoLastMiles  # noqa: E402

topos = {"lastmile": LastMile, "twolastmiles": TwoLastMiles}

__all__ = ["LastMile", "TwoLastMiles", "cleanup", "topos"]
