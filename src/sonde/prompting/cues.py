r"""Questions and statements after examples, and after a cue: the name of an object, right or wrong.

In `qa` form, with one example and a wrong cue:

    Q: Where was Marie Curie born?
    A: Warsaw
    Q: Oslo. Where was Alan Turing born?
    A:

In `plain` form each of these is one line, `Oslo. Where was Alan Turing born?`. All prompts of a
relation have the same examples, without cues, so that prompts differ only in what is compared.
Knows facts and templates, not models.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import polars as pl

from sonde.core.facts import Dataset, Relation, Template, facts_of
from sonde.prompting.examples import fill_question, fixed_examples, write_examples
from sonde.prompting.languages import ENGLISH, Phrasing
from sonde.prompting.options import correct_for, correct_names, negatives

Form = Literal["plain", "qa"]
Cue = Literal["none", "right", "wrong"]
Example = Mapping[str, str]  # of a fact: subject, object, and wrong, empty if no object is wrong

EXAMPLE = pl.Struct(dict.fromkeys(("subject", "object", "wrong"), pl.String))
COLUMNS = {
    "correct_names": pl.List(pl.String),
    "wrong": pl.List(pl.String),
    "dropped_wrong": pl.UInt32,
    "examples": pl.List(EXAMPLE),
    "excluded": pl.String,
}


def with_cues(facts: pl.DataFrame, data: Dataset, shots: int, n_wrong: int) -> pl.DataFrame:
    """The table of facts with what prompts with cues and examples need.

    Args:
        facts: the facts that the dataset asks about, in its order.
        shots: `examples` has so many facts of the relation, none about the fact's own subject.
            Facts that are needed as examples are `excluded`.
        n_wrong: `wrong` has the names of so many objects that are not correct for the subject,
            as far as there are any. `dropped_wrong` counts those that the dataset calls wrong, but
            are correct. `correct_names` are all names of objects that are correct for the subject.
    """
    rows = []
    for relation in data.asked_relations():
        id, seed = relation.id, data.selection.seed
        names, pool = correct_names(data, id), data.object_names(id)
        examples, held = [], set[str]()
        if shots:
            shown = fixed_examples(data, id, shots)
            held = set(shown.filter("held")["fact"])
            for fact in facts_of(shown.drop("held")):
                wrong, _ = negatives(fact, correct_for(fact, names), pool, seed, 1)
                object, other = fact.objects[0].name, "".join(wrong)
                examples.append({"subject": fact.subject.name, "object": object, "wrong": other})
        for fact in data.asked(id):
            correct = correct_for(fact, names)
            wrong, dropped = negatives(fact, correct, pool, seed, n_wrong)
            others = [e for e in examples if e["subject"] not in fact.subject.names][:shots]
            reason = "used as an example" if fact.id in held else None
            rows.append((sorted(correct), wrong, dropped, others, reason))
    columns = pl.DataFrame(rows, COLUMNS, orient="row")
    return facts.with_columns(columns.get_columns())


def questions(relation: Relation, limit: int | None = None) -> tuple[Template, ...]:
    """The relation's question templates, the base question first; all or `limit` of them."""
    return tuple(t for t in relation.templates if t.style == "question" and t.plain)[:limit]


def statements(relation: Relation, limit: int | None = None) -> tuple[Template, ...]:
    """The relation's statements, wherever their object is."""
    return tuple(t for t in relation.templates if t.style == "statement" and t.plain)[:limit]


def sentences(relation: Relation, limit: int | None = None) -> tuple[Template, ...]:
    """The relation's statements that end with their object."""
    return tuple(t for t in statements(relation) if t.answer_last)[:limit]


def with_markers(text: str, form: Form, around: Phrasing = ENGLISH) -> str:
    r"""A question up to where its answer begins.

    >>> with_markers("Where?", "plain"), with_markers("Where?", "qa")
    ('Where? ', 'Q: Where?\nA: ')
    """
    text = f"{around.question}{text}\n{around.answer}" if form == "qa" else text
    return f"{text}{around.space}"


def question_prompt(
    template: Template, subject: str, form: Form, cue: str = "", around: Phrasing = ENGLISH
) -> str:
    r"""A question about a subject, after a cue if there is one, up to where its answer begins.

    >>> born = Template(id="t", text="Where was [X] born? [Y].", style="question")
    >>> question_prompt(born, "Ann", "qa", "Oslo")
    'Q: Oslo. Where was Ann born?\nA: '
    """
    question = fill_question(template, subject, "qa")
    cued = f"{cue}{around.stop}{around.space}{question}" if cue else question
    return with_markers(cued, form, around)


def statement_prompt(
    template: Template, subject: str, name: str, form: Form, around: Phrasing = ENGLISH
) -> str:
    """A statement about a subject and an object, and the question whether it is true.

    >>> place = Template(id="t", text="[X] is in [Y] .")
    >>> statement_prompt(place, "Oslo", "Norway", "plain")
    'Statement: Oslo is in Norway. The statement is True or False? '
    """
    statement = name.join(template.fill(subject)).strip().rstrip(f" .{around.stop}")
    return with_markers(around.check.replace("[S]", statement), form, around)


def question_examples(
    base: Template, examples: Sequence[Example], form: Form, around: Phrasing = ENGLISH
) -> tuple[str, list[int]]:
    """Examples as questions with their answers, a line each, and where the answers are."""
    questions = (question_prompt(base, e["subject"], form, "", around) for e in examples)
    answers = (f"{e['object']}\n" for e in examples)
    return write_examples(zip(questions, answers, strict=True))
