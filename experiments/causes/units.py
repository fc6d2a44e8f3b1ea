# SPDX-License-Identifier: MIT
"""Bytes, rates and times as causes write them: three digits."""

GAP = "\N{NO-BREAK SPACE}"


def three(value: float) -> str:
    text = f"{value:.3g}"
    return f"{value:.0f}" if "e" in text else text


def size(count: float) -> str:
    """1.94 MB, 139 KB."""
    if abs(count) < 999.5:
        return f"{count:.0f}{GAP}bytes"
    kilo = count / 1e3
    return f"{three(kilo)}{GAP}KB" if kilo < 999.5 else f"{three(kilo / 1e3)}{GAP}MB"


def mbps(rate: float) -> str:
    return f"{three(rate)}{GAP}Mbit/s"


def seconds(value: float) -> str:
    return f"{three(value)}{GAP}s"


def ms(value_s: float) -> str:
    return f"{three(value_s * 1e3)}{GAP}ms"


def percent(share: float) -> str:
    return f"{three(100 * share)}{GAP}%"
