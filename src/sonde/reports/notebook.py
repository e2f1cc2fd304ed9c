"""Reports and their parts in a notebook."""

from html import escape

from sonde.evaluation.layout import Exhibit
from sonde.reports.html import render_page
from sonde.reports.model import Report, Section


def report_html(report: Report, height: int = 700) -> str:
    """The page in a frame, which keeps its style and script apart from those of the notebook."""
    style = f"width:100%;height:{height}px;border:1px solid #ccc"
    page = escape(render_page(report))
    return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{page}"></iframe>'


def exhibit_html(item: Exhibit) -> str:
    """A table or figure by itself."""
    parts = [Section("item", "", [item])]
    return report_html(Report(title=item.title, sections=parts), height=400)
