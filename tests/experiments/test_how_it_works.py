# SPDX-License-Identifier: MIT
"""The picture of docs/how-it-works.md is the one that the committed results give."""

import re
from pathlib import Path

import pytest

from experiments import catalogue
from experiments.folder import FolderError
from experiments.plots import how_it_works
from experiments.plots.how_it_works import DOCS, NAME, NEEDED, draw
from tests.experiments.drawn import words_of


def test_the_picture_is_of_the_committed_results(tmp_path: Path) -> None:
    """By its texts, values among them: outlines depend on the version of what draws."""
    assert words_of(draw(tmp_path)) == words_of(DOCS / f"{NAME}.svg")


def test_the_document_says_how_to_draw_it() -> None:
    text = (DOCS / f"{NAME}.md").read_text()
    assert f"({NAME}.svg)" in text
    assert "-m experiments.plots.how_it_works" in text
    for command in re.findall(r"tm3lab run ([a-z-]+)", text):
        assert catalogue.find(command)


@pytest.mark.parametrize("words", [["--png"], ["docs"]])
def test_a_word_that_it_does_not_know_draws_nothing(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(how_it_works, "draw", pytest.fail)
    with pytest.raises(SystemExit):
        how_it_works.main(words)
    assert f"unrecognized arguments: {words[0]}" in capsys.readouterr().err


def test_without_results_it_says_which_are_missing(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match=f"it has no results of {NEEDED[0]}"):
        draw(tmp_path, tmp_path)
