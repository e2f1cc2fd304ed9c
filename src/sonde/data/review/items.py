"""What reviewers are shown, and in what order: a template with a fact in it, never the dataset."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from sonde.core.errors import TemplateError
from sonde.core.facts import Dataset, Relation, Template, facts_of
from sonde.core.fingerprints import draw_key

SAMPLE = 200
"""Templates of a dataset whose quality is judged, in the paper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A template to be judged; `sources` are the datasets that have it, which nobody is shown.

    `shown` is what a model sees, a subject in its place; `answer` is right there; `parent` is the
    text of the template that a paraphrase was made from.
    """

    id: str
    relation: str
    label: str
    text: str
    shown: str
    answer: str
    parent: str
    sources: tuple[str, ...]


def items_of(datasets: Sequence[Dataset], n: int | None = None, seed: int = 0) -> list[Item]:
    """The templates of one dataset in its order; n of each, drawn and mixed, where n is given.

    Templates of several datasets are always mixed. A text that two of them have is judged once.
    """
    mixed = n is not None or len(datasets) > 1
    items: dict[tuple[str, str], Item] = {}
    for dataset in datasets:
        pairs = {(r.id, t.text): (r, t) for r in dataset.relations for t in r.templates}
        keyed = {pair: draw_key(seed, f"{dataset.name}:{'|'.join(pair)}") for pair in pairs}
        for pair in sorted(pairs, key=keyed.__getitem__)[:n] if mixed else pairs:
            first = items.get(pair) or _item(dataset, *pairs[pair], seed)
            sources = dict.fromkeys((*first.sources, dataset.name))
            items[pair] = replace(first, sources=tuple(sources))
    if not mixed:
        return list(items.values())
    return sorted(items.values(), key=lambda item: draw_key(seed, f"order:{item.id}"))


def item_id(relation: str, text: str) -> str:
    """What judgements call a template: its relation and its words."""
    return f"{relation}|{text}"


def _item(dataset: Dataset, relation: Relation, template: Template, seed: int) -> Item:
    """A template with some fact of the relation in it."""
    frame = dataset.frame(relation.id)
    row = draw_key(seed, template.text) % max(frame.height, 1)
    shown, answer = template.text, ""
    for fact in facts_of(frame[row : row + 1]):
        answer = " / ".join(entity.name for entity in fact.objects)
        with suppress(TemplateError):  # the fact lacks what the template takes from it
            shown = "___".join(template.fill(fact.subject.name, fact))
    others = {t.id: t.text for t in relation.templates if t.id != template.id}
    return Item(
        id=item_id(relation.id, template.text),
        relation=relation.id,
        label=relation.label,
        text=template.text,
        shown=shown,
        answer=answer,
        parent=others.get(template.group, ""),
        sources=(),
    )
