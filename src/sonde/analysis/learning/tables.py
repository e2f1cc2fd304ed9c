"""Tables about what runs may have learnt. Knows numbers, nothing of how they are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sonde.analysis.controls import shown_p
from sonde.analysis.learning.numbers import KINDS, NEARLY_ALWAYS, Drawn, Often, elicited
from sonde.analysis.learning.sheets import OF, TAUGHT, Learning, Sheet
from sonde.core.reports import Cell, ColumnKind, Estimate, Estimates, Metric, Table
from sonde.reporting.build.tables import Field, across, side_by_side, table
from sonde.reporting.catalogue import FACTS, RELATIONS

OVER_RELATIONS = "mean over relations"

BY_KIND = Metric("accuracy.type.{kind}", "{kind}", "percent", OVER_RELATIONS)
ACCURACY = Metric(f"accuracy.{RELATIONS}", "all", "percent", OVER_RELATIONS)
OVER_FACTS = Metric(f"accuracy.{FACTS}", "over facts", "percent", "every fact counts the same")
UHN = Metric(
    f"accuracy.uhn.{RELATIONS}",
    "UHN",
    "percent",
    "facts that cannot be guessed from the subject's name; over relations",
)
GAIN = Metric(f"gain.{RELATIONS}", "gain", "percent", "over the first run, paired by fact")
GAIN_OVER_FACTS = Metric(
    f"gain.{FACTS}", "gain", "percent", "over the first run, of all facts, paired"
)
SUBSET = (
    Metric(f"{{subset}}.accuracy.{RELATIONS}", "{subset}", "percent", OVER_RELATIONS),
    Metric(
        f"{{subset}}.gain.{RELATIONS}", "gain, {subset}", "percent", "over the first run, paired"
    ),
    Metric(f"{{subset}}.accuracy.{FACTS}", "{subset}, over facts", "percent").detail(),
)
EASY_OF_RIGHT = Metric(
    "easy.share_of_right", "of right", "percent", "share of what is right that is easy"
)
PARTS = tuple(
    Metric(f"gain.part.{part}.{FACTS}", part, "percent", sentence).detail(part == "other")
    for part, sentence in (
        ("easy", "the part of the gain that is on easy facts"),
        ("hard", "the part that is on hard facts"),
        ("majority", "by answering the commonest training object"),
        ("other", "by answering other objects"),
    )
)
EASY_OF_GAIN = Metric("gain.share.easy", "easy share", "percent", "of the gain, where there is one")
ANSWERED = Metric(
    f"majority.answered.{RELATIONS}", "answered", "percent", "of the facts; over relations"
)
MAJORITY = (
    ANSWERED,
    Metric(
        f"majority.right.{RELATIONS}", "Maj.", "percent", "right by answering it; over relations"
    ),
    ACCURACY.named("Acc.", "right; over relations"),
    Metric("majority.share_of_right", "of right", "percent", "share of what is right by it"),
)
METRICS = (
    *(BY_KIND.of(kind=kind) for kind in KINDS),
    *(ACCURACY, OVER_FACTS, UHN, GAIN, GAIN_OVER_FACTS),
    *(metric.of(subset=subset) for subset in ("easy", "hard") for metric in SUBSET),
    *(EASY_OF_RIGHT, *PARTS, EASY_OF_GAIN, *MAJORITY),
)


def tables(
    runs: Learning, estimates: Estimates, often: Sequence[Often], drawn: Sequence[Drawn]
) -> Iterator[Table | None]:
    """All of them; an estimate that was not made is taken as not measured."""

    def look(name: str, metric: Metric) -> Estimate:
        return estimates[metric.at(f"run.{name}")]

    yield side_by_side(
        runs.names,
        [
            *(BY_KIND.of(kind=kind) for kind in KINDS),
            ACCURACY,
            *(metric.detail() for metric in (UHN, OVER_FACTS, GAIN)),
            Field(
                "p", lambda name: shown_p(estimates[f"gain.p_value.run.{name}"]), "text", P, True
            ),
            Field("relations", lambda name: len(runs.having(name)), "count", ASKED, True),
        ],
        look,
        id="methods",
        title="Accuracy by relation type",
        note=_against(runs) + _uhn(runs) + _uneven(runs),
    )
    yield _models(runs, estimates)
    yield side_by_side(
        runs.names if runs.split else (),
        [*(m.of(subset=subset) for subset in ("easy", "hard") for m in SUBSET), EASY_OF_RIGHT],
        look,
        id="easy-hard",
        title="Easy and hard facts",
        note=split_note(runs),
    )
    yield side_by_side(
        [name for name in runs.names if name != runs.base(name)],
        [GAIN_OVER_FACTS, *PARTS, EASY_OF_GAIN],
        look,
        id="gains",
        title="Where the gains come from",
        note="Means over facts. Easy and hard add up to the gain, and so do majority and other, "
        "each on the relations where it is known. A share over 100 %: on hard facts the run loses.",
    )
    yield _majority(runs, estimates, often)
    yield _often(often)
    yield from _by_relation(runs, estimates)
    yield _facts(runs, drawn)


P = "paired test of the gain, two-sided"
ASKED = "that the run was asked about"


def _models(runs: Learning, estimates: Estimates) -> Table | None:
    """Methods by model, where the names of the runs tell both."""
    models = list(dict.fromkeys(method.model for method in runs.methods if method.model))
    if not models:
        return None

    def cell(method: str, model: str) -> Estimate:
        return estimates[ACCURACY.at(f"run.{method}{OF}{model}")]

    return side_by_side(
        dict.fromkeys(name.partition(OF)[0] for name in runs.names),
        across(models, cell, "percent", OVER_RELATIONS),
        head="method",
        id="models",
        title="Methods by model",
        note="A dash: there is no run of this method with this model." + _uneven(runs),
    )


def _majority(runs: Learning, estimates: Estimates, often: Sequence[Often]) -> Table:
    """How often each run answers the commonest training object."""
    facts = {"facts trained on": "majority.train", "facts asked": "majority.test"}
    counting = {method.name for method in runs.methods if method.counting}

    def look(row: str, metric: Metric) -> Cell:
        if row in facts:
            return estimates[f"{facts[row]}.{RELATIONS}"] if metric is ANSWERED else None
        return estimates[metric.at(f"run.{row}")]

    def always(row: str) -> int | None:
        return None if row in facts or row in counting else len(elicited(often, row))

    help = f"relations whose prompt elicits it for over {NEARLY_ALWAYS:.0%} of the facts"
    return side_by_side(
        [*facts, *runs.names],
        [*MAJORITY, Field("> 95 %", always, "count", help)],
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


def _by_relation(runs: Learning, estimates: Estimates) -> Iterator[Table]:
    """Every run in every relation: accuracy, Maj./Acc., and on easy and on hard facts."""

    def value(key: str) -> Callable[[Sheet, str], float | None]:
        return lambda sheet, run: estimates[f"{key}.relation.{sheet.id}.run.{run}"].value

    def both(sheet: Sheet, run: str) -> Cell:
        right, majority = (value(key)(sheet, run) for key in ("accuracy", "majority.right"))
        if right is None:
            return None
        return f"{'–' if majority is None else f'{100 * majority:.1f}'}/{100 * right:.1f}"

    yield _relation_table(
        runs,
        value("accuracy"),
        id="relations",
        title="Accuracy by relation",
        note="Intervals and gains stand among the estimates.",
    )
    yield _relation_table(
        runs,
        both,
        "text",
        id="majority-by-relation",
        title="Maj./Acc. by relation",
        note="In percent: right by answering the commonest training object / right.",
    )
    for subset in ("easy", "hard") if runs.split else ():
        yield _relation_table(
            runs,
            value(f"{subset}.accuracy"),
            id=f"{subset}-by-relation",
            title=f"Accuracy by relation on {subset} facts",
            note=split_note(runs),
            subset=subset,
        )


def _relation_table(
    runs: Learning,
    cell: Callable[[Sheet, str], Cell],
    kind: ColumnKind = "percent",
    *,
    id: str,
    title: str,
    note: str,
    subset: str = "",
) -> Table:
    """A row per relation, those of one type together, and a column per run."""
    sheets = runs.split if subset else runs.sheets
    fields: list[Field[Sheet]] = [
        Field("relation", lambda sheet: sheet.id),
        Field("type", lambda sheet: sheet.lesson.relation.kind),
        Field("label", lambda sheet: sheet.lesson.relation.label, detail=True),
        Field("facts", lambda sheet: _asked(sheet, subset), "count"),
        *across(runs.names, cell, kind),
    ]
    ordered = sorted(sheets, key=lambda sheet: KINDS.index(sheet.lesson.relation.kind))
    return table(ordered, fields, id=id, title=title, note=note)


def _facts(runs: Learning, drawn: Sequence[Drawn]) -> Table:
    """Drawn facts with the answers of all runs."""
    places = {name: i for i, name in enumerate(runs.names)}

    def answer(fact: Drawn, name: str) -> Cell:
        said = fact.answers[places[name]]
        return None if said is None else f"{said[0]} ✓" if said[1] else said[0]

    fields: list[Field[Drawn]] = [
        Field("subset", lambda fact: fact.subset),
        Field("relation", lambda fact: fact.relation),
        Field("fact", lambda fact: fact.sentence),
        *across(runs.names, answer, "text"),
    ]
    return table(
        drawn,
        fields,
        id="drawn-facts",
        title="Some easy and hard facts, with every run's answer",
        note="Drawn by the seed from the facts that some run answers right and whose object is not "
        "the commonest training object. ✓: right."
        if runs.split
        else split_note(runs),
    )


def split_note(runs: Learning) -> str:
    """What is easy here, or why nothing is told apart."""
    if not runs.easy:
        return (
            f"Not measured: no run decides what is easy; add one of {', '.join(TAUGHT)}, or name "
            "some with --easy."
        )
    facts = sum(len(sheet.facts) for sheet in runs.split)
    easy = sum(int(sheet.easy.sum()) for sheet in runs.split if sheet.easy is not None)
    left = len(runs.sheets) - len(runs.split)
    taught = {method.name: method.taught for method in runs.methods if method.name in runs.easy}
    deciding = (f"{name} ({kind})" if kind else name for name, kind in taught.items())
    missing = [kind for kind in TAUGHT if kind not in taught.values()]
    return (
        f"Easy: answered right by {' or '.join(deciding)}; {easy:,} of {facts:,} facts. Hard: the "
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


def _uneven(runs: Learning) -> str:
    counts = {name: len(runs.having(name)) for name in runs.names}
    if len(set(counts.values())) == 1:
        return ""
    return (
        " Runs that were asked fewer relations have means over these alone: their gains can be "
        "compared, being over the same facts of the first run, their accuracies cannot."
    )


def _uhn(runs: Learning) -> str:
    """Which facts the column UHN leaves out."""
    by_model = [method.name for method in runs.methods if method.uhn == "names"]
    also = f"; of {', '.join(by_model)} also names that the model guesses from (uhn=names)"
    return (
        " UHN leaves out what each run's own filter does: objects that stand in the subject's name"
        f"{also if by_model else ''}."
    )


def _against(runs: Learning) -> str:
    bases = dict.fromkeys(runs.base(name) for name in runs.names)
    return f"Gains are over {', '.join(bases)}, on the facts of both."
