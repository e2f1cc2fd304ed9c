"""The HTML page in a real browser: Debian's chromium, from disk, offline."""

from __future__ import annotations

from random import Random

import pytest
from playwright.sync_api import Page, expect

from sonde.core.reports import Cell, Column, ColumnKind, Estimate, Report, Table
from sonde.reporting.render.cells import cell_text, verdict

from .sample import HOSTILE, PROVENANCE, estimate, hostile, lama
from .window import Opener

pytestmark = pytest.mark.browser


def column(page: Page, number: int) -> list[str]:
    """The texts of a column of the browsable table, as far as its page shows them."""
    unpacked(page)
    return page.locator(f"#browse tbody td:nth-child({number})").all_inner_texts()


def unpacked(page: Page) -> None:
    """Wait until the rows of the browsable table are there."""
    page.locator("#browse .pager button").first.wait_for()


def sort_by(page: Page, title: str) -> None:
    """Click a heading of the browsable table."""
    unpacked(page)
    page.locator("#browse thead").get_by_role("button", name=title, exact=True).click()


def test_the_page_opens_with_its_numbers_and_a_drawn_figure(opened: Opener) -> None:
    page = opened(lama()).page
    expect(page.locator("h1")).to_have_text("LAMA: bert-base-cased on T-REx")
    expect(page.locator(".card").first).to_contain_text("31.1%[25.3, 37.0]n = 40")
    expect(page.locator(".card").nth(2)).to_contain_text("not measured")
    expect(page.locator(".plot svg").first).to_be_visible()
    assert page.locator(".plot .wide .points").count() == 2


def test_search_narrows_the_rows_whatever_case_and_accents(opened: Opener) -> None:
    page = opened(lama()).page
    page.get_by_label("Search").fill("SAO tome P36")
    expect(page.locator("#browse .range")).to_contain_text("found (of 5,000)")
    assert {text.split()[0] for text in column(page, 2)} == {"São"}
    page.get_by_label("Search").fill("no such words anywhere")
    expect(page.locator("#browse tbody")).to_have_text("No rows match.")


def test_sorting_sorts_numbers_as_numbers_and_what_is_missing_last(opened: Opener) -> None:
    page = opened(lama()).page
    for direction in ("ascending", "descending"):
        sort_by(page, "Rank")
        expect(page.locator("#browse th[data-kind=count]")).to_have_attribute(
            "aria-sort", direction
        )
        ranks = [int(text.replace(",", "")) for text in column(page, 7)]
        assert ranks == sorted(ranks, reverse=direction == "descending")
    page.get_by_role("button", name="Last page").click()
    assert set(column(page, 7)) == {"–"}
    sort_by(page, "Rank")
    expect(page.locator("#browse th[data-kind=count]")).to_have_attribute("aria-sort", "none")
    assert column(page, 2)[0].endswith(" 0")


def test_a_written_out_table_sorts_by_its_values(opened: Opener) -> None:
    table = opened(lama(10)).page.locator("#table-by-relation")
    table.get_by_role("button", name="P@1").click()
    texts = table.locator("tbody td:nth-child(4) .value").all_inner_texts()
    values = [float(text.rstrip("%")) for text in texts]
    assert values == sorted(values) and len(values) == 40
    assert "P39" in table.locator("tbody tr").last.inner_text()


def test_the_verdict_filter_keeps_only_that_verdict(opened: Opener) -> None:
    page = opened(lama()).page
    page.get_by_role("radio", name="skipped").check()
    expect(page.locator("#browse .range")).to_have_text("Rows 1–50 of 500 found (of 5,000)")
    assert set(column(page, 8)) == {"– skipped"}
    page.get_by_role("radio", name="all").check()
    expect(page.locator("#browse .range")).to_have_text("Rows 1–50 of 5,000")


def test_five_thousand_rows_are_paged(opened: Opener) -> None:
    page = opened(lama()).page
    expect(page.locator("#browse tbody tr")).to_have_count(50)
    page.get_by_role("button", name="Next page").click()
    expect(page.locator("#browse .range")).to_have_text("Rows 51–100 of 5,000")
    page.get_by_role("button", name="Last page").click()
    expect(page.locator("#browse .range")).to_have_text("Rows 4,951–5,000 of 5,000")
    expect(page.get_by_role("button", name="Next page")).to_be_disabled()
    page.get_by_label("Page", exact=True).fill("3")
    page.get_by_label("Page", exact=True).press("Enter")
    expect(page.locator("#browse .range")).to_have_text("Rows 101–150 of 5,000")


def test_the_table_can_be_worked_from_the_keyboard(opened: Opener) -> None:
    page = opened(lama(100)).page
    page.get_by_label("Search").press("Tab")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("radio", name="right")).to_be_checked()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#browse th").first).to_have_attribute("aria-sort", "ascending")


def test_the_theme_button_turns_page_and_figure(opened: Opener) -> None:
    page = opened(lama(10)).page
    look = (
        "() => [getComputedStyle(document.body).backgroundColor,"
        " getComputedStyle(document.querySelector('.plot text')).fill,"
        " getComputedStyle(document.querySelector('.plot .points')).fill]"
    )
    light = page.evaluate(look)
    page.get_by_role("button", name="Dark theme").click()
    expect(page.get_by_role("button", name="Light theme")).to_be_visible()
    dark = page.evaluate(look)
    assert all(a != b for a, b in zip(light, dark, strict=True))
    page.get_by_role("button", name="Light theme").click()
    assert page.evaluate(look) == light


def test_the_page_follows_the_systems_theme(opened: Opener) -> None:
    page = opened(lama(10)).page
    page.emulate_media(color_scheme="dark")
    expect(page.get_by_role("button", name="Light theme")).to_be_visible()


