# SPDX-License-Identifier: MIT
"""What a capture tells of the traffic in it: sessions, bursts, rates, concurrency, round trips."""
