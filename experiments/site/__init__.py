# SPDX-License-Identifier: MIT
"""A static site of curated results: an index, each folder's report, plots and data."""
