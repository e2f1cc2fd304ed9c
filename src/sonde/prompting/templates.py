"""Templates filled with subjects: sentences with a gap, as batches. Knows names, not models.

A masked model fills a mask at the end of an unclosed sentence with a full stop or an ellipsis, so
templates without final punctuation can be closed.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

import polars as pl
from polars import col, concat_str, lit, when

from sonde.core.errors import DataError
from sonde.core.facts import (
    ANSWER_SLOT,
    DATE_SLOT,
    NAME_PARTS,
    SLOT,
    SUBJECT_SLOT,
    Dataset,
    Relation,
    Template,
)
from sonde.core.texts import capitalised
from sonde.prompting.languages import PHRASINGS
from sonde.prompts import KEY, TEXTS, AnyRequest, Names, PromptBatch

BATCH = 2**16  # prompts in a batch, about: what a probe holds in memory at once
PAIR = ("relation", "subject_id", "date")  # facts that are equal here are one pair

CLOSE_HELP = (
    "for masked models, end each template that has no final punctuation with a full stop; other "
    "models read templates as they are"
)
CLOSING_BRACKETS = "\"'”’»›)]}」』）】"  # may follow the final punctuation of a sentence
FULL_STOPS = {
    **dict.fromkeys(("CJK", "HIRAGANA", "KATAKANA"), "。"),
    **dict.fromkeys(("DEVANAGARI", "BENGALI", "GURMUKHI", "ORIYA"), "।"),
    **{"ARMENIAN": "։", "ETHIOPIC": "።", "MYANMAR": "။", "KHMER": "។", "TIBETAN": "།"},
    **dict.fromkeys(("THAI", "LAO"), ""),
}  # of scripts, by Unicode name, that have another one than Latin, or none

# LAMA-UHN: what a part of a person's name may suggest
PERSON_OBJECTS = {
    **dict.fromkeys(("P19", "P20"), "city"),
    **dict.fromkeys(("P103", "P1412"), "language"),
    "P27": "country",
}


def fill_templates(
    relation: Relation,
    templates: Sequence[Template],
    subjects: pl.DataFrame,
    request: AnyRequest,
    *,
    options: Sequence[Names] = (),
    capitalize: bool = False,
    close: bool = False,
) -> Iterator[PromptBatch]:
    """Every template with every name of every subject, in the order of subject, template and name.

    Args:
        subjects: `fact` and `names` (a list); `date` and `details` for templates that take them
            from facts. Any further column becomes one of the prompts. See `usual_names`.
        options: the lists that Score prompts choose from, numbered by a column `options_id`.
        capitalize: sentences begin with a capital, also if a name opens them.
        close: templates without final punctuation end with a full stop.
    """
    if not templates:
        return
    plain = all(template.plain for template in templates)
    marks = [missing_full_stop(t, relation.language) if close else "" for t in templates]
    further = [name for name in subjects.columns if name not in ("fact", "names", *FACT_VALUES)]
    # a suffix may end with the subject, whose name may end with the mark, as in "Apple Inc."
    open_end = ~col("suffix").str.ends_with(col("mark"))
    closed = concat_str(col("suffix").str.strip_chars_end(), "mark")
    fill = _fill_subjects if plain else _fill_subjects_dates_and_details
    part = col("names").list.len().cum_sum() * len(templates) // BATCH
    for _, rows in subjects.group_by(part.alias("part"), maintain_order=True):
        frame = fill(templates, marks, rows).with_columns(
            relation=lit(relation.id), suffix=when(open_end).then(closed).otherwise("suffix")
        )
        if capitalize:
            texts = [capitalised(text) for text in frame["prefix"]]
            frame = frame.with_columns(prefix=pl.Series(texts, dtype=pl.String))
        frame = frame.select(*KEY, *further, *TEXTS)
        yield PromptBatch(frame=frame, request=request, options=options, cloze=plain)


FACT_VALUES = ("date", "details")
PIECES = [f"{side}_{piece}" for side in TEXTS for piece in ("before", "slot", "after")]


def _fill_subjects(
    templates: Sequence[Template], marks: Sequence[str], subjects: pl.DataFrame
) -> pl.DataFrame:
    """Prompts whose templates take only the subject's name from a fact."""
    rows = []
    for template, mark in zip(templates, marks, strict=True):
        sides = [side.partition(SUBJECT_SLOT) for side in template.text.split(ANSWER_SLOT)]
        rows.append((template.id, mark, *sides[0], *sides[1]))
    schema = dict.fromkeys(("template", "mark", *PIECES), pl.String)
    pieces = pl.LazyFrame(rows, schema, orient="row")
    filled = {
        side: concat_str(
            f"{side}_before",
            when(col(f"{side}_slot") == "").then(lit("")).otherwise("names"),
            f"{side}_after",
        )
        for side in TEXTS
    }
    prompts = subjects.lazy().join(pieces, how="cross", maintain_order="left_right")
    return prompts.explode("names").with_columns(subject="names", **filled).collect()


