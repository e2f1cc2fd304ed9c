"""Tables about what runs may have learnt. Knows what was found, nothing of how it is computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sonde.analysis.controls import shown_p
from sonde.analysis.learning.numbers import FACTS, KINDS, RELATIONS
from sonde.analysis.learning.samples import NEARLY_ALWAYS, Drawn, Often, elicited
from sonde.analysis.learning.sheets import OF, TAUGHT, Learning, Sheet
from sonde.core.reports import Cell, Column, ColumnKind, Estimate, Table

Estimates = Mapping[str, Estimate]

MISSING = Estimate.not_measured()


def methods_table(found: Learning, estimates: Estimates) -> Table:
    """Every run by relation type and in all, and how far it is from the one it is set against."""
    rows: list[tuple[Cell, ...]] = []
    for name in found.names:
        of = _of(estimates, name)
        rows.append(
            (name, *(of(f"accuracy.type.{kind}") for kind in KINDS),
             of(f"accuracy.{RELATIONS}"), of(f"accuracy.uhn.{RELATIONS}"), of(f"accuracy.{FACTS}"),
             of(f"gain.{RELATIONS}"), shown_p(of("gain.p_value")), len(found.having(name)))
        )  # fmt: skip
    return Table(
        id="methods",
        title="Accuracy by relation type",
        columns=(
            Column(title="run"),
            *(Column(title=kind, kind="percent", help="mean over relations") for kind in KINDS),
            Column(title="all", kind="percent", help="mean over relations"),
            Column(
                title="UHN",
                kind="percent",
                help="facts that cannot be guessed from the subject's name; over relations",
                detail=True,
            ),
            Column(
                title="over facts", kind="percent", help="every fact counts the same", detail=True
            ),
            Column(
                title="gain", kind="percent", help="over the first run, paired by fact", detail=True
            ),
            Column(title="p", help="paired test of the gain, two-sided", detail=True),
            Column(
                title="relations", kind="count", help="that the run was asked about", detail=True
            ),
        ),
        rows=tuple(rows),
        note=_against(found) + _uhn(found) + _uneven(found),
    )


def models_table(found: Learning, estimates: Estimates) -> Table | None:
    """Methods by model, where the names of the runs tell both."""
    models = list(dict.fromkeys(method.model for method in found.methods if method.model))
    if not models:
        return None
    methods = dict.fromkeys(name.partition(OF)[0] for name in found.names)
    key = f"accuracy.{RELATIONS}.run."
    return Table(
        id="models",
        title="Methods by model",
        columns=(
            Column(title="method"),
            *(Column(title=model, kind="percent", help="mean over relations") for model in models),
        ),
        rows=tuple(
            (method, *(estimates.get(f"{key}{method}{OF}{model}", MISSING) for model in models))
            for method in methods
        ),
        note="A dash: there is no run of this method with this model." + _uneven(found),
    )


def subsets_table(found: Learning, estimates: Estimates) -> Table:
    """Every run on easy and on hard facts."""
    rows: list[tuple[Cell, ...]] = []
    for name in found.names:
        of = _of(estimates, name)
        easy, hard = (
            [of(f"{subset}.{kind}.{RELATIONS}") for kind in ("accuracy", "gain")]
            + [of(f"{subset}.accuracy.{FACTS}")]
            for subset in ("easy", "hard")
        )
        rows.append((name, *easy, *hard, of("easy.share_of_right")))
    columns = (
        column
        for subset in ("easy", "hard")
        for column in (
            Column(title=subset, kind="percent", help="mean over relations"),
            Column(title=f"gain, {subset}", kind="percent", help="over the first run, paired"),
            Column(title=f"{subset}, over facts", kind="percent", detail=True),
        )
    )
    return Table(
        id="easy-hard",
        title="Easy and hard facts",
        columns=(
            Column(title="run"),
            *columns,
            Column(title="of right", kind="percent", help="share of what is right that is easy"),
        ),
        rows=tuple(rows) if found.split else (),
        note=split_note(found),
    )


def parts_table(found: Learning, estimates: Estimates) -> Table:
    """Where each gain comes from."""
    parts = ("easy", "hard", "majority", "other")
    rows: list[tuple[Cell, ...]] = []
    for name in found.names:
        of = _of(estimates, name)
        if name != found.base(name):
            rows.append(
                (name, of(f"gain.{FACTS}"), *(of(f"gain.part.{part}.{FACTS}") for part in parts),
                 of("gain.share.easy"))
            )  # fmt: skip
    return Table(
        id="gains",
        title="Where the gains come from",
        columns=(
            Column(title="run"),
            Column(title="gain", kind="percent", help="over the first run, of all facts, paired"),
            Column(title="easy", kind="percent", help="the part of the gain that is on easy facts"),
            Column(title="hard", kind="percent", help="the part that is on hard facts"),
            Column(
                title="majority", kind="percent", help="by answering the commonest training object"
            ),
            Column(title="other", kind="percent", help="by answering other objects", detail=True),
            Column(title="easy share", kind="percent", help="of the gain, where there is one"),
        ),
        rows=tuple(rows),
        note="Means over facts. Easy and hard add up to the gain, and so do majority and other, "
        "each on the relations where it is known. A share over 100 %: on hard facts the run loses.",
    )


def majority_table(found: Learning, estimates: Estimates, often: Sequence[Often]) -> Table:
    """How often each run answers the commonest training object."""
    rows: list[tuple[Cell, ...]] = [
        (what, estimates.get(f"majority.{key}.{RELATIONS}", MISSING), None, None, None, None)
        for what, key in (("facts trained on", "train"), ("facts asked", "test"))
    ]
    for method in found.methods:
        of = _of(estimates, method.name)
        always = None if method.counting else len(elicited(often, method.name))
        rows.append(
            (method.name, of(f"majority.answered.{RELATIONS}"), of(f"majority.right.{RELATIONS}"),
             of(f"accuracy.{RELATIONS}"), of("majority.share_of_right"), always)
        )  # fmt: skip
    return Table(
        id="majority",
        title="The commonest object of the training facts",
        columns=(
            Column(title=""),
            Column(title="answered", kind="percent", help="of the facts; over relations"),
            Column(title="Maj.", kind="percent", help="right by answering it; over relations"),
            Column(title="Acc.", kind="percent", help="right; over relations"),
            Column(title="of right", kind="percent", help="share of what is right by it"),
            Column(
                title="> 95 %",
                kind="count",
                help=f"relations whose prompt elicits it for over {NEARLY_ALWAYS:.0%} of the facts",
            ),
        ),
        rows=tuple(rows),
        note="The first two rows: how often it is the object of a fact.",
    )


def often_table(often: Sequence[Often]) -> Table:
    """Objects that are answered too often."""
    return Table(
        id="answered-too-often",
        title="Objects that prompts elicit too often",
        columns=(
            Column(title="run"),
            Column(title="relation"),
            Column(title="object"),
            Column(title="commonest", help="of the training facts"),
            Column(title="answered", kind="percent", help="of the facts"),
            Column(title="asked", kind="percent", help="share of the facts that have the object"),
            Column(title="trained", kind="percent", help="the same of the training facts"),
            Column(title="template", detail=True),
        ),
        rows=tuple(
            (*(o.run, o.relation, o.object, "yes" if o.majority else "no"), *_shares(o), o.template)
            for o in often
        ),
        note="The commonest training object where it is answered for over 95 % of the facts; other "
        "objects where they are answered for 10 points more facts than have them, and clearly so.",
    )


def relations_table(found: Learning, estimates: Estimates) -> Table:
    """Every run in every relation."""
    return _by_relation(
        found,
        id="relations",
        title="Accuracy by relation",
        cells=lambda sheet, name: (
            estimates.get(f"accuracy.relation.{sheet.id}.run.{name}", MISSING).value
        ),
        kind="percent",
        note="Intervals and gains stand among the estimates.",
    )


def shares_table(found: Learning, estimates: Estimates) -> Table:
    """Maj./Acc. of every run in every relation."""

    def cell(sheet: Sheet, name: str) -> Cell:
        place = f"relation.{sheet.id}.run.{name}"
        right = estimates.get(f"accuracy.{place}", MISSING).value
        majority = estimates.get(f"majority.right.{place}", MISSING).value
        if right is None:
            return None
        return f"{'–' if majority is None else f'{100 * majority:.1f}'}/{100 * right:.1f}"

    return _by_relation(
        found,
        id="majority-by-relation",
        title="Maj./Acc. by relation",
        cells=cell,
        kind="text",
        note="In percent: right by answering the commonest training object / right.",
    )


def subset_relations_table(found: Learning, estimates: Estimates, subset: str) -> Table:
    """Every run in every relation, on easy or on hard facts."""
    key = f"{subset}.accuracy.relation"
    return _by_relation(
        found,
        id=f"{subset}-by-relation",
        title=f"Accuracy by relation on {subset} facts",
        cells=lambda s, name: estimates.get(f"{key}.{s.id}.run.{name}", MISSING).value,
        kind="percent",
        note=split_note(found),
        subset=subset,
    )


def facts_table(found: Learning, drawn: Sequence[Drawn]) -> Table:
    """Drawn facts with the answers of all runs."""
    return Table(
        id="drawn-facts",
        title="Some easy and hard facts, with every run's answer",
        columns=(
            Column(title="subset"),
            Column(title="relation"),
            Column(title="fact"),
            *(Column(title=name) for name in found.names),
        ),
        rows=tuple(
            (d.subset, d.relation, d.sentence, *(_answer(answer) for answer in d.answers))
            for d in drawn
        ),
        note="Drawn by the seed from the facts that some run answers right and whose object is not "
        "the commonest training object. ✓: right." if found.split else split_note(found),
    )  # fmt: skip


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


def _shares(often: Often) -> tuple[Cell, ...]:
    return often.answered, often.test, often.train


def _answer(answer: tuple[str, bool] | None) -> Cell:
    if answer is None:
        return None
    return f"{answer[0]} ✓" if answer[1] else answer[0]


def _by_relation(
    found: Learning,
    *,
    id: str,
    title: str,
    cells: Callable[[Sheet, str], Cell],
    kind: ColumnKind,
    note: str,
    subset: str = "",
) -> Table:
    """A row per relation, those of one type together, and a column per run."""
    sheets = found.split if subset else found.sheets
    ordered = sorted(sheets, key=lambda sheet: KINDS.index(sheet.lesson.relation.kind))
    return Table(
        id=id,
        title=title,
        columns=(
            Column(title="relation"),
            Column(title="type"),
            Column(title="label", detail=True),
            Column(title="facts", kind="count"),
            *(Column(title=name, kind=kind) for name in found.names),
        ),
        rows=tuple(
            (
                sheet.id,
                sheet.lesson.relation.kind,
                sheet.lesson.relation.label,
                _facts(sheet, subset),
                *(cells(sheet, name) for name in found.names),
            )
            for sheet in ordered
        ),
        note=note,
    )


def _facts(sheet: Sheet, subset: str) -> int:
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


def _of(estimates: Estimates, name: str) -> Callable[[str], Estimate]:
    """The numbers of one run."""
    return lambda key: estimates.get(f"{key}.run.{name}", MISSING)
