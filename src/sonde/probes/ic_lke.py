"""IC-LKE: which of many options follows a subject after other facts of its relation.

The facts alone show which object is wanted; there is neither a template nor an instruction. Other
contexts are the methods that this is compared with: templates with the answer last, lists of facts
that are written as such templates, and greedy text after either.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal, NamedTuple, Self, cast

import polars as pl
from polars import col, lit, when

from sonde.answers import Answers, Completions
from sonde.core.components import setting
from sonde.core.errors import DataError
from sonde.core.facts import SUBJECT_SLOT, Dataset, Relation, Source, Template
from sonde.evaluation import metrics as m
from sonde.evaluation.judge import judge_options, match_prompts_to_facts
from sonde.evaluation.layout import Exhibit, Layout
from sonde.evaluation.tables import Results, fact_table
from sonde.probes.base import Capability, LemmaProbe, Probe, choose_supported
from sonde.prompting.examples import TRAIN, Draw, slot_values
from sonde.prompting.options import MANY, build_option_table, select_options
from sonde.prompting.sequences import (
    Line,
    ListLayout,
    build_draws_and_lines,
    choose_answer_last_templates,
    list_layout,
    write_list_before_each,
)
from sonde.prompts import Generate, PromptBatch, Score

BATCH = 4096  # facts of a batch
LISTED = "in-context"  # the template of prompts that are a list of facts
SCORED = ("options", "gold_spellings")
OFFERED = (*SCORED, "n_options", "n_examples", "dropped_wrong", "baseline", "excluded")
ONE_OPTION, NO_EXAMPLE = "one option", "no example"
MASS = m.mean("mass", col("gold_logprob").exp(), help="mean probability of the correct option")
BETWEEN_SEEDS = m.sd_between(m.accuracy(), by="seed", id="accuracy.seeds.stdev", counts="groups")

SEPARATOR_HELP = "space, colon, comma or newline, as the language writes them, or another text"
SEEDS_HELP = "how often to draw the examples"


class FactsAndExamples(NamedTuple):
    """Facts with their options, and their examples: a draw for each seed, and all as lines."""

    facts: pl.DataFrame
    draws: list[Draw]
    lines: list[Line]


Context = Literal["examples", "template", "template-examples", "generate"]


@dataclass(frozen=True, kw_only=True)
class ListProbe(Probe):
    """Base of probes whose prompts are lists of facts."""

    pair_separator: str = setting(
        "space",
        "the text between subject and object: space, colon, comma or newline as the relation's "
        "language writes them, another text, or a sentence with [X] and [Y]",
    )
    example_separator: str = setting(
        "space", "the text between two examples, likewise (\\n is a new line)"
    )

    def __post_init__(self) -> None:
        self.list_layout_for("en")  # checks the separators
        super().__post_init__()

    def list_layout_for(self, language: str) -> ListLayout:
        return list_layout(self.pair_separator, self.example_separator, language)

    def templates(self, relation: Relation) -> tuple[Template, ...]:
        """How a fact is written after examples, as a template with a source of that name."""
        text = self.list_layout_for(relation.language).template
        return (Template(id=LISTED, text=text, group=LISTED, source=cast(Source, LISTED)),)


@dataclass(frozen=True, kw_only=True)
class ChoiceProbe(ListProbe):
    """Base of probes that choose between options after a list of facts."""

    pair_separator: str = setting("colon", SEPARATOR_HELP)
    example_separator: str = setting("newline", SEPARATOR_HELP)
    max_options: int = setting(
        MANY, "the most options of a fact: its own object and wrong ones of the relation", min=2
    )
    levels: tuple[float, ...] = setting(
        (0.25, 0.5, 0.75, 0.9),
        "Accuracy@K is reported for these K, the least probability of the chosen option",
        analysis_only=True,
    )

    def facts_and_examples(self, data: Dataset, relation: Relation) -> FactsAndExamples:
        """As `select_facts_and_examples`."""
        raise NotImplementedError

    def facts(self, data: Dataset) -> pl.DataFrame:
        """With the columns of their options."""
        offers = [
            self.facts_and_examples(data, relation).facts for relation in data.asked_relations()
        ]
        return fact_table(data).with_columns(pl.concat(offer.select(OFFERED) for offer in offers))

    @property
    def metrics(self) -> Sequence[m.Metric]:
        accuracy = m.accuracy()
        return (
            accuracy,
            MASS,
            m.mean("confidence", col("confidence")),
            *m.accuracy_at_confidence(self.levels),
            m.OVERCONFIDENCE,
            m.ECE,
            m.sd_between(accuracy, by="relation", id="accuracy.relations.stdev", counts="groups"),
            *m.RANKING,
        )

    @property
    def layout(self) -> Layout:
        """The level shown first is the lowest from 0.5 on."""
        level = min((k for k in self.levels if k >= 0.5), default=max(self.levels, default=0))
        return Layout(
            headlines=("accuracy", "mass", f"accuracy_at.{level:g}", f"retained_at.{level:g}"),
            columns=("confidence",),
            notes=(
                "The probability of an option is the product of its tokens' probabilities, "
                "whatever its length, divided by the sum over the options. Ties count as wrong.",
                "The control chooses the option that is the object of most facts.",
            ),
            extra=accuracy_at_k_exhibit,
        )


@dataclass(frozen=True, kw_only=True)
class IcLke(ChoiceProbe, LemmaProbe):
    """Which of many options follows a subject, after other facts of the same relation."""

    shots: int = setting(50, "how many facts of the relation precede the subject", min=1)
    names: Literal["usual", "all"] = setting(
        "usual", "score options by their usual names, or by all, to add up their probabilities"
    )
    seeds: int = setting(1, SEEDS_HELP, min=1)
    context: Context = setting(
        "examples",
        "what is prompted: facts as examples; a template with the answer last; facts written as "
        "such a template; or greedy text after examples and after templates (generate)",
    )
    templates_per_source: int = setting(
        3, "the most templates of each source and relation, for contexts with templates", min=1
    )
    max_tokens: int = setting(50, "how many tokens are generated", min=1)

    name = "ic-lke"
    requires = (frozenset({"score"}), frozenset({"generate"}))
    axes = ("seed", "n_shots", "context")
    separate = ("context", "answer_mode")
    length_setting = "shots"

    @property
    def shot_counts(self) -> Sequence[int]:
        """The numbers of examples."""
        return (self.shots,)

    @property
    def prompt_forms(self) -> Sequence[str]:
        """The contexts that are prompted, as the setting `context` names them."""
        return (self.context,)

    @property
    def metrics(self) -> Sequence[m.Metric]:
        return (*super().metrics, BETWEEN_SEEDS, *m.ABSTENTION)

    @property
    def groups(self) -> Sequence[str | tuple[str, ...] | m.Group]:
        return ("relation", "seed", ("relation", "seed")) if self.seeds > 1 else ("relation",)

    @property
    def layout(self) -> Layout:
        title = f"{self.shots} examples, context {self.context}"
        return replace(super().layout, title=title)

    def resolve(self, capabilities: frozenset[Capability]) -> Self:
        needed = {"generate" if context == "generate" else "score" for context in self.prompt_forms}
        choose_supported(self.name, [cast(Any, frozenset(needed))], capabilities)
        return self

    def templates(self, relation: Relation) -> tuple[Template, ...]:
        """The list of facts, then the templates from which those of other contexts are chosen."""
        further = relation.templates if {*self.prompt_forms} - {"examples"} else ()
        return (*super().templates(relation), *further)

    def facts(self, data: Dataset) -> pl.DataFrame:
        facts = super().facts(data)
        if self.names == "usual":
            return facts.drop(SCORED)
        # a name that another fact has for the same object is correct, too
        names = zip(facts["gold_spellings"], facts["gold_names"], strict=True)
        gold = [[first.to_list(), *objects.to_list()[1:]] for first, objects in names]
        return facts.with_columns(gold_names=pl.Series(gold))

    def facts_and_examples(self, data: Dataset, relation: Relation) -> FactsAndExamples:
        n, aliases = max(self.shot_counts), self.names == "all"
        return select_facts_and_examples(
            data, relation.id, n, self.max_options, self.seeds, aliases
        )

    def prompts(self, data: Dataset) -> Iterator[PromptBatch]:
        """Relation by relation and context by context, so that equal beginnings meet."""
        others = {*self.prompt_forms} - {"examples"}
        chosen = choose_answer_last_templates(data, self.templates_per_source) if others else {}
        if "generate" in self.prompt_forms:
            self.check_languages(data)
        reasons = set[str | None]()
        for relation in data.asked_relations():
            facts, draws, lines = self.facts_and_examples(data, relation)
            reasons.update(facts["excluded"].to_list())
            templates: list[Template | None] = [None, *chosen.get(relation.id, [])]
            wordings = {"examples": templates[:1], "generate": templates}
            ways = [(c, t) for c in self.prompt_forms for t in wordings.get(c, templates[1:])]
            most = len(draws[0].take_rows(max(self.shot_counts)))
            sizes = sorted({min(n, most) for n in self.shot_counts})
            passes = list(product(enumerate(draws, data.selection.seed), sizes))
            separated = self.list_layout_for(relation.language)
            parts = facts.filter(col("excluded").is_null()).iter_slices(BATCH)
            for part, (context, template) in product(parts, ways):
                # a template without examples is the same in every pass
                alone = template is not None and context != "template-examples"
                for (seed, draw), n in passes[:1] if alone else passes:
                    if template is not None and alone:
                        rows = part.iter_rows(named=True)
                        slots = ({SUBJECT_SLOT: row["subject"], **slot_values(row)} for row in rows)
                        texts = list(map(template.filled, slots))
                    else:
                        layout = separated
                        if template is not None:
                            layout = replace(layout, pair=template.text)
                        texts = [
                            (text, "")
                            for text in write_list_before_each(part, layout, draw, lines, n)
                        ]
                    generated = context == "generate"
                    key = {
                        "relation": relation.id,
                        "template": LISTED if template is None else template.id,
                        "seed": seed,
                        "n_shots": 0 if alone else n,
                        "context": context,
                    }
                    columns = part.select("fact", "subject", "spellings").iter_rows()
                    prompts = (
                        {**key, "fact": fact, "subject": subject, "prefix": before}
                        | ({} if generated else {"suffix": after, "options": options})
                        for (fact, subject, options), (before, after) in zip(
                            columns, texts, strict=True
                        )
                    )
                    tokens = Generate(max_tokens=self.max_tokens, stop="")
                    yield PromptBatch.of(prompts, tokens if generated else Score())
        check_facts_remain(data, reasons)

    def judge(self, answers: Answers, facts: pl.DataFrame) -> pl.DataFrame:
        """A choice is between usual names; further names add to the probability of the object."""
        if isinstance(answers.result, Completions):
            return self.judge_text(answers, facts, str.strip)
        rows = judge_options(answers, facts)
        if self.names == "usual":
            return rows
        prompts, here = match_prompts_to_facts(answers, facts)
        usual = prompts.join(here.select("fact_no", "options"), on="fact_no", maintain_order="left")
        chosen = select_options(answers.select(usual["prompt"].to_numpy()), usual["options"])
        return judge_options(chosen, facts).with_columns(rows["gold_logprob"])


def select_facts_and_examples(
    data: Dataset, relation: str, n: int, max_options: int, seeds: int = 1, aliases: bool = False
) -> FactsAndExamples:
    """The facts of a relation with their options, n_examples and why they are excluded.

    Without training facts, facts are each other's examples.
    """
    first, facts = data.selection.seed, data.frame(relation)
    training = facts.filter(split=TRAIN)
    draws, lines = build_draws_and_lines(
        training if len(training) else facts, range(first, first + seeds)
    )
    facts = data.asked_frame(relation)
    names = facts["subject_names"].to_list()
    counts = [len(draws[0].take_rows(n, {(relation, name) for name in row})) for row in names]
    reason = (
        when(col("n_options") < 2).then(lit(ONE_OPTION))
        .when(col("n_examples") == 0).then(lit(NO_EXAMPLE))
    )  # fmt: skip
    offer = build_option_table(data, relation, max_options, aliases=aliases).drop("fact")
    offer = offer.with_columns(n_examples=pl.Series(counts, dtype=pl.UInt32))
    facts = facts.with_columns(offer.with_columns(excluded=reason))
    return FactsAndExamples(facts, draws, lines)


def check_facts_remain(data: Dataset, reasons: Collection[str | None]) -> None:
    """Raise DataError if every fact is excluded, for these reasons."""
    if None in reasons:
        return
    if ONE_OPTION in reasons:
        raise DataError(
            f"dataset {data.name!r}: no fact has two options, its object and a wrong one; use data "
            "with more objects, such as T-REx-MC ('sonde data build trex-mc'), or name wrong "
            "options in the facts ('wrong')"
        )
    raise DataError(
        f"dataset {data.name!r} has no fact to show as an example; a relation needs two facts at "
        "least: add some, or name other relations"
    )


def accuracy_at_k_exhibit(results: Results, estimates: pl.DataFrame) -> Iterator[Exhibit]:
    """Accuracy@K, and the share of choices that are at least K confident."""
    name = col("metric").str.extract_groups(r"^(?<color>accuracy|retained)_at\.(?<x>.+)$")
    points = estimates.filter(of="value", over="relations", group_by=[]).with_columns(name=name)
    points = points.unnest("name").drop_nulls("x").sort("x").with_columns(col("x").cast(float))
    yield Exhibit(
        "accuracy-at-k",
        "Accuracy@K: choices with a probability of at least K",
        points.select("x", "color", "low", "high", y="value"),
        {"x": "number", "y": "percent"},
        "lines",
        "Relations without such a choice are not in the mean.",
        x_label="K, the least probability of the chosen option",
    )
