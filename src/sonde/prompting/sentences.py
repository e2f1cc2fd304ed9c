"""Templates filled with subjects, a block at a time: one sentence for each, with a gap to fill.

Beside them LAMA-UHN's two filters of facts whose answer can be guessed from the subject's name: the
object's name stands in it; or, of persons, a sentence about a part of the name alone already gives
the answer. Knows templates and names, nothing of models.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import numpy as np

from sonde.core.facts import (
    ANSWER_SLOT,
    DATE_SLOT,
    NAME_PARTS,
    SUBJECT_SLOT,
    Fact,
    Relation,
    Template,
)
from sonde.core.prompts import KEY, TEXTS, Block, Want
from sonde.core.texts import capitalised
from sonde.prompting.closing import closing_mark

if TYPE_CHECKING:
    from polars import DataFrame, Expr

MOST = 2**16
"""Sentences in a block, about."""

PERSON_ANSWERS = {
    "P19": "city",
    "P20": "city",
    "P27": "country",
    "P103": "language",
    "P1412": "language",
}
"""Relations of persons, with the kind of thing their objects are."""

GUESSABLE_RANK = 3

OWN = ("date", "details")
"""What templates may take from facts beside their subjects."""


def sentences(
    relation: Relation,
    templates: Sequence[Template],
    subjects: DataFrame,
    want: Want,
    *,
    capitals: bool = False,
    close: bool = False,
) -> Block:
    """Every template with every name of every subject, in the order of subject, template and name.

    `subjects` has the columns `fact` and `names`, a list, and where templates take them from facts
    `date` and `details`. `capitals`: sentences begin with one. `close`: templates without final
    punctuation end with a full stop.
    """
    import polars

    marks = [closing_mark(t, relation.language) if close else "" for t in templates]
    if any(template.fact_slots for template in templates):
        return _own_sentences(relation, templates, marks, subjects, want, capitals=capitals)
    texts = [template.text.split(ANSWER_SLOT) for template in templates]
    sides = {
        f"{side}.{part}": [(*text[i].split(SUBJECT_SLOT, 1), None)[part] for text in texts]
        for i, side in enumerate(TEXTS)
        for part in (0, 1)
    }
    wording = polars.DataFrame(
        {"template": [template.id for template in templates], "mark": marks, **sides},
        schema=dict.fromkeys(("template", "mark", *sides), polars.String),
    )
    frame = (
        subjects.lazy()
        .select("fact", "names")
        .join(wording.lazy(), how="cross", maintain_order="left_right")
        .explode("names")
        .with_columns(relation=polars.lit(relation.id), subject="names")
        .with_columns(**{side: _filled(side) for side in TEXTS})
        .with_columns(suffix=_closed())
        .select(*KEY, *TEXTS)
        .collect()
    )
    return Block(frame=_opened(frame) if capitals else frame, want=want, cloze=True)


def _own_sentences(
    relation: Relation,
    templates: Sequence[Template],
    marks: Sequence[str],
    subjects: DataFrame,
    want: Want,
    *,
    capitals: bool,
) -> Block:
    """The same where templates take more from each fact than its subject, one by one."""
    import polars

    rows = []
    for fact, names, date, details in subjects.select("fact", "names", *OWN).iter_rows():
        own = {f"[details.{detail['name']}]": detail["value"] for detail in details}
        for (template, mark), name in product(zip(templates, marks, strict=True), names):
            before, after = template.filled({SUBJECT_SLOT: name, DATE_SLOT: date, **own})
            after = after if after.endswith(mark) else after.rstrip() + mark
            rows.append((fact, relation.id, template.id, name, before, after))
    frame = polars.DataFrame(rows, dict.fromkeys((*KEY, *TEXTS), polars.String), orient="row")
    return Block(frame=_opened(frame) if capitals else frame, want=want)


def _opened(frame: DataFrame) -> DataFrame:
    """The same sentences, each beginning with a capital."""
    from polars import Series, String

    opened = [capitalised(text) for text in frame["prefix"].to_list()]
    return frame.with_columns(prefix=Series(opened, dtype=String))


def in_parts(subjects: DataFrame, sentences: int) -> Iterator[DataFrame]:
    """Subjects with their names, cut so that a block of them is not too large.

    `sentences`: how many there are for each name.
    """
    parts = (subjects["names"].list.len().cum_sum() * sentences // MOST).to_numpy()
    starts = np.flatnonzero(np.diff(parts, prepend=-1)).tolist()
    for start, stop in pairwise([*starts, len(parts)]):
        yield subjects[start:stop]


def usual_names(facts: DataFrame) -> DataFrame:
    """Facts with the usual name of their subject alone."""
    import polars

    return facts.select("fact", *OWN, names=polars.concat_list("subject"))


def nothing(*names: str) -> DataFrame:
    """Names of no subject at all."""
    import polars

    return polars.DataFrame(
        {"fact": [""], "names": [list(names)]},
        schema={"fact": polars.String, "names": polars.List(polars.String)},
    )


def _filled(side: str) -> Expr:
    """One side of the gap: with the subject in its place, where it has one."""
    from polars import col, concat_str, when

    before, after = col(f"{side}.0"), col(f"{side}.1")
    return when(after.is_null()).then(before).otherwise(concat_str(before, "subject", after))


def _closed() -> Expr:
    """The text after the gap, with the mark that its template lacks; a name may end with it."""
    from polars import col, concat_str, when

    closed = concat_str(col("suffix").str.strip_chars_end(), "mark")
    return when(col("suffix").str.ends_with(col("mark"))).then("suffix").otherwise(closed)


def object_in_subject(fact: Fact) -> bool:
    """Whether a usual name of an accepted object stands in the subject's, ignoring case."""
    return stand_in((entity.name for entity in fact.objects), fact.subject.name)


