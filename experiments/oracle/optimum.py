# SPDX-License-Identifier: MIT
"""The shortest time in which an object can arrive over several paths, in closed form.

With T the time of the last byte, a path sends until T less its delay; the best T is where all that
the paths carry is the object. Grown windows never hold a path back. Fresh ones begin with a few
segments and double each round trip until they fill the path.
"""

from collections.abc import Callable, Sequence

from experiments.oracle.path import FRESH_WINDOW, Path, check_size, nearest_first


def completion(paths: Sequence[Path], size: float) -> float:
    """Seconds until the last byte arrives, windows grown: the fluid optimum. 0 bytes take none."""
    if size == 0:
        return 0.0
    check_size(size)
    rate = weighted = 0.0
    best = float("inf")
    for path in nearest_first(paths):
        if path.delay >= best:
            break
        rate += path.rate
        weighted += path.rate * path.delay
        best = (size + weighted) / rate
    return best


def thresholds(paths: Sequence[Path]) -> dict[str, float]:
    """By path: the remaining bytes from which on it is worth using. The nearest has 0."""
    found = {}
    nearer: list[Path] = []
    for path in nearest_first(paths):
        found[path.name] = sum(it.rate * (path.delay - it.delay) for it in nearer)
        nearer.append(path)
    return found


def stops(paths: Sequence[Path], size: float) -> dict[str, float]:
    """By path: when it sends its last byte in the optimum; 0 where it sends none."""
    last = completion(paths, size)
    return {path.name: max(0.0, last - path.delay) for path in nearest_first(paths)}


def shares(paths: Sequence[Path], size: float) -> dict[str, float]:
    """By path: its bytes in the optimum."""
    until = stops(paths, size)
    return {path.name: path.rate * until[path.name] for path in nearest_first(paths)}


def takes(path: Path, paths: Sequence[Path], remaining: float, held: float = 0.0) -> bool:
    """The rule: whether a path takes the next byte, which would go behind the bytes it holds.

    It does if the byte arrives there no later than on the nearer paths behind all that remains.
    """
    nearer = [it for it in nearest_first(paths) if it.delay < path.delay]
    if remaining <= 0:
        return False
    return not nearer or path.delay + held / path.rate <= completion(nearer, remaining)


def fresh_sent(path: Path, seconds: float, window: float = FRESH_WINDOW) -> float:
    """Bytes that a path with a fresh window has sent after some seconds of having enough to send.

    A round's bytes leave at the path's rate; the next round begins a round trip after this one did.
    """
    if seconds <= 0:
        return 0.0
    sent, full = 0.0, path.rate * path.rtt
    while window < full and seconds > path.rtt:
        sent += window
        seconds -= path.rtt
        window *= 2
    if window >= full:
        return sent + path.rate * seconds
    return sent + min(window, path.rate * seconds)


def fresh_time(path: Path, size: float, window: float = FRESH_WINDOW) -> float:
    """Seconds until a path with a fresh window has sent so much."""
    began, full = 0.0, path.rate * path.rtt
    while window < min(size, full):
        size -= window
        began += path.rtt
        window *= 2
    return began + size / path.rate


def fresh_completion(paths: Sequence[Path], size: float, window: float = FRESH_WINDOW) -> float:
    """The optimum when all windows are fresh: that of the best static split."""
    check_size(size)
    high = min(path.delay + fresh_time(path, size, window) for path in paths)
    return soonest(
        lambda until: sum(fresh_sent(path, until - path.delay, window) for path in paths) >= size,
        0.0,
        high,
    )


def soonest(is_there: Callable[[float], bool], low: float, high: float) -> float:
    """The first moment from `low` on at which it is there; at `high` it is."""
    for _ in range(200):
        middle = (low + high) / 2
        if is_there(middle):
            high = middle
        else:
            low = middle
    return high


def fresh_thresholds(paths: Sequence[Path], window: float = FRESH_WINDOW) -> dict[str, float]:
    """As thresholds(), for an object that finds all windows fresh."""
    found = {}
    nearer: list[Path] = []
    for path in nearest_first(paths):
        found[path.name] = sum(fresh_sent(it, path.delay - it.delay, window) for it in nearer)
        nearer.append(path)
    return found
