"""Every kind of figure in a real browser: drawn, themed, readable at the pointer, in its place."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from .sample import belief, hostile
from .window import Opener

pytestmark = pytest.mark.browser

LOOK = """() => [...document.querySelectorAll(".plot")].map((plot) => {
  const one = (query) => { const found = plot.querySelector(query); return found && getComputedStyle(found).fill; };
  const hot = plot.data.find((trace) => trace.colorscale);
  return [one("path.point, .point path"), one(".ytick text, .xtick text"), hot ? hot.colorscale[0][1] : null];
})"""  # noqa: E501


def drawn(page: Page) -> None:
    """Wait until the last figure stands."""
    expect(page.locator("figure .plot svg.main-svg").last).to_be_attached()


def pointed(page: Page, figure: str, trace: int, point: object) -> str:
    """What the pointer reads at a point of a figure."""
    page.evaluate(
        "([id, curveNumber, pointNumber]) =>"
        " Plotly.Fx.hover(document.querySelector(id + ' .plot'), [{ curveNumber, pointNumber }])",
        [f"#figure-{figure}", trace, point],
    )
    return page.locator(f"#figure-{figure} .hoverlayer .hovertext").first.text_content() or ""


def test_every_figure_is_drawn_and_has_words_for_those_who_cannot_see_it(opened: Opener) -> None:
    page = opened(belief()).page
    drawn(page)
    assert page.locator("figure .plot[role=img][aria-label]").count() == 6
    assert page.locator("figure details table").count() == 6
    page.locator("#figure-sharing summary").click()
    expect(page.locator("#figure-sharing table [aria-label='not measured']")).to_be_visible()


def test_the_theme_turns_the_colours_of_every_figure(opened: Opener) -> None:
    page = opened(belief()).page
    drawn(page)
    light = page.evaluate(LOOK)
    page.get_by_role("button", name="Dark theme").click()
    dark = page.evaluate(LOOK)
    for before, after in zip(light, dark, strict=True):
        assert all(a != b for a, b in zip(before, after, strict=True) if a is not None)
    page.get_by_role("button", name="Light theme").click()
    assert page.evaluate(LOOK) == light


@pytest.mark.parametrize(
    ("figure", "trace", "point", "words"),
    [
        ("calibration", 1, 0, "bert-base-cased"),
        ("calibration", 1, 0, "n = 4,000"),
        ("fluctuation", 0, 27, "30.7% to 30.8%"),
        ("templates", 1, 0, "The country of [X]"),
        ("templates", 1, 0, "P17 country, paraphrase"),
        ("coverage", 2, 0, "any template (oracle): 55.0%"),
    ],
)
def test_the_pointer_reads_what_a_thing_is(
    opened: Opener, figure: str, trace: int, point: int, words: str
) -> None:
    page = opened(belief()).page
    drawn(page)
    assert words in pointed(page, figure, trace, point)


def test_the_pointer_reads_row_and_column_even_where_nothing_was_measured(opened: Opener) -> None:
    page = opened(belief()).page
    drawn(page)
    cell = page.locator("#figure-sharing .annotation-text", has_text="measured").first
    page.locator("#figure-sharing").scroll_into_view_if_needed()
    box = cell.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2 - 30, box["y"] + box["height"] / 2 - 8)
    said = page.locator("#figure-sharing .hoverlayer .hovertext")
    expect(said).to_contain_text("row: encoder-24m")
    expect(said).to_contain_text("not measured")


def test_figures_fit_a_phone_and_go_back(opened: Opener) -> None:
    for report in (belief(), hostile()):
        page = opened(report).page
        drawn(page)
        for width in (1200, 800, 400, 1200):
            page.set_viewport_size({"width": width, "height": 900})
            for plot in page.locator(".plot").all():
                room = plot.evaluate("(plot) => String(plot.clientWidth)")
                expect(plot.locator("svg").first).to_have_attribute("width", room)
                tall = plot.evaluate("(plot) => String(plot.clientHeight)")
                expect(plot.locator("svg").first).to_have_attribute("height", tall)
            assert page.evaluate("() => document.documentElement.scrollWidth") <= width


def test_a_phone_shows_shorter_labels(opened: Opener) -> None:
    page = opened(belief()).page
    drawn(page)
    label = page.locator("#figure-coverage .ytick text").last
    expect(label).to_have_text("SmolLM2-135M-Instruct (4-bit)")
    page.set_viewport_size({"width": 400, "height": 900})
    expect(label).to_have_text("SmolLM2-135M-Instru…")


def test_no_hostile_text_becomes_an_element_in_any_figure(opened: Opener) -> None:
    page = opened(hostile()).page
    drawn(page)
    assert page.evaluate("() => window.broken") is None
    assert page.locator("figure img, figure b").count() == 0
    assert "onerror" in pointed(page, "curves", 1, 0)
