"""`sonde plan PROBE`: what a run would cost, counted and measured, without making it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sonde.cli.console import duration, output, print_json, say, waiting
from sonde.cli.options import RunOptions, option
from sonde.cli.verbs import components
from sonde.core.abilities import Model, Probe
from sonde.core.costs import Cost, Memory
from sonde.core.facts import Dataset
from sonde.core.reports import Column, Report, Table
from sonde.registry import PROBES, SUMMARIES
from sonde.reporting.build.tables import Field, table
from sonde.reporting.render.cells import fixed, share
from sonde.reporting.render.json import plain
from sonde.reporting.render.terminal import show as show_report
from sonde.runs.plan import SECONDS, Plan, Share, Time
from sonde.runs.plan import plan as make_plan

COMPLETE = "The run is complete: nothing is left to be computed."

UNITS = ((2**30, "GiB", 1), (2**20, "MiB", 0), (2**10, "KiB", 0))

Rows = list[tuple[str, int, str]]
"""What a number is called, the number, and a word on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """How a plan is made and shown."""

    as_json: bool = option("Print the plan for other programs.", False, "--json")
    exact: bool = option("Count every token, also of a very large run.", False, "--exact")
    measure: float = option(
        "Seconds to measure the model's speed for; 0 only counts.", SECONDS, least=0
    )


def plan_probe(probe: Probe, asked: RunOptions, how: PlanOptions) -> None:
    """Plan one probe; what every probe's command has in common."""
    asked.check(probe)
    probe, model, dataset = asked.prepare(probe)
    show_plan(probe, model, dataset, asked.out, how)


def show_plan(
    probe: Probe, model: Model, dataset: Dataset, out: Path | None, how: PlanOptions
) -> None:
    """Make a plan and print it."""
    with waiting(f"counting, then measuring for about {how.measure:.0f} s"):
        plan = make_plan(probe, model, dataset, out, exact=how.exact, seconds=how.measure)
    if how.as_json:
        print_json(as_json(plan))
    else:
        show(plan)


def show(plan: Plan) -> None:
    """Print a plan: the sentence that matters, then what it is made of."""
    show_report(report(plan), output())
    say(f"run folder: {plan.folder} (nothing was written)", soft_wrap=True)


def report(plan: Plan) -> Report:
    """A plan as it is shown."""
    tables = [rows("Questions", questions(plan))]
    if plan.left:
        if plan.cost is not None:
            tables.append(rows("Tokens", tokens(plan.cost)))
        if plan.memory is not None:
            tables.append(rows("Memory, about", memory(plan.memory), size))
        tables.append(by_relation(plan))
    return Report(
        title=f"Plan: {plan.probe} on {plan.dataset}: {plan.model} ({plan.device})",
        summary=summary(plan),
        estimates={},
        tables=tuple(tables),
        notes=tuple(trust(plan)) if plan.left else (),
    )


def summary(plan: Plan) -> str:
    """Time and memory in a sentence."""
    if not plan.left:
        return COMPLETE
    words = f"{fixed(plan.prompts - plan.done_prompts, 0)} prompts"
    words += ", time not measured" if plan.time is None else " in " + between(plan.time)
    if plan.memory is not None:
        words += f", with about {size(plan.memory.total)} of memory"
    return words + "."


def between(time: Time) -> str:
    """An estimate with its range, unless both ends read the same."""
    low, value, high = duration(time.low), duration(time.value), duration(time.high)
    return value if low == high else f"about {value} ({low} to {high})"


def questions(plan: Plan) -> Rows:
    """What is asked, and what of it is done."""
    wants = ", ".join(f"{name} {fixed(count, 0)}" for name, count in plan.wants.items())
    done = f"shards, {fixed(plan.done_prompts, 0)} prompts; what follows is what is left"
    return [
        ("prompts", plan.prompts, wants),
        ("options", plan.options, "scored, over all prompts"),
        ("shards", plan.shards, "written one by one; a run goes on from there"),
        ("already done", plan.done_shards, done),
    ]


