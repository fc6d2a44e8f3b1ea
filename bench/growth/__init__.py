# SPDX-License-Identifier: MIT
"""What a message costs rp and lp, as there are more connections, pipes, sessions, gaps."""
