# SPDX-License-Identifier: MIT
"""rp and lp beside other relays, side by side, in one run on one machine."""
