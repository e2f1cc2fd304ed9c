"""What the report of compared runs begins with: the verdict, then where the difference lies; and
what must be known before: how else than by their models runs differ.

The verdict is one line, from the test and the interval, never from the two numbers alone. Knows
what was found and how runs were made, nothing of files or probes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from polars import DataFrame

from sonde.analysis.differences.facts import GAINED, LOST, flipped, with_change
from sonde.analysis.differences.numbers import LESS, RIGHT, Couple, Differences, minus
from sonde.analysis.differences.tables import MEASURES, TEST, Found, figures, less, tables
from sonde.analysis.joins import what_differs
from sonde.analysis.runs import Compared, relation_name
from sonde.core.reports import Estimate, Estimates, Figure, Headline, Report
from sonde.core.words import SMALL_P, counted, in_points, listed, points, told_apart, written
from sonde.metrics.distance import MONITOR
from sonde.metrics.estimates import hold_together
from sonde.reporting.build.parts import shown

WAYS = {"filled": "filled in a word", "scored": "chose among options", "written": "wrote a text"}


def cares(runs: Sequence[Compared]) -> Iterator[str]:
    """A sentence for each thing that keeps runs from being the same question to other models."""
    yield from _differ(
        runs,
        lambda run: run.made.probe,
        "They are runs of different probes",
        "which ask in different ways",
    )
    # a control has no settings
    models = [run for run in runs if not run.made.control] or runs
    yield from _differ(
        models,
        lambda run: WAYS[run.judged.way],
        "They answered in different ways",
        "which differ in what counts as right and as sure",
    )
    yield from _vocabularies(models)
    yield from _settings(models)
    if len({run.source or run.dataset for run in runs}) > 1:
        yield from _differ(
            runs,
            lambda run: run.dataset,
            "Their datasets are not the same",
            "and only facts with the same relation, subject and answers are compared",
        )
    yield from _options(runs)
    yield from _differ(
        runs,
        lambda run: run.made.version,
        "They were made by different versions of sonde",
        "which may ask or judge differently",
    )
    for why, names in _by_value(runs, lambda run: run.made.numerics).items():
        yield f"The numbers of {listed(names)} are not known to be the model's own: {why}."


def _by_value(runs: Sequence[Compared], of: Callable[[Compared], str]) -> Mapping[str, list[str]]:
    """The runs of each value, as far as it is known."""
    found: dict[str, list[str]] = {}
    for run in runs:
        if value := of(run):
            found.setdefault(value, []).append(run.name)
    return found


def _differ(
    runs: Sequence[Compared], of: Callable[[Compared], str], what: str, so: str
) -> Iterator[str]:
    values = _by_value(runs, of)
    if len(values) > 1:
        told = "; ".join(f"{listed(names)}: {value}" for value, names in values.items())
        yield f"{what} ({told}), {so}."


def _vocabularies(runs: Sequence[Compared]) -> Iterator[str]:
    """Where a mask is filled, a model can answer with single tokens of its own alone."""
    filled = [run for run in runs if run.judged.way == "filled"]
    tokenizers = _by_value(filled, lambda run: run.made.tokenizer)
    if len(tokenizers) > 1:
        told = "; ".join(listed(names) for names in tokenizers.values())
        yield (
            f"They fill a mask from different vocabularies ({told}), so that each may answer with "
            "words that another cannot; a common vocabulary (sonde data convert --vocabulary) "
            "makes them alike."
        )


def _settings(runs: Sequence[Compared]) -> Iterator[str]:
    """Settings that differ; of runs of one probe."""
    if len({run.made.probe for run in runs}) > 1:
        return
    keys = dict.fromkeys(key for run in runs for key in run.made.settings)
    apart = {key: [run.made.settings.get(key, "–") for run in runs] for key in keys}
    told = [f"{key} {' / '.join(v)}" for key, v in apart.items() if len(set(v)) > 1]
    if told:
        yield (
            f"They were asked or read with different settings ({', '.join(told)}), so that the "
            "difference is of these as much as of the models."
        )


def _options(runs: Sequence[Compared]) -> Iterator[str]:
    """Relations in which runs had other answers to choose from."""
    known = [run.made.offered for run in runs if run.made.offered]
    shared = [id for id in known[0] if all(id in of for of in known)] if known else []
    apart = [id for id in shared if len({of[id] for of in known}) > 1]
    if apart:
        yield (
            "They had different answers to choose from in "
            f"{counted(len(apart), 'relation', 'relations')} ({listed(apart)}), which makes it "
            "easier for one than for another."
        )


Word = Literal["better", "worse", "cannot be told apart", "best", "not concluded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the comparison comes to.

    `word`: of two runs what the second is to the first; of several whether one is best; "not
    concluded" where a run wrote mostly nothing. `best`: the runs that may be the best one.
    `difference`: the second minus the first, or, of several runs, the first minus the second of
    those that are right most often. `ranks` of each run, from and to.
    """

    sentence: str
    word: Word
    best: tuple[str, ...]
    difference: Estimate
    facts: int
    ranks: dict[str, tuple[int, int]]
    care: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        return self.sentence


