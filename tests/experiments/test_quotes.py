# SPDX-License-Identifier: MIT
"""The text's figures are those of the committed results; a wrong digit is found, and named."""

import json
from pathlib import Path

import pytest

from base.sources import ROOT
from experiments import quotes, summaries
from experiments.quotes import QUOTES, Quote, wrong

TEXTS = {name: (ROOT / name).read_text() for name in {quote.file for quote in QUOTES}}


@pytest.mark.parametrize("quote", QUOTES, ids=lambda it: it.text[:30])
def test_the_text_says_what_was_measured(quote: Quote) -> None:
    assert wrong(quote, TEXTS[quote.file]) == []


@pytest.mark.parametrize("quote", QUOTES, ids=lambda it: it.text[:30])
def test_another_digit_is_found(quote: Quote) -> None:
    """In each place of each sentence."""
    text = TEXTS[quote.file]
    found = quotes.pattern(quote.text).search(text)
    assert found and len(found.groups()) == len(quote.numbers)
    for k in range(len(quote.numbers)):
        begin, end = found.span(k + 1)
        other = text[: end - 1] + str((int(text[end - 1]) + 1) % 10) + text[end:]
        (told,) = wrong(quote, other)
        assert quote.file in told and other[begin:end] in told and "measured" in told


def test_a_sentence_that_is_gone_is_told() -> None:
    quote = Quote("README.md", "pipes are {} times as good", (lambda: 2.0,))
    (told,) = wrong(quote, "Pipes are good.")
    assert told.endswith("is not there any more")
    assert wrong(quote, "pipes\nare 2.0 times as   good") == [], "lines may break anywhere"
    assert wrong(quote, "pipes are 2 times as good") == []
    assert wrong(quote, "pipes are 2.1 times as good")


def test_the_command_fails_where_something_differs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "README.md").write_text("It takes 3 s.")
    monkeypatch.setattr(quotes, "ROOT", tmp_path)
    for number, status in ((3.0, 0), (4.0, 1)):
        quote = Quote("README.md", "It takes {} s", (lambda number=number: number,))
        monkeypatch.setattr(quotes, "QUOTES", (quote,))
        assert quotes.main() == status
    assert "3, measured 4" in capsys.readouterr().err


def test_a_text_quotes_the_folder_that_the_page_is_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that answers most, not the one with most runs."""
    for name, runs, verdicts in (("a", 10, ("yes", "no")), ("b", 250, ("few", "none"))):
        folder = tmp_path / "curated" / "blocking" / name
        folder.mkdir(parents=True)
        told = {"folder": name, "runs": runs, "comparison": [{"verdict": it} for it in verdicts]}
        (folder / "summary.json").write_text(json.dumps(told))
    monkeypatch.setattr(quotes, "RESULTS", tmp_path)
    quotes.fullest.cache_clear()
    try:
        assert quotes.fullest("blocking") == summaries.fullest(tmp_path, "blocking")
        assert quotes.fullest("blocking")["folder"] == "a"
        with pytest.raises(LookupError, match="nothing is curated"):
            quotes.fullest("object")
    finally:
        quotes.fullest.cache_clear()


def test_what_two_configurations_share_is_no_number() -> None:
    with pytest.raises(LookupError, match="configurations with"):
        quotes.one("object", "object_p50_s", pipes=8)()
    with pytest.raises(LookupError, match="no configuration with"):
        quotes.one("object", "object_p50_s", pipes=3)()
