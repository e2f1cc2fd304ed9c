"""EIC-LKE: several facts tested in one long list of facts, one option each at a time.

A prompt lists facts of a relation, and some of the later ones are tested: each with one of its
options (layout "facts"), or one fact with several of its options (layout "options"). So wrong
options of earlier facts precede later ones. It saves computing only where ic-lke would have to
score each option as a text of its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

import numpy as np
import polars as pl
from polars import col, lit

from sonde.answers import Answers, OptionScores, SpanLogprobs
from sonde.core.components import setting
from sonde.core.facts import Dataset, Relation, Template
from sonde.core.fingerprints import draw_key
from sonde.evaluation import metrics as m
from sonde.evaluation.judge import judge_options
from sonde.evaluation.layout import Layout
from sonde.probes.base import Probe
from sonde.probes.ic_lke import (
    LEVELS,
    LEVELS_HELP,
    LISTED,
    OPTIONS_HELP,
    as_template,
    check_levels,
    check_offers,
    choice_layout,
    choice_metrics,
    offer_facts,
    with_offers,
)
from sonde.prompting.options import MANY
from sonde.prompting.sequences import Line, ListLayout, list_layout, with_space
from sonde.prompts import KEY, PromptBatch, Score, TokenLogprobs

Fact = Mapping[str, Any]  # a row of the dataset's frame, with `options`


@dataclass(frozen=True, kw_only=True)
class EicLke(Probe):
    """Which option is the most likely, if several facts are tested in one list of facts."""

    examples: int = setting(100, "how many facts of the relation a list shows", min=1)
    start: int = setting(50, "after how many of them the first fact is tested", min=1)
    stride: int = setting(5, "after how many more the next one is", min=1)
    max_options: int = setting(MANY, OPTIONS_HELP, min=2)
    sequence_layout: Literal["facts", "options"] = setting(
        "facts", "what a list tests: an option of each of several facts, or options of one fact"
    )
    pair_separator: str = setting("colon", "as of ic-lke")
    example_separator: str = setting("newline", "as of ic-lke")
    levels: tuple[float, ...] = setting(LEVELS, LEVELS_HELP, analysis_only=True)

    name = "eic-lke"
    requires = (frozenset({"trace"}),)
    axes = ("option",)
    length_setting = "examples"
    lost = "not all options were answered"

    def __post_init__(self) -> None:
        check_levels(self.levels)
        list_layout(self.pair_separator, self.example_separator)

    @property
    def metrics(self) -> Sequence[m.Metric]:
        return choice_metrics(self.levels)

    @property
    def layout(self) -> Layout:
        return choice_layout(
            self.levels, f"{self.examples} examples, testing {self.sequence_layout}"
        )

    def templates(self, relation: Relation) -> tuple[Template, ...]:
        return (as_template(self._layout(relation)),)

    def _layout(self, relation: Relation) -> ListLayout:
        return list_layout(self.pair_separator, self.example_separator, relation.language)

    def facts(self, data: Dataset) -> pl.DataFrame:
        ids = [relation.id for relation in data.asked_relations()]
        offers = (offer_facts(data, id, self.examples, self.max_options) for id in ids)
        return with_offers(data, [offer for offer, _, _ in offers])

    def spots(self, count: int) -> tuple[int, ...]:
        """After how many of `count` examples a fact is tested; with few examples earlier.

        >>> EicLke().spots(100), EicLke().spots(30), EicLke().spots(1)
        ((50, 55, 60, 65, 70, 75, 80, 85, 90, 95), (15, 20, 25), (1,))
        """
        start = max(1, self.start * min(count, self.examples) // self.examples)
        return tuple(range(start, count, self.stride)) or (count,)

    def prompts(self, data: Dataset) -> Iterator[PromptBatch]:
        """Relation by relation, the lists that test the same facts after each other."""
        reasons = set[str | None]()
        for relation in data.asked_relations():
            offer, (draw,), lines = offer_facts(data, relation.id, self.examples, self.max_options)
            reasons.update(offer["excluded"].to_list())
            facts = data.asked_frame(relation.id).with_columns(offer["options", "excluded"])
            left = facts.filter(col("excluded").is_null()).iter_rows(named=True)
            n = len(self.spots(len(draw.take(self.examples))))
            waiting, n = list[Fact](), n if self.sequence_layout == "facts" else 1
            while waiting := [*waiting, *islice(left, n - len(waiting))]:
                names = {(relation.id, name) for fact in waiting for name in fact["subject_names"]}
                shown = [lines[row] for row in draw.take(self.examples, names)]
                spots = self.spots(len(shown)) if shown else ()
                tested, waiting = waiting[: len(spots)], waiting[len(spots) or 1 :]
                if tested:
                    layout = self._layout(relation)
                    texts = self._lists(tested, shown, spots, layout, data.selection.seed)
                    yield PromptBatch.of(texts, TokenLogprobs())
        check_offers(data, reasons)

    def _lists(
        self,
        facts: Sequence[Fact],
        shown: Sequence[Line],
        spots: Sequence[int],
        layout: ListLayout,
        seed: int,
    ) -> Iterator[dict[str, Any]]:
        """The lists that test some facts, each up to the last of them, as nothing later counts."""
        options = []
        for fact in facts:
            # drawn for each fact, so that options of the same number have nothing in common
            keys = {o: draw_key(seed, f"turn:{fact['fact']}:{o}") for o in fact["options"]}
            names = sorted(keys, key=lambda o: (keys[o], o))
            fixed = {"fact": fact["fact"], "subject": fact["subject"]}
            options.append([Line(**fixed, object=name) for name in names])
        most, n = max(map(len, options)), len(spots)
        if self.sequence_layout == "options":
            tested = {k: options[0][k : k + n] for k in range(0, most, n)}
        else:
            # a fact with fewer options shows one again, so that further facts stay in their spots
            tested = {k: [lines[k % len(lines)] for lines in options] for k in range(most)}
        for option, lines in tested.items():
            parts = zip((0, *spots), spots, lines, strict=False)
            listed = [line for start, stop, last in parts for line in (*shown[start:stop], last)]
            text, spans = layout.write(listed)
            own = [place + spot for place, spot in enumerate(spots[: len(lines)])]
            yield {
                **{"relation": facts[0]["relation"], "fact": lines[0].fact},
                **{"template": LISTED, "subject": "", "option": option, "prefix": text},
                "facts": [line.fact for line in lines],
                "spans": with_space(text, (spans[place] for place in own)),
            }

    def judge(self, answers: Answers, facts: pl.DataFrame) -> pl.DataFrame:
        """One row per tested option."""
        result, frame = answers.result, answers.frame
        assert isinstance(result, SpanLogprobs)
        spans = zip(frame["prefix"], frame["spans"].to_list(), strict=True)
        texts = [text[start:stop].lstrip(" ") for text, places in spans for start, stop in places]
        rows = frame.select("relation", "template", "subject", "option", fact="facts").explode(
            "fact"
        )
        if self.sequence_layout == "options":
            first = result.logprobs.offsets[:-1][result.logprobs.owners]
            rows = rows.with_columns(col("option") + np.arange(len(rows)) - first)
        logprobs = pl.Series(result.logprobs.values.sums())
        return rows.with_columns(answer=pl.Series(texts, dtype=pl.String), logprob=logprobs)

    def combine(self, rows: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
        """The choices of the facts all of whose options were answered."""
        rows = rows.join(facts.select("fact_no", "fact", "n_options"), on="fact_no")
        # a fact with fewer options than others has some of them twice
        rows = rows.filter(col("option") < col("n_options"))
        rows = rows.filter(pl.len().over("fact_no") == col("n_options")).sort("fact_no", "option")
        key = ("fact_no", "relation", "template_no", "alias_no")
        chosen = rows.group_by(key, maintain_order=True).agg(
            "answer", col("fact").first(), n=pl.len()
        )
        prompts = chosen.select(
            col("relation").cast(pl.String), "fact", template=lit(LISTED), subject=lit("")
        ).with_row_index("options_id")
        options = list(map(tuple, chosen["answer"].to_list()))
        batch = PromptBatch(frame=prompts, request=Score(), options=options)
        tokens = np.ones(len(rows), np.int64)
        result = OptionScores.of(chosen["n"].to_numpy(), tokens, rows["logprob"].to_numpy())
        judged = judge_options(Answers(batch=batch, result=result), facts).drop(KEY)
        return chosen.select(key).hstack(judged.cast({"answer": rows["answer"].dtype}))
