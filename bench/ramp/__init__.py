# SPDX-License-Identifier: MIT
"""How many DNS queries a second many connections can ask, with and without rp and lp between."""
