# SPDX-License-Identifier: MIT
"""What goes over a network in a run: functions that take a Bed and measure inside the programs."""
