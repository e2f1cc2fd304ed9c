"""A dataset without the facts that can be guessed from the subject's name, for every probe.

Both filters of LAMA-UHN: the object's name stands in the subject's; or a part of a person's name
suggests the object to a masked model. Knows nothing of what is asked about the facts that stay.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, cast

from sonde.core.abilities import Fills, Model
from sonde.core.errors import AbilityError, DataError, UsageError
from sonde.core.facts import APART, Card, Dataset
from sonde.core.fingerprints import fingerprint
from sonde.models.load import load as load_model
from sonde.models.options import LoadOptions
from sonde.runs.shards import SHARD_WEIGHT, answer, shards
from sonde.store.rows import Answering
from sonde.store.shards import blocks_of

GUESS_RANK = 3  # a part of a name suggests an object among the first three answers, as in LAMA-UHN

if TYPE_CHECKING:
    from polars import DataFrame

    from sonde.answers import Answers, MaskScores
    from sonde.prompts import FillMask

Guessable = Literal["string", "names"]

Place = tuple[str, str]
"""A relation and a fact of it, by their ids."""


def open_unguessable(
    load: Callable[[], Dataset],
    how: Guessable | None,
    guesser: Model | str | None,
    device: str = "auto",
) -> Dataset:
    """The dataset that `load` opens, once it is clear how it is judged, without what is guessable.

    A `guesser` that is given by its name is loaded on the device.
    """
    check_guesser(how, named=bool(guesser))
    dataset = load()
    assert how is not None
    if isinstance(guesser, str):
        guesser = load_model(guesser, LoadOptions(device=device)) if guesser else None
    return unguessable(dataset, how, guesser)


def unguessable(dataset: Dataset, how: Guessable, guesser: Model | None = None) -> Dataset:
    """The dataset without facts that can be guessed, counted by relation in its notes.

    A fact with several objects goes if any of them can be guessed; facts collected apart, to train
    on, stay. `guesser` is asked for `names`: the same prompts and rule as LAMA's own UHN.
    """
    check_guesser(how, named=guesser is not None)
    suggested = frozenset(_suggested(dataset, guesser)) if guesser is not None else frozenset()
    counts = _counts(dataset, suggested)
    kept = tuple(r for r in dataset.relations if counts[r.id]["kept"] or not counts[r.id].total())
    if not any(counts[relation.id]["kept"] for relation in kept):
        raise DataError(f"every fact of {dataset.name!r} can be guessed from its subject's name")

    def read(relation: str) -> DataFrame:
        facts = dataset.frame(relation)
        return facts.filter([why in ("kept", APART) for why in _whys(facts, suggested)])

    notes = _notes(counts, how)
    parts = ["unguessable", dataset.fingerprint, *(":".join(place) for place in sorted(suggested))]
    return replace(
        dataset,
        card=_card(dataset.card, notes, guesser),
        relations=kept,
        read=read,
        fingerprint=fingerprint(parts),
        notes={**dataset.notes, **notes},
    )


def check_guesser(how: Guessable | None, *, named: bool) -> None:
    """Refuse names without a model to judge them, and a model that nothing asks."""
    if (how == "names") is not named:
        raise UsageError(
            "--drop-guessable names asks a masked model, which --guesser must name (--guesser "
            "hf:bert-base-cased); nothing else asks one"
        )


def _whys(facts: DataFrame, suggested: frozenset[Place]) -> Iterator[str]:
    """Of each fact why it goes, or that it is kept, or apart."""
    columns = facts.select("relation", "fact", "subject", "object_names", "tags")
    for relation, fact, subject, objects, tags in columns.iter_rows():
        if APART in tags:
            yield APART
        elif any(names[0].casefold() in subject.casefold() for names in objects):
            yield "string"
        else:
            yield "names" if (relation, fact) in suggested else "kept"


def _counts(dataset: Dataset, suggested: frozenset[Place]) -> dict[str, Counter[str]]:
    """How many facts of each relation go for which reason, and how many stay."""
    counts = {r.id: Counter(_whys(dataset.frame(r.id), suggested)) for r in dataset.relations}
    for own in counts.values():
        del own[APART]
    return counts


def _notes(counts: dict[str, Counter[str]], how: Guessable) -> dict[str, int]:
    reasons = ("string", "names") if how == "names" else ("string",)
    totals = {f"guessable_{why}": sum(own[why] for own in counts.values()) for why in reasons}
    gone = {f"guessable.{id}": own.total() - own["kept"] for id, own in counts.items()}
    lost = sum(own.total() > 0 and not own["kept"] for own in counts.values())
    further = {"relations_guessable": lost, **gone}
    return totals | {key: count for key, count in further.items() if count}


def _card(card: Card, notes: dict[str, int], guesser: Model | None) -> Card:
    """The dataset's card, saying that facts were left out, and by whose judgement."""
    # the last word of what a model is called is enough for a title
    judge = f" (names by {re.split('[:/]', guesser.identity.name)[-1]})" if guesser else ""
    return replace(
        card,
        name=f"{card.name} without guessable facts{judge}",
        description=f"{card.description} {_told(notes, guesser)}".strip(),
    )


def _told(notes: dict[str, int], guesser: Model | None) -> str:
    told = f"Left out: {notes['guessable_string']:,} facts whose object's name is in the subject's"
    if guesser is None:
        return f"{told}."
    who = guesser.identity
    return (
        f"{told}, {notes['guessable_names']:,} for which a part of the name has the object among "
        f"its {GUESS_RANK} most likely answers, by {who.name} ({who.weights})."
    )


def _suggested(dataset: Dataset, guesser: Model) -> Iterator[Place]:
    """The facts about persons whose object a part of the name alone brings to the top."""
    if not isinstance(guesser, Fills):
        raise AbilityError(
            f"{guesser.identity.name} cannot fill a mask, so names cannot be judged by it; name a "
            "masked model as guesser"
        )
    from sonde.bridge import as_answers, as_block
    from sonde.prompting.templates import build_name_part_prompts, fill_templates
    from sonde.prompts import FillMask

    for relation in dataset.relations:
        facts = dataset.frame(relation.id)
        facts = facts.filter(~facts["tags"].list.contains(APART))
        if (parts := build_name_part_prompts(relation, facts)) is None:
            continue
        template, subjects = parts
        names = dataset.object_names(relation.id, aliases=True)
        request = FillMask(targets=names, vocabulary=dataset.vocabulary)
        batches = fill_templates(relation, [template], subjects, request)
        correct = {
            fact: {name for names in objects for name in names}
            for fact, objects in facts.select("fact", "object_names").iter_rows()
        }
        # the sentence asks of a name, not of the relation
        blocks = (as_block(replace(batch, cloze=False)) for batch in batches)
        for shard in shards(blocks, SHARD_WEIGHT):
            collected = Answering(shard)
            for position, found in answer(guesser, shard):
                collected.add(position, found)
            for block in blocks_of(collected.table()):
                for fact in _guessed(as_answers(block), correct):
                    yield relation.id, fact


def _guessed(answers: Answers, correct: Mapping[str, set[str]]) -> Iterator[str]:
    """The facts of which a correct name is among the first answers."""
    ranks = cast("MaskScores", answers.result).target_ranks
    targets = cast("FillMask", answers.batch.request).targets
    for fact, row in zip(answers.frame["fact"], ranks.tolist(), strict=True):
        first = (name for name, rank in zip(targets, row, strict=True) if 0 < rank <= GUESS_RANK)
        if not correct[fact].isdisjoint(first):
            yield fact
