# SPDX-License-Identifier: MIT
"""A small remote proxy that reaches level 4, and ones with a fault each, to test the grader by."""
