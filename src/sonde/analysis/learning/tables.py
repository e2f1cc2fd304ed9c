"""Tables about what runs may have learnt. Knows what was found, nothing of how it is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from sonde.analysis.controls import shown_p
from sonde.analysis.learning.numbers import FACTS, KINDS, RELATIONS
from sonde.analysis.learning.samples import NEARLY_ALWAYS, Drawn, Often, elicited
from sonde.analysis.learning.sheets import OF, TAUGHT, Learning, Sheet
from sonde.core.reports import Cell, ColumnKind, Estimates, Metric, Table
from sonde.reporting.build.tables import Field, across, by_place, side_by_side, table

OVER_RELATIONS = "mean over relations"
GAIN = Metric(f"gain.{RELATIONS}", "gain", "percent", "over the first run, paired by fact")


def tables(
    found: Learning, estimates: Estimates, often: Sequence[Often], drawn: Sequence[Drawn]
) -> Iterator[Table | None]:
    """All of them; an estimate that was not made is taken as not measured."""
    yield _methods(found, estimates)
    yield _models(found, estimates)
    yield _subsets(found, estimates)
    yield _parts(found, estimates)
    yield _majority(found, estimates, often)
    yield _often(often)
    yield from _by_relation(found, estimates)
    yield _facts(found, drawn)


def _runs(names: Sequence[str]) -> dict[str, str]:
    return {name: f"run.{name}" for name in names}


def _methods(found: Learning, estimates: Estimates) -> Table:
    """Every run by relation type and in all, and how far it is from the one it is set against."""
    unguessable = "facts that cannot be guessed from the subject's name; over relations"
    return side_by_side(
        found.names,
        [
            *(Metric(f"accuracy.type.{kind}", kind, "percent", OVER_RELATIONS) for kind in KINDS),
            Metric(f"accuracy.{RELATIONS}", "all", "percent", OVER_RELATIONS),
            Metric(f"accuracy.uhn.{RELATIONS}", "UHN", "percent", unguessable).detail(),
            Metric(
                f"accuracy.{FACTS}", "over facts", "percent", "every fact counts the same"
            ).detail(),
            GAIN.detail(),
            Field(
                "p",
                lambda name: shown_p(estimates[f"gain.p_value.run.{name}"]),
                help="paired test of the gain, two-sided",
                detail=True,
            ),
            Field(
                "relations",
                lambda name: len(found.having(name)),
                "count",
                "that the run was asked about",
                True,
            ),
        ],
        lambda name, metric: estimates[metric.at(f"run.{name}")],
        id="methods",
        title="Accuracy by relation type",
        note=_against(found) + _uhn(found) + _uneven(found),
    )


def _models(found: Learning, estimates: Estimates) -> Table | None:
    """Methods by model, where the names of the runs tell both."""
    models = list(dict.fromkeys(method.model for method in found.methods if method.model))
    if not models:
        return None
    accuracy = f"accuracy.{RELATIONS}.run."
    return side_by_side(
        dict.fromkeys(name.partition(OF)[0] for name in found.names),
        across(
            models,
            lambda method, model: estimates[f"{accuracy}{method}{OF}{model}"],
            "percent",
            OVER_RELATIONS,
        ),
        head="method",
        id="models",
        title="Methods by model",
        note="A dash: there is no run of this method with this model." + _uneven(found),
    )


def _subsets(found: Learning, estimates: Estimates) -> Table:
    """Every run on easy and on hard facts."""
    metrics = [
        metric
        for subset in ("easy", "hard")
        for metric in (
            Metric(f"{subset}.accuracy.{RELATIONS}", subset, "percent", OVER_RELATIONS),
            Metric(
                f"{subset}.gain.{RELATIONS}",
                f"gain, {subset}",
                "percent",
                "over the first run, paired",
            ),
            Metric(f"{subset}.accuracy.{FACTS}", f"{subset}, over facts", "percent").detail(),
        )
    ]
    of_right = Metric(
        "easy.share_of_right", "of right", "percent", "share of what is right that is easy"
    )
    return by_place(
        estimates,
        _runs(found.names if found.split else ()),
        [*metrics, of_right],
        head="run",
        id="easy-hard",
        title="Easy and hard facts",
        note=split_note(found),
    )


def _parts(found: Learning, estimates: Estimates) -> Table:
    """Where each gain comes from."""
    parts = {
        "easy": "the part of the gain that is on easy facts",
        "hard": "the part that is on hard facts",
        "majority": "by answering the commonest training object",
        "other": "by answering other objects",
    }
    gain = Metric(f"gain.{FACTS}", "gain", "percent", "over the first run, of all facts, paired")
    share = Metric("gain.share.easy", "easy share", "percent", "of the gain, where there is one")
    return by_place(
        estimates,
        _runs([name for name in found.names if name != found.base(name)]),
        [
            gain,
            *(
                Metric(f"gain.part.{part}.{FACTS}", part, "percent", help).detail(part == "other")
                for part, help in parts.items()
            ),
            share,
        ],
        head="run",
        id="gains",
        title="Where the gains come from",
        note="Means over facts. Easy and hard add up to the gain, and so do majority and other, "
        "each on the relations where it is known. A share over 100 %: on hard facts the run loses.",
    )


def _majority(found: Learning, estimates: Estimates, often: Sequence[Often]) -> Table:
    """How often each run answers the commonest training object."""
    facts = {"facts trained on": "majority.train", "facts asked": "majority.test"}
    counting = {method.name for method in found.methods if method.counting}

    def look(row: str, metric: Metric) -> Cell:
        if row in facts:
            first = metric.label == "answered"
            return estimates[f"{facts[row]}.{RELATIONS}"] if first else None
        return estimates[metric.at(f"run.{row}")]

    def always(row: str) -> int | None:
        return None if row in facts or row in counting else len(elicited(often, row))

    right = f"majority.right.{RELATIONS}"
    return side_by_side(
        [*facts, *found.names],
        [
            Metric(
                f"majority.answered.{RELATIONS}",
                "answered",
                "percent",
                "of the facts; over relations",
            ),
            Metric(right, "Maj.", "percent", "right by answering it; over relations"),
            Metric(f"accuracy.{RELATIONS}", "Acc.", "percent", "right; over relations"),
            Metric(
                "majority.share_of_right", "of right", "percent", "share of what is right by it"
            ),
            Field(
                "> 95 %",
                always,
                "count",
                f"relations whose prompt elicits it for over {NEARLY_ALWAYS:.0%} of the facts",
            ),
        ],
        look,
        head="",
        id="majority",
        title="The commonest object of the training facts",
        note="The first two rows: how often it is the object of a fact.",
    )


def _often(often: Sequence[Often]) -> Table:
    """Objects that are answered too often."""
    fields: list[Field[Often]] = [
        Field("run", lambda o: o.run),
        Field("relation", lambda o: o.relation),
        Field("object", lambda o: o.object),
        Field("commonest", lambda o: "yes" if o.majority else "no", help="of the training facts"),
        Field("answered", lambda o: o.answered, "percent", "of the facts"),
        Field("asked", lambda o: o.test, "percent", "share of the facts that have the object"),
        Field("trained", lambda o: o.train, "percent", "the same of the training facts"),
        Field("template", lambda o: o.template, detail=True),
    ]
    return table(
        often,
        fields,
        id="answered-too-often",
        title="Objects that prompts elicit too often",
        note="The commonest training object where it is answered for over 95 % of the facts; other "
        "objects where they are answered for 10 points more facts than have them, and clearly so.",
    )


def _by_relation(found: Learning, estimates: Estimates) -> Iterator[Table]:
    """Every run in every relation: accuracy, Maj./Acc., and on easy and on hard facts."""

    def value(key: str, sheet: Sheet, name: str) -> float | None:
        return estimates[f"{key}.relation.{sheet.id}.run.{name}"].value

    def both(sheet: Sheet, name: str) -> Cell:
        right, majority = (value(k, sheet, name) for k in ("accuracy", "majority.right"))
        if right is None:
            return None
        return f"{'–' if majority is None else f'{100 * majority:.1f}'}/{100 * right:.1f}"

    yield _relation_table(
        found,
        partial(value, "accuracy"),
        id="relations",
        title="Accuracy by relation",
        note="Intervals and gains stand among the estimates.",
    )
    yield _relation_table(
        found,
        both,
        "text",
        id="majority-by-relation",
        title="Maj./Acc. by relation",
        note="In percent: right by answering the commonest training object / right.",
    )
    for subset in ("easy", "hard") if found.split else ():
        yield _relation_table(
            found,
            partial(value, f"{subset}.accuracy"),
            id=f"{subset}-by-relation",
            title=f"Accuracy by relation on {subset} facts",
            note=split_note(found),
            subset=subset,
        )


def _relation_table(
    found: Learning,
    cell: Callable[[Sheet, str], Cell],
    kind: ColumnKind = "percent",
    *,
    id: str,
    title: str,
    note: str,
    subset: str = "",
) -> Table:
    """A row per relation, those of one type together, and a column per run."""
    sheets = found.split if subset else found.sheets
    fields: list[Field[Sheet]] = [
        Field("relation", lambda sheet: sheet.id),
        Field("type", lambda sheet: sheet.lesson.relation.kind),
        Field("label", lambda sheet: sheet.lesson.relation.label, detail=True),
        Field("facts", lambda sheet: _asked(sheet, subset), "count"),
        *across(found.names, cell, kind),
    ]
    ordered = sorted(sheets, key=lambda sheet: KINDS.index(sheet.lesson.relation.kind))
    return table(ordered, fields, id=id, title=title, note=note)


def _facts(found: Learning, drawn: Sequence[Drawn]) -> Table:
    """Drawn facts with the answers of all runs."""
    places = {name: i for i, name in enumerate(found.names)}

    def answer(fact: Drawn, name: str) -> Cell:
        said = fact.answers[places[name]]
        return None if said is None else f"{said[0]} ✓" if said[1] else said[0]

    fields: list[Field[Drawn]] = [
        Field("subset", lambda fact: fact.subset),
        Field("relation", lambda fact: fact.relation),
        Field("fact", lambda fact: fact.sentence),
        *across(found.names, answer, "text"),
    ]
    return table(
        drawn,
        fields,
        id="drawn-facts",
        title="Some easy and hard facts, with every run's answer",
        note="Drawn by the seed from the facts that some run answers right and whose object is not "
        "the commonest training object. ✓: right."
        if found.split
        else split_note(found),
    )


def split_note(found: Learning) -> str:
    """What is easy here, or why nothing is told apart."""
    if not found.easy:
        return (
            f"Not measured: no run decides what is easy; add one of {', '.join(TAUGHT)}, or name "
            "some with --easy."
        )
    facts = sum(len(sheet.facts) for sheet in found.split)
    easy = sum(int(sheet.easy.sum()) for sheet in found.split if sheet.easy is not None)
    left = len(found.sheets) - len(found.split)
    taught = {method.name: method.taught for method in found.methods if method.name in found.easy}
    runs = (f"{name} ({kind})" if kind else name for name, kind in taught.items())
    missing = [kind for kind in TAUGHT if kind not in taught.values()]
    return (
        f"Easy: answered right by {' or '.join(runs)}; {easy:,} of {facts:,} facts. Hard: the "
        f"other {facts - easy:,}."
        + (f" The paper also counts {' and '.join(missing)}: no such run." if missing else "")
        + (
            f" Relations left out, because not all of these were asked about them: {left}."
            if left
            else ""
        )
    )


def _asked(sheet: Sheet, subset: str) -> int:
    if not subset or sheet.easy is None:
        return len(sheet.facts)
    easy = int(sheet.easy.sum())
    return easy if subset == "easy" else len(sheet.facts) - easy


def _uneven(found: Learning) -> str:
    counts = {name: len(found.having(name)) for name in found.names}
    if len(set(counts.values())) == 1:
        return ""
    return (
        " Runs that were asked fewer relations have means over these alone: their gains can be "
        "compared, being over the same facts of the first run, their accuracies cannot."
    )


def _uhn(found: Learning) -> str:
    """Which facts the column UHN leaves out."""
    by_model = [method.name for method in found.methods if method.uhn == "names"]
    also = f"; of {', '.join(by_model)} also names that the model guesses from (uhn=names)"
    return (
        " UHN leaves out what each run's own filter does: objects that stand in the subject's name"
        f"{also if by_model else ''}."
    )


def _against(found: Learning) -> str:
    bases = dict.fromkeys(found.base(name) for name in found.names)
    return f"Gains are over {', '.join(bases)}, on the facts of both."
