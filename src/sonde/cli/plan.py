"""`sonde plan PROBE`: what a run would cost, counted and measured, without making it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sonde.cli.console import duration, output, print_json, say, waiting
from sonde.cli.options import RunOptions, option
from sonde.cli.verbs import components
from sonde.core.abilities import Model, Probe
from sonde.core.costs import Cost
from sonde.core.facts import Dataset
from sonde.probes import PROBES, SUMMARIES
from sonde.runs.plan import SECONDS, Plan, Time
from sonde.runs.plan import plan as make_plan

if TYPE_CHECKING:
    from sonde.core.costs import Memory
    from sonde.evaluation.layout import Exhibit
    from sonde.reports.model import Report

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
    from sonde.reports.terminal import show as show_report

    show_report(report(plan), output())
    say(f"run folder: {plan.folder} (nothing was written)", soft_wrap=True)


def report(plan: Plan) -> Report:
    """A plan as it is shown."""
    from sonde.reports.model import Report, Section

    tables = [rows("Prompts", questions(plan))]
    if plan.left:
        if plan.cost is not None:
            tables.append(rows("Tokens", tokens(plan.cost)))
        if plan.memory is not None:
            tables.append(rows("Memory, about", memory(plan.memory), size))
        tables.append(by_relation(plan))
    notes = list(trust(plan)) if plan.left else []
    return Report(
        title=summary(plan),
        kicker=f"Plan: {plan.probe} on {plan.dataset}: {plan.model} ({plan.device})",
        sections=[Section("plan", "Details", [*tables, *notes])],
    )


def summary(plan: Plan) -> str:
    """Time and memory in a sentence."""
    if not plan.left:
        return COMPLETE
    words = f"{plan.prompts - plan.done_prompts:,} prompts"
    words += ", time not measured" if plan.time is None else " in " + between(plan.time)
    if plan.memory is not None:
        words += f", with about {size(plan.memory.total)} of memory"
    return words + "."


def between(time: Time) -> str:
    """An estimate with its range, unless both ends read the same."""
    low, value, high = duration(time.low), duration(time.value), duration(time.high)
    return value if low == high else f"about {value} ({low} to {high})"


def questions(plan: Plan) -> Rows:
    """The prompts, and how many of them are done."""
    requests = ", ".join(f"{name} {count:,}" for name, count in plan.wants.items())
    done = f"shards, {plan.done_prompts:,} prompts; all that follows is about the others"
    return [
        ("prompts", plan.prompts, requests),
        ("options", plan.options, "scored, over all prompts"),
        ("shards", plan.shards, "written one by one; a run resumes after the last one"),
        ("already done", plan.done_shards, done),
    ]


def tokens(cost: Cost) -> Rows:
    """The tokens of all texts, and those that the engine computes."""
    most = "at most; " if cost.grown else ""
    padded = f"{cost.padding / cost.fed:.1%}" if cost.padding else ""
    options = cost.requests / cost.options if cost.options else 0
    per_option = f", {options:.3f} per option" if options else ""
    return [
        ("texts", cost.texts, f"{cost.distinct:,} distinct in their shards"),
        ("naively", cost.naive, f"{most}each text separately"),
        ("computed", cost.computed, f"{most}{cost.ratio:.2f} times fewer"),
        ("  of them", cost.stems, "in prefixes that prompts share"),
        ("  of them", cost.grown, "generated, at most"),
        ("padding", cost.padding, f"in addition, {padded} of the input"),
        ("requests", cost.requests, f"to the server{per_option}"),
    ]


def memory(needed: Memory) -> Rows:
    """What has to fit into memory together."""
    return [
        ("weights", needed.weights, ""),
        ("prefixes", needed.stems, "kept for the prompts that share them"),
        ("largest batch", needed.batch, "estimated from its shape"),
    ]


def by_relation(plan: Plan) -> Exhibit:
    """A row for each relation, the most expensive first."""
    from polars import DataFrame

    from sonde.evaluation.layout import Exhibit

    lines: list[dict[str, Any]] = []
    for share in plan.relations:
        line: dict[str, Any] = {"relation": f"{share.relation} {share.label}".strip()}
        line["prompts"] = share.prompts
        if plan.cost is not None and share.cost is not None:
            line |= {"naive": share.cost.naive, "computed": share.cost.computed}
        lines.append({**line, "of the time": share.share})
    units = {"prompts": "count", "naive": "count", "computed": "count", "of the time": "percent"}
    what = "Prompts" if plan.cost is None else "Tokens"
    title = f"{what} by relation, the most expensive first"
    return Exhibit("relations", title, DataFrame(lines), units)


def trust(plan: Plan) -> Iterator[str]:
    """How far the numbers can be trusted."""
    if plan.cost is None:
        yield "This model computes no tokens, so there are none to count."
    elif plan.exact:
        yield "Tokens were counted, all of them."
    else:
        part = f"{plan.counted:,} of {plan.left:,} shards"
        yield f"Tokens were counted in {part} and scaled; --exact counts all."
    if plan.batches:
        at_once = " and ".join(f"{n:,} to {kind}" for kind, n in plan.batches.items())
        yield f"Tokens that go through the model at once: {at_once}."
    if plan.pace is not None:
        yield (
            f"Time was measured on {plan.pace.slices} slices of these prompts, warm-up and trials "
            f"apart, in {duration(plan.pace.spent)}. Loading the model and reporting come on top."
        )


def as_json(plan: Plan) -> dict[str, Any]:
    """A plan as plain data; the names are documented in docs/scale-out.md."""
    return {**asdict(plan), "folder": str(plan.folder), "exact": plan.exact, "left": plan.left}


def rows(
    title: str, rows: Rows, write: Callable[[int], str] = lambda count: f"{count:,}"
) -> Exhibit:
    """Names, numbers and words in three columns, without those of zero."""
    from polars import DataFrame

    from sonde.evaluation.layout import Exhibit

    lines = [(name, write(number), words) for name, number, words in rows if number]
    frame = DataFrame(lines, schema=["item", "number", "note"], orient="row")
    return Exhibit(title.lower(), title, frame)


def size(count: int) -> str:
    """Bytes as a person says them.

    >>> size(3 * 2**30), size(96_000_000), size(900)
    ('3.0 GiB', '92 MiB', '900 bytes')
    """
    for unit, name, digits in UNITS:
        if count >= unit:
            return f"{count / unit:,.{digits}f} {name}"
    return f"{count} bytes"


app = components(
    "Say what a run would cost, without making it.\n\n"
    "Example: sonde plan lama -m smollm2 -d atlas --limit 10",
    plan_probe,
    PROBES,
    "sonde plan {name} -m smollm2 -d atlas --limit 10",
    SUMMARIES,
)
