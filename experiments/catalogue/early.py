# SPDX-License-Identifier: MIT
"""Early binding as it was published: what arrives waits in a pipe, however much it is.

Over the extension a connection has a window, which bounds what of a bulk can wait there: an object
behind it then waits for a window, not for a buffer. What was published had none.
"""

from topologies.parameter import Params

EARLY: Params = {"binding": "early", "extend": "never"}
LATE: Params = {"binding": "late", "extend": "auto"}
NOTE = (
    "Early binding goes over the baseline, as published: windows of the extension bound what waits "
    "in a pipe. Late binding is what users get."
)
