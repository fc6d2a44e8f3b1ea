# SPDX-License-Identifier: MIT
"""Parameters as people write them, and what is refused."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from base.sources import ROOT
from experiments import parameters, preflight, prepare
from experiments.options import values
from topologies.parameter import Parameter, ParameterError, Params, Value
from topologies.programs import ProgramError

KNOWN = parameters.by_name()
SIZE = Parameter("size", 300_000, "size", "of the file", low=1)


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("pipes", "1,2,4,8", (1, 2, 4, 8)),
        ("pipes", "1..4", (1, 2, 3, 4)),
        ("pipes", "0,2..3,2", (0, 2, 3)),
        ("loss", "1%,0.01,0", (0.01, 0.0)),
        ("loss_down", "0.5%", (0.005,)),
        ("rtt_ms", "50,12.5", (50.0, 12.5)),
        ("warm", "yes,no", (True, False)),
        ("preset", "lossy, dsl", ("lossy", "dsl")),
        ("mbps", "none,5", (None, 5.0)),
        ("loss_list_down", "3,7,9-12;4", ("3,7,9-12", "4")),
        ("app_buffer", "0,2MB,250KB,1KiB", (0, 2_000_000, 250_000, 1024)),
    ],
)
def test_values_are_read(name: str, text: str, wanted: tuple[Value, ...]) -> None:
    assert values(KNOWN[name], text) == wanted


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("pipes", "two", "'two' is not a whole number"),
        ("pipes", "65", "65 is not from 0 to 64"),
        ("pipes", "", "'' is not a whole number"),
        ("pipes", "1.5", "'1.5' is not a whole number"),
        ("loss", "101%", "1.01 is not from 0 to 1"),
        ("loss", "nan", "nan is not a number"),
        ("preset", "lan", "'lan' is none of wired, lossy"),
        ("warm", "maybe", "'maybe' is neither yes nor no"),
        ("app_buffer", "2 parsecs", "'2 parsecs' is no size"),
        ("app_buffer", "-1", "-1 is not from 0 to "),
        ("app_buffer", "0.5B", "no whole number of bytes"),
        ("cc", "none,", ""),
    ],
)
def test_wrong_values_are_named(name: str, text: str, says: str) -> None:
    if not says:
        assert values(KNOWN[name], text) == ("none", "")
        return
    with pytest.raises(ParameterError) as refused:
        values(KNOWN[name], text)
    assert str(refused.value).startswith(f"{name}: ")
    assert says in str(refused.value)


@settings(deadline=None)
@given(st.integers(1, 10**12))
def test_a_size_is_its_bytes_in_every_unit(size: int) -> None:
    assert parameters.read(SIZE, str(size)) == size
    assert parameters.read(SIZE, f"{size}B") == size
    assert parameters.read(SIZE, f"{size}kb") == 1000 * size
    assert parameters.read(SIZE, f"{size}MiB") == size << 20


@settings(deadline=None)
@given(st.floats(0, 1))
def test_a_share_may_be_written_in_percent(share: float) -> None:
    read = parameters.read(KNOWN["loss"], f"{100 * share:.17g}%")
    assert read == pytest.approx(share, abs=1e-11)


@settings(deadline=None)
@given(st.text(max_size=12))
def test_no_text_breaks_a_reader(text: str) -> None:
    for parameter in (*KNOWN.values(), SIZE):
        try:
            read = parameters.read(parameter, text)
        except ParameterError as wrong:
            assert wrong.name == parameter.name
        else:
            assert parameters.checked(parameter, read) == read


def test_a_configuration_is_complete() -> None:
    full = parameters.complete((SIZE,), {"size": "50KB", "loss": "1%"})
    assert set(full) == set(KNOWN) | {"size"}
    assert (full["size"], full["loss"], full["pipes"], full["cc"]) == (50_000, 0.01, 8, "cubic")
    assert parameters.miles(full)[0].loss_up == 0.01


@pytest.mark.parametrize("chosen", [{"way": "direct"}, {"pipes": 0}, {"way": "mptcp", "pipes": 4}])
def test_without_pipes_what_is_of_pipes_does_not_apply(chosen: dict[str, Value]) -> None:
    full = parameters.complete((), chosen)
    assert full["way"] == chosen.get("way", "direct")
    assert full["pipes"] == 0
    assert {full[name] for name in parameters.OF_PIPES} == {None}


def test_the_extension_is_what_users_get_over_sctp_too() -> None:
    assert parameters.complete((), {})["extend"] == "auto"
    assert parameters.complete((), {"way": "direct", "extend": "always"})["extend"] is None
    assert parameters.complete((), {"transport": "sctp"})["extend"] == "auto"
    mixed = parameters.complete((), {"transport": "mixed", "extend": "always"})
    assert (mixed["transport"], mixed["extend"]) == ("mixed", "always")


@pytest.mark.parametrize(
    "other", [{"extend": "never"}, {"transport": "sctp"}, {"transport": "mixed"}]
)
def test_a_key_goes_with_what_can_be_encrypted(other: Params) -> None:
    assert parameters.complete((), {"key": True, "transport": "mptcp"})["key"] is True
    assert parameters.complete((), {"key": True, "way": "direct"})["key"] is None
    assert parameters.complete((), other)["key"] is False
    with pytest.raises(ParameterError, match=r"^key: is of the extension, over TCP or MPTCP$"):
        parameters.complete((), {"key": True, **other})


def test_unknown_names_list_the_known() -> None:
    with pytest.raises(ParameterError, match=r"^los: no such parameter; there are .*\bloss\b"):
        parameters.complete((), {"los": 0})


@pytest.mark.parametrize(
    "chosen",
    [{"loss_list_down": "3"}, {"trace_down": "/no/where"}, {"loss_model": "list", "loss": 0.1}],
)
def test_what_cannot_be_together_is_refused_before_anything_runs(chosen: dict[str, Value]) -> None:
    with pytest.raises(ParameterError):
        parameters.complete((), chosen)


def test_presets_with_two_last_miles() -> None:
    assert len(parameters.miles(parameters.complete((), {"preset": "mobile-dsl"}))) == 2
    assert len(parameters.miles(parameters.complete((), {"topology": "two"}))) == 2
    with pytest.raises(ParameterError, match="preset"):
        parameters.complete((), {"preset": "mobile-dsl", "topology": "one"})


def test_proxies_of_another_build_are_meant_from_here_and_only_with_pipes() -> None:
    told = {"proxies": "build"}
    assert parameters.proxies_folder(parameters.complete((), told)) == Path("build").resolve()
    assert parameters.complete((), {"proxies": f"{ROOT}/build"})["proxies"] == "build"
    assert parameters.proxies_folder(parameters.complete((), {})) is None
    assert parameters.complete((), {**told, "way": "direct"})["proxies"] is None


def test_a_build_without_proxies_is_told_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "need_root", lambda: None)
    params = parameters.complete((), {"proxies": str(tmp_path)})
    with pytest.raises(ProgramError, match=f"{tmp_path}/rp is not built"):
        preflight.check(None, [params])


def test_what_is_unset_is_left_to_the_proxies() -> None:
    """An earlier build may not know what this one does by default."""
    words = prepare.options_of(parameters.complete((), {}))
    assert words == ["--binding=late", "--pipe-policy=soonest"]
    told = {"conn_policy": "fifo", "aggregate": "off", "binding": "early"}
    words = prepare.options_of(parameters.complete((), told))
    assert {"--conn-policy=fifo", "--aggregate=off", "--binding=early"} < {*words}
