"""The same report in every format, with names that try to be markup."""

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sonde.core.errors import UsageError
from sonde.core.plain import json_text
from sonde.evaluation.layout import Exhibit
from sonde.reports.cells import Estimate, text_columns
from sonde.reports.depth import fact_report
from sonde.reports.export import estimates_by_dotted_name
from sonde.reports.html import read_asset
from sonde.reports.model import Report, Section
from sonde.reports.sentences import text
from sonde.reports.svg import DRAW, SMALL, measure, svg
from tests.reports.sample import sample_report, sample_run, say, world
from tests.worlds import dataset_of, fact, relation, template

HOSTILE = "</script><img src=x onerror=alert(1)>\u202e\x1b[31m & \"'|"


def hostile() -> Report:
    made = [
        fact("P1", f"{HOSTILE} {n}", f"{HOSTILE} {n % 3}", id=f"{HOSTILE}{n}") for n in range(20)
    ]
    ours = relation("P1", template("t", f"{HOSTILE} [X] [Y]"), label=HOSTILE)
    model = {"name": HOSTILE, "details": {}}
    return sample_report(dataset_of(made, ours), say(default=f"{HOSTILE} 1"), model=model)


def controls(words: str) -> list[str]:
    return re.findall("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", words)


def test_names_are_shown_as_text_everywhere(tmp_path: Path) -> None:
    report = hostile()
    page = report.to_html()
    assert "<img" not in page and page.count("</script>") == 2 and not controls(page)
    assert "default-src 'none'" in page and not re.search(r'(src|href)="(?!#|data:,)', page)
    outputs = [report.to_terminal(80), json_text(report.to_json()), report.to_markdown()]
    paths = [*report.to_csv(tmp_path), *report.to_latex(tmp_path), *report.to_svg(tmp_path)]
    outputs += [path.read_text(encoding="utf-8") for path in paths]
    for words in outputs:
        assert not controls(words)
    assert "<img" not in "".join(path.read_text() for path in paths if path.suffix == ".svg")


def test_a_terminal_of_80_columns_is_enough() -> None:
    words = sample_report(world(3, 12), say(default="b")).to_terminal(80)
    assert max(map(len, words.splitlines())) <= 80
    assert "tiny: P@1 25.0%" in words and "By relation" in words
    assert "By relation" not in sample_report(world(3), say()).to_terminal(80, brief=True)


def test_json_has_dotted_names() -> None:
    report = sample_report(world(2, 12), say(default="b"))
    made = json.loads(json_text(report.to_json()))
    names = made["estimates"]
    assert names["p_at_1"]["value"] == 0.25 and names["p_at_1.facts"]["n"] == 24
    assert names["p_at_1.difference.relation.P1"]["p"] <= 1
    assert set(made) >= {"title", "summary", "warnings", "metrics", "counts", "provenance"}
    assert isinstance(report.estimates, pl.DataFrame)
    assert "p_at_1.relations" in estimates_by_dotted_name(report.estimates, "facts")


def test_tables_come_as_csv_and_latex(tmp_path: Path) -> None:
    report = sample_report(world(2, 12), say(default="b"))
    names = {path.name for path in report.to_csv(tmp_path)}
    assert {"facts.csv", "estimates.csv", "by-relation.csv"} <= names
    assert pl.read_csv(tmp_path / "facts.csv").height == 24
    report.to_latex(tmp_path)
    table = (tmp_path / "by-relation.tex").read_text()
    assert r"\toprule" in table and r"25.0\%" in table


def test_reports_are_made_by_hand_too() -> None:
    rows = [{"relation": "capital", "share": Estimate(0.5, 0.4, 0.6, 9)._asdict(), "n": 9}]
    table = Exhibit("shares", "Shares", pl.DataFrame(rows), {"share": "percent"})
    report = Report(
        title="Data card", summary=["Nine facts."], sections=[Section("tables", "Tables", [table])],
        estimates={"share": Estimate(0.5, 0.4, 0.6, 9)},
    )  # fmt: skip
    assert "capital   50.0% [40.0, 60.0]  9" in report.to_terminal()
    assert report.to_json()["estimates"] == {
        "share": {"value": 0.5, "low": 0.4, "high": 0.6, "n": 9}
    }
    assert "<h1>Data card</h1>" in report.to_html() and "srcdoc" in report._repr_html_()
    assert "&lt;table" in table._repr_html_()
    assert report["shares"] is table
    with pytest.raises(UsageError, match="no table or figure 'share'; did you mean"):
        report["share"]


