# SPDX-License-Identifier: MIT
"""When stub resolvers ask again over UDP, and when they give up.

First waits, how they grow and when a stub fails were observed with two resolvers, and published, of
glibc 2.24, Bionic of Android 7.1.2, Windows 10, OS X 10.13.6 and iOS 11.4. How many tries that
makes is worked out here: waits as long as they fit, and the rest until it fails. `fixed` is what
the published measurements were made with, 3 s; that it fails after 30 s is ours.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Stub:
    name: str
    first_s: float
    doubling: bool
    fails_s: float

    def waits(self) -> tuple[float, ...]:
        """How long an answer to each try is waited for; together `fails_s`."""
        found: list[float] = []
        wait, left = self.first_s, self.fails_s
        while left > 0:
            found.append(min(wait, left))
            left -= found[-1]
            wait *= 2 if self.doubling else 1
        return tuple(found)


STUBS = {
    it.name: it
    for it in (
        Stub("fixed", 3.0, False, 30.0),
        Stub("glibc", 5.0, False, 40.0),
        Stub("bionic", 5.0, False, 30.0),
        Stub("windows", 1.0, True, 12.0),
        Stub("osx", 1.0, True, 30.0),
        Stub("ios", 1.0, True, 30.0),
    )
}
