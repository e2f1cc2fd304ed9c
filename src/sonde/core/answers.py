"""What a model answers: raw log-probabilities in nats, never yet summed or normalised."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from sonde.core.prompts import Key

Kind = Literal["scored", "traced", "filled", "generated", "sampled"]
KINDS: tuple[Kind, ...] = get_args(Kind)

OPENED, CLOSED = "<think>", "</think>"
"""What a chat model writes around its thoughts, which stand before its answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """For each option, the log-probability of each of its tokens, and of the text after it.

    `suffix_logps` is empty where nothing was scored after the answer (masked models, answer last).
    """

    options: tuple[str, ...]
    logps: tuple[tuple[float, ...], ...]
    suffix_logps: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """The likeliest tokens with their log-probabilities, and the watched names with theirs.

    Log-probabilities are over the model's full vocabulary; ranks count only allowed answers, 1 is
    best, equal probabilities share the worse rank. A watched name that is not one allowed token
    has None for both. `mass` is the log of the total probability of the allowed answers.
    """

    top: tuple[str, ...]
    top_logps: tuple[float, ...]
    watched: tuple[str, ...] = ()
    watched_logps: tuple[float | None, ...] = ()
    watched_ranks: tuple[int | None, ...] = ()
    mass: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """What a model wrote, up to where it ended, with the log-probability of each of its tokens.

    `text` is as the model wrote it, with the space it began with, without what ended it. `end_logp`
    belongs to the token that ended it; None where there is no such token: the text ran to its
    limit, or its last token holds both text and end. `finished`: it ended before the limit.
    `thoughts`: what a chat model wrote before it, up to </think>; it is kept and never judged.
    """

    text: str
    logps: tuple[float, ...]
    end_logp: float | None = None
    finished: bool = True
    thoughts: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """The distinct texts that were drawn, and how often each was; the commonest first.

    `thoughts`: for each text what a chat model wrote before it, as of `Generated`, once for every
    time that the text was drawn, in alphabetical order; empty where no draw has any.
    """

    texts: tuple[str, ...]
    counts: tuple[int, ...]
    thoughts: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def pooled(cls, drawn: Iterable[tuple[str, str, int]]) -> Sampled:
        """Texts, what was thought before each, and how often that was drawn.

        The same text may come by several paths.

        >>> Sampled.pooled([(" b", "", 1), (" a", "", 1), (" b", "", 2)])
        Sampled(texts=(' b', ' a'), counts=(3, 1), thoughts=())
        >>> Sampled.pooled([("b", "Hm.", 1), ("b", "Ah.", 2)]).thoughts
        (('Ah.', 'Ah.', 'Hm.'),)
        """
        before: dict[str, list[str]] = {}
        for text, thoughts, count in drawn:
            before.setdefault(text, []).extend([thoughts] * count)
        order = sorted(before, key=lambda text: (-len(before[text]), text))
        thought = any(map(any, before.values()))
        return cls(
            texts=tuple(order),
            counts=tuple(len(before[text]) for text in order),
            thoughts=tuple(tuple(sorted(before[text])) for text in order) if thought else (),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """For each span, in order, the log-probability of each token that belongs to it.

    A row is empty only where the span before has the one token that holds this one too.
    """

    logps: tuple[tuple[float, ...], ...]


Answer = Scored | Filled | Generated | Sampled | Traced


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A prompt as it was put, with its answer: one row of a run. `own` as of `Prompt`."""

    key: Key
    prefix: str
    suffix: str
    answer: Answer
    own: Mapping[str, Any] = field(default_factory=dict, hash=False)
