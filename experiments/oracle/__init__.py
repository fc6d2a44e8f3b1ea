# SPDX-License-Identifier: MIT
"""What several paths could do at best, and what policies make of them, computed and not measured.

Bytes, bytes a second and seconds. Delays are one way. Only the standard library is needed.
"""
