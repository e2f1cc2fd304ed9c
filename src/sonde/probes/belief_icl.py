"""BELIEF-ICL: generated answers to every pair of subject and relation, after examples.

Each pair is prompted in many templates under every alias of its subject. The answer is the greedy
text up to the end of the line; for some pairs answers are sampled, too, for their confidence.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, Self

import numpy as np
import polars as pl
from polars import col, lit, when

from sonde.answers import Answers, Completions, Samples
from sonde.core.components import setting
from sonde.core.errors import DataError
from sonde.core.facts import Dataset, Relation, Template
from sonde.core.fingerprints import draw_key
from sonde.evaluation import metrics as m
from sonde.evaluation import special as s
from sonde.evaluation.layout import Layout
from sonde.evaluation.tables import fact_table
from sonde.probes.base import Capability, Probe, first_met
from sonde.prompting.abstaining import ALL, abstaining, check_abstaining
from sonde.prompting.abstaining import HELP as ABSTAINING_HELP
from sonde.prompting.examples import (
    Context,
    FewShot,
    PromptLayout,
    ShotsPer,
    Style,
    keys_of,
    usual_layout,
)
from sonde.prompting.languages import (
    INSTRUCTION_HELP,
    MARKERS_HELP,
    STOP_HELP,
    check_markers,
    in_english,
    phrasing,
)
from sonde.prompting.matching import (
    LANGUAGE_HELP,
    OWN,
    check_language,
    language_of,
    normal,
    within,
    word_count,
)
from sonde.prompting.templates import pair_names
from sonde.prompts import Generate, PromptBatch, Sample

BATCH = 1024  # pairs that are prompted template by template, so that equal beginnings meet

SAMPLED = dict.fromkeys(("fact", "template", "subject"), pl.String)


@dataclass(frozen=True, kw_only=True)
class BeliefIcl(Probe):
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
    aliases: Literal["all", "original"] = setting(
        "all", "which names of a subject to use: all, or its usual one"
    )
    samples: int = setting(100, "answers sampled for each confidence; 0 for no confidence", min=0)
    sampled_facts: int = setting(10_000, "the most pairs whose answers are sampled", min=1)
    max_tokens: int = setting(16, "the most tokens of an answer", min=1)
    fluctuation: Literal["relation", "pair"] = setting(
        "relation",
        "fluctuation shown first: of a template drawn per relation, or of a prompt per pair",
        analysis_only=True,
    )
    fluctuation_draws: int = setting(
        50_000, "how many draws the fluctuation takes", min=2, analysis_only=True
    )
    min_prompts: int = setting(
        100,
        "one-token answers a template needs for an overconfidence of its own",
        min=1,
        analysis_only=True,
    )
    instruction: str = setting("", INSTRUCTION_HELP)
    markers: tuple[str, ...] = setting((), MARKERS_HELP)
    stop: str = setting("", STOP_HELP)
    language: str = setting(OWN, LANGUAGE_HELP, analysis_only=True)
    abstaining: tuple[str, ...] = setting((ALL,), ABSTAINING_HELP, analysis_only=True)

    name = "belief-icl"
    requires = (frozenset({"generate", "sample"}), frozenset({"generate"}))
    unit = "pair"
    length_setting = "shots"

    def __post_init__(self) -> None:
        check_markers(self.markers)
        check_language(self.language)
        check_abstaining(self.abstaining)

    def resolve(self, capabilities: frozenset[Capability]) -> Self:
        if self.samples:
            first_met(f"{self.name} --samples {self.samples}", self.requires[:1], capabilities)
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
        return in_english(languages, "instruction, markers and stop")

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
        for relation in data.asked_relations():
            check_language(language_of(self.language, relation.language))
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
        pairs = {relation.id: pair_names(data, relation.id) for relation in relations}
        ids = [(relation, fact) for relation in pairs for fact in pairs[relation]["fact"]]
        order = np.argsort(keys_of(seed, ("samples:" + ":".join(pair) for pair in ids)))
        limit = self.sampled_facts if self.samples else 0
        sampled = {ids[i] for i in order[:limit].tolist()}
        for relation in relations:
            templates = self.templates(relation)
            for part in pairs[relation.id].iter_slices(BATCH):
                names = col("names").list.head(1) if self.aliases == "original" else col("names")
                subjects = part.with_columns(subject=names)
                chosen = [
                    (fact, *self._sampled_prompt(fact, templates, aliases, seed))
                    for fact, aliases in subjects.select("fact", "subject").iter_rows()
                    if (relation.id, fact) in sampled
                ]
                prompts = pl.DataFrame(chosen, SAMPLED, orient="row")
                for template in templates:
                    frame = few_shot.prompts(relation, template, subjects.explode("subject"))
                    yield PromptBatch(frame=frame, request=greedy)
                    again = frame.join(prompts, on=list(SAMPLED), how="semi", maintain_order="left")
                    if len(again):
                        yield PromptBatch(frame=again, request=sample)

    def _prompt_layout(self, relation: Relation) -> PromptLayout:
        texts = {"instruction": self.instruction, "markers": self.markers, "stop": self.stop}
        return usual_layout(self.style, phrasing(relation.language, **texts))

    def _sampled_prompt(
        self, fact: str, templates: Sequence[Template], aliases: Sequence[str], seed: int
    ) -> tuple[str, str]:
        """The template and the alias of a pair whose answers are sampled."""
        prompts = product((template.id for template in templates), aliases)
        return min(prompts, key=lambda p: draw_key(seed, f"samples:{fact}:{p[0]}:{p[1]}"))
