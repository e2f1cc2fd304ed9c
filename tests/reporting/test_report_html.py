"""The HTML page as text: what it holds, and that nothing in it can break out."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from sonde.core.reports import DotPlot, Estimate, Report, Series
from sonde.reporting.render.figures import on_page
from sonde.reporting.render.html import json_block, page

from .drawing import drawn
from .sample import HOSTILE, PROVENANCE, belief, estimate, hostile, lama


class Elements(HTMLParser):
    """Counts the elements of a page and keeps what its scripts and its text hold."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[str] = []
        self.words: list[str] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.names.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data: str) -> None:
        """Note text."""
        self.words.append(data)


def test_hostile_text_adds_no_elements_and_no_handlers() -> None:
    made = Elements(page(hostile(), {"<b>": HOSTILE}))
    assert "img" not in made.names and "b" not in made.names
    assert not any(name.startswith("on") for name in made.attributes)
    assert (
        made.names.count("script") == 5 + 7
    )  # theme, two tables, provenance, own; figures' points


def test_hostile_text_is_on_the_page_as_text() -> None:
    words = "".join(Elements(page(hostile(), {})).words)
    for sentence in HOSTILE[:5]:
        assert sentence in words


def test_data_blocks_hold_no_angle_brackets_and_read_back_the_same() -> None:
    block = json_block(list(HOSTILE[:5]))
    inner = re.fullmatch(r"<script[^>]*>(.*)</script>", block, re.DOTALL)
    assert inner is not None
    assert not set("<>&\u2028\u2029") & set(inner[1])
    assert json.loads(inner[1]) == list(HOSTILE[:5])


def test_the_page_can_be_written_whatever_a_model_emits() -> None:
    assert page(hostile(), {"x": "\ud800"}).encode("utf-8")


def test_the_page_names_no_address_to_fetch_from() -> None:
    made = page(lama(10), PROVENANCE)
    assert not re.search(r"(src|href)=\"(?!#|data:)", made)
    assert "default-src 'none'" in made


def test_the_page_of_a_small_run_is_light() -> None:
    assert len(page(lama(300), PROVENANCE).encode()) < 400_000
    assert len(page(belief(), PROVENANCE).encode()) < 400_000


def test_empty_parts_leave_no_headings_behind() -> None:
    made = page(Report(title="Bare", summary="", estimates={}), {})
    assert "<h2" not in made and "Bare" in made


def test_an_estimate_that_was_not_measured_is_not_a_dot_but_a_word() -> None:
    values = (Estimate.not_measured(), estimate(0.5, 10))
    plot = DotPlot(id="p", title="P", axis="share", labels=("a", "b"),
                   series=(Series(name="s", values=values),))  # fmt: skip
    made = drawn(plot)
    assert [made.read(x) for x, _ in made.places()] == pytest.approx([0.5], abs=0.001)
    assert "not measured" in made.texts


def test_a_figure_tells_value_interval_and_n_at_the_pointer() -> None:
    plot = DotPlot(id="p", title="P", axis="share", labels=("<b>",),
                   series=(Series(name="s", values=(estimate(0.5, 100),)),))  # fmt: skip
    assert drawn(plot).tips() == ["<b>\ns: 50.0% [40.2, 59.8]\nn = 100"]


def test_a_figure_of_numbers_has_no_percent_signs() -> None:
    series = Series(name="s", values=(Estimate(value=0.2, low=0.1, high=0.3, n=9),))
    plot = DotPlot(id="p", title="P", axis="nats", labels=("a",), series=(series,), kind="number")
    assert not any("%" in text for text in drawn(plot).texts)


def test_the_height_of_a_figure_follows_its_labels() -> None:
    (plot,) = lama(10).figures
    assert isinstance(plot, DotPlot)
    some = [replace(plot, labels=plot.labels[:n],
                    series=tuple(replace(s, values=s.values[:n]) for s in plot.series))
            for n in (16, 36)]  # fmt: skip
    few, many = (float(drawn(p).root.get("height") or 0) for p in some)
    assert many - few == 20 * 24


def test_an_unknown_kind_of_figure_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="no drawing of str"):
        on_page("heat map")  # type: ignore[arg-type]