def _fill_subjects_dates_and_details(
    templates: Sequence[Template], marks: Sequence[str], subjects: pl.DataFrame
) -> pl.DataFrame:
    """Prompts whose templates take a date or details from each fact, one by one."""
    rows = []
    for row in subjects.iter_rows(named=True):
        details = {f"[details.{detail['name']}]": detail["value"] for detail in row.pop("details")}
        values = {DATE_SLOT: row["date"], **details}
        for (template, mark), name in product(zip(templates, marks, strict=True), row["names"]):
            prefix, suffix = template.filled({SUBJECT_SLOT: name, **values})
            prompt = {"template": template.id, "subject": name, "prefix": prefix, "suffix": suffix}
            rows.append({**row, "mark": mark, **prompt})
    return pl.DataFrame(rows, infer_schema_length=None)


def usual_names(facts: pl.DataFrame) -> pl.DataFrame:
    """Facts of a dataset's frame as subjects with one name each, the usual one."""
    return facts.select("fact", *FACT_VALUES, names=pl.concat_list("subject"))


def pairs_with_subject_names(data: Dataset, relation: str) -> pl.DataFrame:
    """The pairs of a relation as subjects: the first fact of each, with all names that its subject
    has in facts of any split, those of the first fact first."""
    first = data.asked_frame(relation).lazy().unique(PAIR, keep="first", maintain_order=True)
    every = data.frame(relation).lazy().join(first, on=PAIR, how="semi", maintain_order="left")
    names = pl.concat([first, every]).select(*PAIR, names="subject_names").explode("names")
    names = names.group_by(PAIR).agg(col("names").unique(maintain_order=True))
    pairs = first.join(names, on=PAIR, how="left", maintain_order="left")
    return pairs.select("fact", "names", *FACT_VALUES).collect()


def content_free_subjects(*names: str) -> pl.DataFrame:
    """Subjects that state nothing, of no fact: what a template suggests by itself."""
    return pl.DataFrame({"fact": [""], "names": [list(names)]})


def build_name_part_prompts(
    relation: Relation, facts: pl.DataFrame
) -> tuple[Template, pl.DataFrame] | None:
    """A template and the parts of persons' names, to prompt for what a part alone suggests.

    None if the relation is not one of persons, or not in the template's language.
    """
    kind = PERSON_OBJECTS.get(relation.same or relation.id)
    if kind is None or relation.language not in ("", "en"):
        return None
    id = f"{NAME_PARTS}{kind}"
    text = f"[X] is a common name in the following {kind}: [Y]"
    parts = [list(dict.fromkeys(name.split())) for name in facts["subject"]]
    names = pl.Series(parts, dtype=pl.List(pl.String))
    return Template(id=id, text=text, group=id), facts.select("fact", names=names)


def template_by_number(relation: Relation, number: int) -> Template:
    """A template of the relation by its number, from 1."""
    if not relation.templates:
        raise DataError(
            f"relation {relation.id} has no template; give one with --template "
            f"'{relation.id}=The … of [X] is [Y].', or choose others with --relations"
        )
    if number > len(relation.templates):
        raise DataError(
            f"relation {relation.id} has {len(relation.templates)} templates, not {number}; give "
            "a smaller --template-no"
        )
    return relation.templates[number - 1]


def missing_full_stop(template: Template, language: str = "") -> str:
    """The full stop that a template lacks; empty if it has final punctuation, or needs none.

    Optimized templates are used as they were trained.

    >>> missing_full_stop(Template(id="t", text="[X] is in [Y]"))
    '.'
    >>> missing_full_stop(Template(id="t", text="[X]は[Y]にある", source="mined"))
    '。'
    >>> missing_full_stop(Template(id="t", text='"[X] is in [Y]!"')) or "closed"
    'closed'
    """
    text = SLOT.sub("x", template.text.replace(ANSWER_SLOT, "x")).rstrip()
    last = text.rstrip(CLOSING_BRACKETS)[-1:]
    if not last or unicodedata.category(last).startswith("P") or template.source == "optimised":
        return ""
    if language == "ur":
        return "۔"
    if language in PHRASINGS:
        return PHRASINGS[language].stop
    scripts = (unicodedata.name(letter, "").partition(" ")[0] for letter in text)
    return next((FULL_STOPS[script] for script in scripts if script in FULL_STOPS), ".")


def describe_closed_templates(templates: Iterable[tuple[Relation, Template]]) -> tuple[str, ...]:
    """How many templates are closed, as one sentence; nothing if none is."""
    marks = [missing_full_stop(template, relation.language) for relation, template in templates]
    if not any(marks):
        return ()
    number = f"{sum(map(bool, marks)):,} of {len(marks):,} templates"
    return (f"Closed {number} with a full stop (--no-close leaves templates as they are).",)
