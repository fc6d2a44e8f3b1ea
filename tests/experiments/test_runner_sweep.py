# SPDX-License-Identifier: MIT
"""Which configurations a sweep has, overridden or defined by a file; in which order they run."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from base.sources import ROOT
from experiments import catalogue, definition, sweep
from experiments.definition import DefinitionError
from experiments.model import Experiment, Figure, Grid
from experiments.plan import Plan
from topologies.parameter import Parameter, ParameterError, Params, Value


class Swept(Experiment):
    name = "swept"
    title = "A sweep"
    question = "Which?"
    parameters = (Parameter("size", 300_000, "size", "of the file", low=1),)
    grids: tuple[Grid, ...] = (
        {"preset": ("wired", "lossy"), "pipes": (1, 8)},
        {"preset": ("wired", "lossy"), "way": "direct"},
    )
    quick_grids: tuple[Grid, ...] = ({"pipes": (4,)},)

    def measure(self, run: Any) -> dict[str, Any]:
        return {}


def ways(found: Sequence[Params]) -> list[tuple[Value, ...]]:
    return sorted((it["preset"], it["way"], it["pipes"]) for it in found)


def of(**overrides: Any) -> list[Params]:
    return sweep.configurations(Swept(), {key: sweep.axis(it) for key, it in overrides.items()})


def test_grids_add_up() -> None:
    assert ways(of()) == [
        *(("lossy", "direct", 0), ("lossy", "pipes", 1), ("lossy", "pipes", 8)),
        *(("wired", "direct", 0), ("wired", "pipes", 1), ("wired", "pipes", 8)),
    ]
    assert ways(sweep.configurations(Swept(), {}, quick=True)) == [("wired", "pipes", 4)]


def test_other_pipes_leave_the_baselines() -> None:
    assert ways(of(pipes=(2, 3), preset="dsl")) == [
        *(("dsl", "direct", 0), ("dsl", "pipes", 2), ("dsl", "pipes", 3))
    ]


def test_no_pipes_are_the_direct_way() -> None:
    assert ways(of(pipes=0, preset="dsl")) == [("dsl", "direct", 0)]


def test_a_way_chooses_or_takes_the_place_of_the_pipes() -> None:
    assert ways(of(way="pipes", preset="dsl")) == [("dsl", "pipes", 1), ("dsl", "pipes", 8)]
    assert ways(of(way="direct", preset="dsl")) == [("dsl", "direct", 0)]
    assert ways(of(way="mptcp", preset="dsl")) == [("dsl", "mptcp", 0)]
    assert ways(of(way=("mptcp", "direct"), preset="dsl")) == [
        *(("dsl", "direct", 0), ("dsl", "mptcp", 0))
    ]


def test_baselines_are_not_repeated_for_what_is_of_pipes() -> None:
    found = of(binding=("late", "early"), preset="dsl")
    assert len(found) == 5
    assert [it["binding"] for it in found if it["way"] == "direct"] == [None]


def test_any_parameter_can_be_swept() -> None:
    found = of(size=(1, 2), loss=(0.0, 0.1), preset="wired", pipes=1, way="pipes", cc=("bbr",))
    assert sorted((it["size"], it["loss"], it["cc"]) for it in found) == [
        *((1, 0.0, "bbr"), (1, 0.1, "bbr"), (2, 0.0, "bbr"), (2, 0.1, "bbr"))
    ]
    assert sweep.varying(found) == ["loss", "size"]


def test_what_a_configuration_has_no_use_for_is_left_out_of_it() -> None:
    """The proxies refuse it there, and so each run of that half of a sweep."""
    found = of(
        aggregate=("delay", "dswa"), preset="dsl", pipes=1, way="pipes", **{"lambda": (1, 2)}
    )
    assert [(it["aggregate"], it["lambda"]) for it in found] == [
        *(("delay", None), ("dswa", 1.0), ("dswa", 2.0))
    ]
    found = of(binding=("late", "early"), preset="dsl", pipes=1, way="pipes", app_buffer=1000)
    assert [(it["binding"], it["app_buffer"]) for it in found] == [("late", None), ("early", 1000)]


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"lambda": 2}, "lambda: goes with binding late and aggregate dswa only"),
        ({"lambda": 2, "aggregate": "delay"}, "lambda: goes with"),
        ({"lambda": 2, "aggregate": "dswa", "binding": "early"}, "lambda: goes with"),
        ({"app_buffer": 1000}, "app_buffer: goes with binding early only"),
        ({"pipe_sndbuf": 9000, "binding": "late"}, "pipe_sndbuf: goes with binding early only"),
    ],
)
def test_what_no_configuration_has_a_use_for_is_refused(told: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        of(**told)
    assert of(**told, way="direct")[0][next(iter(told))] is None


def test_what_a_sweep_sets_gives_way_to_what_is_told() -> None:
    class Law(Swept):
        grids = ({"aggregate": "dswa", "lambda": (1, 2)},)

    found = sweep.configurations(Law(), {"aggregate": ("delay",)})
    assert [(it["aggregate"], it["lambda"]) for it in found] == [("delay", None)]

    class Wrong(Swept):
        grids = ({"aggregate": "delay", "lambda": (1, 2)},)

    with pytest.raises(ParameterError, match="lambda: goes with"):
        sweep.configurations(Wrong(), {})


def plan(configurations: Sequence[Params], reps: int, seed: int) -> Plan:
    return Plan("swept", tuple(configurations), reps, seed, 30.0)


@settings(deadline=None)
@given(
    pipes=st.lists(st.integers(1, 64), min_size=1, max_size=5, unique=True),
    mtus=st.lists(st.sampled_from((576, 1400, 1500)), min_size=1, max_size=3, unique=True),
    reps=st.integers(1, 5),
    seed=st.integers(0, 1000),
)
def test_each_block_has_every_configuration_once(
    pipes: list[int], mtus: list[int], reps: int, seed: int
) -> None:
    it = plan(of(pipes=pipes, mtu=mtus), reps, seed)
    runs = list(it.runs())
    assert len(runs) == len(it) == len({run.id for run in runs})
    assert runs == list(plan(it.configurations, reps, seed).runs())
    for rep in range(reps):
        block = [run for run in runs if run.rep == rep]
        assert [run.order for run in block] == list(range(len(it.configurations)))
        assert {run.seed for run in block} == {seed + rep}
        assert all([run.params for run in block].count(one) == 1 for one in it.configurations)
        labs = [run.params["mtu"] for run in block]
        assert sum(a != b for a, b in pairwise(labs)) == len(mtus) - 1


def test_blocks_are_shuffled_each_in_its_own_way() -> None:
    it = plan(of(pipes=tuple(range(1, 20)), preset="wired"), 6, 1)
    orders = {tuple(run.params["pipes"] for run in it.runs() if run.rep == r) for r in range(6)}
    assert len(orders) == 6
    assert tuple(range(1, 20)) not in orders


def test_each_unit_has_seeds_of_its_own_and_pairs_keep_theirs() -> None:
    """Ten pages are ten draws of losses; what is compared on one page meets the same."""
    pages = tuple({**it, "page": page} for it in of(preset="lossy") for page in ("a", "b", "c"))
    runs = list(Plan("swept", pages, 4, 7, 30.0, units=("page",)).runs())
    seeds: dict[tuple[Any, int], set[int]] = {}
    for run in runs:
        seeds.setdefault((run.params["page"], run.rep), set()).add(run.seed)
    assert all(len(its) == 1 for its in seeds.values()), "the same for 1 pipe, 8 and none"
    assert len({*chain(*seeds.values())}) == len(seeds) == 12
    without = Plan("swept", pages, 4, 7, 30.0).runs()
    assert {run.seed for run in without} == {7, 8, 9, 10}, "as in folders from before"


def test_sessions_have_blocks_of_their_own() -> None:
    it = Plan("swept", tuple(of()), 3, 7, 30.0, sessions=2, apart_s=60.0)
    runs = list(it.runs())
    assert len(it) == len(runs) == 2 * 3 * len(of()) == len({run.id for run in runs})
    assert [*dict.fromkeys((run.session, run.rep) for run in runs)] == [
        *((0, 0), (0, 1), (0, 2), (1, 3), (1, 4), (1, 5))
    ]
    assert {run.seed for run in runs if run.session == 1} == {10, 11, 12}
    with pytest.raises(ParameterError, match="1000 in 1000 sessions of"):
        replace(it, reps=1000, sessions=1000)
    with pytest.raises(ParameterError, match="sessions"):
        replace(it, sessions=0)


def test_a_plan_can_be_made_longer() -> None:
    """What was run keeps its place: its id, its seed, its session."""
    one = plan(of(), 3, 7)
    assert list(one.longer(5, None, 60.0).runs())[: len(one)] == list(one.runs())
    assert one.longer(None, None, 60.0) == one == one.longer(3, 1, 60.0)
    three = one.longer(None, 3, 60.0)
    assert (three.reps, three.sessions, three.apart_s) == (3, 3, 60.0)
    assert list(three.runs())[: len(one)] == list(one.runs())
    assert three.longer(None, 4, None).apart_s == three.longer(None, None, None).apart_s == 60.0
    assert three.longer(None, 3, 0.0).apart_s == 0.0, "of the session that is still to come"
    for asked, says in (
        ((2, None), "reps.*has 3 of them already, not 2"),
        ((None, 0), "sessions.*has 1 of them already, not 0"),
        ((4, 2), "each session has 3"),
    ):
        with pytest.raises(ParameterError, match=says):
            one.longer(*asked, 60.0)
    with pytest.raises(ParameterError, match="more sessions are --sessions"):
        three.longer(4, None, 60.0)


def test_a_plan_survives_json() -> None:
    it = replace(plan(of(), 3, 7), units=("page",), sessions=3, apart_s=60.0)
    assert Plan.from_dict(it.as_dict()) == it
    before = {k: v for k, v in it.as_dict().items() if k not in ("units", "sessions", "apart_s")}
    assert Plan.from_dict(before) == plan(of(), 3, 7)
    assert it.as_dict()["axes"] == {
        "way": ["pipes", "direct"],
        "pipes": [1, 8, 0],
        "preset": ["wired", "lossy"],
    }


def test_names_of_runs_say_what_differs() -> None:
    names = {run.id.rsplit("-", 1)[0] for run in plan(of(), 1, 1).runs()}
    assert {"000-pipes-8-lossy", "000-direct-wired"} < names


TOML = """
experiment = "download"
title = "Mine"
reps = 3
[[grid]]
pipes = [1, 8]
size = ["50KB", 300000]
loss = "2%"
[[figure]]
name = "gain"
title = "Gain"
kind = "normalised"
over = { pipes = 1 }
"""


def defined(tmp_path: Path, text: str) -> Experiment:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    found = definition.read(path)
    return definition.experiment(found, catalogue.find(found["experiment"]))


def test_a_file_defines_a_sweep(tmp_path: Path) -> None:
    mine = defined(tmp_path, TOML)
    found = sweep.configurations(mine, {})
    assert (mine.name, mine.title, mine.reps) == ("mine", "Mine", 3)
    assert sorted((it["pipes"], it["size"], it["loss"]) for it in found) == [
        *((1, 50_000, 0.02), (1, 300_000, 0.02), (8, 50_000, 0.02), (8, 300_000, 0.02))
    ]
    assert mine.figures[0].over == {"pipes": 1}
    again = catalogue.of({"experiment": "mine", "plan": {"definition": mine.definition}})
    assert again.grids == mine.grids
    assert catalogue.find("download").title != "Mine"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('experiment = "download"', "", "experiment: which"),
        ("reps = 3", "reps = 0", "reps: 0"),
        ("reps = 3", f"reps = {10**18}", f"reps: {10**18} is no whole number from 1 to 100000"),
        ("reps = 3", "rep = 3", "rep: no such key; there are experiment"),
        ("reps = 3", 'name = "My Sweep"', "name: 'My Sweep'"),
        ("[[grid]]", "[grid]", "grid: write [[grid]]"),
        ("[[figure]]", "[[figures]]", "figures: no such key"),
        ('kind = "normalised"', 'sort = "x"', "figure: sort: no such key"),
        ('kind = "normalised"', "", "figure: "),
        ("reps = 3", "reps =", "mine.toml"),
    ],
)
def test_a_wrong_file_is_told_in_one_line(tmp_path: Path, old: str, new: str, says: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        defined(tmp_path, TOML.replace(old, new))
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_with_a_wrong_parameter_names_it(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"^sice: no such parameter; there are .*size"):
        defined(tmp_path, TOML.replace("size", "sice"))
    with pytest.raises(ParameterError, match=r"^pipes: 'x' is not a whole number"):
        defined(tmp_path, TOML.replace("[1, 8]", '"x"'))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            'title = "Gain"',
            'title = "Gain"\ny = "first"',
            "y: 'first' is no metric; metrics are comp",
        ),
        ('title = "Gain"', 'title = "Gain"\ny = "size"', "y: 'size' is no metric; metrics are "),
        (
            'title = "Gain"',
            'title = "Gain"\nx = "pipe"',
            "x: 'pipe' is no metric and no parameter; ",
        ),
        ('title = "Gain"', 'title = "Gain"\nhue = "sice"', "hue: 'sice' is no metric and no param"),
        ('title = "Gain"', 'title = "Gain"\nfloor = "size"', "floor: 'size' is no metric; metrics"),
        ("over = { pipes = 1 }", "over = { pipe = 1 }", "over: 'pipe' is no parameter"),
    ],
)
def test_a_figure_of_what_no_run_has_is_refused_before_they_begin(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    """It was found out when all of them were over: the figure was not there."""
    with pytest.raises(DefinitionError) as refused:
        definition.check_figures(defined(tmp_path, TOML.replace(old, new)))
    assert str(refused.value).startswith(f"figure gain: {says}")


def test_figures_of_the_house_are_of_what_runs_have() -> None:
    for experiment in catalogue.experiments():
        definition.check_figures(experiment)


@pytest.mark.parametrize("path", sorted((ROOT / "experiments" / "sweeps").glob("*.toml")))
def test_the_sweeps_of_the_house_can_be_run(path: Path) -> None:
    found = definition.read(path)
    mine = definition.experiment(found, catalogue.find(found["experiment"]))
    definition.check_figures(mine)
    assert len(sweep.configurations(mine, {})) > 1


def test_the_file_that_the_readme_shows_can_be_run(tmp_path: Path) -> None:
    told = (ROOT / "experiments" / "README.md").read_text()
    shown = told.partition("```toml\n")[2].partition("```")[0]
    mine = defined(tmp_path, shown)
    definition.check_figures(mine)
    assert len(sweep.configurations(mine, {})) == 10
    kinds = get_args(get_type_hints(Figure)["kind"])
    assert all(f"\n| `{kind}` | " in told for kind in kinds)


def test_every_experiment_can_be_run() -> None:
    for experiment in catalogue.experiments():
        for quick in (False, True):
            assert sweep.configurations(experiment, {}, quick=quick), experiment.name


@pytest.mark.parametrize(("name", "way"), [("throughput", "mptcp"), ("overhead", "direct")])
def test_a_way_that_is_not_measured_is_refused(name: str, way: str) -> None:
    with pytest.raises(ParameterError, match=f"'{way}' is not measured by {name}"):
        sweep.configurations(catalogue.find(name), {"way": (way,)})
