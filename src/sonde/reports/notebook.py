"""Reports and their parts in a notebook."""

from html import escape

from sonde.evaluation.layout import Exhibit
from sonde.reports.cells import cell, columns
from sonde.reports.html import page
from sonde.reports.model import Report
from sonde.reports.svg import standalone, svg

HEIGHT = 700


def report_html(report: Report) -> str:
    """The page in a frame, which keeps its style and script apart from those of the notebook."""
    style = f"width:100%;height:{HEIGHT}px;border:1px solid #ccc"
    return (
        f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{escape(page(report))}"></iframe>'
    )


def exhibit_html(item: Exhibit) -> str:
    """A table or figure by itself."""
    if item.kind != "table":
        return standalone(svg(item))
    shown = columns(item)
    heads = "".join(f"<th>{escape(cell(column.head))}</th>" for column in shown)
    rows = zip(*(column.cells for column in shown), strict=True)
    body = "".join(f"<tr>{''.join(f'<td>{escape(c)}</td>' for c in row)}</tr>" for row in rows)
    return f"<table><caption>{escape(cell(item.title))}</caption><tr>{heads}</tr>{body}</table>"
