"""Answers of `framing` judged, a row for each prompt, whatever order they come in.

Knows facts and answers, nothing of estimates or tables. Chosen verdicts are judged a block at a
time; written answers are compared one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from sonde.core.columns import Answers, Given
from sonde.core.facts import Template
from sonde.core.rated import RatedColumns
from sonde.core.scores import sound
from sonde.metrics.judged import Judged, judge_texts
from sonde.prompting.frames import Asked, Columns
from sonde.prompting.languages import PHRASINGS
from sonde.prompting.matching import cleaned, correct, word_count

if TYPE_CHECKING:
    from polars import DataFrame

Task = Literal["wp", "qa", "fc"]
"""Complete a sentence (word prediction), answer a question, or check a statement."""

TASKS: tuple[Task, ...] = ("wp", "qa", "fc")
TRUE, FALSE, NEITHER = "True", "False", ""
MOST = 15
FEW = 5
"""The most tokens of an answer, and of a verdict: more would not change its first word."""

Templates = Mapping[Task, tuple[Template, ...]]

VERDICTS = {
    word: verdict
    for around in PHRASINGS.values()
    for word, verdict in zip(around.verdicts, (TRUE, FALSE), strict=True)
}
"""What verdicts are called in each language."""

UNSPACED_VERDICTS = tuple(word for word in VERDICTS if word_count(word) is None)

WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcomes:
    """Everything that was judged; `templates` of each relation, by task.

    `prompts` has a row for each prompt: the numbers of its fact, of its template (within relation
    and task) and of the object it names, 0 being the right one; its task, what was told and the
    way it was answered, scored or generated. `said` is what was written, `verdict` what that, or
    the likelier option, says of a statement. `right`: a question by equal names, a sentence by
    lemmas, a statement by its verdict; `lemma`: by lemmas. `copied`: the answer is the name in
    front. `agree`, of a scored verdict: the written one is the same. `text`: some prompts, to be
    shown. `languages` that the answers to each relation are compared in. `abstains`: whether an
    answer says that the model does not know.
    """

    asked: Asked
    templates: tuple[Templates, ...]
    prompts: DataFrame
    languages: tuple[str, ...]
    abstains: Callable[[str], bool]

    @cached_property
    def parts(self) -> Mapping[Any, DataFrame]:
        """The prompts by task, by what was told and by the way they were answered."""
        return self.prompts.partition_by("task", "told", "way", as_dict=True)

    def holds(self, text: str, fact: int) -> bool:
        """Whether a right name stands in a text, by lemmas."""
        return holds(self.asked, self.languages, text, fact)

    def counts(self) -> dict[str, int]:
        """How much was asked, and what was answered with nothing, by name."""
        from polars import col

        checks = self.prompts.filter(col("task") == "fc", col("verdict") == NEITHER)["way"]
        return {
            "relations": len(self.asked.relations),
            "facts": len(self.asked.items),
            "prompts": len(self.prompts),
            "empty_answers": len(self.prompts.filter(col("task") != "fc", col("said") == "")),
            "verdicts_tied": int((checks == "scored").sum()),
            "verdicts_neither": int((checks == "generated").sum()),
        }

    def judged(self) -> Judged:
        """Completed sentences and bare questions as other analyses take them."""
        from polars import Boolean, Series, col

        bare = self.prompts.filter(col("told") == "none")
        sentences = np.array([len(own["wp"]) for own in self.templates], dtype=np.int64)
        before = sentences[self.asked.relation[bare["fact"].to_numpy()]]
        later = np.where(bare["task"] == "qa", before, 0)
        abstained = Series([*map(self.abstains, bare["said"])], dtype=Boolean)
        asked_with = [(*own["wp"], *own["qa"]) for own in self.templates]
        places = [
            (number, place < sentences[number])
            for number, own in enumerate(asked_with)
            for place in range(len(own))
        ]

        def says(text: str, names: Collection[str], template: int) -> bool:
            relation, sentence = places[template]
            if sentence:
                return correct(text, names, self.languages[relation])
            return text in map(cleaned, names)

        placed = bare.with_columns(bare["template"] + later, abstained=abstained)
        return judge_texts(
            placed.sort("fact", "template"),
            relations=self.asked.relations,
            facts=[item.fact for item in self.asked.items],
            relation=self.asked.relation,
            templates=asked_with,
            says=says,
        )


def judge(
    asked: Asked,
    templates: Sequence[Templates],
    answers: Given,
    *,
    languages: Sequence[str],
    abstains: Callable[[str], bool],
) -> Outcomes:
    """Judge every answer; of two to the same prompt the later one counts."""
    numbers = {
        (relation.id, task, template.id): number
        for relation, own in zip(asked.relations, templates, strict=True)
        for task, each in own.items()
        for number, template in enumerate(each)
    }
    added = {"verdict": str, "lemma": bool, "text": str}
    add = partial(_judged, asked=asked, right=partial(holds, asked, languages))
    prompts = asked.prompts(answers, numbers, add, added, by=("task", "template"))
    return Outcomes(
        asked=asked,
        templates=tuple(templates),
        prompts=_decided(prompts),
        languages=tuple(languages),
        abstains=abstains,
    )


def holds(asked: Asked, languages: Sequence[str], text: str, fact: int) -> bool:
    """Whether a name that is right for a fact stands in a text, in its relation's language."""
    return correct(text, asked.items[fact].correct, languages[asked.relation[fact]])


