"""Every kind of figure in a real browser: themed, readable at the pointer, nothing cut."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Page, expect

from sonde.core.reports import Report

from .sample import belief, coverage, fluctuation, hostile, lama, sharing
from .window import Opener

pytestmark = pytest.mark.browser

LOOK = """() => [...document.querySelectorAll(".plot svg")].map((svg) =>
  [".points > *", "text"].map((query) => getComputedStyle(svg.querySelector(query)).fill))"""

CLASHES = """() => [...document.querySelectorAll(".plot svg")].flatMap((svg) => {
  if (!svg.clientWidth) return [];
  const frame = svg.getBoundingClientRect(), found = [];
  const texts = [...svg.querySelectorAll("text:not([transform])")].map((node) =>
    ({ words: node.firstChild.data, ...node.getBoundingClientRect().toJSON() }));
  for (const [k, a] of texts.entries()) {
    if (a.left < frame.left - 1 || a.right > frame.right + 1 || a.top < frame.top - 1 || a.bottom > frame.bottom + 1)
      found.push(`cut: ${a.words}`);
    for (const b of texts.slice(k + 1)) {
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const tall = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 0.5 && tall > 4) found.push(`${a.words} / ${b.words}`);
    }
  }
  return found;
})"""  # noqa: E501


def pointed(page: Page, figure: str, point: int) -> str:
    """What the pointer reads at a point of a figure."""
    page.locator(f"#figure-{figure} .wide .points > *").nth(point).scroll_into_view_if_needed()
    box = page.locator(f"#figure-{figure} .wide .points > *").nth(point).bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    return page.locator(".tip").inner_text()


def test_every_figure_has_words_for_those_who_cannot_see_it(opened: Opener) -> None:
    page = opened(belief()).page
    expect(
        page.get_by_role("img", name="Figure 1. How far confidence can be trusted")
    ).to_be_visible()
    assert page.locator("figure .plot[role=img][aria-labelledby]").count() == 6
    assert page.locator("figure details table").count() == 6
    page.locator("#figure-sharing summary").click()
    expect(page.locator("#figure-sharing table [aria-label='not measured']")).to_be_visible()


def test_the_theme_turns_the_colours_of_every_figure(opened: Opener) -> None:
    page = opened(belief()).page
    light = page.evaluate(LOOK)
    page.get_by_role("button", name="Dark theme").click()
    dark = page.evaluate(LOOK)
    for before, after in zip(light, dark, strict=True):
        assert all(a != b for a, b in zip(before, after, strict=True))
    page.get_by_role("button", name="Light theme").click()
    assert page.evaluate(LOOK) == light


@pytest.mark.parametrize(
    ("figure", "point", "words"),
    [
        ("calibration", 0, "bert-base-cased\nconfidence (mean of the bin): 5.0%"),
        ("calibration", 0, "n = 4,000"),
        ("fluctuation", 22, "30.7% to 30.8%"),
        ("templates", 0, "The country of [X], as wording 0 has it, is [Y].\nP17 country, manual"),
        ("coverage", 8, "any template (oracle): 55.0%"),
        ("sharing", 9, "not measured\nrow: encoder-24m\ncolumn: roberta-large"),
    ],
)
def test_the_pointer_reads_what_a_thing_is(
    opened: Opener, figure: str, point: int, words: str
) -> None:
    page = opened(belief()).page
    assert words in pointed(page, figure, point)
    page.mouse.move(0, 0)
    expect(page.locator(".tip")).to_have_count(0)


def test_the_arrow_keys_walk_through_the_points(opened: Opener) -> None:
    page = opened(belief()).page
    page.locator("#figure-coverage .plot").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".tip")).to_contain_text("bert-base-cased")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".tip")).to_contain_text("roberta-large")
    page.keyboard.press("Escape")
    expect(page.locator(".tip")).to_have_count(0)


def test_a_click_in_the_legend_hides_a_series_and_brings_it_back(opened: Opener) -> None:
    page = opened(belief()).page
    entry = page.locator("#figure-coverage .wide .entry", has_text="best template")
    bars = page.locator("#figure-coverage .wide .points[data-series='1']")
    for shown in (False, True):
        entry.click()
        expect(bars).to_be_visible(visible=shown)


def test_a_figure_is_saved_in_the_colours_of_the_page(opened: Opener, tmp_path: Path) -> None:
    page = opened(belief()).page
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        with page.expect_download() as waiting:
            page.locator("#figure-sharing").get_by_role("button", name="Save as SVG").click()
        assert waiting.value.suggested_filename == "sharing.svg"
        path = tmp_path / f"{theme}.svg"
        waiting.value.save_as(path)
        text = path.read_text(encoding="utf-8")
        ElementTree.fromstring(text)
        assert "var(" not in text and "color-mix" not in text
    assert (tmp_path / "light.svg").read_bytes() != (tmp_path / "dark.svg").read_bytes()


def test_no_word_of_a_figure_is_cut_or_runs_into_another(opened: Opener) -> None:
    for report in (belief(), hostile(), lama(10), crowded()):
        page = opened(report).page
        for width in (1400, 900, 400):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate(CLASHES) == [], (report.title, width)
            assert page.evaluate("() => document.documentElement.scrollWidth") <= width


def crowded() -> Report:
    """A report in which every label is long, and marks lie close."""
    long = "a model with a very long name indeed, as users give them to their checkpoints, version"
    names = tuple(f"{long} {k}" for k in range(4))
    bars, histogram = coverage(), fluctuation(Random(0))
    series = tuple(replace(s, name=f"{long}: {s.name}") for s in bars.series)
    marks = tuple((long, value + k * 0.001) for k in range(3) for _, value in histogram.marks)
    figures = (
        replace(bars, labels=names, series=series),
        replace(histogram, marks=marks),
        replace(sharing(Random(0)), rows=names, columns=names),
    )
    return replace(belief(), title="Crowded", figures=figures)


def test_a_phone_gets_a_drawing_of_its_own(opened: Opener) -> None:
    page = opened(belief()).page
    wide, narrow = (page.locator(f"#figure-coverage .{css}") for css in ("wide", "narrow"))
    expect(wide).to_be_visible()
    expect(narrow).to_be_hidden()
    page.set_viewport_size({"width": 400, "height": 900})
    expect(narrow).to_be_visible()
    expect(wide).to_be_hidden()
    size = "(svg) => svg.getScreenCTM().a * parseFloat(getComputedStyle(svg).fontSize)"
    assert narrow.evaluate(size) >= 11.5


def test_no_hostile_text_becomes_an_element_in_any_figure(opened: Opener) -> None:
    page = opened(hostile()).page
    assert page.evaluate("() => window.broken") is None
    assert page.locator("figure img, figure b").count() == 0
    assert "onerror" in pointed(page, "curves", 0)
