# SPDX-License-Identifier: MIT
"""What goes over a network in a run: functions of a LiveRun; programs measure."""
