# SPDX-License-Identifier: MIT
"""Grades any remote proxy: which of the hand-out's four levels it reaches, and why not the next."""
