"""Say what is missing where a probe asks with sentences and the dataset, or a whole language of
it, has none that it asks with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from sonde.core.abilities import Probe
from sonde.core.errors import DataError, SondeError
from sonde.core.facts import Dataset, Relation, Style, Template
from sonde.core.prompts import blocks_of
from sonde.core.words import listed
from sonde.data.tables.columns import PAGE

WORDS: dict[Style, str] = {
    "statement": "The {} of [X] is [Y].",
    "question": "What is the {} of [X]? [Y].",
}
SHOWN = 3
"""Relations for which a sentence is suggested."""

FEW = 2


def refuse_unasked(probe: Probe, dataset: Dataset) -> None:
    """Refuse a dataset that the probe cannot ask for want of sentences, or not in all languages."""
    refuse_unworded(probe, dataset)
    _refuse_unspoken(probe, dataset)


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


def _refuse_unspoken(probe: Probe, dataset: Dataset) -> None:
    """Refuse a dataset in several languages where the probe would ask in some of them alone.

    Tried on a few facts of each language, on all where these do not do.
    """
    languages = dataset.languages()
    if len(languages) < 2:
        return
    spoken = [language for language in languages if _asks_in(probe, dataset, language)]
    missing = [language for language in languages if language not in spoken]
    if not spoken or not missing:
        return  # without any language the probe says itself what it needs
    cure = f"leave out what it cannot ask with --languages {','.join(spoken)}"
    if getattr(probe, "templates", "") == "manual":
        every = replace(cast(Any, probe), templates="all")
        if all(_asks_in(every, dataset, language) for language in missing):
            cure = (
                "ask with all templates, not only those written by hand (--set templates=all), or "
                f"{cure}"
            )
    raise DataError(
        f"probe {probe.name!r} finds nothing to ask in {listed(missing, SHOWN)}, though "
        f"dataset {dataset.name!r} is to be asked in {listed(languages, SHOWN)}: {cure}"
    )


def _asks_in(probe: Probe, dataset: Dataset, language: str) -> bool:
    own = dataset.in_languages([language])
    few = replace(own, selection=replace(own.selection, limit=FEW))
    try:
        return _asks(probe, few, DataError) or _asks(probe, own, DataError)
    except SondeError:
        return True  # something else is missing, which the run itself tells of


def _worded(dataset: Dataset, style: Style) -> Dataset:
    relations = (replace(r, templates=(_template(r, style),)) for r in dataset.relations)
    return replace(dataset, relations=tuple(relations))


def _template(relation: Relation, style: Style) -> Template:
    label = relation.label.replace("_", " ")
    label = label.lower() if label.istitle() else label
    return Template(id=relation.id, text=WORDS[style].format(label), style=style)


def _asks(probe: Probe, dataset: Dataset, trouble: type[SondeError] = SondeError) -> bool:
    try:
        return any(len(block) for block in blocks_of(probe.ask(dataset)))
    except trouble:
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
