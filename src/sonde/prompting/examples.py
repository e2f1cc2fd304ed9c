r"""Few-shot examples: which facts precede a question, and how questions and answers are written.

Facts are drawn by keys made of the seed and of names, so another fact moves no draw. A fact about
the subject in question is never its own example: the next one in the draw replaces it. In mask
style a sentence has [MASK] in place of the object, in qa style it is a question:

    Predict the [MASK] in each sentence in one word.
    Q: The capital of Peru is [MASK].
    A: Lima.
    Q: The capital of Chile is [MASK].
    A:

Knows facts and templates, no models.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars import col

from sonde.core.errors import DataError, TemplateError, UsageError
from sonde.core.facts import ANSWER_SLOT, DATE_SLOT, SUBJECT_SLOT, Dataset, Relation, Template
from sonde.core.fingerprints import draw_key, draw_keys
from sonde.prompting.languages import ENGLISH, QUESTION_MARKS, Phrasing
from sonde.prompts import KEY

Style = Literal["mask", "qa"]
Context = Literal["zero-shot", "random", "relation", "template"]
ShotsPer = Literal["template", "fact"]
Keys = NDArray[np.uint64]
Name = tuple[str, str]  # relation and a name of a subject

MASK, TRAIN = "[MASK]", "train"
QUESTION, ANSWER = "[Q]", "[A]"
MAX_POOL = 50_000  # facts that examples are drawn from; of more, those with the smallest keys
SPARE = 1  # facts needed beyond the shots, since one may be about the subject in question
FRONT = 256  # keys that are sorted first: more are rarely needed
SPARES = 2


def random_keys(seed: int, names: Iterable[str]) -> Keys:
    """A random number for each name, which depends on it and the seed alone."""
    return np.frombuffer(b"".join(draw_keys(seed, names)), ">u8").astype(np.uint64)


def mix_keys(keys: Keys, salt: int) -> Keys:
    """Independent keys for a further draw from the same pool (splitmix64)."""
    mixed = (keys ^ np.uint64(salt)) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


class Pool:
    """Facts that may be shown: a frame with relation, fact, subject_id, subject, object_names."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame
        self.names: list[Name] = frame.select("relation", "subject").rows()
        self.ids: list[Name] = frame.select("relation", "subject_id").rows()

    def row(self, number: int) -> dict[str, Any]:
        return self.frame.row(number, named=True)


class Draw:
    """The facts of a pool by rising key, at most one of each subject; sorted only as far as needed.

    Two facts are about one subject if its id or its usual name is the same, since a model reads
    the name.
    """

    def __init__(self, keys: Keys, pool: Pool) -> None:
        self.pool, self._rows = pool, list[int]()
        self._further = self._rows_by_key(keys)

    def _rows_by_key(self, keys: Keys) -> Iterator[int]:
        front = min(len(keys), FRONT)
        first = np.sort(np.argpartition(keys, front - 1)[:front]) if front else np.arange(0)
        ids, names = set[Name](), set[Name]()
        for part in (first[np.argsort(keys[first], kind="stable")], None):
            rows = np.argsort(keys, kind="stable")[front:] if part is None else part
            for row in rows.tolist():
                id, name = self.pool.ids[row], self.pool.names[row]
                if id not in ids and name not in names:
                    ids.add(id)
                    names.add(name)
                    yield row

    def take_rows(self, n: int, excluded_subjects: Collection[Name] = ()) -> list[int]:
        """The pool's rows of the first n facts, without those about the excluded subjects."""
        names = self.pool.names
        taken = [row for row in self._rows if names[row] not in excluded_subjects][:n]
        while len(taken) < n and (row := next(self._further, None)) is not None:
            self._rows.append(row)
            if names[row] not in excluded_subjects:
                taken.append(row)
        return taken


