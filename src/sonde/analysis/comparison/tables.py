"""Tables that set runs side by side, one a row. Knows estimates by name, nothing of prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sonde.analysis.comparison.numbers import Estimates
from sonde.analysis.comparison.ranks import Ranked
from sonde.analysis.comparison.sharing import Sharing
from sonde.analysis.runs import Aligned
from sonde.core.reports import Cell, Column, ColumnKind, Table

Head = tuple[str, str, ColumnKind, str]
"""A column: its title, the name of its estimate, how it is shown, what it means."""

MOST_TEMPLATES = 20
"""How many templates the table of ranks has at most."""


def comparison_table(
    aligned: Aligned,
    found: Sequence[Estimates],
    draw: str,
    prompts: Sequence[int],
    less: Sequence[Cell] = (),
) -> Table:
    """The papers' table: a row per run, on the shared prompts or on all it was asked.

    less: how far the Acc@1 of each run lies above that of the first, on the shared prompts.
    """
    heads: tuple[Head, ...] = (
        ("Acc@1", "acc_at_1", "percent", "mean over pairs of the share of right prompts"),
        ("range", f"fluctuation.{draw}.range", "percent", "fluctuation: best minus worst draw"),
        ("stdev", f"fluctuation.{draw}.stdev", "percent", "fluctuation: over the draws"),
        ("Consist", "consist", "percent", "share of a pair's prompt pairs that agree"),
        ("Overconf", "overconf", "percent", "mean confidence minus accuracy; above 0: too sure"),
        ("one word", "one_word_rate", "percent", "share of answers of exactly one word"),
    )
    gaps: Sequence[tuple[Cell, ...]] = [(cell,) for cell in less] or [()] * len(found)
    rows = tuple(
        (run.name, run.group, n, e["acc_at_1"], *gap, *(e[name] for _, name, _, _ in heads[1:]),
         run.seconds)
        for run, e, n, gap in zip(aligned.runs, found, prompts, gaps, strict=True)
    )  # fmt: skip
    first = aligned.runs[0].name
    against = f"Acc@1 less that of {first}, the first run, on the same pairs"
    wide = {"stdev"} | ({"one word"} if all(e["one_word_rate"].n == 0 for e in found) else set())
    return Table(
        id="comparison" if less else "comparison-own",
        title="The runs side by side" if less else "The runs on all prompts of their own",
        columns=(
            Column(title="run"),
            Column(title="group", detail=True),
            Column(title="prompts", kind="count", help="judged prompts", detail=True),
            _column(heads[0]),
            *([Column(title="less first", kind="percent", help=against)] if less else []),
            *(replace(_column(head), detail=head[0] in wide) for head in heads[1:]),
            Column(title="seconds", kind="number", help="what the whole run took", detail=True),
        ),
        rows=rows,
        note="On the prompts that all runs were asked. A dash means not measured. "
        f"Less first: {against}."
        if less
        else "As each run's own report has them; prompts differ between the rows.",
    )


def only_table(aligned: Aligned, sharing: Sharing) -> Table:
    """For each run what it knows, and what of it no other run knows."""
    rows = tuple(
        (run.name, sharing.rates[i][i].n, sharing.only[i]) for i, run in enumerate(aligned.runs)
    )
    return Table(
        id="known-alone",
        title="Known in one run only",
        columns=(
            Column(title="run"),
            Column(title="known", kind="count", help="pairs right under a template, all together"),
            Column(title="no other run", kind="percent", help="share of it that no other knows"),
        ),
        rows=rows,
    )


def group_table(sharing: Sharing) -> Table:
    """The mean sharing rate within and between groups of runs."""
    rows: list[tuple[Cell, ...]] = [
        (row, column, estimate, estimate.n) for (row, column), estimate in sharing.groups.items()
    ]
    rows += [
        ("all", "the same group", sharing.within, sharing.within.n),
        ("all", "another group", sharing.between, sharing.between.n),
    ]
    return Table(
        id="groups",
        title="Sharing within and between groups of runs",
        columns=(
            Column(title="known by", help="group of the run whose knowledge is the denominator"),
            Column(title="also known by", help="group of the other run"),
            Column(title="sharing rate", kind="percent", help="mean over pairs of different runs"),
            Column(title="rates", kind="count", help="how many rates are averaged"),
        ),
        rows=tuple(rows),
    )


def rank_table(aligned: Aligned, templates: Sequence[Ranked]) -> Table:
    """The templates whose rank differs most between runs."""
    runs, first = aligned.runs, aligned.first
    rows: list[tuple[Cell, ...]] = []
    for ranked in [t for t in templates if t.spread > 0][:MOST_TEMPLATES]:
        relation = first.relations[first.grid.template_relations[ranked.template]]
        low, high = int(ranked.ranks.argmin()), int(ranked.ranks.argmax())
        rows.append(
            (
                relation.id,
                first.templates[ranked.template].text,
                ranked.of,
                float(ranked.ranks[low]),
                runs[low].name,
                float(ranked.ranks[high]),
                runs[high].name,
                *map(float, ranked.ranks),
            )
        )
    return Table(
        id="ranks",
        title="Templates whose rank differs most",
        columns=(
            Column(title="relation"),
            Column(title="template"),
            Column(title="of", kind="count", help="templates of the relation"),
            Column(title="best rank", kind="number", help="by accuracy; 1 is best"),
            Column(title="in", help="the run that ranks it best"),
            Column(title="worst rank", kind="number"),
            Column(title="in run", help="the run that ranks it worst"),
            *(Column(title=f"rank: {run.name}", kind="number", detail=True) for run in runs),
        ),
        rows=tuple(rows),
        note="" if rows else _no_ranks(aligned),
    )


def _no_ranks(aligned: Aligned) -> str:
    if len(aligned.first.templates) == len(aligned.first.relations):
        return "Not measured: every relation was asked in one template."
    return "Every template has the same rank in all runs."


def driver_table(aligned: Aligned, found: Sequence[Estimates]) -> Table:
    """What moves the answers of each run more: another name, or another template."""
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (run.name, label, *(estimates[f"{name}.{kind}"] for kind in ("consist", "min", "max")))
        for run, estimates in zip(aligned.runs, found, strict=True)
        for label, name in (("names", "names_only"), ("templates", "templates_only"))
    )
    return Table(
        id="drivers",
        title="What moves the answers: names or templates",
        columns=(
            Column(title="run"),
            Column(title="only these differ"),
            Column(title="Consist", kind="percent", help="share of prompt pairs that agree"),
            Column(title="worst", kind="percent", help="right under every name; worst template"),
            Column(title="best", kind="percent", help="right under some name; best template"),
        ),
        rows=rows,
        note="The further apart worst and best, and the lower Consist, the more it matters.",
    )


def side_tables(aligned: Aligned, found: Sequence[Estimates], floor: int) -> tuple[Table, ...]:
    """Names that help, manual templates, Overconf by template."""
    tables: Mapping[tuple[str, str, str], tuple[Head, ...]] = {
        (
            "names-help",
            "Added names that help",
            "Not measured where no name was added, and for written answers.",
        ): (
            ("subject names", "names_help.subject", "percent", "the correct answer is likelier"),
            ("object names", "names_help.object", "percent", "likelier than the usual name"),
        ),
        (
            "manual",
            "Hand-written templates and paraphrases",
            "Not measured where a relation has only one kind, or no paraphrase has a parent.",
        ): (
            ("rank of manual", "manual.rank", "number", "mean rank by accuracy; 1 is best"),
            ("by chance", "manual.rank_by_chance", "number", "if who wrote it made no difference"),
            ("inner Consist", "groups.inner_consist", "percent", "paraphrases of one template"),
            ("inter Consist", "groups.inter_consist", "percent", "of different templates"),
        ),
        (
            "overconf-by-template",
            "Overconf of the templates",
            f"Templates with at least {floor:,} answers of one token; others are left out.",
        ): tuple(
            (kind, f"overconf_by_template.{kind}", "percent", "over templates")
            for kind in ("mean", "stdev", "max", "min")
        ),
    }
    return tuple(_side_by_side(aligned, found, *title, heads) for title, heads in tables.items())


def _side_by_side(
    aligned: Aligned,
    found: Sequence[Estimates],
    id: str,
    title: str,
    note: str,
    heads: tuple[Head, ...],
) -> Table:
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (run.name, *(estimates[name] for _, name, _, _ in heads))
        for run, estimates in zip(aligned.runs, found, strict=True)
    )
    columns = (Column(title="run"), *(_column(head) for head in heads))
    if id == "overconf-by-template":
        columns = (*columns, Column(title="templates", kind="count", help="that have enough"))
        counted = [estimates["overconf_by_template.mean"].n for estimates in found]
        rows = tuple((*row, n) for row, n in zip(rows, counted, strict=True))
    return Table(id=id, title=title, columns=columns, rows=rows, note=note)


def _column(head: Head) -> Column:
    title, _, kind, help = head
    return Column(title=title, kind=kind, help=help)
