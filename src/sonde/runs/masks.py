"""How a masked model answers a dataset: by filling in one token, or by scoring options.

A masked model cannot fill in an object of several tokens. Knows nothing of tokenizers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import cast

from sonde.core.abilities import FillsWords, HasNotices, Model, Probe, Scores
from sonde.core.errors import DataError
from sonde.core.fact_frames import names_options
from sonde.core.facts import Dataset, Relation
from sonde.core.prompts import Fill, blocks_of
from sonde.core.words import counted
from sonde.prompting.options import options_in_facts

log = logging.getLogger(__name__)

Fillable = Callable[[Collection[str]], frozenset[str]]
"""Which of some names a masked model can fill in."""


def choose_answer(probe: Probe, model: Model, dataset: Dataset) -> Probe:
    """The probe with its answer mode, where `auto` leaves it to the objects of a table.

    A masked model fills the mask if every object is one token, and else scores options.
    """
    from sonde.probes.vary import with_settings

    auto = getattr(probe, "answer", "") == "auto" and dataset.from_table
    auto = auto and "answer" not in getattr(probe, "vary", ())
    if not (auto and isinstance(model, FillsWords) and isinstance(model, Scores)):
        return probe
    total, able = 0, 0
    for relation, fillable in _relations(with_settings(probe, answer="fill"), model, dataset):
        names = _objects(probe, dataset, relation)
        total, able = total + len(names), able + len(fillable(names))
    if able == total:
        log.info("answer mode: fill, because every object is one token of the model")
        return cast(Probe, with_settings(probe, answer="fill"))
    log.info(
        "answer mode: score, because %s of %s more than one token of the model; it scores each "
        "relation's objects as options (--answer fill skips facts with such an object)",
        f"{total - able:,}",
        counted(total, "object is", "objects are"),
    )
    return cast(Probe, with_settings(probe, answer="score"))


def announce(probe: Probe, model: Model, dataset: Dataset) -> None:
    """Log what is particular to a masked model before a run: changed templates, skipped facts."""
    if not isinstance(model, FillsWords):
        return
    if isinstance(probe, HasNotices):
        for notice in probe.notices(dataset):
            log.info("%s", notice)
    total, skipped = 0, 0
    for relation, fillable in _relations(probe, model, dataset):
        able = fillable(dataset.object_names(relation.id, aliases=True))
        facts = dataset.asked_frame(relation.id)["object_names"].to_list()
        total += len(facts)
        skipped += sum(able.isdisjoint(n for names in fact for n in names) for fact in facts)
    if skipped:
        log.warning(
            "%s of %s cannot be answered, because no correct object is one token of the model; "
            "they are not counted (--answer score includes them)",
            f"{skipped:,}",
            counted(total, "fact", "facts"),
        )


def _relations(
    probe: Probe, model: FillsWords, dataset: Dataset
) -> Iterator[tuple[Relation, Fillable]]:
    """The relations in which the probe wants a mask filled."""
    for relation in dataset.asked_relations():
        chosen = replace(dataset.selection, relations=(relation.id,), limit=1)
        try:
            block = next(blocks_of(probe.ask(replace(dataset, selection=chosen))), None)
        except DataError:  # the probe needs more than one fact; none of these fills a mask
            continue
        if block is not None and isinstance(want := block.want, Fill):
            prefix = str(block.frame["prefix"][0])

            def fillable(
                names: Collection[str], want: Fill = want, prefix: str = prefix
            ) -> frozenset[str]:
                return model.fillable(replace(want, watched=tuple(names)), prefix)

            yield relation, fillable


def _objects(probe: Probe, dataset: Dataset, relation: Relation) -> Collection[str]:
    """The usual names of everything that a fact of the relation may be answered with."""
    names = dataset.object_names(relation.id)
    facts = dataset.asked_frame(relation.id)
    if getattr(probe, "options", "") == "own" and names_options(facts):
        names = (*names, *options_in_facts(facts).explode())
    return frozenset(names)
