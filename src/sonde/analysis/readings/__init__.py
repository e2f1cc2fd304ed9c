"""What a report says beyond its probe's own numbers, of any probe: a module for each reading.

A reading looks at the judged prompts of a run, at the facts they ask about and, where it needs
them, at the stored answers. What a dataset must have for one stands in `READINGS`, so that none is
imported in vain. Readings of other packages come through `sonde.readings`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast, get_args

import numpy as np

from sonde.analysis.readings.function_words import warn_of_function_words
from sonde.core.abilities import TEMPLATE
from sonde.core.answers import CLOSED, Generated, Kind, Sampled
from sonde.core.columns import Answers
from sonde.core.components import Components
from sonde.core.fact_frames import DATES, is_apart
from sonde.core.facts import Dataset, Relation
from sonde.core.reports import Estimates, Figure, Metric, Report, Table
from sonde.core.scores import Normalise
from sonde.metrics.estimates import ByFact
from sonde.metrics.judged import AnswerKind, Judged
from sonde.reporting.build.parts import SILENT

if TYPE_CHECKING:
    from polars import DataFrame, LazyFrame

QUESTION = ("relation", "subject_id", "date")
"""What makes facts one question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was asked of a model, and how it did.

    `answers` reads the stored answers from the beginning, each time it is called; given the ids of
    facts, maybe only those about them. `normalise` is how the probe compares scored options.
    """

    dataset: Dataset
    judged: Judged
    answers: Callable[..., Iterable[Answers]]
    normalise: Normalise = "none"

    def facts(self, only: LazyFrame | None = None) -> DataFrame:
        """A row for each judged fact (or pair, by its first fact), with all columns of the fact.

        `pair` is its number, `accuracy` the share of its prompts that are right, `owner` the number
        of its relation among `judged.relations`, and `cluster` that of its subject. `only` those
        about some questions.
        """
        import polars
        from polars import col

        judged, grid = self.judged, self.judged.grid
        asked = polars.concat([self.dataset.frame(r.id) for r in judged.relations]).lazy()
        if only is not None:
            asked = asked.join(only, on=QUESTION, how="semi", maintain_order="left")
        every = asked.unique(("relation", "fact"), keep="first", maintain_order=True).collect()
        relations = polars.Series([r.id for r in judged.relations], dtype=polars.String)
        pairs = polars.DataFrame({"pair": grid.pair, "accuracy": grid.right})
        means = pairs.group_by("pair").agg(col("accuracy").mean()).sort("pair")
        numbers = means["pair"].to_numpy()
        return (
            means.with_columns(
                owner=polars.Series(grid.relations[numbers]),
                fact=polars.Series(judged.pairs, dtype=polars.String).gather(numbers),
                relation=relations.gather(grid.relations[numbers]),
            )
            .join(every, on=("relation", "fact"), how="inner", maintain_order="left")
            .with_columns(
                cluster=polars.struct("relation", "subject_id").rank("dense").cast(polars.Int64)
            )
        )

    def by_fact(self, facts: DataFrame) -> ByFact:
        """Rows of `facts` by relation and subject, for means with intervals."""
        owners, clusters = (
            facts[name].to_numpy().astype(np.int64) for name in ("owner", "cluster")
        )
        return ByFact.of(self.judged.relations, owners, clusters, self.dataset.selection.seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What is added to a report."""

    metrics: tuple[Metric, ...] = ()
    estimates: Estimates = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    findings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Reader(Protocol):
    """Reads something of its own from what was judged."""

    name: str

    def applies(self, dataset: Dataset) -> bool:
        """Whether the dataset has what is read; looks at relations and facts, not at answers."""

    def read(self, asked: Asked) -> Reading | None:
        """Read it; None where nothing comes of it."""


class Own(NamedTuple):
    """A reading of sonde's own: a module here, with a function `read`.

    `ways`: how models must have answered.
    """

    module: str
    applies: Callable[[Dataset], bool]
    ways: tuple[AnswerKind, ...] = get_args(AnswerKind)

    def read(self, asked: Asked) -> Reading | None:
        """Read it; only now is the module imported."""
        if asked.judged.way not in self.ways:
            return None
        found: Reading | None = import_module(f"{__name__}.{self.module}").read(asked)
        return found


def _frames(dataset: Dataset) -> Iterator[DataFrame]:
    return (dataset.split_frame(relation.id) for relation in dataset.asked_relations())


def has_numbers(dataset: Dataset) -> bool:
    """Whether some fact that is asked about has a number."""
    return any(frame["numbers"].list.len().sum() for frame in _frames(dataset))


def has_dates(dataset: Dataset) -> bool:
    """Whether some fact has a date, or a time when it is right."""
    from polars import any_horizontal, col

    dated = any_horizontal(col(DATES) != "").any()
    return any(dataset.frame(r.id).select(dated).item() for r in dataset.asked_relations())


def has_languages(dataset: Dataset) -> bool:
    """Whether some relation is asked in two languages."""
    asked = [relation.same for relation in worded(dataset.asked_relations())]
    return len(set(asked)) < len(asked)


