# SPDX-License-Identifier: MIT
"""The guest machine: an image from Debian packages, booted under qemu."""
