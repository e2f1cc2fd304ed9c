r"""Facts as sentences, questions and statements, after examples and cues.

A cue is the name of an object in front of a question, correct or wrong for it.

In `qa` form, with one example and a wrong cue:

    Q: Where was Marie Curie born?
    A: Warsaw
    Q: Oslo. Where was Alan Turing born?
    A:

In `plain` form each of these is one line, `Oslo. Where was Alan Turing born?`. All prompts of a
relation have the same examples, without cues, so that prompts differ only in what is compared.
Knows facts and templates, not models.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import polars as pl

from sonde.core.facts import Dataset, Relation, Template, facts_of
from sonde.prompting.examples import (
    ExamplesText,
    choose_fixed_examples,
    fill_question,
    join_examples,
)
from sonde.prompting.languages import ENGLISH, PHRASINGS, Phrasing
from sonde.prompting.matching import count_words
from sonde.prompting.options import (
    draw_wrong_names,
    names_correct_for,
    names_correct_for_repeated_subjects,
)

Form = Literal["plain", "qa"]
Cue = Literal["none", "right", "wrong"]
Task = Literal["wp", "qa", "fc"]  # word prediction, a question, fact checking
Example = Mapping[str, str]  # of a fact: subject, object, and wrong, empty if no object is wrong

VERDICTS = {
    word: verdict
    for phrasing in PHRASINGS.values()
    for word, verdict in zip(phrasing.verdicts, ("True", "False"), strict=True)
}
UNSPACED = tuple(word for word in VERDICTS if count_words(word) is None)

EXAMPLE = pl.Struct(dict.fromkeys(("subject", "object", "wrong"), pl.String))
COLUMNS: Mapping[str, Any] = {
    "correct_names": pl.List(pl.String),
    "wrong": pl.List(pl.String),
    "dropped_wrong": pl.UInt32,
    "examples": pl.List(EXAMPLE),
    "excluded": pl.String,
}


def add_cue_columns(facts: pl.DataFrame, data: Dataset, shots: int, n_wrong: int) -> pl.DataFrame:
    """The table of facts with what prompts with cues and examples need.

    Args:
        facts: the facts of the selection, in its order.
        shots: the number of `examples`: facts of the relation, none about the fact's subject.
            Facts that are needed as examples are `excluded`.
        n_wrong: the number of names in `wrong`, of objects that are not correct for the subject,
            as far as there are any. `dropped_wrong` counts those that the dataset calls wrong, but
            are correct. `correct_names` are all names of objects that are correct for the subject.
    """
    rows = []
    for relation in data.asked_relations():
        id, seed = relation.id, data.selection.seed
        names, pool = names_correct_for_repeated_subjects(data, id), data.object_names(id)
        examples, held = [], set[str]()
        if shots:
            shown = choose_fixed_examples(data, id, shots)
            held = set(shown.filter("held")["fact"])
            for fact in facts_of(shown.drop("held")):
                wrong, _ = draw_wrong_names(fact, names_correct_for(fact, names), pool, seed, 1)
                object, other = fact.objects[0].name, "".join(wrong)
                examples.append({"subject": fact.subject.name, "object": object, "wrong": other})
        for fact in facts_of(data.asked_frame(id)):
            correct = names_correct_for(fact, names)
            wrong, dropped = draw_wrong_names(fact, correct, pool, seed, n_wrong)
            others = [e for e in examples if e["subject"] not in fact.subject.names][:shots]
            reason = "used as an example" if fact.id in held else None
            rows.append((sorted(correct), wrong, dropped, others, reason))
    columns = pl.DataFrame(rows, COLUMNS, orient="row")
    return facts.with_columns(columns.get_columns())


def question_templates(relation: Relation, limit: int | None = None) -> tuple[Template, ...]:
    """The relation's question templates, the base question first; all or `limit` of them."""
    return tuple(t for t in relation.templates if t.style == "question" and t.plain)[:limit]


