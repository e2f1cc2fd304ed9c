"""`sonde data review`: look at templates without seeing where they come from, and keep the good."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from sonde.cli.console import print_table, resumable, say, waiting
from sonde.cli.options import FORCE, argument, option, verb
from sonde.cli.review_page import serve
from sonde.core.errors import UsageError
from sonde.core.reports import Estimate
from sonde.data.builders import check_place, write_whole
from sonde.data.catalog import load
from sonde.data.review.judgements import (
    SAMPLE,
    Applied,
    Ask,
    Item,
    Rule,
    Scale,
    Session,
    apply,
    implied,
    items_of,
    read_judgements,
)
from sonde.data.review.quality import agreement, qualities

SCALE = (
    "Is it a natural sentence or noun phrase?",
    "T⊆R: is every pair that fits the template a pair of the relation?",
    "R⊆T: does every pair of the relation fit the template?",
    "R∩T>0: does some pair of the relation fit the template?",
)
KEEP = "Keep it?"
KEYS = "1 yes, 0 no, u undo the last answer, q stop (go on later with the same command)"
SAME = {"y": "1", "k": "1", "n": "0", "d": "0"}
"""What else may be typed: yes, keep, no, drop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewOptions:
    """Who judges which templates, where that is kept, and what is made of it."""

    names: list[str] | None = argument("Datasets, named as everywhere else.", None)
    out: Path = option(
        "The file of judgements; it is added to.", Path("judged.jsonl"), "--out", "-o"
    )
    ask: Ask = option("keep (keep or drop), quality (the paper's four questions), or both.", "keep")
    reviewer: str = option("Who judges.", "reviewer", "--reviewer", "--annotator")
    page: bool = option("Judge on a page in the browser, served on this machine.", False, "--page")
    port: int = option("The page's port; 0 takes a free one.", 0, least=0)
    sample: int | None = option(
        f"Templates drawn of each dataset and mixed (default: all; {SAMPLE} for --ask quality).",
        None,
        least=1,
    )
    seed: int = option("Chooses the templates, their order and the facts in them.", 0)
    table: Path | None = option("Judge nothing; show what a file of judgements adds up to.", None)
    apply: Path | None = option("Judge nothing; write what was kept into this folder.", None)
    rule: Rule | None = option(
        "Where reviewers differ, keep what majority, all or any would (default: majority).", None
    )
    unjudged: Literal["keep", "drop"] | None = option(
        "What becomes of templates that nobody judged.", None
    )
    force: bool = option(FORCE, False, "--force")

    def __post_init__(self) -> None:
        if self.apply is None and (self.rule or self.unjudged):
            raise UsageError("--rule and --unjudged say what --apply FOLDER writes; give it, too")


@verb
@resumable()
def review(wanted: ReviewOptions) -> None:
    """Have people judge templates, see how far they agree, and write what they keep.

    Example: sonde data review ./more -o judged.jsonl --reviewer ann

    Example: sonde data review ./more -o judged.jsonl --apply ./kept
    """
    if wanted.table is not None:
        show_table(wanted.table)
    elif not wanted.names:
        raise UsageError("name the datasets to judge, or give --table FILE to see what is judged")
    elif wanted.apply is not None:
        write_kept(wanted, wanted.names, wanted.apply)
    else:
        session = _session(wanted, wanted.names)
        if wanted.page:
            serve(session, wanted.port, SCALE)
        else:
            judge(session)
        say(f"{len(session.done)} of {len(session.items)} judged: {wanted.out}")


def _session(wanted: ReviewOptions, names: list[str]) -> Session:
    sample = wanted.sample or (SAMPLE if wanted.ask == "quality" else None)
    with waiting("reading"):
        datasets = [load(name) for name in names]
        items = items_of(datasets, sample, wanted.seed)
        if sample or len(names) > 1:  # where a paraphrase comes from would tell the dataset
            items = [replace(item, parent="") for item in items]
        return Session(wanted.out, wanted.reviewer, items, wanted.ask)


def judge(session: Session) -> None:
    """Ask about every template that this reviewer has not judged yet."""
    total = len(session.items)
    say(f"{total} templates, {len(session.done)} judged. Keys: {KEYS}")
    while left := session.left:
        given = _asked(left[0], total - len(left) + 1, total, session.ask)
        if given == "stop":
            return
        if given == "undo":
            session.undo()
            continue
        keep = bool(given[-1]) if session.ask != "quality" else None
        session.judge(left[0].id, keep, _scale(given) if session.ask != "keep" else None)


