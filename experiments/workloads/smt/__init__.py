# SPDX-License-Identifier: MIT
"""SMT: messages with dependencies over several connections. README.md has the rooms."""