def test_injected_html_stays_text(opened: Opener) -> None:
    page = opened(hostile()).page
    assert page.evaluate("() => window.broken") is None
    assert page.locator("main img, main b, main i").count() == 0
    assert column(page, 1)[0] == HOSTILE[0]
    assert HOSTILE[0] in page.locator("#figure-plot .wide text").all_text_contents()


def test_provenance_is_copied_as_json(opened: Opener) -> None:
    page = opened(lama(10)).page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy as JSON").click()
    expect(page.get_by_text("Copied.")).to_be_visible()
    copied = page.evaluate("async () => JSON.parse(await navigator.clipboard.readText())")
    assert copied == PROVENANCE | {"seed": 0}


def test_the_page_never_scrolls_sideways(opened: Opener) -> None:
    for report in (lama(60), hostile()):
        page = opened(report).page
        for width in (1400, 1200, 800, 400, 360):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("() => document.documentElement.scrollWidth") <= width


def wide_table(columns: int) -> Report:
    """A table of so many estimates beside a long label, each with an n of its own."""
    metrics = (Column(title=f"metric {k}", kind="percent") for k in range(columns))
    long = "located in the administrative territorial entity"
    rows: list[tuple[Cell, ...]] = []
    for i in range(3):
        cells = (estimate(0.1 + 0.01 * k, 900 + i * k) for k in range(columns))
        rows.append((f"P{i} {long}", *cells))
    table = Table(
        id="wide", title="Wide", columns=(Column(title="relation"), *metrics), rows=tuple(rows)
    )
    return Report(title="R", estimates={}, tables=(table,))


CUT = """() => {
  document.querySelectorAll("details").forEach((fold) => { fold.open = true; });
  return [...document.querySelectorAll(".scroll")].filter((box) => box.scrollWidth > box.clientWidth).length;
}"""  # noqa: E501


def test_no_table_is_cut_at_a_desk(opened: Opener) -> None:
    for report in (lama(60), wide_table(3), wide_table(6)):
        page = opened(report).page
        page.set_viewport_size({"width": 1400, "height": 900})
        assert page.evaluate(CUT) == 0


def test_a_wide_table_scrolls_in_its_own_box_and_its_first_column_stays(opened: Opener) -> None:
    page = opened(wide_table(6)).page
    page.set_viewport_size({"width": 400, "height": 900})
    assert page.evaluate(CUT) == 1
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 400
    first = page.locator("#table-wide tbody th").first
    before = first.bounding_box()
    page.locator("#table-wide .scroll").evaluate("(box) => { box.scrollLeft = 200; }")
    assert first.bounding_box() == before and before is not None and before["width"] < 200


def test_all_estimates_are_found_by_their_names(opened: Opener) -> None:
    page = opened(lama(10)).page
    page.get_by_text("estimates by name").click()
    box = page.locator("#estimates")
    box.get_by_label("Search").fill("unseen")
    expect(box.locator(".range")).to_contain_text("found (of 6)")


def test_the_browser_writes_cells_as_python_does(opened: Opener) -> None:
    page, cells = opened(lama(10)).page, tricky_cells()
    sent = [[raw, kind] for raw, _, kind in cells]
    made = page.evaluate("(pairs) => pairs.map(([cell, kind]) => cells.words(cell, kind))", sent)
    expected = [
        verdict(cell) if kind == "verdict" else cell_text(cell, kind) for _, cell, kind in cells
    ]
    assert made == expected


def tricky_cells() -> list[tuple[object, Cell, ColumnKind]]:
    """Cells at the edges of rounding, as JSON, as they are, and under every kind of column."""
    random = Random("0:cells")
    numbers: list[float] = [0, 1, 0.3125, 0.00049999, 0.0005, 0.9995, 0.99949, -0.0004, 1e-12, 2.5]
    numbers += [1 - 1e-16, 1 - 1e-9]
    numbers += [random.uniform(-2, 2) * 10 ** random.randint(-7, 6) for _ in range(500)]
    numbers += [k / 1600 for k in range(1600)]
    kinds: tuple[ColumnKind, ...] = ("percent", "number", "count")
    made: list[tuple[object, Cell, ColumnKind]] = []
    for kind in kinds:
        made += [(x, x, kind) for x in numbers]
        ends = [(x, x, x + 0.5) for x in numbers[:99]]
        made += [([x, a, b, 3], Estimate(value=x, low=a, high=b, n=3), kind) for x, a, b in ends]
        made += [([None, None, None, 0], Estimate.not_measured(), kind), (None, None, kind)]
    plain: list[Cell] = [True, False, None, "other"]
    made += [(cell, cell, "verdict") for cell in plain]
    return made + [(cell, cell, "text") for cell in plain]


def test_long_and_short_tables_show_the_same_cells(opened: Opener) -> None:
    columns = (Column(title="T"), Column(title="P", kind="percent"),
               Column(title="Q", kind="percent"), Column(title="V", kind="verdict"))  # fmt: skip
    rows: tuple[tuple[Cell, ...], ...] = (
        ("a", estimate(0.3125, 7), estimate(0.5, 8), True),
        ("b", None, Estimate.not_measured(), None),
        ("c", 0.25, estimate(0.0001, 9), "other"),
    )
    short = Table(id="short", title="S", columns=columns, rows=rows)
    long = Table(id="long", title="L", columns=columns, rows=rows, browsable=True)
    page = opened(Report(title="R", summary="", estimates={}, tables=(short, long))).page
    unpacked(page)
    texts = [
        [" ".join(text.split()) for text in page.locator(f"#table-{id} tbody tr").all_inner_texts()]
        for id in ("short", "long")
    ]
    assert texts[0] == texts[1]
