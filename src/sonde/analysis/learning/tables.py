"""Tables about what runs may have learnt. Knows numbers, nothing of how they are computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from sonde.analysis.learning.facts import OF, TAUGHT, Learning
from sonde.analysis.learning.numbers import KINDS, NEARLY_ALWAYS, SUBSETS, Drawn, Often, elicited
from sonde.core.facts import Relation
from sonde.core.reports import Cell, Estimate, Estimates, Metric, Table
from sonde.core.words import shown_p
from sonde.metrics.estimates import FACTS, RELATIONS
from sonde.reporting.build.tables import Field, across, side_by_side, table

OVER_RELATIONS = "mean over relations"


def _share(id: str, label: str, sentence: str = "") -> Metric:
    return Metric(id, label, "percent", sentence)


def _gain(id: str, label: str, sentence: str = "") -> Metric:
    return Metric(id, label, "points", sentence)


BY_KIND = _share("accuracy.type.{kind}", "{kind}", OVER_RELATIONS)
ACCURACY = _share(f"accuracy.{RELATIONS}", "all", OVER_RELATIONS)
OVER_FACTS = _share(f"accuracy.{FACTS}", "over facts", "every fact counts the same")
UNGUESSABLE = "facts that cannot be guessed from the subject's name; over relations"
UHN = _share(f"accuracy.uhn.{RELATIONS}", "UHN", UNGUESSABLE)
GAIN = _gain(f"gain.{RELATIONS}", "gain", "over the first run, paired by fact")
GAIN_OVER_FACTS = _gain(f"gain.{FACTS}", "gain", "over the first run, of all facts, paired")
SUBSET = (
    _share(f"{{subset}}.accuracy.{RELATIONS}", "{subset}", OVER_RELATIONS),
    _gain(f"{{subset}}.gain.{RELATIONS}", "gain, {subset}", "over the first run, paired"),
    _share(f"{{subset}}.accuracy.{FACTS}", "{subset}, over facts").detail(),
)
EASY_OF_RIGHT = _share("easy.share_of_right", "of right", "share of what is right that is easy")
PARTS = tuple(
    _gain(f"gain.part.{part}.{FACTS}", part, sentence).detail(part == "other")
    for part, sentence in (
        ("easy", "the part of the gain that is on easy facts"),
        ("hard", "the part that is on hard facts"),
        ("majority", "by answering the commonest training object"),
        ("other", "by answering other objects"),
    )
)
EASY_OF_GAIN = _share("gain.share.easy", "easy share", "of the gain, where there is one")
ANSWERED = _share(f"majority.answered.{RELATIONS}", "answered", "of the facts; over relations")
MAJORITY = (
    ANSWERED,
    _share(f"majority.right.{RELATIONS}", "Maj.", "right by answering it; over relations"),
    ACCURACY.named("Acc.", "right; over relations"),
    _share("majority.share_of_right", "of right", "share of what is right by it"),
)
BY_KINDS = tuple(BY_KIND.of(kind=kind) for kind in KINDS)
BY_SUBSET = tuple(metric.of(subset=subset) for subset in SUBSETS for metric in SUBSET)
METRICS = (
    *(*BY_KINDS, ACCURACY, OVER_FACTS, UHN, GAIN, GAIN_OVER_FACTS),
    *(*BY_SUBSET, EASY_OF_RIGHT, *PARTS, EASY_OF_GAIN, *MAJORITY),
)


def tables(
    runs: Learning, estimates: Estimates, often: Sequence[Often], drawn: Sequence[Drawn]
) -> Iterator[Table]:
    """All of them; an estimate that was not made is taken as not measured."""
    yield from _of_runs(runs, estimates)
    yield _majority(runs, estimates, often)
    yield table(
        often,
        OFTEN,
        id="answered-too-often",
        title="Objects that prompts elicit too often",
        note="The commonest training object where it is answered for over 95 % of the facts; other "
        "objects where they are answered for 10 points more facts than have them, and clearly so.",
    )
    yield _by_relation(runs, estimates)
    yield table(
        drawn,
        [
            Field("subset", lambda fact: fact.subset),
            Field("relation", lambda fact: fact.relation),
            Field("fact", lambda fact: fact.sentence),
            *across(runs.names, lambda fact, name: fact.answers.get(name), "text"),
        ],
        id="drawn-facts",
        title="Some easy and hard facts, with every run's answer",
        note="Drawn by the seed from the facts that some run answers right and whose object is not "
        "the commonest training object. ✓: right.",
    )


def _of_runs(runs: Learning, estimates: Estimates) -> Iterator[Table]:
    """A row per run: by relation type and by model, on easy and on hard facts, and what is gained
    where."""

    def look(name: str, metric: Metric) -> Estimate:
        return estimates[metric.at(f"run.{name}")]

    def p(name: str) -> str:
        return shown_p(estimates[f"gain.p_value.run.{name}"].value)

    yield side_by_side(
        runs.names,
        [
            *(*BY_KINDS, ACCURACY, UHN.detail(), OVER_FACTS.detail(), GAIN.detail()),
            Field("p", p, "text", "paired test of the gain, two-sided", True),
            Field("relations", lambda name: len(runs.having(name)), "count", ASKED, True),
        ],
        look,
        id="methods",
        title="Accuracy by relation type",
        note=_against(runs) + _uhn(runs) + _uneven(runs),
    )
    yield _models(runs, estimates)
    yield side_by_side(
        runs.names if len(runs.split) else (),
        [*BY_SUBSET, EASY_OF_RIGHT],
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


ASKED = "that the run was asked about"
OFTEN: tuple[Field[Often], ...] = (
    Field("run", lambda o: o.run),
    Field("relation", lambda o: o.relation),
    Field("object", lambda o: o.object),
    Field("commonest", lambda o: "yes" if o.majority else "no", help="of the training facts"),
    Field("answered", lambda o: o.answered, "percent", "of the facts"),
    Field("asked", lambda o: o.test, "percent", "share of the facts that have the object"),
    Field("trained", lambda o: o.train, "percent", "the same of the training facts"),
    Field("template", lambda o: o.template, detail=True),
)


def _models(runs: Learning, estimates: Estimates) -> Table:
    """Methods by model, where the names of the runs tell both."""
    models = list(dict.fromkeys(method.model for method in runs.methods if method.model))

    def cell(method: str, model: str) -> Estimate:
        return estimates[ACCURACY.at(f"run.{method}{OF}{model}")]

    return side_by_side(
        dict.fromkeys(name.partition(OF)[0] for name in runs.names if models),
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


def _by_relation(runs: Learning, estimates: Estimates) -> Table:
    """Every run in every relation, those of one type together: accuracy, how much of it is by the
    commonest training object, and on easy and on hard facts."""
    counts = Counter(runs.frame["relation"])
    easy = Counter(runs.frame.filter(easy=True)["relation"])
    parts = {
        "": "accuracy",
        ", Maj.": "majority.right",
        ", easy": "easy.accuracy",
        ", hard": "hard.accuracy",
    }

    def column(run: str, part: str) -> Field[Relation]:
        def cell(relation: Relation) -> Cell:
            return estimates[f"{parts[part]}.relation.{relation.id}.run.{run}"].value

        return Field(f"{run}{part}", cell, "percent", "", part != "")

    relations = [lesson.relation for lesson in runs.lessons.values()]
    return table(
        sorted(relations, key=lambda relation: (*KINDS, None).index(relation.kind)),
        [
            Field("relation", lambda relation: relation.id),
            Field("type", lambda relation: relation.kind),
            Field("label", lambda relation: relation.label, detail=True),
            Field("facts", lambda relation: counts[relation.id], "count"),
            Field("easy", lambda relation: easy[relation.id], "count", "facts that are", True),
            *(column(run, part) for part in parts for run in runs.names),
        ],
        id="relations",
        title="Accuracy by relation",
        note="Maj.: right by answering the commonest training object. Intervals and gains stand "
        f"among the estimates. {split_note(runs)}",
    )


def split_note(runs: Learning) -> str:
    """What is easy here, or why nothing is told apart."""
    if not runs.easy:
        return (
            f"Not measured: no run decides what is easy; add one of {', '.join(TAUGHT)}, or name "
            "some with --easy."
        )
    facts, easy = len(runs.split), runs.split["easy"].sum()
    left = len(runs.lessons) - runs.split["relation"].n_unique()
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