def tokens(cost: Cost) -> Rows:
    """What would be computed, the naive way and by the engine."""
    most = "at most; " if cost.grown else ""
    padded = share(cost.padding / cost.fed) if cost.padding else ""
    options = cost.requests / cost.options if cost.options else 0
    each = f", {fixed(options, 3)} per option" if options else ""
    return [
        ("texts", cost.texts, f"{fixed(cost.distinct, 0)} distinct in their shards"),
        ("naively", cost.naive, f"{most}every text on its own"),
        ("computed", cost.computed, f"{most}{fixed(cost.ratio, 2)} times fewer"),
        ("  of them", cost.stems, "in beginnings that prompts share"),
        ("  of them", cost.grown, "written by the model, at most"),
        ("padding", cost.padding, f"beside them, {padded} of what is fed"),
        ("requests", cost.requests, f"to the server{each}"),
    ]


def memory(needed: Memory) -> Rows:
    """What has to fit into memory at once."""
    return [
        ("weights", needed.weights, ""),
        ("beginnings", needed.stems, "kept for the prompts that share them"),
        ("largest batch", needed.batch, "estimated from its shape"),
    ]


def by_relation(plan: Plan) -> Table:
    """A row for each relation, the most expensive first."""

    def tokens_of(name: str) -> Field[Share]:
        return Field(name, lambda share: getattr(share.cost, name), "count")

    costs = [] if plan.cost is None else [tokens_of("naive"), tokens_of("computed")]
    what = "Prompts" if plan.cost is None else "Tokens"
    return table(
        plan.relations,
        [
            Field[Share]("relation", lambda share: f"{share.relation} {share.label}".strip()),
            Field[Share]("prompts", lambda share: share.prompts, "count"),
            *costs,
            Field[Share]("of the time", lambda share: share.share, "percent"),
        ],
        id="relations",
        title=f"{what} by relation, the most expensive first",
    )


def trust(plan: Plan) -> Iterator[str]:
    """How far the numbers can be trusted."""
    if plan.cost is None:
        yield "This model computes no tokens, so there are none to count."
    elif plan.exact:
        yield "Tokens were counted, all of them."
    else:
        part = f"{fixed(plan.counted, 0)} of {fixed(plan.left, 0)} shards"
        yield f"Tokens were counted in {part} and scaled; --exact counts all."
    if plan.batches:
        at_once = " and ".join(f"{fixed(n, 0)} to {kind}" for kind, n in plan.batches.items())
        yield f"Tokens that go through the model at once: {at_once}."
    if plan.pace is not None:
        yield (
            f"Time was measured on {plan.pace.slices} slices of these prompts, warm-up and trials "
            f"apart, in {duration(plan.pace.spent)}. Loading the model and reporting come on top."
        )


def as_json(plan: Plan) -> dict[str, Any]:
    """A plan as plain data; the names are documented in docs/scale-out.md."""
    body: Any = plain(plan)
    return {**body, "exact": plan.exact, "left": plan.left}


def rows(
    title: str, rows: Rows, write: Callable[[int], str] = lambda count: fixed(count, 0)
) -> Table:
    """Names, numbers and words in three columns; what there is nothing of is left out."""
    columns = Column(title=""), Column(title="", kind="count"), Column(title="")
    filled = tuple((name, write(number), words) for name, number, words in rows if number)
    return Table(id=title.lower(), title=title, columns=columns, rows=filled)


def size(count: int) -> str:
    """Bytes as a person says them.

    >>> size(3 * 2**30), size(96_000_000), size(900)
    ('3.0 GiB', '92 MiB', '900 bytes')
    """
    for unit, name, digits in UNITS:
        if count >= unit:
            return f"{fixed(count / unit, digits)} {name}"
    return f"{count} bytes"


app = components(
    "Say what a run would cost, without making it.\n\n"
    "Example: sonde plan lama -m smollm2 -d atlas --limit 10",
    plan_probe,
    PROBES,
    "sonde plan {name} -m smollm2 -d atlas --limit 10",
    SUMMARIES,
)