def verdict(of: Differences, care: tuple[str, ...] = ()) -> Verdict:
    """The verdict on two runs or more; none where the answers of a run are mostly empty."""
    best = tuple(name for name, (rank, _) in of.ranks.items() if rank == 1)
    second, first = (of.names[1], of.names[0]) if len(of.names) == 2 else of.leaders[:2][::-1]
    if len(of.names) == 2:
        difference = of.of(second, first)
        word, sentence = _of_two(first, second, difference)
    else:
        difference = of.of(first, second)
        word, sentence = _of_several(of, best, difference)
    if empty := [told for run in of.aligned.runs if (told := _emptiness(run))]:
        word, sentence = "not concluded", f"Nothing is concluded: most answers of {listed(empty)}"
        best = ()
    facts = counted(difference.n, "fact", "facts")
    return Verdict(
        sentence=f"{sentence}, on {facts} asked of {'both' if len(of.names) == 2 else 'all'}"
        + (f" ({differ})" if (differ := what_differs(of.aligned)) else ""),
        word=word,
        best=best,
        difference=difference,
        facts=difference.n,
        ranks=of.ranks,
        care=care,
    )


def _emptiness(run: Compared) -> str:
    """Which run wrote mostly nothing; nothing of one that did not."""
    empty = run.judged.empty
    return f"{run.name} are empty ({empty.sum():,} of {len(empty):,})" if empty.mean() > 0.5 else ""


def _of_two(first: str, second: str, difference: Estimate) -> tuple[Word, str]:
    if not told_apart(difference):
        return "cannot be told apart", (
            f"{first} and {second} cannot be told apart: {tested(difference)}"
        )
    word: Word = "better" if (difference.value or 0.0) > 0 else "worse"
    return word, f"{second} is {word} than {first}: {tested(difference)}"


def _of_several(of: Differences, best: tuple[str, ...], lead: Estimate) -> tuple[Word, str]:
    count = len(of.names)
    shares = {name: f"{name} ({of.accuracies[name].value or 0.0:.1%})" for name in of.leaders}
    first, second = of.leaders[:2]
    if of.ranks[first] == (1, 1):
        return "best", (
            f"{shares[first]} is best of {count}, ahead of {shares[second]}: {tested(lead)}"
        )
    if len(best) == count:
        return "cannot be told apart", (
            f"The {count} runs cannot be told apart: {listed(list(shares.values()))}"
        )
    tied = [shares[name] for name in of.leaders[1:] if not told_apart(of.of(first, name))]
    return "cannot be told apart", (
        f"Which of {count} runs is best cannot be told: {shares[first]} cannot be told apart "
        f"from {listed(tied)}"
    )


def tested(difference: Estimate) -> str:
    """A difference with its interval and its p.

    >>> tested(Estimate(value=0.032, low=0.011, high=0.054, n=9, p=0.003))
    '+3.2 points [+1.1, +5.4], p = 0.003'
    """
    ends = ""
    if difference.low is not None and difference.high is not None:
        ends = f" [{points(difference.low)}, {points(difference.high)}]"
    return f"{points(difference.value or 0.0)} points{ends}, {spoken_p(difference.p)}"


def spoken_p(p: float | None) -> str:
    """A p value in a sentence.

    >>> spoken_p(0.0004), spoken_p(0.0312), spoken_p(0.55)
    ('p < 0.001', 'p = 0.031', 'p = 0.55')
    """
    if p is None:
        return "p not measured"
    if p < SMALL_P:
        return f"p < {SMALL_P}"
    return f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


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
        notes=(NOTE, *rest.notes),
    )


def _care(verdict: Verdict) -> Iterator[str]:
    if verdict.care:
        yield f"Take care: {' '.join(verdict.care)}"


def _summary(of: Differences, what: str) -> str:
    """What is compared, and how much of what each run was asked that is."""
    aligned, asked = of.aligned, len(of.aligned.first.grid)
    sizes = {run.name: len(run.judged.grid) for run in aligned.runs}
    shares = {n: sizes[n] / (sizes[n] + left) for n, left in aligned.left_out.items()}
    parts = [f"{share:.0%} of {name}'s" for name, share in shares.items() if share < 1]
    whole = f" ({', '.join(parts)})" if parts else ", which is all they were asked"
    both = "both" if len(of.names) == 2 else "all of them"
    if not aligned.same_prompts:
        whole = f" ({', '.join(parts)} prompts)" if parts else ""
        return (
            f"{what}, compared on the {counted(len(aligned.first.pairs), 'fact', 'facts')} of "
            f"{counted(len(aligned.first.relations), 'relation', 'relations')} that {both} were "
            f"asked about{whole}. The prompts of each run are averaged for each fact."
        )
    return (
        f"{what}, compared on the {counted(asked, 'prompt', 'prompts')} that {both} were asked"
        f"{whole}: {counted(len(aligned.first.pairs), 'fact', 'facts')} of "
        f"{counted(len(aligned.first.relations), 'relation', 'relations')}."
    )


def _headlines(of: Differences, *, difference: bool) -> Iterator[Headline]:
    """The difference and how often both are right; of several runs the leaderboard has these."""
    first, second = of.names if len(of.names) == 2 else of.leaders[1::-1]
    couple = (second, first)
    controls = [run.made.control for run in of.aligned.runs]
    if difference and not (len(controls) == 2 and sum(controls) == 1):  # the first line has it
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
    looked_at = hold_together(list(found.values()))
    for ((run, other), metric), wide in zip(found, looked_at, strict=True):
        if told_apart(wide):
            word = "higher" if (wide.value or 0.0) > 0 else "lower"
            said = written(wide) if metric is MONITOR else in_points(wide)
            yield f"{metric.label} is {word} in {run} than in {other}: {said}."


NOTE = (
    "The difference counts every fact the same: of each the share of its prompts that are right, "
    "one run minus the other. Its interval is a bootstrap over facts within relations, all facts "
    f"of a subject in a relation together. p: {TEST}. A run is better or worse if p is below 0.05. "
    "The interval agrees with the test: it is extended to 0 if p is larger, and cut at 0 if not."
)