def worded(relations: Iterable[Relation]) -> list[Relation]:
    """The relations that say their language, and what they are in every one."""
    return [relation for relation in relations if relation.same and relation.language]


def has_several(dataset: Dataset) -> bool:
    """Whether some subject that is asked about has several objects."""
    return any(
        frame["object_ids"].list.len().sum() > frame.select(QUESTION).n_unique()
        for frame in _frames(dataset)
        if frame.height
    )


def looked_at(dataset: Dataset) -> frozenset[str]:
    """The facts that answers are looked at again for, where not all are."""
    return frozenset(several(dataset).collect()["fact"])


def several(dataset: Dataset) -> LazyFrame:
    """The facts whose subjects have several objects, one of which may be there twice."""
    import polars
    from polars import col

    frames = [dataset.frame(relation.id).lazy() for relation in dataset.asked_relations()]
    counted = ~is_apart() | (col("split") == dataset.selection.split)
    objects = col("object_ids").list.len().sum().over(QUESTION)
    return polars.concat(frames).filter(counted).filter(objects > 1)


def has_tags(dataset: Dataset) -> bool:
    """Whether a relation that is asked about has a tag."""
    return any(relation.tags for relation in dataset.asked_relations())


READINGS: Mapping[str, Own] = {
    "bins": Own("bins", has_numbers),
    "dates": Own("dates", has_dates),
    "languages": Own("languages.report", has_languages),
    "ranking": Own("ranking", lambda dataset: bool(dataset.relations), ("scored",)),
    "sets": Own("sets", has_several, ("filled", "scored")),
    "tags": Own("tags", has_tags),
}


def readings() -> Mapping[str, Reader]:
    """Every reading by name, sonde's own first; they win over others of the same name."""
    return {**READINGS, **Components({}, "sonde.readings"), **READINGS}


def read_further(
    report: Report,
    dataset: Dataset,
    answers: Callable[..., Iterable[Answers]],
    normalise: Normalise = "none",
) -> Report:
    """A report with all that can be read beside it; unchanged where its probe judged nothing."""
    if report.judged is None or not len(report.judged.grid):
        return report
    asked = Asked(dataset=dataset, judged=report.judged, answers=answers, normalise=normalise)
    for reader in readings().values():
        if reader.applies(dataset) and (found := reader.read(asked)):
            report = _with(report, found)
    return warn_of_function_words(report)


def _with(report: Report, found: Reading) -> Report:
    return replace(
        report,
        metrics=(*report.metrics, *found.metrics),
        estimates={**report.estimates, **found.estimates},
        counts={**report.counts, **found.counts},
        tables=(*report.tables, *found.tables),
        figures=(*report.figures, *found.figures),
        findings=(*report.findings, *found.findings),
        notes=(*report.notes, *found.notes),
    )


ADVICE = "The model has a chat template: ask it in turns, with --chat always."

THOUGHT: Mapping[Kind, str] = {"generated": "written", "sampled": "drawn"}
"""Answers before which a model may have thought, and what they are called."""


def advise_chat(
    report: Report, model: Mapping[str, Any], answers: Callable[[], Iterable[Answers]]
) -> Report:
    """A report that says how a model with a chat template could be asked better, if it could.

    `model`: the manifest's. The advice stands behind the finding about empty answers, if there is
    one.
    """
    silent = any(each.startswith(SILENT) for each in report.findings)
    chat, advice = model.get("chat"), ""
    if not chat and silent and model["details"].get(TEMPLATE):
        advice = ADVICE
    elif chat and (silent or chat["thinking"] != "0"):
        advice = endless_thoughts(answers(), int(chat["thinking"]))
    if not advice:
        return report
    found = (f"{each} {advice}" if each.startswith(SILENT) else each for each in report.findings)
    return replace(report, findings=(*found, *([] if silent else [advice])))


def endless_thoughts(answers: Iterable[Answers], room: int) -> str:
    """What to do about thoughts that are not ended, so that no answer follows; `room`: tokens."""
    cut, total = Counter[str](), Counter[str]()
    for block in answers:
        if block.kind in THOUGHT:
            for answer in cast(Sequence[Generated | Sampled], block.columns):
                before = thoughts_of(answer)
                cut[THOUGHT[block.kind]] += sum(
                    not each.endswith(CLOSED) for each in before if each
                )
                total[THOUGHT[block.kind]] += len(before)
    if not cut.total():
        return ""
    said = " and ".join(f"{cut[w]:,} of {n:,} {w} answers" for w, n in total.items() if cut[w])
    advice = f"above {room}" if room else "with a number of tokens"
    return (
        f"Thoughts do not end in {said}, so that no answer follows them; --chat-thinking {advice} "
        "may give them the room that they need."
    )


def thoughts_of(answer: Generated | Sampled) -> Sequence[str]:
    """What was thought before a text, or before each that was drawn; empty texts for nothing."""
    if isinstance(answer, Generated):
        return (answer.thoughts,)
    return [*chain.from_iterable(answer.thoughts)] or [""] * sum(answer.counts)
