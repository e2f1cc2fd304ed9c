"""What the report of compared runs begins with: the verdict, then where the difference lies.

Knows what was found, nothing of files or probes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from polars import DataFrame

from sonde.analysis.differences.facts import GAINED, LOST, flipped, with_change
from sonde.analysis.differences.numbers import LESS, RIGHT, Couple, Differences, minus
from sonde.analysis.differences.tables import MEASURES, TEST, Found, figures, less, tables
from sonde.analysis.differences.verdict import Verdict
from sonde.analysis.runs import relation_name
from sonde.core.reports import Estimates, Figure, Headline, Report
from sonde.core.words import counted, in_points, listed, points, told_apart, written
from sonde.metrics.distance import MONITOR
from sonde.metrics.estimates import hold_together
from sonde.reporting.build.parts import shown

TRY_AGAIN = (
    "Answers that are mostly empty say nothing of what is known. The report of such a run names "
    "settings to try, such as --set frame=qa or --set shots=4; compare the runs made with these."
)
MOST_NAMED = 5
"""Relations or groups that a sentence names; the tables have all."""


def in_front(of: Differences, verdict: Verdict, facts: DataFrame, rest: Report) -> Report:
    """The report of the same runs with the verdict as its title, and what it rests on in front."""
    estimates = {**of.estimates(), **rest.estimates}
    drawn: tuple[Figure, ...] = shown(*figures(of))
    found = (*filter(None, _findings(of, facts, estimates)), *rest.findings)
    nothing = verdict.word == "not concluded"
    return replace(
        rest,
        title=verdict.sentence,
        verdict=verdict,
        summary=" ".join((_summary(of, rest.title), *_care(verdict))),
        metrics=(RIGHT, LESS, *rest.metrics),
        estimates=estimates,
        headlines=(*_headlines(of, difference=not nothing), *rest.headlines),
        tables=(*shown(*tables(of, estimates, facts, concluded=not nothing)), *rest.tables),
        figures=(*drawn, *rest.figures),
        findings=(TRY_AGAIN,) if nothing else found,
        notes=(_note(of), *rest.notes),
    )


def _care(verdict: Verdict) -> Iterator[str]:
    if verdict.care:
        yield f"Take care: {' '.join(verdict.care)}"


def _summary(of: Differences, what: str) -> str:
    """What is compared, and how much of what each run was asked that is."""
    aligned, asked = of.aligned, len(of.aligned.first.grid)
    shares = {n: asked / (asked + left) for n, left in aligned.left_out.items()}
    parts = [f"{share:.0%} of {name}'s" for name, share in shares.items() if share < 1]
    whole = f" ({', '.join(parts)})" if parts else ", which is all they were asked"
    both = "both" if len(of.names) == 2 else "all of them"
    return (
        f"{what}, compared on the {counted(asked, 'prompt', 'prompts')} that {both} were asked"
        f"{whole}: {counted(len(aligned.first.pairs), 'fact', 'facts')} of "
        f"{counted(len(aligned.first.relations), 'relation', 'relations')}."
    )


def _headlines(of: Differences, *, difference: bool) -> Iterator[Headline]:
    """The difference and how often both are right; of several runs the leaderboard has these."""
    first, second = of.names if len(of.names) == 2 else of.leaders[1::-1]
    couple = (second, first)
    if difference:
        yield Headline(label=less(couple), estimate=LESS.at(minus(couple)), kind=LESS.unit)
    for name in of.names if len(of.names) == 2 or not difference else ():
        yield Headline(label=f"Right, {name}", estimate=RIGHT.at(f"run.{name}"))


def _findings(of: Differences, facts: DataFrame, estimates: Estimates) -> Iterator[str]:
    labels = {relation.id: relation_name(relation) for relation in of.aligned.first.relations}
    relations = {(labels[id], couple): e for (id, couple), e in of.relations.items()}
    groups = {(f"“{place[0]}: {place[1]}”", couple): e for (place, couple), e in of.groups.items()}
    if len(labels) > 1 and not any(map(told_apart, relations.values())):
        all_of_them = listed(of.names[1:], MOST_NAMED)
        yield (
            f"On no single relation can {all_of_them} be told from {of.names[0]} "
            f"({_corrected(relations)})."
        )
    if len(labels) > 1:
        yield from (_held(couple, relations) for couple in of.others)
    yield _flips(of, facts)
    yield from _measured(of.others, estimates)
    yield from (_held(couple, groups) for couple in of.others)


def _corrected(found: Found) -> str:
    return f"corrected for {counted(len(found), 'comparison', 'comparisons')}"


def _held(couple: Couple, found: Found) -> str:
    """On which relations or groups a difference holds after correction; nothing where on none."""
    own = {name: e for (name, c), e in found.items() if c == couple}
    holding = {name: e for name, e in own.items() if told_apart(e)}
    if not holding:
        return ""
    parts = []
    for word, sign in (("better", 1), ("worse", -1)):
        order = sorted(holding, key=lambda name: -sign * (holding[name].value or 0.0))
        named = [
            f"{name} ({points(holding[name].value or 0.0)})"
            for name in order
            if sign * (holding[name].value or 0.0) > 0
        ]
        if named:
            parts.append(f"{word} on {listed(named, MOST_NAMED)}")
    left = len(own) - len(holding)
    rest = f"; on the other {left if left > 1 else 'one'} it cannot be told" if left else ""
    than = f" than {couple[1]}" if len({c for _, c in found}) > 1 else ""
    return f"{couple[0]} is {' and '.join(parts)}{than}{rest} ({_corrected(found)})."


def _flips(of: Differences, facts: DataFrame) -> str:
    kept = flipped(facts, of.names)
    if len(of.names) > 2:
        return f"{counted(len(kept), 'fact is', 'facts are')} known to only some of the runs."
    first, second = of.names
    changes = with_change(kept, first, second)["change"]
    gained, lost = (int((changes == change).sum()) for change in (GAINED, LOST))
    return (
        f"{counted(gained + lost, 'fact', 'facts')} flipped: {gained:,} known to {second} and not "
        f"to {first}, {lost:,} the other way round."
    )


def _measured(couples: Sequence[Couple], estimates: Estimates) -> Iterator[str]:
    """Consistency, overconfidence and MONITOR, where they differ however many are looked at."""
    named = {
        (couple, m): estimates.get(m.at(minus(couple))) for couple in couples for m in MEASURES
    }
    found = {key: e for key, e in named.items() if e is not None and e.value is not None}
    # what has no test is told by its interval alone, which is widened like the others
    looked_at = hold_together([replace(e, p=e.p or 0.0) for e in found.values()])
    for ((run, other), metric), wide in zip(found, looked_at, strict=True):
        if told_apart(wide):
            word = "higher" if (wide.value or 0.0) > 0 else "lower"
            said = written(wide) if metric is MONITOR else in_points(wide)
            yield f"{metric.label} is {word} in {run} than in {other}: {said}."


def _note(of: Differences) -> str:
    return (
        "The difference counts every fact the same: of each the share of its prompts that are "
        "right, one run minus the other. Its interval is a bootstrap over facts within relations, "
        f"all facts of a subject in a relation together. p: {TEST}. Better or worse is said where "
        "the interval leaves out 0 and p is below 0.05."
    )
