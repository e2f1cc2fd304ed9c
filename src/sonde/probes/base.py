"""The contract of a probe: which prompts, how answers are graded, which metrics, what is shown."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import polars as pl

from sonde.answers import Answers
from sonde.bridge import as_block
from sonde.core.components import setting
from sonde.core.errors import AbilityError
from sonde.core.facts import Dataset, Relation, Template
from sonde.core.prompts import Block
from sonde.evaluation.layout import Layout
from sonde.prompting.abstaining import (
    ABSTAINING_HELP,
    ALL,
    build_abstention_test,
    check_abstaining_setting,
)
from sonde.prompting.languages import (
    MARKERS_HELP,
    STOP_HELP,
    Phrasing,
    build_phrasing,
    check_markers,
)
from sonde.prompting.matching import (
    AUTO,
    LANGUAGE_HELP,
    answer_contains_name,
    check_language,
    clean_answer,
    comparison_language,
)
from sonde.prompting.templates import CLOSE_HELP, describe_closed_templates
from sonde.prompts import PromptBatch

if TYPE_CHECKING:
    from sonde.evaluation.estimate import Contrast, Group, Metric, Special

Capability = Literal["score", "fill", "generate", "sample", "trace", "chat"]
Requires = Sequence[frozenset[Capability]]


class Probe:
    """Base of probes: a frozen dataclass whose fields, made with `setting`, become flags.

    `metrics`, `groups`, `contrasts` and `layout` are attributes, or properties where they depend on
    settings.

    Example:
        >>> from sonde.evaluation.metrics import Metric, col
        >>> from sonde.prompting.templates import fill_templates, usual_names
        >>> from sonde.prompts import Score
        >>> @dataclass(frozen=True, kw_only=True)
        ... class Robust(Probe):
        ...     name, requires = "robust", (frozenset({"score"}),)
        ...     metrics = (Metric("robust", num=col("correct").all()),)
        ...     layout = Layout(headlines=("robust",))
        ...
        ...     def prompts(self, data):
        ...         for relation in data.asked_relations():
        ...             subjects = usual_names(data.asked_frame(relation.id))
        ...             options = [data.object_names(relation.id)]
        ...             templates = self.templates(relation)
        ...             yield from fill_templates(
        ...                 relation, templates, subjects, Score(), options=options
        ...             )
        >>> Robust().groups
        ('relation',)
    """

    name: ClassVar[str]
    requires: ClassVar[Requires]
    """What a model must be capable of: alternatives, in order of preference."""
    unit: ClassVar[Literal["fact", "pair"]] = "fact"
    axes: ClassVar[tuple[str, ...]] = ()
    """Further columns of the key of a row."""
    separate: ClassVar[tuple[str, ...]] = ("answer_mode",)
    """Columns whose values are never pooled."""
    length_setting: ClassVar[str] = ""
    """The setting to lower if a prompt is too long."""
    answerable_only: ClassVar[bool] = False
    """Whether prompts to which no correct name can be answered are excluded."""

    def __post_init__(self) -> None:
        """Raise if settings are invalid."""

    @property
    def metrics(self) -> "Sequence[Metric | Special]":
        """What is estimated from the rows."""
        raise NotImplementedError

    @property
    def groups(self) -> "Sequence[str | tuple[str, ...] | Group]":
        """Columns by which the metrics are estimated separately."""
        return ("relation",)

    @property
    def contrasts(self) -> "Sequence[Contrast]":
        """Axes along which rows are compared."""
        return ()

    @property
    def layout(self) -> Layout:
        """What the report shows first."""
        raise NotImplementedError

    @property
    def exclusion_reason(self) -> str:
        """Why a fact is excluded if `combine` leaves no row of it."""
        return "no correct name can be answered"

    def resolve(self, capabilities: frozenset[Capability]) -> Self:
        """This probe with open settings decided, for a model with these capabilities."""
        choose_supported(self.name, self.requires, capabilities)
        return self

    def templates(self, relation: Relation) -> tuple[Template, ...]:
        """The templates that are prompted, the base one first."""
        return relation.templates

    def notices(self, data: Dataset) -> tuple[str, ...]:
        """What the probe changes in the templates of the dataset, a sentence each."""
        return ()

    def prompts(self, data: Dataset) -> Iterator[PromptBatch]:
        """Every prompt, in an order that depends on the dataset and the settings alone."""
        raise NotImplementedError

    def facts(self, data: Dataset) -> pl.DataFrame:
        """The facts that are prompted, one row each; `excluded` has the reason where one is not."""
        from sonde.evaluation.tables import fact_table

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
        return answer_contains_name(answer, names, language)

    # today's runs call these
    def suited(self, can: frozenset[Capability]) -> Self:
        return self.resolve(can)

    def ask(self, dataset: Dataset) -> Iterator[Block]:
        return map(as_block, self.prompts(dataset))


@dataclass(frozen=True, kw_only=True)
class TextProbe(Probe):
    """Base of probes with generated answers."""

    abstaining: tuple[str, ...] = setting((ALL,), ABSTAINING_HELP, analysis_only=True)

    def __post_init__(self) -> None:
        check_abstaining_setting(self.abstaining)

    def judge_text(
        self,
        answers: Answers,
        facts: pl.DataFrame,
        clean: Callable[[str], str] = clean_answer,
        accepts: Callable[[str, Sequence[str], str], bool] | None = None,
    ) -> pl.DataFrame:
        """One row per generated answer, compared after `clean` by `accepts`."""
        from sonde.evaluation.judge import judge_text

        abstains = build_abstention_test(self.abstaining)
        return judge_text(answers, facts, accepts or self.accepts, clean, abstains)


@dataclass(frozen=True, kw_only=True)
class LemmaProbe(TextProbe):
    """Base of probes that compare generated answers by lemmas."""

    language: str = setting(AUTO, LANGUAGE_HELP, analysis_only=True)

    def __post_init__(self) -> None:
        check_language(self.language)
        super().__post_init__()

    def comparison_language(self, language: str) -> str:
        """The language that answers about a relation of this language are compared in."""
        return comparison_language(self.language, language)

    def check_languages(self, data: Dataset) -> None:
        """Raise if answers about a relation cannot be compared."""
        for relation in data.asked_relations():
            check_language(self.comparison_language(relation.language))

    def accepts(self, answer: str, names: Sequence[str], language: str) -> bool:
        """Whether the lemmas of a name are consecutive in the answer."""
        return answer_contains_name(answer, names, self.comparison_language(language))


@dataclass(frozen=True, kw_only=True)
class MarkedProbe(TextProbe):
    """Base of probes whose questions and answers have markers."""

    markers: tuple[str, ...] = setting((), MARKERS_HELP)
    stop: str = setting("", STOP_HELP)

    def __post_init__(self) -> None:
        check_markers(self.markers)
        super().__post_init__()

    def phrasing_of(self, relation: Relation, **words: str) -> Phrasing:
        """The words around the facts of a relation."""
        return build_phrasing(relation.language, markers=self.markers, stop=self.stop, **words)


@dataclass(frozen=True, kw_only=True)
class MaskProbe(Probe):
    """Base of probes that let masked models fill in one token, and others score options."""

    requires = (frozenset({"fill"}), frozenset({"score"}))

    answer: Literal["auto", "fill", "score"] = setting(
        "auto",
        "fill a mask, or score the relation's objects as options; auto fills where the model can, "
        "unless an object of a table is more than one token",
    )
    close: bool = setting(True, CLOSE_HELP)

    def resolve(self, capabilities: frozenset[Capability]) -> Self:
        modes = [mode for mode in self.requires if self.answer in ("auto", *mode)]
        fill = "fill" in choose_supported(self.name, modes, capabilities)
        close = self.close and "fill" in capabilities
        return replace(self, answer="fill" if fill else "score", close=close)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a report states of these settings."""
        closed = "Templates without final punctuation were closed with a full stop."
        return ("Ties count as wrong.", *([closed] if self.close else []))

    @property
    def exclusion_reason(self) -> str:
        fill = "one token of the model"
        return f"no correct object is {'an option' if self.answer == 'score' else fill}"

    def notices(self, data: Dataset) -> tuple[str, ...]:
        relations = data.asked_relations() if self.close else ()
        return describe_closed_templates(
            (r, template) for r in relations for template in self.templates(r)
        )


@dataclass(frozen=True, kw_only=True, repr=False)
class DatasetWithOtherFacts(Dataset):
    """A dataset that prompts these facts of a relation."""

    select_facts: Callable[[str], pl.DataFrame]

    def asked_frame(self, relation: str) -> pl.DataFrame:
        return self.select_facts(relation)


def with_other_facts(
    data: Dataset, facts: Callable[[str], pl.DataFrame], **changes: Any
) -> Dataset:
    """The dataset with other prompted facts, by relation, and with changed fields."""
    values = {field.name: getattr(data, field.name) for field in fields(data)}
    return DatasetWithOtherFacts(**values | changes, select_facts=facts)


def choose_supported(
    probe: str, requires: Iterable[frozenset[Capability]], capabilities: frozenset[Capability]
) -> frozenset[Capability]:
    """The first of some alternatives that a model meets; AbilityError if it meets none."""
    for needed in requires:
        if needed <= capabilities:
            return needed
    either = " or ".join(" and ".join(sorted(needed)) for needed in requires)
    raise AbilityError(
        f"probe {probe!r} needs a model that can {either}; this one can "
        f"{', '.join(sorted(capabilities)) or 'do nothing'}. See 'sonde models'"
    )