def _judged(
    block: Answers, columns: Columns, asked: Asked, right: Callable[[str, int], bool]
) -> Columns:
    """What a block says of statements, and what is right in it by lemmas; and prompts to show."""
    firsts = np.unique(asked.relation, return_index=True)[1]
    bare = (columns["told"] != "wrong").to_numpy() & (columns["template"] == 0)
    shown = np.isin(columns["fact"], firsts) & bare
    texts = block.asked.column("prefix")
    some = {"text": [texts[i].as_py() if show else None for i, show in enumerate(shown)]}
    if block.kind == "scored":
        return {"verdict": verdicts(block.rated), **some}
    said, prompts = columns["said"], zip(columns["fact"].tolist(), columns["told"], strict=True)
    lemma = [
        right(text, fact) if told == "none" else None
        for text, (fact, told) in zip(said, prompts, strict=True)
    ]
    verdict = [
        first_word(text) if task == "fc" else None
        for text, task in zip(said, columns["task"], strict=True)
    ]
    return {"lemma": lemma, "verdict": verdict, **some}


def _decided(prompts: DataFrame) -> DataFrame:
    """The prompts with whether each is right, by the rule of its task, and what verdicts say."""
    from polars import col, lit, when

    statement = ["fact", "template", "name"]
    written = prompts.filter(col("task") == "fc", col("way") == "generated")
    both = prompts.join(
        written.select(*statement, written="verdict"),
        on=statement,
        how="left",
        maintain_order="left",
    )
    verdict, scored = col("verdict"), col("way") == "scored"
    due = when(col("told") == "right").then(lit(TRUE)).otherwise(lit(FALSE))
    return both.with_columns(
        right=when(col("task") == "fc")
        .then(verdict == due)
        .when(col("task") == "wp")
        .then("lemma")
        .otherwise("right"),
        agree=when(scored & col("written").is_not_null()).then(
            (verdict == col("written")) & (verdict != NEITHER)
        ),
        says_true=verdict == TRUE,
        says_false=verdict == FALSE,
        says_neither=verdict == NEITHER,
    )


def verdicts(rated: RatedColumns) -> NDArray[np.str_]:
    """What was said of statements: the likelier option, neither where both are as likely."""
    assert rated.options is not None
    values = rated.sums().reshape(-1, 2)
    sound(values.max(axis=1))
    named = np.array([VERDICTS[name] for name in rated.names])
    options = named[rated.options.reshape(-1, 2)]
    likelier = options[np.arange(len(values)), values.argmax(axis=1)]
    return np.where(values[:, 0] == values[:, 1], NEITHER, likelier)


def first_word(text: str) -> str:
    """Which verdict a text begins with, whatever its case and language.

    >>> first_word("true, it is"), first_word("It is true"), first_word("誤りです。")
    ('True', '', 'False')
    """
    word = WORD.search(text)
    if word is None:
        return NEITHER
    begins = text[word.start() :].startswith
    opening = next(filter(begins, UNSPACED_VERDICTS), word[0].capitalize())
    return VERDICTS.get(opening, NEITHER)