def stand_in(objects: Iterable[str], subject: str) -> bool:
    """Whether one of some names stands in another, ignoring case.

    >>> stand_in(["Lima"], "Lima Province"), stand_in(["Lima"], "Peru")
    (True, False)
    """
    within = subject.casefold()
    return any(name.casefold() in within for name in objects)


def person_answer(relation: Relation) -> str:
    """What kind of thing a relation tells of persons; nothing of others, nor in another language
    than that of the sentence that asks about names."""
    english = relation.language in ("", "en")
    return PERSON_ANSWERS.get(relation.same or relation.id, "") if english else ""


def name_template(kind: str) -> Template:
    """The sentence that asks what a part of a name suggests: a thing of some kind."""
    text = f"[X] is a common name in the following {kind}: [Y]"
    return Template(id=NAME_PARTS + kind, text=text, group=NAME_PARTS + kind)


def name_prompts(relation: Relation, facts: DataFrame, want: Want) -> Iterator[Block]:
    """What is asked about each part of persons' names; nothing where subjects are no persons.

    `facts` has the columns `fact` and `subject`.
    """
    import polars

    if not (kind := person_answer(relation)):
        return
    parts = [list(dict.fromkeys(name.split())) for name in facts["subject"].to_list()]
    names = polars.Series(parts, dtype=polars.List(polars.String))
    subjects = facts.select("fact", names=names)
    for part in in_parts(subjects, 1):
        block = sentences(relation, [name_template(kind)], part, want)
        yield replace(block, cloze=False)


def is_name_template(id: str) -> bool:
    """Whether a template asks what a part of a name suggests."""
    return id.startswith(NAME_PARTS)


def suggests(rank: Any) -> Any:
    """Whether a part of a name brings the object, by its rank among all answers, to the top.

    Of one rank, or of an array of ranks; 0 is that of an object that cannot be answered.
    """
    return (rank > 0) & (rank <= GUESSABLE_RANK)
