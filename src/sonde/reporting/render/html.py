"""One self-contained HTML page of a report. Knows nothing of files, servers or networks.

Nothing on the page is fetched: styles, scripts, data and plotly stand in the file, and a content
security policy keeps it so. Only our own scripts run, known by their hashes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import Template
from typing import Any

from sonde.core.reports import Estimate, Figure, Headline, HeatStrip, Report
from sonde.reporting.render import cells
from sonde.reporting.render.figures.draw import plotly_js, to_plotly, to_spec, to_table
from sonde.reporting.render.html_strips import strips
from sonde.reporting.render.html_tables import missing, table_section, written_out
from sonde.reporting.render.json import Json, plain
from sonde.reporting.render.markup import (
    EMPTY,
    Markup,
    asset,
    hash_of,
    join,
    json_block,
    script,
    styled,
    tag,
    text,
)

SCRIPTS = ("cells.js", "browse.js", "sort.js", "figures.js", "page.js")


def page(report: Report, provenance: Mapping[str, object]) -> str:
    """The whole report as one HTML file, to be opened from disk or served as it is."""
    theme, own = asset("theme.js"), "\n".join(asset(name) for name in SCRIPTS)
    plotly = "" if all(isinstance(f, HeatStrip) for f in report.figures) else plotly_js()
    parts = sections(report, provenance)
    made = Template(asset("page.html")).substitute(
        policy=" ".join(hash_of(source) for source in (theme, plotly, own) if source),
        title=text(report.title),
        style=asset("style.css"),
        theme=script(theme),
        header=header(report),
        contents=contents(parts),
        body=join(part for _, _, part in parts),
        scripts=join(script(source) for source in (plotly, own) if source),
    )
    # a lone surrogate, which a model may well emit, has no place in a file
    return made.encode("utf-8", "replace").decode("utf-8")


def sections(report: Report, provenance: Mapping[str, object]) -> Sequence[tuple[str, str, Markup]]:
    """The sections that have content, each with its id and its title, in reading order."""
    short = [table_section(t) for t in report.tables if not t.browsable]
    long = [table_section(t) for t in report.tables if t.browsable]
    candidates = (
        ("findings", "Findings", bullets(report.findings)),
        ("figures", "Figures", join(figure(f, i + 1) for i, f in enumerate(report.figures))),
        ("tables", "Tables", join(short)),
        ("browse", "Browse", join(long)),
        ("estimates", "Estimates and counts", numbers(report)),
        ("notes", "Notes", bullets(report.notes)),
        ("provenance", "Provenance", provenance_markup(provenance)),
    )
    return [(id, title, section(id, title, body)) for id, title, body in candidates if body]


def section(id: str, title: str, body: Markup) -> Markup:
    """A section of the page under its heading."""
    heading = tag("h2", text(title), attributes={"id": f"{id}-heading"})
    return tag("section", heading, body, attributes={"id": id, "aria-labelledby": f"{id}-heading"})


def contents(parts: Sequence[tuple[str, str, Markup]]) -> Markup:
    """Links to the sections of the page."""
    links = (tag("a", text(title), attributes={"href": f"#{id}"}) for id, title, _ in parts)
    return tag("ul", *(tag("li", link) for link in links))


def bullets(sentences: Sequence[str]) -> Markup:
    """Sentences as a list; nothing when there are none."""
    if not sentences:
        return EMPTY
    return styled("ul", "sentences", *(tag("li", text(s)) for s in sentences))


def header(report: Report) -> Markup:
    """Title, summary and the headline numbers."""
    cards = [card(headline, report) for headline in report.headlines]
    parts = [tag("h1", text(report.title))]
    if report.summary:
        parts.append(styled("p", "summary", text(report.summary)))
    if cards:
        parts.append(styled("div", "cards", *cards))
        legend = "Brackets hold 95% intervals; n is the number of things averaged."
        parts.append(styled("p", "note", text(legend)))
    return join(parts)


def card(headline: Headline, report: Report) -> Markup:
    """A headline number with its interval, its control and the difference between the two."""
    read = cells.read_headline(headline, report)
    words = cells.written(read.estimate, read.scale)
    parts = [styled("h2", "label", text(read.label)), big(words), strip(read)]
    if read.control is not None:
        control = cells.written(read.control, read.scale)
        parts.append(beside("control", "Control", control, read.control_name))
    if read.difference is not None:
        difference = cells.written_difference(read.difference, read.scale)
        parts.append(beside("difference", "Difference", difference, ""))
    return styled("article", "card", *parts)


def big(words: cells.Written) -> Markup:
    """The value at the size it deserves, interval and n beside it."""
    css = "value" if words.n else "value missing"
    aside = (styled("span", c, text(w)) for c, w in (("interval", words.interval), ("n", words.n)))
    return styled("p", "big", styled("span", css, text(words.value)), *aside)


def beside(css: str, label: str, words: cells.Written, source: str) -> Markup:
    """A row of a card: what it is, its value with interval, and where it comes from."""
    value = [styled("span", "value", text(words.value))]
    value += [styled("span", "interval", text(words.interval))] if words.interval else []
    value += [styled("span", "n", text(words.n))] if words.n else []
    origin = styled("span", "source", text(source)) if source else EMPTY
    shown = styled("span", "numbers", *value)
    return styled("p", f"beside {css}", styled("span", "name", text(label)), shown, origin)


def strip(read: cells.Read) -> Markup:
    """A small picture of number and control on one scale from 0 to 100 %."""
    pairs = (("estimate", read.estimate), ("control", read.control))
    drawn = [mark(css, e) for css, e in pairs if e is not None and cells.known(e.value) is not None]
    ends = [e.value for _, e in pairs if e is not None and e.value is not None]
    if read.scale != "percent" or not drawn or min(ends) < 0:
        return EMPTY
    ticks = styled("span", "ticks", tag("span", text("0%")), tag("span", text("100%")))
    return tag("div", *drawn, ticks, attributes={"class": "strip", "aria-hidden": "true"})


def mark(css: str, estimate: Estimate) -> Markup:
    """A dot and its whisker, placed in percent of the strip's width."""
    value = estimate.value or 0.0
    low, high = estimate.ends
    span = f"left:{low * 100:.2f}%;width:{(high - low) * 100:.2f}%"
    whisker = tag("span", attributes={"class": f"whisker {css}", "style": span})
    dot = tag("span", attributes={"class": f"dot {css}", "style": f"left:{value * 100:.2f}%"})
    return Markup(whisker + dot)