def statement_templates(relation: Relation, limit: int | None = None) -> tuple[Template, ...]:
    """The relation's statements, wherever their object is."""
    return tuple(t for t in relation.templates if t.style == "statement" and t.plain)[:limit]


def answer_last_templates(relation: Relation, limit: int | None = None) -> tuple[Template, ...]:
    """The relation's statements that end with their object."""
    return tuple(t for t in statement_templates(relation) if t.answer_last)[:limit]


def add_question_markers(question: str, form: Form, phrasing: Phrasing = ENGLISH) -> str:
    r"""A question up to where its answer begins.

    >>> add_question_markers("Where?", "plain"), add_question_markers("Where?", "qa")
    ('Where? ', 'Q: Where?\nA: ')
    """
    text = f"{phrasing.question}{question}\n{phrasing.answer}" if form == "qa" else question
    return f"{text}{phrasing.space}"


def question_prompt(
    template: Template, subject: str, form: Form, cue: str = "", phrasing: Phrasing = ENGLISH
) -> str:
    r"""A question about a subject, after a cue if there is one, up to where its answer begins.

    >>> born = Template(id="t", text="Where was [X] born? [Y].", style="question")
    >>> question_prompt(born, "Ann", "qa", "Oslo")
    'Q: Oslo. Where was Ann born?\nA: '
    """
    question = fill_question(template, subject, "qa")
    cued = f"{cue}{phrasing.stop}{phrasing.space}{question}" if cue else question
    return add_question_markers(cued, form, phrasing)


def statement_prompt(
    template: Template, subject: str, object: str, form: Form, phrasing: Phrasing = ENGLISH
) -> str:
    """A statement about a subject and an object, and the question whether it is true.

    >>> place = Template(id="t", text="[X] is in [Y] .")
    >>> statement_prompt(place, "Oslo", "Norway", "plain")
    'Statement: Oslo is in Norway. The statement is True or False? '
    """
    statement = object.join(template.fill(subject)).strip().rstrip(f" .{phrasing.stop}")
    return add_question_markers(phrasing.check.replace("[S]", statement), form, phrasing)


def task_prompt(
    task: Task, template: Template, subject: str, cue_or_object: str, form: Form, phrasing: Phrasing
) -> str:
    """A prompt of a task up to its answer: `cue_or_object` is a name."""
    if task == "wp":
        return template.fill(subject)[0]
    if task == "fc":
        return statement_prompt(template, subject, cue_or_object, form, phrasing)
    return question_prompt(template, subject, form, cue_or_object, phrasing)


def write_task_examples(
    task: Task,
    base: Template,
    examples: Sequence[Example],
    form: Form,
    phrasing: Phrasing,
    first_is_false: int = 0,
) -> ExamplesText:
    """Examples with their answers, a line each, and where the answers are.

    Statements are true and false in turn; `first_is_false` is 1 if the first one is false, else 0.
    """
    lines = []
    for number, example in enumerate(examples):
        name, answer = "", example["object"]
        if task == "fc":
            verdict = (number + first_is_false) % 2
            name, answer = example["wrong" if verdict else "object"], phrasing.verdicts[verdict]
            if not name:
                continue
        elif task == "wp":
            answer += base.fill(example["subject"])[1]
        text = task_prompt(task, base, example["subject"], name, form, phrasing)
        lines.append((text, f"{answer}\n"))
    return join_examples(lines)


def write_question_examples(
    base: Template, examples: Sequence[Example], form: Form, phrasing: Phrasing = ENGLISH
) -> ExamplesText:
    """Examples as questions."""
    return write_task_examples("qa", base, examples, form, phrasing)


def parse_leading_verdict(text: str) -> str:
    """Whether a text begins with the word for True or False, in any language; else empty.

    >>> [*map(parse_leading_verdict, ("true, it is", "It is true", "誤りです。"))]
    ['True', '', 'False']
    """
    word = re.search(r"[^\W\d_]+", text)
    if word is None:
        return ""
    unspaced = filter(text[word.start() :].startswith, UNSPACED)
    return VERDICTS.get(next(unspaced, word[0].capitalize()), "")
