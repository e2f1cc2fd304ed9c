"""What a report looks like in a terminal of 80 columns."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from sonde.core.reports import Column, Estimate, Report, Table
from sonde.reporting.render import cells
from sonde.reporting.render.terminal import show

from .sample import belief, estimate, hostile, lama


def printed(report: Report, width: int = 80, colour: bool = False) -> str:
    """What `show` prints, with colours only if asked for."""
    console = Console(
        width=width,
        file=io.StringIO(),
        force_terminal=colour,
        color_system="truecolor" if colour else None,
    )
    show(report, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def line_with(words: str, text: str) -> str:
    """The first line that holds these words."""
    return next(line for line in text.splitlines() if words in line)


def test_a_headline_stands_with_its_interval_and_n() -> None:
    line = line_with("P@1, mean over relations", printed(lama(10)))
    assert line.split("relations")[1].split() == ["31.1%", "[25.3,", "37.0]", "n", "=", "40"]


def test_the_control_and_the_difference_follow_the_headline() -> None:
    text = printed(lama(10))
    assert "22.0%  [17.2, 27.0]" in line_with("control: majority", text)
    assert "+9.1 points  [+5.2, +13.0]" in line_with("difference", text)


def test_what_was_not_measured_says_so_and_is_never_zero() -> None:
    text = printed(lama(10))
    assert "not measured" in line_with("P@1 on unseen subjects", text)
    assert line_with("P39 ", text.split("By relation")[1]).split()[-3:] == ["–", "–", "–"]


def test_everything_but_the_browsable_table_is_printed() -> None:
    text = printed(lama(5000))
    for words in ("Findings", "By type of relation", "By relation", "Counts", "34,017", "Notes"):
        assert words in text
    assert "P1412" in text and "Marie Curie" not in text
    assert "table “Facts” (5,000 rows)" in text


def test_no_line_is_wider_than_the_terminal() -> None:
    for width in (60, 80, 120):
        for report in (lama(10), belief()):
            assert max(map(len, printed(report, width).splitlines())) <= width


def test_a_narrow_terminal_puts_intervals_under_values_and_loses_none() -> None:
    text = printed(lama(10), width=60)
    assert "[71.7, 77.3]" in text and "74.5% [" not in text


def test_the_n_of_estimates_is_shown_once_where_a_row_shares_it() -> None:
    table = line_with("Type ", printed(lama(10)))
    assert table.split() == ["Type", "Relations", "P@1", "Majority", "n"]


def test_the_n_of_estimates_stands_behind_each_column_where_a_row_does_not_share_it() -> None:
    columns = (Column(title="a", kind="percent"), Column(title="b", kind="percent"))
    table = Table(id="t", title="T", columns=columns, rows=((estimate(0.5, 7), estimate(0.5, 8)),))
    text = printed(Report(title="R", summary="", estimates={}, tables=(table,)))
    assert line_with("50.0%", text).split() == "50.0% [13.0, 87.0] 7 50.0% [15.4, 84.6] 8".split()


def test_verdicts_are_words_and_not_only_colours() -> None:
    columns = (Column(title="V", kind="verdict"),)
    rows = ((True,), (False,), (None,))
    table = Table(id="t", title="T", columns=columns, rows=rows)
    text = printed(Report(title="R", summary="", estimates={}, tables=(table,)))
    assert "✓ right" in text and "✗ wrong" in text and "– skipped" in text


def test_square_brackets_are_text_and_not_markup() -> None:
    text = printed(hostile(), width=200)
    assert "[bold red][MASK][/bold red]" in text and "[link=http://example.org]" in text


def test_control_characters_cannot_reach_the_terminal() -> None:
    assert "\x1b" not in printed(hostile())
    assert "\x1b[31m" not in printed(hostile(), colour=True)


def test_a_report_without_headlines_shows_its_estimates() -> None:
    text = printed(replace(lama(10), headlines=()))
    assert "0.311 [0.253, 0.370]" in line_with("p_at_1.mean_over_relations", text)


def test_a_headline_that_names_no_estimate_is_refused() -> None:
    with pytest.raises(ValueError, match="names no estimate: 'p_at_1"):
        replace(lama(10), estimates={})


def test_nan_counts_as_not_measured() -> None:
    nan = Estimate(value=float("nan"), low=None, high=None, n=0)
    report = lama(10)
    report = replace(report, estimates={**report.estimates, "p_at_1.mean_over_relations": nan})
    assert "not measured" in line_with("P@1, mean over relations", printed(report))


def test_a_histogram_is_drawn_in_one_line_with_its_marks() -> None:
    text = printed(belief())
    assert "█" in line_with("28.0% ", text) and line_with("28.0% ", text).rstrip().endswith("33.5%")
    assert "mean 30.7%" in line_with("accuracy of a draw", text)


def test_a_small_square_heat_map_is_a_table_with_numbers_for_columns() -> None:
    text = printed(belief())
    assert line_with("3 encoder-24m", text).split()[2:] == ["19.7%", "–", "100.0%", "78.3%"]
    assert "P37 official language" not in text  # that one has 24 columns


def test_figures_that_a_terminal_cannot_show_are_named() -> None:
    assert "figure “How far confidence can be trusted”" in printed(belief(), width=400)


def test_brackets_whose_ends_read_the_same_are_left_out() -> None:
    tiny = Estimate(value=2e-5, low=1e-5, high=3e-5, n=3)
    assert cells.interval(tiny, "percent") == ""
    assert cells.interval(tiny, "number") != ""
    assert cells.written_difference(tiny, "percent").interval == ""
    assert cells.interval(Estimate(value=0.5, low=0.4, high=0.6, n=3), "percent") == "[40.0, 60.0]"
