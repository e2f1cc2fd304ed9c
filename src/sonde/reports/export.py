"""A report for other programs: JSON, CSV, LaTeX, Markdown, SVG."""

import csv
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import polars as pl

from sonde.core.plain import plain
from sonde.evaluation.layout import Exhibit, Over
from sonde.reports.cells import (
    Column,
    escape_control_characters,
    format_cell,
    rows_of_columns,
    text_columns,
)
from sonde.reports.model import Facts, Report
from sonde.reports.sentences import text
from sonde.reports.svg import standalone, svg

NUMBERS = ("value", "low", "high", "p", "p_adjusted", "n")
LATEX = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "−": "$-$"}
)


def estimates_by_dotted_name(
    estimates: pl.DataFrame, over: Over = "relations", runs: str = "control"
) -> dict[str, dict[str, Any]]:
    """Estimates by stable names: METRIC[.baseline|.difference][.OVER][.GROUPBY.GROUP …].

    OVER is in a name if it is not the layout's. Estimates of a control (or other kind of `runs`)
    start with its name. A difference to a level or a control ends in .from.REFERENCE.
    """
    named: dict[str, dict[str, Any]] = {}
    ordered = estimates.sort(pl.col("over") == over, maintain_order=True)
    for e in ordered.iter_rows(named=True):
        parts = [*([f"{runs}.{e['run']}"] if e["run"] else []), e["metric"]]
        if e["of"] != "value":
            parts.append(e["of"])
        if e["over"] != over and "relation" not in e["group_by"]:
            parts.append(e["over"])
        parts += [part for pair in zip(e["group_by"], e["group"], strict=True) for part in pair]
        if e["reference"] is not None:
            parts.append(f"from.{e['reference']}")
        named[".".join(parts)] = {name: e[name] for name in NUMBERS if e[name] is not None}
    return dict(sorted(named.items()))


def as_json(report: Report) -> dict[str, Any]:
    """The title, sentences, numbers and provenance."""
    estimates: Mapping[str, Any]
    if isinstance(report.estimates, pl.DataFrame):
        estimates = estimates_by_dotted_name(report.estimates, report.over, report.runs)
    else:
        numbers = report.estimates.items()
        estimates = {
            name: {k: v for k, v in e._asdict().items() if v is not None} for name, e in numbers
        }
    words = ("label", "unit", "better", "help")
    strips = [i for i in report.items() if isinstance(i, Exhibit) and i.kind == "strip"]
    return {
        "title": text(report.title),
        "summary": [text(line) for line in report.summary],
        "warnings": [text(line) for _, lines in report.warnings for line in lines],
        "estimates": estimates,
        "metrics": {
            m.id: {word: getattr(m, word) for word in words}
            for m in report.metrics
            if any(f"{name}.".startswith(f"{m.id}.") for name in estimates)
        },
        "counts": dict(report.counts),
        **({"strips": {i.id: i.frame.to_dicts() for i in strips}} if strips else {}),
        "provenance": plain(report.provenance),
    }


def _exhibits_by_file_name(report: Report) -> dict[str, Exhibit]:
    """Tables and figures by a file name; those of one id are numbered."""
    named: dict[str, Exhibit] = {}
    for item in report.items():
        if isinstance(item, Exhibit):
            name = base = re.sub(r"[^\w.-]+", "-", item.id).strip("-.") or "table"
            number = 1
            while name in named:
                number += 1
                name = f"{base}-{number}"
            named[name] = item
    return named


def _write_files(folder: Path, suffix: str, texts: Iterable[tuple[str, str]]) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, words in texts:
        paths.append(folder / f"{name}{suffix}")
        paths[-1].write_text(words, encoding="utf-8", newline="")
    return paths


def write_csv(report: Report, folder: Path) -> list[Path]:
    """The numbers behind each table and figure as they are, the facts and the estimates."""
    tables = {name: item.frame for name, item in _exhibits_by_file_name(report).items()}
    tables |= {item.id: item.frame for item in report.items() if isinstance(item, Facts)}
    if isinstance(report.estimates, pl.DataFrame):
        tables["estimates"] = report.estimates
    else:
        lines = [{"name": name, **e._asdict()} for name, e in report.estimates.items()]
        tables["estimates"] = pl.DataFrame(lines, infer_schema_length=None)
    return _write_files(folder, ".csv", ((name, _csv(frame)) for name, frame in tables.items()))


def _csv(frame: pl.DataFrame) -> str:
    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(map(escape_control_characters, frame.columns))
    writer.writerows([_plain(value) for value in row] for row in frame.iter_rows())
    return file.getvalue()


def _plain(value: Any) -> Any:
    match value:
        case str():
            return escape_control_characters(value)
        case list() | tuple():
            return "; ".join(str(_plain(part)) for part in value)
        case dict():
            return json.dumps(value, ensure_ascii=False)
    return value


def write_latex(report: Report, folder: Path) -> list[Path]:
    """Each table and figure as a booktabs table."""
    items = [
        (name, item)
        for name, item in _exhibits_by_file_name(report).items()
        if item.kind != "strip"
    ]
    texts = ((name, latex_table(text_columns(item), item.title)) for name, item in items)
    return _write_files(folder, ".tex", texts)


def latex_table(shown: Sequence[Column], caption: str) -> str:
    layout = "".join("r" if column.numeric else "l" for column in shown)
    rows = [[column.head for column in shown], *rows_of_columns(shown)]
    lines = [" & ".join(format_cell(c).translate(LATEX) for c in row) + r" \\" for row in rows]
    head, *body = lines
    return "\n".join((
        r"\begin{table}", rf"\caption{{{format_cell(caption).translate(LATEX)}}}",
        rf"\begin{{tabular}}{{{layout}}}", r"\toprule", head, r"\midrule", *body, r"\bottomrule",
        r"\end{tabular}", r"\end{table}", "",
    ))  # fmt: skip


def write_svg(report: Report, folder: Path) -> list[Path]:
    """Each figure."""
    items = [
        (name, item)
        for name, item in _exhibits_by_file_name(report).items()
        if item.kind != "table"
    ]
    return _write_files(folder, ".svg", ((name, standalone(svg(item))) for name, item in items))


def as_markdown(report: Report) -> str:
    """The report with its tables and the numbers of its figures, and how many facts there are."""
    lines = [f"# {_escaped(text(report.title))}", "", " ".join(map(text, report.summary)), ""]
    for heading, sentences in report.warnings:
        lines += [f"> **{heading}.** {' '.join(map(text, sentences))}", ""]
    for lead in report.lead:
        lines += markdown_table(lead)
    for section in report.sections:
        lines += [f"## {section.title}", ""]
        for item in section.items:
            if isinstance(item, Facts):
                counts = ((label, sum(o in of for o in item.outcome)) for label, of in item.filters)
                lines += [", ".join(f"{label} {n:,}" for label, n in counts if n), ""]
            elif isinstance(item, Exhibit):
                lines += markdown_table(item)
            else:
                lines += [text(item), ""]
    return "\n".join(lines)


def markdown_table(item: Exhibit) -> list[str]:
    shown = text_columns(item)
    rows = [[column.head for column in shown], ["---:" if c.numeric else "---" for c in shown]]
    rows += map(list, rows_of_columns(shown))
    table = ["| " + " | ".join(_escaped(format_cell(c)) for c in row) + " |" for row in rows]
    return [
        f"**{_escaped(format_cell(item.title))}** {_escaped(item.note)}".strip(),
        "",
        *table,
        "",
    ]


def _escaped(words: str) -> str:
    return re.sub(r"([|*_<>\[\]`])", r"\\\1", words)
