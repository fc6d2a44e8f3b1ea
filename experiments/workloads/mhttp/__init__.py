# SPDX-License-Identifier: MIT
"""mHTTP: one object by ranges over several paths, from several servers. README.md has the rooms."""
