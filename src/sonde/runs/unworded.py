"""Say what is missing where a probe asks with sentences and the dataset has none."""

from __future__ import annotations

from dataclasses import replace

from sonde.core.abilities import Probe
from sonde.core.errors import DataError, SondeError
from sonde.core.facts import Dataset, Relation, Style, Template
from sonde.core.prompts import blocks_of
from sonde.data.tables.columns import PAGE

WORDS: dict[Style, str] = {
    "statement": "The {} of [X] is [Y].",
    "question": "What is the {} of [X]? [Y].",
}
SHOWN = 3
"""Relations for which a sentence is suggested."""

FEW = 2


def refuse_unworded(probe: Probe, dataset: Dataset) -> None:
    """Refuse a dataset without sentences if that is why the probe cannot ask, with some to copy.

    Tried on a few facts, so that it is quick and can come before a model is loaded.
    """
    relations = dataset.asked_relations()
    if any(relation.templates for relation in relations):
        return
    chosen = replace(dataset.selection, relations=(relations[0].id,), limit=FEW)
    some = replace(dataset, selection=chosen)
    if _asks(probe, some):
        return
    for style in WORDS:
        if _asks(probe, _worded(some, style)):
            raise DataError(_told(probe, dataset, style))


def _worded(dataset: Dataset, style: Style) -> Dataset:
    relations = (replace(r, templates=(_template(r, style),)) for r in dataset.relations)
    return replace(dataset, relations=tuple(relations))


def _template(relation: Relation, style: Style) -> Template:
    label = relation.label.replace("_", " ")
    label = label.lower() if label.istitle() else label
    return Template(id=relation.id, text=WORDS[style].format(label), style=style)


def _asks(probe: Probe, dataset: Dataset) -> bool:
    try:
        return any(len(block) for block in blocks_of(probe.ask(dataset)))
    except SondeError:
        return False


def _told(probe: Probe, dataset: Dataset, style: Style) -> str:
    relations, several = dataset.asked_relations(), len(dataset.relations) > 1
    words = {r: _template(r, style) for r in relations}
    flags = " ".join(
        f'--wording "{f"{r.id}=" if several else ""}{words[r].text}"' for r in relations[:SHOWN]
    )
    more = " …" if len(relations) > SHOWN else ""
    many = "one for each relation" if several else "one"
    fact = next(dataset.facts(relations[0].id))
    asked = words[relations[0]].fill(fact.subject.name, fact)[0].strip()
    return (
        f"probe {probe.name!r} asks with sentences, and dataset {dataset.name!r} has none. Give "
        f"{many}, with [X] for the subject and [Y] for the answer, such as:\n  {flags}{more}\n"
        f"It would ask {asked!r} and look for {fact.objects[0].name!r}. Probe ic-lke needs no "
        f"sentence. See {PAGE}"
    )
