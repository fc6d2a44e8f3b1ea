# SPDX-License-Identifier: MIT
"""A real-time application of a wearable: a chunk of 3 KB every 160 ms, resumed by number."""