def overlaps(drawing: str) -> list[str]:
    """Texts of a drawing that touch each other or leave it."""
    width = float(re.findall(r'viewBox="0 0 (\S+)', drawing)[0])
    boxes = []
    pattern = r'<text x="(\S+)" y="(\S+)" class="([^"]*)"(?: text-anchor="(\w+)")?>([^<]*)'
    for x, y, css, anchor, words in re.findall(pattern, re.sub(r"<g .*?</g>", "", drawing)):
        wide = measure(words, SMALL if "s" in css.split() else 13)
        left = float(x) - {"end": wide, "middle": wide / 2}.get(anchor, 0)
        boxes.append((left, left + wide, float(y) - 9, float(y) + 1, words))
    found = [box[4] for box in boxes if box[4] and (box[0] < -1 or box[1] > width + 1)]
    for i, a in enumerate(boxes):
        found += [
            f"{a[4]} | {b[4]}"
            for b in boxes[i + 1 :]
            if a[4] and b[4] and a[0] < b[1] - 1 and b[0] < a[1] - 1 and a[2] < b[3] and b[2] < a[3]
        ]
    return found


FRAMES: dict[str, dict[str, Any]] = {
    "intervals": {"label": ["a long label of a group", "b"] * 2, "color": ["m", "m", "c", "c"],
                  "x": [0.2, -0.1, 0.6, None], "low": [0.1, -0.3, 0.5, None],
                  "high": [0.3, 0.0, 0.9, None], "facts": [1, 2, 1, 2]},
    "bars": {"label": ["a long label of an answer", "b"], "x": [3, 1], "part": [1, 0]},
    "shares": {"label": ["a relation whose long label has no room in any drawing"] * 3 + ["b"] * 6,
               "color": ["recalled", "recalled with examples", "unknown", *"abcdef"],
               "x": [0.6, 0.03, 0.37, None, *[0.2] * 5]},
    "lines": {"x": [1, 2, 3] * 2, "y": [0.1, 0.5, 0.4] * 2, "color": ["m"] * 3 + ["n"] * 3,
              "low": [0.0, 0.4, None] * 2, "high": [0.2, 0.6, None] * 2},
    "histogram": {"x": [0.0, 0.1, 0.2], "y": [3, 0, 5]},
    "heat": {"x": ["p", "q"] * 2, "y": ["r", "r", "s", "s"], "color": [1.0, None, -2.0, 3.0]},
    "strip": {"y": ["prompt"] * 40, "label": [" token", "\n", "x"] * 13 + ["y"],
              "color": [0.5, -0.2, None] * 13 + [0.1]},
}  # fmt: skip


@pytest.mark.parametrize("kind", DRAW)
@pytest.mark.parametrize("width", [344, 556, 1160])
def test_labels_of_a_drawing_neither_overlap_nor_leave_it(kind: str, width: int) -> None:
    frame = pl.DataFrame(FRAMES[kind], strict=False)
    item = Exhibit("f", "Figure", frame, {"x": "percent"}, kind, "", "x label", "y label")  # type: ignore[arg-type]
    drawing = svg(item, width)
    assert overlaps(drawing) == []
    assert drawing.startswith("<svg") and drawing.endswith("</svg>")


def luminance(color: str) -> float:
    parts = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_texts_on_colors_are_readable_in_both_themes() -> None:
    themes = re.findall(r"--paper: #.*?--cell", read_asset("page.css"), re.DOTALL)
    assert len(themes) == 3
    for theme in themes:
        colors = dict(re.findall(r"--(\w+): (#\w+)", theme.replace("#fff;", "#ffffff;")))
        for name in ("a", "b", "d", "e", "k", "bad", "text", "muted", "link"):
            low, high = sorted(luminance(colors[c]) for c in (name, "paper"))
            assert (high + 0.05) / (low + 0.05) >= 4.5, name


def test_a_figure_of_shares_is_a_table_with_a_column_for_each_part() -> None:
    frame = pl.DataFrame(FRAMES["shares"]).head(3)
    shown = text_columns(Exhibit("f", "Figure", frame, {"x": "percent"}, "shares"))
    assert [column.head for column in shown] == [
        "",
        "recalled",
        "recalled with examples",
        "unknown",
    ]
    assert [column.cells[0] for column in shown[1:]] == ["60.0%", "3.0%", "37.0%"]


def test_one_fact_in_depth() -> None:
    results, run = sample_run(world(facts=6), say(default="b"))
    report = fact_report(results, run.answers(), "subject 0-2")
    assert text(report.title) == "subject 0-2, label 0: 0 of 1 prompt correct"
    words = report.to_terminal(80)
    assert "Gold answer: “c”." in words and "incorrect, gold answer at rank" in words
    with pytest.raises(UsageError, match="no fact 'subject 0-9'; did you mean"):
        fact_report(results, run.answers(), "subject 0-9")
