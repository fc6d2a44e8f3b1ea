# SPDX-License-Identifier: MIT
"""How settings are called in plots and reports: in words that need no look at an option's list."""

import pytest

from experiments import catalogue, parameters
from experiments.plots import sheet
from experiments.report import words
from topologies.parameter import Parameter, Value, unit_of

SPACE = "\N{NO-BREAK SPACE}"


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("extend", "auto", "extension"),
        ("extend", "never", "baseline"),
        ("extend", "always", "protocol of the pipes always"),
        ("key", True, "with a key"),
        ("key", False, "without a key"),
        ("tls", False, "no TLS"),
        ("protocol", "http2", "HTTP/2"),
        ("bottleneck", "sender", "queue in the sender"),
        ("direction", "both", "both directions"),
        ("direction", "down", "down"),
        ("plain", 1, "1 plain connection"),
        ("plain", 4, "4 plain connections"),
        ("rivals", 0, "no rival"),
        ("readers", 255, "255 readers"),
        ("parallel", 8, "8 at a time"),
        ("warm", True, "warm pipes"),
        ("cc", "bbr", "bbr"),
        ("cc", None, "congestion control default"),
        ("preset", "lte", "lte"),
        ("every_ms", 50.0, f"every 50{SPACE}ms"),
        ("quiet_s", 8.0, f"quiet 8{SPACE}s"),
    ],
)
def test_a_setting_says_what_it_is(name: str, value: Value, told: str) -> None:
    assert words.setting(name, value) == told


def test_an_axis_has_the_same_words() -> None:
    assert sheet.tick("extend", "never") == "baseline"
    assert sheet.tick("key", True) == "with a key"
    assert sheet.tick("attack", "half-open") == "half-open"
    assert sheet.parameter_label("extend", "auto") == "protocol of the pipes"


def test_no_noun_ends_with_a_unit() -> None:
    """`every ms 50 ms` was a panel's title; the unit stands beside the noun anyway."""
    own = [it for each in catalogue.experiments() for it in each.parameters]
    for it in (*parameters.by_name().values(), *own):
        last = it.name.rpartition("_")[2]
        assert not (unit_of(it.name) and it.noun.endswith(f" {last}")), it.name
    assert Parameter("echo_ms", 1.0, "number", "").noun == "echo"
    assert Parameter("median_size", 1, "size", "").noun == "median size"
