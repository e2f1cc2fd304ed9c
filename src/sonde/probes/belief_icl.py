"""BELIEF-ICL: generated answers to every pair of subject and relation, after examples.

Each pair is prompted in many templates under every alias of its subject. The answer is the greedy
text up to the end of the line; for some pairs answers are sampled, too, for their confidence.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal, Self

import numpy as np
import polars as pl
from polars import col, lit

from sonde.answers import Answers, Completions, Ragged, Samples, to_arrow
from sonde.core.components import setting
from sonde.core.errors import DataError
from sonde.core.facts import Dataset, Relation, Template
from sonde.core.fingerprints import draw_key
from sonde.evaluation import metrics as m
from sonde.evaluation import special as s
from sonde.evaluation.layout import Exhibit, Layout
from sonde.evaluation.tables import Results, fact_table
from sonde.probes.base import Capability, LemmaProbe, MarkedProbe, choose_supported
from sonde.probes.belief import PairProbe
from sonde.prompting.examples import (
    Context,
    FewShot,
    PromptLayout,
    ShotsPer,
    Style,
    default_prompt_layout,
    random_keys,
)
from sonde.prompting.languages import INSTRUCTION_HELP, notice_about_english_words
from sonde.prompting.matching import count_words, lemmatize, one_contains_other
from sonde.prompts import Generate, PromptBatch, Sample

BATCH = 1024  # pairs that are prompted template by template, so that equal beginnings meet

PROMPT = ("fact_no", "template_no", "alias_no")
LONGEST = 5  # tokens of answers with an overconfidence by length, as in the paper
SAMPLED = dict.fromkeys(("fact", "template", "subject"), pl.String)


@dataclass(frozen=True, kw_only=True)
class BeliefIcl(PairProbe, LemmaProbe, MarkedProbe):
    """Accuracy, consistency and confidence of answers generated after examples."""

    style: Style = setting("mask", "predict [MASK] in a sentence, or answer a question (qa)")
    context: Context = setting(
        "template",
        "examples before a question: none (zero-shot), of any relation (random), of the same "
        "relation, or of the same template",
    )
    shots: int = setting(4, "how many examples precede a question", min=1)
    shots_per: ShotsPer = setting(
        "template", "draw examples once for each template, or again for each fact"
    )
    template_source: Literal["manual", "all"] = setting(
        "manual", "which templates to use: those written by hand, or all"
    )
    questions: bool = setting(
        False, "use only question templates, in mask style too, to compare it with qa"
    )
    samples: int = setting(100, "answers sampled for each confidence; 0 for no confidence", min=0)
    sampled_facts: int = setting(10_000, "the most pairs whose answers are sampled", min=1)
    max_tokens: int = setting(16, "the most tokens of an answer", min=1)
    instruction: str = setting("", INSTRUCTION_HELP)

    name = "belief-icl"
    requires = (frozenset({"generate", "sample"}), frozenset({"generate"}))
    length_setting = "shots"

    def resolve(self, capabilities: frozenset[Capability]) -> Self:
        if self.samples:
            choose_supported(
                f"{self.name} --samples {self.samples}", self.requires[:1], capabilities
            )
        return super().resolve(capabilities)

    def templates(self, relation: Relation) -> tuple[Template, ...]:
        questions = self.questions or self.style == "qa"
        return tuple(
            t
            for t in relation.templates
            if t.plain
            and (self.template_source == "all" or t.source == "manual")
            and (t.style == "question" or not questions)
        )

    def notices(self, data: Dataset) -> tuple[str, ...]:
        languages = () if self.instruction else data.languages()
        return notice_about_english_words(languages, "instruction, markers and stop")

    def prompts(self, data: Dataset) -> Iterator[PromptBatch]:
        """Relation by relation, template by template: answers, then samples of some."""
        relations = [r for r in data.asked_relations() if self.templates(r)]
        if not relations:
            kind = "hand-written " * (self.template_source == "manual")
            style = "question " * (self.questions or self.style == "qa")
            raise DataError(
                f"dataset {data.name!r} has no {kind}{style}templates for the facts of its "
                "selection; use --template-source all, or other --relations"
                + (", or no --questions and --style mask" if style else "")
            )
        self.check_languages(data)
        few_shot = FewShot(
            data,
            self.templates,
            self._prompt_layout,
            style=self.style,
            context=self.context,
            shots=self.shots,
            shots_per=self.shots_per,
        )
        seed = data.selection.seed
        greedy = Generate(max_tokens=self.max_tokens)
        sample = Sample(count=self.samples, max_tokens=self.max_tokens, seed=seed)
        pairs = {relation.id: self.pairs(data, relation) for relation in relations}
        ids = [(relation, fact) for relation in pairs for fact in pairs[relation]["fact"]]
        order = np.argsort(random_keys(seed, ("samples:" + ":".join(pair) for pair in ids)))
        limit = self.sampled_facts if self.samples else 0
        sampled = {ids[i] for i in order[:limit].tolist()}
        for relation in relations:
            templates = self.templates(relation)
            for subjects in pairs[relation.id].iter_slices(BATCH):
                chosen = [
                    (fact, *self._choose_sampled_template_and_alias(fact, templates, aliases, seed))
                    for fact, aliases in subjects.select("fact", "subject").iter_rows()
                    if (relation.id, fact) in sampled
                ]
                prompts = pl.DataFrame(chosen, SAMPLED, orient="row")
                for template in templates:
                    frame = few_shot.prompts(relation, template, subjects.explode("subject"))
                    yield PromptBatch(frame=frame, request=greedy)
                    again = frame.join(
                        prompts, on=tuple(SAMPLED), how="semi", maintain_order="left"
                    )
                    if len(again):
                        yield PromptBatch(frame=again, request=sample)

    def _prompt_layout(self, relation: Relation) -> PromptLayout:
        return default_prompt_layout(
            self.style, self.phrasing_of(relation, instruction=self.instruction)
        )

    def _choose_sampled_template_and_alias(
        self, fact: str, templates: Sequence[Template], aliases: Sequence[str], seed: int
    ) -> tuple[str, str]:
        """The template and the alias of a pair whose answers are sampled."""
        prompts = product((template.id for template in templates), aliases)
        return min(prompts, key=lambda p: draw_key(seed, f"samples:{fact}:{p[0]}:{p[1]}"))

    def facts(self, data: Dataset) -> pl.DataFrame:
        facts = fact_table(data, "pair")
        names = col("gold_names").list.eval(pl.element().explode())
        guesses = facts.select("majority", names, "language").iter_rows()
        correct = pl.Series([self.accepts(*guess) for guess in guesses], dtype=pl.Boolean)
        return facts.with_columns(majority_correct=correct)

    def judge(self, answers: Answers, facts: pl.DataFrame) -> pl.DataFrame:
        """Answers as their lemmas. Samples are separate rows until `combine`."""
        relations = facts.select(col("relation").cast(pl.String), "language").unique().rows()
        languages = {id: self.comparison_language(language) for id, language in relations}
        result = answers.result
        if isinstance(result, Samples):
            texts = zip(answers.frame["relation"], to_arrow(result.texts).to_pylist(), strict=True)
            lemmas = [[lemmatize(text, languages[id]) for text in drawn] for id, drawn in texts]
            return answers.frame.with_columns(
                samples=pl.Series(lemmas, dtype=pl.List(pl.String)),
                counts=pl.Series(to_arrow(result.counts)),
                answer_mode=lit("sample"),
            )
        assert isinstance(result, Completions)
        # the examples end with a full stop: one that closes an answer is none of its tokens
        tokens, text = result.token_logprobs, pl.Series(result.text).cast(pl.String)
        closed = text.str.strip_chars_end().str.contains("[.。]$").to_numpy() & (tokens.counts > 1)
        open_tokens = np.ones(len(tokens.values), dtype=np.bool_)
        open_tokens[tokens.offsets[1:][closed] - 1] = False
        tokens = Ragged.of(tokens.counts - closed, tokens.values[open_tokens])
        answers = replace(answers, result=replace(result, token_logprobs=tokens))
        rows = self.judge_text(answers, facts, str)
        words = [(text, languages[id]) for text, id in rows["answer", "relation"].rows()]
        return rows.with_columns(
            generated=col("answer").str.strip_chars(),
            answer=pl.Series([lemmatize(*each) for each in words], dtype=pl.String),
            n_words=pl.Series([count_words(*each) for each in words], dtype=pl.UInt16),
        )

    def combine(self, rows: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
        """The confidence of an answer: the share of the prompt's samples that match it."""
        drawn, rows = (rows.filter(col("answer_mode") == each) for each in ("sample", "generate"))
        if drawn.is_empty():
            return rows
        samples = drawn.select(*PROMPT, "samples", "counts").explode("samples", "counts")
        samples = samples.join(rows.select(*PROMPT, "answer"), on=PROMPT)
        matching = pl.Series(
            [one_contains_other(*pair) for pair in samples["answer", "samples"].rows()]
        )
        share = col("counts").filter("matching").sum() / col("counts").sum()
        shares = samples.with_columns(matching=matching).group_by(PROMPT).agg(confidence=share)
        rows = rows.drop("samples", "counts")
        return rows.join(shares, on=PROMPT, how="left", maintain_order="left")

    @property
    def metrics(self) -> Sequence[m.Metric | m.Special]:
        n_tokens = col("n_tokens")
        lengths = {str(n): n_tokens == n for n in range(1, LONGEST + 1)}
        lengths |= {f"1-{LONGEST}": n_tokens.is_between(1, LONGEST)}
        gap = (col("sequence_prob") - m.CORRECT).sum()
        prompts: dict[str, Any] = {"den": pl.len(), "counts": "prompts"}
        points = prompts | {"unit": "points", "better": "zero"}
        return (
            *self.pair_metrics(one_contains_other),
            m.Metric(
                "one_word_rate",
                num=(col("n_words") == 1).sum(),
                where=col("n_words").is_not_null(),
                label="one-word rate",
                help="share of answers of exactly one word",
                **prompts,
            ),
            *(
                m.Metric(
                    f"overconfidence.tokens.{length}",
                    num=gap,
                    where=where,
                    label=f"overconfidence, {length} tokens",
                    help="mean probability of answers of this length minus their accuracy",
                    **points,
                )
                for length, where in lengths.items()
            ),
            m.Metric(
                f"within_{LONGEST}_tokens",
                num=lengths[f"1-{LONGEST}"].sum(),
                label=f"1 to {LONGEST} tokens",
                help="share of answers of this length",
                **prompts | {"better": ""},
            ),
            s.template_overconfidence(self.min_prompts, "sequence_prob", lengths["1"]),
            *m.ABSTENTION,
        )

    @property
    def layout(self) -> Layout:
        few = "" if self.context == "zero-shot" else f"{self.shots}-"
        drawn = (
            f"Confidence is the share of {self.samples} samples (whole vocabulary, temperature 1) "
            "that match the answer, for one prompt of each pair."
        )
        return Layout(
            title=f"{self.style} {few}{self.context}",
            headlines=(
                *("acc_at_1", "fluctuation.relation.range", "consistency"),
                *("overconfidence", "coverage.oracle", "one_word_rate"),
            ),
            over="facts",
            browse=("relation", "subject", "gold", "generated", "correct", "confidence"),
            notes=(
                "Answers are compared by their lemmas: correct if those of a correct name follow "
                "each other in the answer, consistent if one answer contains the other.",
                drawn if self.samples else "Without samples there is no confidence.",
            ),
            extra=self.exhibits,
        )

    def exhibits(self, results: Results, estimates: pl.DataFrame) -> Iterator[Exhibit]:
        """The spread of draws, calibration, what moves answers, overconfidence by length."""
        yield from super().exhibits(results, estimates)
        overall = (col("group_by").list.len() == 0) & (col("over") == "facts")
        lengths = estimates.filter(overall, col("metric").str.contains(r"\.tokens\.\d$"))
        yield Exhibit(
            "overconfidence-by-length",
            "Overconfidence by number of generated tokens",
            lengths.select(
                "low", "high", "n", y="value", x=col("metric").str.tail(1).cast(pl.Int64)
            ),
            {"x": "count", "y": "points"},
            "lines",
            x_label="tokens of the answer",
            y_label="mean probability of the answer minus accuracy",
        )
