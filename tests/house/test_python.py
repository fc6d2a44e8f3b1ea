# SPDX-License-Identifier: MIT
"""The rooms in Python: which way their arrows run, and what their READMEs copy from them."""

import pytest

from tests.house.test_house import ROOT


def test_readme_has_the_parameters_of_a_topology() -> None:
    """Each is written once, where it is declared; the table is made from that."""
    parameters = pytest.importorskip("topologies.parameters")
    told = (ROOT / "topologies" / "README.md").read_text()
    assert f"\n\n{parameters.table()}\n\n" in told, "python -m topologies parameters has another"
