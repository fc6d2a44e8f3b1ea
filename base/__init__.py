# SPDX-License-Identifier: MIT
"""What the rooms in Python share: commands and processes of this machine, and which sources these
are. It knows no other room, see tests/house/test_python.py."""
