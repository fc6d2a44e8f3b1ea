# SPDX-License-Identifier: MIT
"""Web pages: what they consist of, who serves them, who loads them."""
