"""EIC-LKE: several facts tested in one long list of facts, one option each at a time.

A prompt lists facts of a relation, and some of the later ones are tested: each with one of its
options (layout "facts"), or one fact with several of its options (layout "options"). So wrong
options of earlier facts precede later ones. It saves computing only where ic-lke would have to
score every option in a separate text.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import Any, Literal

import numpy as np
import polars as pl
from polars import col, lit

from sonde.answers import Answers, OptionScores, SpanLogprobs
from sonde.core.components import setting
from sonde.core.facts import Dataset, Relation
from sonde.core.fingerprints import draw_keys
from sonde.evaluation.judge import judge_options
from sonde.evaluation.layout import Layout
from sonde.probes.ic_lke import (
    LISTED,
    SCORED,
    ChoiceProbe,
    FactsAndExamples,
    check_facts_remain,
    select_facts_and_examples,
)
from sonde.prompting.sequences import Line, ListLayout, extend_spans_over_spaces
from sonde.prompts import KEY, PromptBatch, Score, TokenLogprobs

Fact = dict[str, Any]  # a row of the dataset's frame, with `options`


@dataclass(frozen=True, kw_only=True)
class EicLke(ChoiceProbe):
    """Which option is the most likely, if several facts are tested in one list of facts."""

    examples: int = setting(100, "how many facts of the relation a list shows", min=1)
    start: int = setting(50, "after how many of them the first fact is tested", min=1)
    stride: int = setting(5, "after how many more the next one is", min=1)
    sequence_layout: Literal["facts", "options"] = setting(
        "facts", "what a list tests: an option of each of several facts, or options of one fact"
    )

    name = "eic-lke"
    requires = (frozenset({"trace"}),)
    axes = ("option",)  # gone once the options of a fact are together
    length_setting = "examples"
    exclusion_reason = "not all options were answered"

    @property
    def layout(self) -> Layout:
        title = f"{self.examples} examples, testing {self.sequence_layout}"
        return replace(super().layout, title=title)

    def facts(self, data: Dataset) -> pl.DataFrame:
        return super().facts(data).drop(SCORED)

    def facts_and_examples(self, data: Dataset, relation: Relation) -> FactsAndExamples:
        return select_facts_and_examples(data, relation.id, self.examples, self.max_options)

    def tested_positions(self, count: int) -> tuple[int, ...]:
        """After how many of `count` examples a fact is tested; with few examples earlier.

        >>> EicLke().tested_positions(100)
        (50, 55, 60, 65, 70, 75, 80, 85, 90, 95)
        >>> EicLke().tested_positions(30), EicLke().tested_positions(1)
        ((15, 20, 25), (1,))
        """
        start = max(1, self.start * count // self.examples)
        return tuple(range(start, count, self.stride)) or (count,)

    def prompts(self, data: Dataset) -> Iterator[PromptBatch]:
        """Relation by relation, the lists that test the same facts after each other."""
        reasons = set[str | None]()
        for relation in data.asked_relations():
            facts, (draw,), lines = self.facts_and_examples(data, relation)
            reasons.update(facts["excluded"].to_list())
            layout = self.list_layout_for(relation.language)
            left = facts.filter(col("excluded").is_null()).iter_rows(named=True)
            n = len(self.tested_positions(len(draw.take_rows(self.examples))))
            n = 1 if self.sequence_layout == "options" else n
            waiting: list[Fact] = []
            while waiting := [*waiting, *islice(left, n - len(waiting))]:
                names = {(relation.id, name) for fact in waiting for name in fact["subject_names"]}
                examples = [lines[row] for row in draw.take_rows(self.examples, names)]
                positions = self.tested_positions(len(examples)) if examples else ()
                tested, waiting = waiting[: len(positions)], waiting[len(positions) or 1 :]
                if tested:
                    lists = self._write_lists(
                        tested, examples, positions, layout, data.selection.seed
                    )
                    yield PromptBatch.of(lists, TokenLogprobs())
        check_facts_remain(data, reasons)

    def _write_lists(
        self,
        facts: Sequence[Fact],
        examples: Sequence[Line],
        positions: Sequence[int],
        layout: ListLayout,
        seed: int,
    ) -> Iterator[dict[str, Any]]:
        """The lists that test some facts, each up to the last of them, as nothing later counts."""
        options, n = [], len(positions)
        most = max(len(fact["options"]) for fact in facts)
        for fact in facts:
            # drawn for each fact, so that options of the same number have nothing in common
            keys = draw_keys(seed, (f"turn:{fact['fact']}:{name}" for name in fact["options"]))
            names = [name for _, name in sorted(zip(keys, fact["options"], strict=True))]
            # a fact with fewer options shows some again, so that further facts keep their positions
            ids = [fact["fact"]] * len(names) + [""] * (most - len(names))
            pairs = zip(ids, cycle(names), strict=False)
            options.append([Line(fact=i, subject=fact["subject"], object=o) for i, o in pairs])
        if self.sequence_layout == "options":
            tested = {k: options[0][k : k + n] for k in range(0, most, n)}
        else:
            tested = dict(enumerate(map(list, zip(*options, strict=True))))
        for option, lines in tested.items():
            listed, at = list[Line](), list[int]()
            for start, stop, line in zip((0, *positions), positions, lines, strict=False):
                at.append(len(listed) + stop - start)
                listed += (*examples[start:stop], line)
            text, spans = layout.write(listed)
            yield {
                "relation": facts[0]["relation"],
                "fact": facts[0]["fact"],
                "template": LISTED,
                "subject": "",
                "facts": [line.fact for line in lines],
                "option": option,
                "prefix": text,
                "spans": extend_spans_over_spaces(text, (spans[place] for place in at)),
            }

    def judge(self, answers: Answers, facts: pl.DataFrame) -> pl.DataFrame:
        """One row per tested option."""
        result, frame = answers.result, answers.frame
        assert isinstance(result, SpanLogprobs)
        spans = zip(frame["prefix"], frame["spans"].to_list(), strict=True)
        names = [text[start:stop].lstrip(" ") for text, places in spans for start, stop in places]
        rows = frame.select("relation", "template", "subject", fact="facts").explode("fact")
        logprobs = result.logprobs.values.sums()
        return rows.with_columns(option=pl.Series(names), logprob=logprobs)

    def combine(self, rows: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
        """The choices of the facts all of whose options were answered."""
        rows = rows.join(facts.select("fact_no", "fact", "n_options"), on="fact_no")
        rows = rows.filter(pl.len().over("fact_no") == col("n_options"))
        rows = rows.sort("fact_no", col("option").cast(pl.String))
        key = ("fact_no", "relation", "template_no", "alias_no")
        chosen = rows.group_by(*key, "fact", maintain_order=True).agg("option", n=pl.len())
        prompts = chosen.select(
            col("relation").cast(pl.String), "fact", template=lit(LISTED), subject=lit("")
        )
        options = list(map(tuple, chosen["option"].to_list()))
        batch = PromptBatch(
            frame=prompts.with_row_index("options_id"), request=Score(), options=options
        )
        tokens = np.ones(len(rows), np.int64)
        result = OptionScores.of(chosen["n"].to_numpy(), tokens, rows["logprob"].to_numpy())
        judged = judge_options(Answers(batch=batch, result=result), facts).drop(KEY)
        return chosen.select(key).hstack(judged.cast({"answer": rows["option"].dtype}))
