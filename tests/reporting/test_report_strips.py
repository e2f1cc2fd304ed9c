"""Heat strips: every token with its weight, in the terminal, on the page and as data."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.console import Console

from sonde.core.reports import HeatRow, HeatStrip, Report
from sonde.reporting.render.html import asset, page
from sonde.reporting.render.json import as_json
from sonde.reporting.render.terminal import show

from .sample import HOSTILE
from .test_report_colours import contrast

ROW = HeatRow(
    label="told Oslo", tokens=("A B", "\n", "Oslo", ".", " Where", "?"),
    weights=(0.25, 0.5, -2.0, 0.01, 1.0, 0.0), note="p = 0.5", folded=2, folded_name="1 example",
)  # fmt: skip


def strip(*rows: HeatRow) -> Report:
    plot = HeatStrip(id="s", title="Strips", rows=rows, limit=2.0, unit="nats", kind="number",
                     towards="towards the answer", away="away from it")  # fmt: skip
    return Report(title="R", summary="", estimates={}, figures=(plot,))


def shown(report: Report, colours: bool) -> str:
    system = "truecolor" if colours else None
    file = io.StringIO()
    console = Console(file=file, width=60, force_terminal=colours, color_system=system)  # type: ignore[arg-type]
    show(report, console)
    return file.getvalue()


def test_without_colours_the_weights_stand_below_the_tokens() -> None:
    lines = [line.strip() for line in shown(strip(ROW), colours=False).splitlines()]
    at = lines.index("[1␣example] Oslo  .     ␣Where ?")
    assert lines[at + 1].split() == ["+0.75", "−2.00", "+0.01", "+1.00", "0.00"]
    assert "+ towards the answer, − away from it; nats" in lines
    assert not any("In the HTML report" in line for line in lines)


def test_lines_of_tokens_and_weights_keep_within_the_width() -> None:
    long = HeatRow(label="l", tokens=(" word", "字") * 40, weights=(1.0, -1.0) * 40)
    text = shown(strip(long), colours=False)
    assert text.count("+1.00") == 40
    assert max(map(len, text.splitlines())) <= 60


def test_colours_tell_the_sign_and_little_has_none() -> None:
    text = shown(strip(ROW), colours=True)
    ground = dict(re.findall(r"48;2;(\d+;\d+;\d+)m([^\x1b]*)\x1b", text))
    by_text = {words: colour for colour, words in ground.items()}
    red, _, blue = map(int, by_text["Oslo"].split(";"))
    assert red > blue
    red, _, blue = map(int, by_text[" Where"].split(";"))
    assert blue > red
    assert "." not in by_text and "?" not in by_text


def test_the_page_tells_every_weight() -> None:
    made = page(strip(ROW), {})
    assert len(made) < 200_000
    assert 'title="−2.00 nats">Oslo</span>' in made
    assert '<span class="token away" style="--heat:100%"' in made
    assert '<span class="token towards" style="--heat:50%" title="+1.00 nats"> Where</span>' in made
    assert "[1 example]" in made and "↵" in made
    assert "The numbers of this figure" in made


def test_a_hostile_strip_stays_text() -> None:
    row = HeatRow(label=HOSTILE[1], tokens=HOSTILE, weights=(1.0,) * len(HOSTILE),
                  note=HOSTILE[0], folded=1, folded_name=HOSTILE[1])  # fmt: skip
    made = page(strip(row), {})
    assert "<script>window.broken" not in made and "<img src=x" not in made
    assert "\x1b[31m" not in shown(strip(row), colours=False)


def test_the_data_has_every_token() -> None:
    found: Any = as_json(strip(ROW), {})["strips"]
    assert found[0]["rows"][0]["tokens"] == list(ROW.tokens)
    assert found[0]["rows"][0]["weights"] == list(ROW.weights)


def test_words_can_be_read_on_every_ground() -> None:
    style = asset("style.css")
    words = re.findall(r"--text: (#\w+);", style)
    for name in ("towards", "away"):
        grounds = re.findall(rf"--{name}: (#\w+);", style)
        assert len(grounds) == 3 and grounds[1] == grounds[2]
        for word, ground in zip(words, grounds, strict=True):
            assert contrast(word, ground) >= 4.5


def test_a_row_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="one weight per token"):
        HeatRow(label="l", tokens=("a",), weights=())
    with pytest.raises(ValueError, match="cannot fold 2"):
        HeatRow(label="l", tokens=("a",), weights=(1.0,), folded=2)
    with pytest.raises(ValueError, match="above zero"):
        HeatStrip(id="s", title="", rows=(), limit=0.0)
