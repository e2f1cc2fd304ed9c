"""What a served model is asked: questions about token ids. Knows nothing of requests or texts.

Every ask is a value: asked twice, it is asked once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import NDArray

Ids = tuple[int, ...]

Floats = NDArray[Any]
"""Log-probabilities in nats, float64."""


@dataclass(frozen=True, slots=True)
class Rate:
    """The log-probability of each token of ids[first:], given those before it; `first` >= 1.

    Answered with as many numbers.
    """

    ids: Ids
    first: int


@dataclass(frozen=True, slots=True)
class Next:
    """The log-probability of each of the `wanted` tokens as the next one after `ids`.

    A node of the tree that options form. Answered with a number for each, in their order.
    """

    ids: Ids
    wanted: Ids


@dataclass(frozen=True, slots=True)
class Write:
    """The likeliest text after `ids`: at most so many tokens, or up to the text `until` if any.

    Answered with `Written`.
    """

    ids: Ids
    most: int
    until: str = ""


@dataclass(frozen=True, slots=True)
class Draw:
    """`count` texts drawn after `ids` from the model as it is; `most` and `until` as for `Write`.

    Answered with a tuple of so many `Written`.
    """

    ids: Ids
    count: int
    most: int
    until: str
    seed: int


@dataclass(frozen=True, slots=True)
class Spell:
    """What the server's own tokenizer says some tokens are, put together; answered with a text."""

    ids: Ids


Ask = Rate | Next | Write | Draw | Spell

Kind = Literal["rate", "next", "write", "draw", "spell"]

KINDS: dict[type, Kind] = {
    Rate: "rate",
    Next: "next",
    Write: "write",
    Draw: "draw",
    Spell: "spell",
}


def written_by(ask: Ask) -> int:
    """How many tokens are written for an ask, at most."""
    match ask:
        case Write():
            return ask.most
        case Draw():
            return ask.count * ask.most
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a server wrote: a text as it gave it, and its tokens as far as it tells them.

    `ids` are the tokens, `pieces` their texts where it tells only these; either may hold tokens
    that end the text, which `text` does not. `logps` are of the first tokens; a server may have
    none for what ended the text. `ended`: it came to an end before the limit.
    """

    text: str
    ended: bool
    ids: Ids = ()
    pieces: tuple[str, ...] = ()
    logps: tuple[float, ...] = ()


Result = Floats | Written | tuple[Written, ...] | str
"""What an ask is answered with."""
