# SPDX-License-Identifier: MIT
"""What is installed beside the programs, made of what their --help says."""
