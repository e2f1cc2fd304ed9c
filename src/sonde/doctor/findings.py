"""What a check looks at, and what it finds: one finding per check."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from sonde.core.answers import Answer
from sonde.core.examinations import Examination, Text
from sonde.core.prompts import Prompt

Verdict = Literal["ok", "warning", "fault", "not checked"]
NOTHING: Mapping[str, float] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A prompt with its answer, and what the model shows about it; None where there is none.

    `again` is its answer when asked a second time. `refused` says why the model did not answer.
    """

    prompt: Prompt
    shown: Examination | None = None
    answer: Answer | None = None
    again: Answer | None = None
    refused: str = ""

    @property
    def name(self) -> str:
        """How the prompt is called in a message."""
        return f"{self.prompt.key.relation} {self.prompt.key.subject!r}"

    @property
    def texts(self) -> tuple[Text, ...]:
        """The texts that hold an answer."""
        return self.shown.texts if self.shown else ()

    @property
    def given(self) -> tuple[Text, ...]:
        """All texts the model is given: those, and what it reads before it writes them."""
        return (*self.texts, *self.shown.sources) if self.shown else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the checks look at; `alive` are the cases whose numbers are all finite.

    What else is told of NaN would mislead. `tolerance` is in nats. `choices` are the most probable
    answers about more facts, each with the fact's object.
    """

    cases: tuple[Case, ...]
    alive: tuple[Case, ...]
    tolerance: float
    choices: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The verdict of one check: what was found, and what to do about it if it is not well."""

    check: str = ""
    verdict: Verdict
    found: str
    advice: str = ""
    values: Mapping[str, float] = field(default_factory=dict)


def ok(found: str, values: Mapping[str, float] = NOTHING) -> Finding:
    """All is well."""
    return Finding(verdict="ok", found=found, values=values)


def warning(found: str, advice: str, values: Mapping[str, float] = NOTHING) -> Finding:
    """Something deserves a look."""
    return Finding(verdict="warning", found=found, advice=advice, values=values)


def fault(found: str, advice: str, values: Mapping[str, float] = NOTHING) -> Finding:
    """Something is wrong."""
    return Finding(verdict="fault", found=found, advice=advice, values=values)


def skipped(found: str) -> Finding:
    """There was nothing to look at."""
    return Finding(verdict="not checked", found=found)


class Check(NamedTuple):
    """A check by the name that it has for users; some need the tokens that a model is given."""

    name: str
    look: Callable[[Seen], Finding]
    needs_tokens: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Every finding about a model on some prompts; `tolerance` in nats."""

    findings: tuple[Finding, ...]
    cases: tuple[Case, ...]
    tolerance: float

    @property
    def faults(self) -> tuple[Finding, ...]:
        """What is wrong."""
        return tuple(f for f in self.findings if f.verdict == "fault")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """What deserves a look."""
        return tuple(f for f in self.findings if f.verdict == "warning")


def some(names: Sequence[str], most: int = 3) -> str:
    """A few of the names, and how many more there are.

    >>> some(["a", "b", "b", "c", "d"])
    'a, b, c and 1 more'
    """
    distinct = list(dict.fromkeys(names))
    rest = len(distinct) - most
    return ", ".join(distinct[:most]) + (f" and {rest} more" if rest > 0 else "")


def counted(count: int, noun: str) -> str:
    """A count with its noun.

    >>> counted(1, "text"), counted(1200, "text")
    ('1 text', '1,200 texts')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
