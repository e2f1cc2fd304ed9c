"""A set as MyriadLAMA was published: a prompt a row, names and templates marked as what they are.

The columns are those that `readers/myriadlama.py` reads. A paraphrase's `group` is the text of the
template that it came from.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sonde.core.facts import Dataset, Fact, Relation


def prompt_rows(dataset: Dataset) -> Iterator[dict[str, Any]]:
    """A row for each fact, template and name of the subject, in this order."""
    for relation in dataset.relations:
        wordings = list(_wordings(relation))
        for fact in dataset.facts(relation.id):
            about = _about(fact)
            for wording in wordings:
                for place, name in enumerate(fact.subject.names):
                    yield {**about, "sub_ent": name, "is_original": place == 0, **wording}


def _about(fact: Fact) -> dict[str, Any]:
    """What all rows of a fact say."""
    return {
        "uuid": fact.id,
        "rel_uri": fact.relation,
        "sub_uri": fact.subject.id,
        "sub_label": fact.subject.name,
        "obj_uris": [entity.id for entity in fact.objects],
        "obj_ents": [entity.name for entity in fact.objects],
        "obj_aliases": [list(entity.names[1:]) for entity in fact.objects],
    }


def _wordings(relation: Relation) -> Iterator[dict[str, Any]]:
    """What all rows of a template say."""
    texts = {template.id: template.text for template in relation.templates}
    for template in relation.templates:
        yield {
            "template": template.text,
            "is_manual": template.source == "manual",
            "group": texts.get(template.group, template.text),
        }
