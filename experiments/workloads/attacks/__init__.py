# SPDX-License-Identifier: MIT
"""What the ill-behaved do to rp: one program, of which each attack is a function."""