def _scale(given: list[int]) -> Scale:
    fluent, inside, around, overlap = given[:4]
    return fluent, inside, around, overlap


def _asked(item: Item, place: int, total: int, ask: Ask) -> list[int] | Literal["undo", "stop"]:
    """One template's answers; undo steps back a question, or to the template before."""
    questions = {"keep": (KEEP,), "quality": SCALE, "both": (*SCALE, KEEP)}[ask]
    say(f"\n[{place}/{total}] relation: {item.label} ({item.relation})\n  {item.shown}")
    if item.answer:
        say(f"  right: {item.answer}")
    if item.parent:
        say(f"  paraphrase of: {item.parent}")
    answers: list[int] = []
    while len(answers) < len(questions):
        key = _key(questions[len(answers)])
        if key == "q":
            return "stop"
        if key == "u" and not answers:
            return "undo"
        if key == "u":
            answers.pop()
        else:
            answers = list(implied([*answers, int(key)]))
    return answers


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
        if (key := SAME.get(key, key)) in ("0", "1", "u", "q"):
            return key
        say(f"  {KEYS}")


def write_kept(wanted: ReviewOptions, names: list[str], out: Path) -> None:
    """Write the dataset with what its reviewers keep, and say what became of the rest."""
    if len(names) != 1:
        raise UsageError(f"--apply takes one dataset, not {len(names)}")
    check_place(out, force=wanted.force)
    judgements = read_judgements(wanted.out)
    if not any(judgement.keep is not None for judgement in judgements):
        raise UsageError(f"{wanted.out} says of no template whether to keep it; judge some first")
    unjudged = None if wanted.unjudged is None else wanted.unjudged == "keep"
    rule = wanted.rule or "majority"
    done = apply(load(names[0]), judgements, rule, unjudged=unjudged)
    with waiting(f"writing {out}"):
        write_whole(done.dataset, out, force=wanted.force)
    show_applied(done, rule)
    templates = sum(len(relation.templates) for relation in done.dataset.relations)
    say(f"{out}: {len(done.dataset.relations)} relations, {templates:,} templates")


def show_applied(done: Applied, rule: Rule) -> None:
    """Print what became of every template."""
    counts = done.counts
    say(f"kept {counts['kept']:,}, dropped {counts['dropped']:,} (reviewers: {done.reviewers})")
    if counts["split"]:
        say(f"reviewers differ about {counts['split']:,}; decided by: {rule}")
    if counts["unjudged"]:
        say(f"judged by nobody: {counts['unjudged']:,}")
    if done.lost:
        say(f"left out, because nothing of them was kept: {', '.join(done.lost)}")


def show_table(path: Path) -> None:
    """Print the papers' table 9, the histogram of totals, what is kept, and the agreement."""
    judgements = read_judgements(path)
    if not judgements:
        raise UsageError(
            f"{path} holds no judgement; make some with: sonde data review NAME -o {path}"
        )
    if rows := qualities(judgements):
        titles = ("dataset", "n", "fluent", "T⊆R", "R⊆T", "R∩T>0", "total (0-4)")
        shares = [(r.source, r.total.n, *map(_shown, (*r.shares, r.total))) for r in rows]
        print_table(titles, shares, padding=(0, 1))
        heads = ("dataset", "score 0", "1", "2", "3", "4", "irrelevant", "fully matching")
        scores = [(r.source, *r.histogram, r.irrelevant, r.fully_matching) for r in rows]
        print_table(heads, scores, padding=(0, 1))
    for reviewer in dict.fromkeys(judgement.reviewer for judgement in judgements):
        said = [j.keep for j in judgements if j.reviewer == reviewer and j.keep is not None]
        if said:
            say(f"{reviewer}: keeps {sum(said):,} of {len(said):,} templates")
    for question, kappa, n, reviewers in agreement(judgements):
        value = "not measured" if kappa is None else f"{kappa:.3f}"
        which = "both" if reviewers == 2 else f"all {reviewers}"
        name = "kappa" if reviewers == 2 else "Fleiss' kappa"
        say(f"{name} of {question}: {value} (n = {n} templates that {which} judged)")


def _shown(estimate: Estimate) -> str:
    if estimate.value is None:
        return "not measured"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.3f}"
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"
