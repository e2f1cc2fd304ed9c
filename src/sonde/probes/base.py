"""The contract of a probe: which prompts, how answers are judged, which metrics, how they are shown."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import polars as pl

from sonde.answers import Answers
from sonde.bridge import as_block
from sonde.core.errors import AbilityError
from sonde.core.facts import Dataset, Relation, Template
from sonde.core.prompts import Block
from sonde.evaluation.layout import Layout
from sonde.evaluation.tables import fact_table
from sonde.prompts import PromptBatch

if TYPE_CHECKING:
    from sonde.evaluation.estimate import Contrast, Group, Metric, Special

Capability = Literal["score", "fill", "generate", "sample", "trace"]


class Probe:
    """Base of probes: a frozen dataclass whose fields, made with `setting`, become flags.

    Example:
        >>> @dataclass(frozen=True, kw_only=True)
        ... class Robust(Probe):
        ...     name, requires = "robust", (frozenset({"score"}),)
        ...     metrics = (Metric("robust", num=col("correct").all()),)
        ...     layout = Layout(headlines=("robust",))
        ...     def prompts(self, data):
        ...         for relation in data.asked_relations():
        ...             yield from fill_templates(data, relation, self.templates(relation), Score())
    """

    name: ClassVar[str]
    requires: ClassVar[Sequence[frozenset[Capability]]]
    unit: ClassVar[Literal["fact", "pair"]] = "fact"
    axes: ClassVar[tuple[str, ...]] = ()
    separate: ClassVar[tuple[str, ...]] = ("answer_mode",)
    length_setting: ClassVar[str] = ""
    answerable_only: ClassVar[bool] = False
    metrics: "Sequence[Metric | Special]"
    groups: "Sequence[str | tuple[str, ...] | Group]" = ("relation",)
    contrasts: "Sequence[Contrast]" = ()
    layout: Layout

    def resolve(self, capabilities: frozenset[Capability]) -> Self:
        """This probe with open settings decided, for a model with these capabilities."""
        if any(needed <= capabilities for needed in self.requires):
            return self
        needed = " or ".join(" and ".join(sorted(each)) for each in self.requires)
        raise AbilityError(
            f"probe {self.name!r} needs a model that can {needed}; this one can "
            f"{', '.join(sorted(capabilities)) or 'do nothing'}. See 'sonde models'"
        )

    def templates(self, relation: Relation) -> tuple[Template, ...]:
        """The templates that are prompted, the base one first."""
        return relation.templates

    def prompts(self, data: Dataset) -> Iterator[PromptBatch]:
        """Every prompt, in an order that depends on the dataset and the settings alone."""
        raise NotImplementedError

    def facts(self, data: Dataset) -> pl.DataFrame:
        """The facts that are prompted, one row each; `excluded` has the reason where one is not."""
        return fact_table(data, self.unit)

    def judge(
        self, answers: Answers, facts: pl.DataFrame
    ) -> pl.DataFrame | Mapping[str, pl.DataFrame]:
        """One row per prompt of a batch. Further frames by name become side tables."""
        from sonde.evaluation.judge import judge

        return judge(answers, facts, normalize=getattr(self, "normalize", "none"))

    def combine(self, rows: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
        """All rows, once: for what several prompts decide together."""
        return rows

    def accepts(self, answer: str, names: Sequence[str], language: str) -> bool:
        """Whether a generated answer states one of the names."""
        from sonde.prompting.matching import says

        return says(answer, names, language)

    # today's runs call these
    def suited(self, can: frozenset[Capability]) -> Self:
        return self.resolve(can)

    def ask(self, dataset: Dataset) -> Iterator[Block]:
        return map(as_block, self.prompts(dataset))
