"""`sonde data annotate`: judge templates without seeing where they come from."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sonde.cli.console import print_table, say
from sonde.cli.options import argument, option, verb
from sonde.core.errors import UsageError
from sonde.core.reports import Estimate
from sonde.data.annotation import (
    Item,
    Judgement,
    agreement,
    append,
    implied,
    qualities,
    read_judgements,
    sample,
)
from sonde.data.catalog import load

ASK = (
    "Is it a natural sentence or noun phrase?",
    "T⊆R: is every pair that fits the template a pair of the relation?",
    "R⊆T: does every pair of the relation fit the template?",
    "R∩T>0: does some pair of the relation fit the template?",
)
KEYS = "1 yes, 0 no, u undo the last answer, q stop (go on later with the same command)"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotateOptions:
    """Who judges which templates, and where that is kept."""

    names: list[str] | None = argument("Datasets, named as everywhere else.", None)
    out: Path = option(
        "The file of judgements; it is added to.", Path("annotations.jsonl"), "--out", "-o"
    )
    annotator: str = option("Who judges.", "annotator")
    sample: int = option("Templates of each dataset.", 200, least=1)
    seed: int = option("Chooses the templates and their order.", 0)
    table: Path | None = option(
        "Judge nothing; show what this file of judgements adds up to.", None
    )


@verb
def annotate(wanted: AnnotateOptions) -> None:
    """Judge template quality blindly, and add the judgements up.

    Example: sonde data annotate atlas ./my-dataset -o judged.jsonl
    """
    if wanted.table is not None:
        show_table(wanted.table)
    elif wanted.names:
        judge(wanted, wanted.names)
    else:
        raise UsageError("name the datasets to judge, or give --table FILE to see what is judged")


def judge(wanted: AnnotateOptions, names: list[str]) -> None:
    """Ask about every template that this annotator has not judged yet."""
    out, annotator = wanted.out, wanted.annotator
    items = sample([load(name) for name in names], wanted.sample, wanted.seed)
    done = {j.item: j for j in read_judgements(out) if j.annotator == annotator}
    ids = {item.id for item in items}
    order = [id for id in done if id in ids]  # the last one is the first to be taken back
    say(f"{len(items)} templates, {len(order)} judged. Keys: {KEYS}")
    while left := [item for item in items if item.id not in done]:
        given = _asked(left[0], len(items) - len(left), len(items), annotator)
        if given == "stop":
            break
        if given != "undo":
            append(out, given)
            done[given.item] = given
            order.append(given.item)
        elif order:
            append(out, done.pop(order.pop()), undo=True)
    say(f"{len(order)} of {len(items)} judged: {out}")


def _asked(
    item: Item, place: int, total: int, annotator: str
) -> Judgement | Literal["undo", "stop"]:
    """One template's four answers; undo steps back a question, or to the template before."""
    say(f"\n[{place + 1}/{total}] relation: {item.label} ({item.relation})\n  {item.shown}")
    answers: list[int] = []
    while len(answers) < len(ASK):
        key = _key(ASK[len(answers)])
        if key == "q":
            return "stop"
        if key == "u" and not answers:
            return "undo"
        if key == "u":
            answers.pop()
        else:
            answers = list(implied([*answers, int(key)]))
    fluent, inside, around, overlap = answers
    return Judgement(
        item=item.id,
        annotator=annotator,
        sources=item.sources,
        answers=(fluent, inside, around, overlap),
    )


def _key(question: str) -> str:
    """0, 1, u or q; the end of the input is q."""
    while True:
        sys.stdout.write(f"  {question} [1/0/u/q] ")
        sys.stdout.flush()
        line = sys.stdin.readline()
        key = line.strip().lower()
        if not line:
            say("")
            return "q"
        if key in ("0", "1", "u", "q"):
            return key
        say(f"  {KEYS}")


def show_table(path: Path) -> None:
    """Print the papers' table 9, the histogram of totals, and how far two annotators agree."""
    judgements = read_judgements(path)
    if not judgements:
        raise UsageError(
            f"{path} holds no judgement; make some with: sonde data annotate NAME -o {path}"
        )
    rows = qualities(judgements)
    titles = ("dataset", "n", "fluent", "T⊆R", "R⊆T", "R∩T>0", "total (0-4)")
    shares = [(r.source, r.total.n, *map(_shown, (*r.shares, r.total))) for r in rows]
    print_table(titles, shares, padding=(0, 1))
    heads = ("dataset", "score 0", "1", "2", "3", "4", "irrelevant", "fully matching")
    scores = [(r.source, *r.histogram, r.irrelevant, r.fully_matching) for r in rows]
    print_table(heads, scores, padding=(0, 1))
    for question, (kappa, n) in agreement(judgements).items():
        value = "not measured" if kappa is None else f"{kappa:.3f}"
        say(f"kappa of {question}: {value} (n = {n} templates that both judged)")


def _shown(estimate: Estimate) -> str:
    if estimate.value is None:
        return "not measured"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.3f}"
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"
