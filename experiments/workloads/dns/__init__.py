# SPDX-License-Identifier: MIT
"""DNS queries at a steady pace, as stub resolvers and persistent connections carry them."""
