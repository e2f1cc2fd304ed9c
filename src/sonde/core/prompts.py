"""What is asked of a model, and for whom. Gold answers never enter here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """Where a prompt comes from: the columns by which answers are joined to facts."""

    fact: str
    relation: str
    template: str
    subject: str
    context: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Ask for the log-probability of each option at the answer's place."""

    options: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """Ask for the likeliest single tokens at the answer's place.

    `vocabulary` restricts what may be answered; `watched` names are reported with their rank even
    when they are not among the `top`.
    """

    top: int = 10
    watched: tuple[str, ...] = ()
    vocabulary: tuple[str, ...] | None = None


Want = Score | Fill


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A text with a hole: `prefix` + answer + `suffix`, and what is wanted of the hole."""

    key: Key
    prefix: str
    suffix: str = ""
    want: Want