class QuestionAndAnswer(NamedTuple):
    """An example: the text up to its answer, and the answer with what closes it."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptLayout:
    r"""How questions and answers are written one after the other.

    Args:
        text: one of each, with [Q] and [A].
        head: precedes all of them.
        separator: between several correct answers in an example; empty: only the first is shown.

    Example:
        >>> PromptLayout(text="[Q] [A]%\n", separator="; ").write_example("Which?", ["Thai", "Lao"])
        QuestionAndAnswer(question='Which? ', answer='Thai; Lao%\n')
    """

    text: str
    head: str = ""
    separator: str = ""

    def __post_init__(self) -> None:
        places = [self.text.find(QUESTION), self.text.find(ANSWER)]
        counts = [self.text.count(slot) for slot in (QUESTION, ANSWER)]
        if counts != [1, 1] or places != sorted(places):
            raise UsageError(
                f"a layout needs {QUESTION} once and then {ANSWER} once, such as "
                f"'Q: [Q]\\nA: [A]\\n'; not {self.text!r}"
            )

    @property
    def stop_text(self) -> str:
        """The text that ends an answer: what closes it, else the end of its line.

        A full stop closes none, because answers may contain one.
        """
        closing = self.text.partition(ANSWER)[2].strip()
        return closing if closing.strip(".。") else "\n"

    def write_example(self, question: str, answers: Sequence[str]) -> QuestionAndAnswer:
        """The text up to the answer, and the answer with what closes it."""
        before, _, after = self.text.partition(ANSWER)
        answer = self.separator.join(answers) if self.separator else answers[0]
        answer = f"{answer.removesuffix(after.strip())}{after}"
        return QuestionAndAnswer(before.replace(QUESTION, question), answer)


def default_prompt_layout(style: Style, phrasing: Phrasing = ENGLISH) -> PromptLayout:
    """An instruction, then lines of `Q:` and `A:`; every answer ends with one full stop."""
    text = (
        f"{phrasing.question}{QUESTION}\n{phrasing.answer}{phrasing.space}{ANSWER}{phrasing.stop}\n"
    )
    return PromptLayout(text=text, head=f"{phrasing.mask if style == 'mask' else phrasing.qa}\n")


class ExamplesText(NamedTuple):
    """Examples one after the other, and the characters at which each answer starts and stops."""

    text: str
    answer_spans: list[int]


def join_examples(examples: Iterable[tuple[str, str]], head: str = "") -> ExamplesText:
    r"""Examples, each as the text up to its answer and its answer, as one text.

    >>> join_examples([("Q: A?\nA: ", "B\n")], "Answer.\n")
    ExamplesText(text='Answer.\nQ: A?\nA: B\n', answer_spans=[17, 19])
    """
    text, spans = head, list[int]()
    for question, answer in examples:
        spans += len(text) + len(question), len(text) + len(question) + len(answer)
        text += question + answer
    return ExamplesText(text, spans)


def slot_values(fact: Mapping[str, Any]) -> dict[str, str]:
    """What a fact has for the slots of templates besides its subject."""
    details = {f"[details.{one['name']}]": one["value"] for one in fact.get("details") or ()}
    return {DATE_SLOT: fact.get("date") or "", **details}


def fill_question(
    template: Template, subject: str, style: Style, slots: Mapping[str, str] | None = None
) -> str:
    """The question of a template; `slots` as from `slot_values`, if it takes more than the subject.

    >>> born = Template(id="t", text="Where was [X] born? [Y].", style="question")
    >>> fill_question(born, "Ann", "qa"), fill_question(born, "Ann", "mask")
    ('Where was Ann born?', 'Where was Ann born? [MASK].')
    """

    def end_of_question(text: str) -> int:
        return max((text.rfind(m) + len(m) for m in QUESTION_MARKS if m in text), default=0)

    values = {SUBJECT_SLOT: subject, **(slots or {})}
    if style == "mask":
        return MASK.join(template.filled(values))
    if not template.plain:
        text = template.filled(values)[0]
        return text[: end_of_question(text)] or text.rstrip()
    # cut before the subject is in, because its name may have a question mark
    head = template.text.split(ANSWER_SLOT)[0]
    head = head[: end_of_question(head)]
    if SUBJECT_SLOT not in head:
        raise TemplateError(
            f"question template {template.id!r} must ask before it answers, as in "
            f"'Where was [X] born? [Y].' (text: {template.text!r})"
        )
    return head.replace(SUBJECT_SLOT, subject)


class FewShot:
    """Questions after examples. The facts that examples come from are read once.

    Args:
        templates: those of a relation that may be shown in examples.
        layout: of the prompts of a relation.
        context: where examples come from: none, any relation of the same language, the same
            relation in any template, or the same template.
        shots: how many examples, drawn once for each template or again for each fact.
    """

    def __init__(
        self,
        data: Dataset,
        templates: Callable[[Relation], Sequence[Template]],
        layout: Callable[[Relation], PromptLayout],
        *,
        style: Style = "mask",
        context: Context = "template",
        shots: int = 4,
        shots_per: ShotsPer = "template",
    ) -> None:
        if context != "zero-shot" and shots < 1:
            raise UsageError("a context with examples needs shots of at least 1; or use zero-shot")
        self.data, self.templates, self.layout = data, templates, layout
        self.style, self.context, self.per_fact = style, context, shots_per == "fact"
        self.shots = 0 if context == "zero-shot" else shots
        self._pool = lru_cache(maxsize=1)(self._read_pool)

    def prompts(self, relation: Relation, template: Template, facts: pl.DataFrame) -> pl.DataFrame:
        """Prompts up to where their answer begins: the key columns, texts and `example_spans`.

        `facts` has a row for each prompt: fact, subject (the name to ask with), names (all names of
        the subject), and date and details if the template takes them.
        """
        layout, prefixes, spans, drawn = self.layout(relation), [], [], ""
        before = layout.text.partition(ANSWER)[0]
        for fact in facts.iter_rows(named=True):
            name = f"{relation.id}:{template.id}" + f":{fact['fact']}" * self.per_fact
            if name != drawn:
                drawn, draw, texts = name, self._draw_examples(relation, name), {}
            rows = tuple(
                draw.take_rows(self.shots, {(relation.id, alias) for alias in fact["names"]})
            )
            if len(rows) < self.shots:
                where = "the dataset" if self.context == "random" else f"relation {relation.id}"
                raise DataError(
                    f"{where} has {len(rows)} facts to show as examples before "
                    f"{fact['names'][0]!r}, fewer than the {self.shots} of shots: set shots lower, "
                    "or the context to zero-shot"
                )
            if rows not in texts:
                examples = (self._write_example(draw.pool.row(row), template, name) for row in rows)
                texts[rows] = join_examples(examples, layout.head)
            question = fill_question(template, fact["subject"], self.style, slot_values(fact))
            # the space before an answer belongs to the answer
            last = before.replace(QUESTION, question).rstrip(" ")
            prefixes.append(texts[rows][0] + last)
            spans.append(texts[rows][1])
        frame = facts.with_columns(
            relation=pl.lit(relation.id),
            template=pl.lit(template.id),
            prefix=pl.Series(prefixes, dtype=pl.String),
            suffix=pl.lit(""),
            example_spans=pl.Series(spans, dtype=pl.List(pl.Int64)),
        )
        return frame.select(*KEY, "prefix", "suffix", *["example_spans"] * (self.shots > 0))

    def _draw_examples(self, relation: Relation, name: str) -> Draw:
        sources = [relation]
        if self.context == "random":
            alike = (r for r in self.data.relations if r.language == relation.language)
            sources = [r for r in alike if self.templates(r)]
        keys, pool = self._pool(*(r.id for r in sources))
        return Draw(mix_keys(keys, draw_key(self.data.selection.seed, f"icl:{name}")), pool)

    def _read_pool(self, *relations: str) -> tuple[Keys, Pool]:
        """Training facts, or all facts of a relation that has too few of them."""
        frames = []
        for facts in map(self.data.frame, relations):
            training = facts.filter(split=TRAIN)
            frames.append(training if training.height >= self.shots + SPARE else facts)
        frame = pl.concat(frames)
        names = frame.select(pl.format("{}:{}", "relation", "fact")).to_series()
        keys = random_keys(self.data.selection.seed, names)
        smallest = np.argsort(keys, kind="stable")[:MAX_POOL]
        return keys[smallest], Pool(frame[smallest])

    def _write_example(
        self, fact: dict[str, Any], template: Template, name: str
    ) -> QuestionAndAnswer:
        relation, seed = self.data.relation(fact["relation"]), self.data.selection.seed
        if self.context != "template":
            draw = f"icl:{name}:{fact['fact']}"
            choices = self.templates(relation)
            template = min(choices, key=lambda t: draw_key(seed, f"{draw}:{t.id}"))
        question = fill_question(template, fact["subject"], self.style, slot_values(fact))
        return self.layout(relation).write_example(
            question, [names[0] for names in fact["object_names"]]
        )


def choose_fixed_examples(data: Dataset, relation: str, n: int) -> pl.DataFrame:
    """Facts for the same n examples before all questions of a relation, spares included.

    They are training facts, or facts that are not asked about. If there are too few of either,
    `held` is true: they are facts of the selection, which are not asked about then.
    """
    facts = data.frame(relation).with_columns(
        held=col("fact").is_in(data.asked_frame(relation)["fact"].implode())
    )
    frames = (facts.filter(~col("held"), split=TRAIN), facts.filter(~col("held")), facts)
    for spares, frame in zip((SPARES, SPARES, 0), frames, strict=True):
        keys = random_keys(data.selection.seed, (f"shots:{relation}:{id}" for id in frame["fact"]))
        # by name only: no fact that is held needs a spare
        rows = Draw(keys, Pool(frame.with_columns(subject_id="subject"))).take_rows(n + spares)
        if len(rows) == n + spares:
            break
    return frame[rows]
