# SPDX-License-Identifier: MIT
"""A page that shows what the proxies tell, while they run or from their record."""