def figure(plot: Figure, position: int) -> Markup:
    """A figure with its caption, and its numbers as a table behind a fold."""
    table, attributes = to_table(plot), {"id": f"figure-{plot.id}"}
    if isinstance(plot, HeatStrip):
        parts = [caption(plot, position), strips(plot)]
    else:
        parts, attributes["data-figure"] = [caption(plot, position), *plotted(plot)], ""
    if table is not None:
        summary = tag("summary", text("The numbers of this figure"))
        parts.append(tag("details", summary, written_out(table)))
    return tag("figure", *parts, attributes=attributes)


def plotted(plot: Figure) -> list[Markup]:
    """The place of a figure that plotly draws, and what it draws there."""
    spec = to_spec(to_plotly(plot))
    attributes = {"class": "plot", "style": room(spec), "role": "img", "aria-label": plot.title}
    return [tag("div", attributes=attributes), json_block(spec)]


def room(spec: Mapping[str, Any]) -> str:
    """The place of a figure on the page: its height, and its width where it wants no more."""
    layout = spec["layout"]
    widest = layout.get("meta", {}).get("width")
    return f"height:{layout.get('height', 420)}px" + (f";max-width:{widest}px" if widest else "")


def caption(plot: Figure, position: int) -> Markup:
    """Number, title and note of a figure."""
    number = styled("span", "figure-number", text(f"Figure {position}."))
    title = tag("strong", text(f" {plot.title}"))
    note = styled("span", "note", text(f" {plot.note}")) if plot.note else EMPTY
    return tag("figcaption", number, title, note)


def numbers(report: Report) -> Markup:
    """Counts in the open, and every estimate under its stable name behind a fold."""
    parts = []
    if report.counts:
        pairs = (
            tag("div", tag("dt", text(cells.spoken(k))), tag("dd", text(cells.fixed(v, 0))))
            for k, v in report.counts.items()
        )
        parts.append(styled("dl", "counts", *pairs))
    if report.estimates:
        summary = tag("summary", text(f"All {len(report.estimates)} estimates by name"))
        parts.append(tag("details", summary, written_out(cells.estimates_table(report))))
    return join(parts)


def provenance_markup(provenance: Mapping[str, object]) -> Markup:
    """Where the numbers come from: a nested list to read, and the same as JSON to copy."""
    if not provenance:
        return EMPTY
    value = plain(provenance)
    attributes = {"type": "button", "class": "copy", "data-copy": "provenance-data"}
    button = tag("button", text("Copy as JSON"), attributes=attributes)
    said = tag("span", attributes={"role": "status", "class": "copied"})
    actions = styled("p", "actions", button, said)
    return join((nested(value), actions, json_block(value, id="provenance-data")))


def nested(value: Json) -> Markup:
    """A value as a definition list, a list or a word."""
    if isinstance(value, dict) and value:
        pairs = (tag("div", tag("dt", text(k)), tag("dd", nested(v))) for k, v in value.items())
        return styled("dl", "nested", *pairs)
    if isinstance(value, list) and value:
        if any(isinstance(member, dict | list) for member in value):
            return styled("ol", "nested", *(tag("li", nested(member)) for member in value))
        return Markup(text(", ").join(nested(member) for member in value))
    if value is None:
        return missing()
    if isinstance(value, bool):
        return text("yes" if value else "no")
    return text("none" if value in ({}, []) else str(value))
