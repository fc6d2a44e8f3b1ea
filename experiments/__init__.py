# SPDX-License-Identifier: MIT
"""What is run, swept, measured, compared and plotted; the `tm3lab` command."""
