"""What a dialect is: asks out as requests, replies in as checked numbers. Pure functions, no I/O.

A dialect trusts no reply: it raises `Malformed` where another try may do better and `ServerError`
where none will. What all dialects check in the same way is here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from sonde.models.served.asks import Ask, Floats, Ids, Kind, Next, Rate, Result

One = TypeVar("One")

ODD = (TypeError, AttributeError, KeyError, IndexError)
"""What reading raises where something is of another type than in any server's replies."""

LEAST = 1e-5
"""How far above 0 rounding may take a log-probability."""

BELOW = 0.25
"""How far below the likeliest a token may be that was to be the likeliest, in nats: some servers
compute what they write and what they tell of it apart."""


class Malformed(Exception):
    """A reply that is not what was asked for; another try may bring it. Says what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Request:
    """A body to be posted to a path, and the asks that its reply answers, in order."""

    path: str
    body: Mapping[str, Any]
    asks: Sequence[Ask]


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a server says of itself; `context`: the tokens it takes, None where it does not say.

    `slots`: texts that it computes side by side, each slot keeping its own; 0 where it keeps all.
    """

    version: str = ""
    context: int | None = None
    slots: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a dialect must know of a server: all fields of its body that every request has.

    `model` is the name under which the model is served. `batch`: how many asks go in one request,
    1 where the server takes one. `draws`: how many texts a `Draw` may want, where a server takes
    fewer than is usual. `pieces`: the text of each of some tokens by the local tokenizer,
    None for one that has none by itself. `spaced`: the server tells them with their spaces.
    """

    model: str
    pieces: Callable[[Ids], list[str | None]] = field(repr=False)
    batch: int = 1
    draws: int | None = None
    spaced: bool = False


class Dialect(Protocol):
    """How one kind of server is spoken with; made from a `Setting` alone.

    `looks` are the paths that `about` wants to see (by GET), beside "/v1/models". `widest`: how
    many tokens a `Next` may want; `draws`: how many texts a `Draw` may.
    """

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def setting(self) -> Setting:
        """What it was made from."""

    @property
    def can(self) -> frozenset[Kind]:
        """The kinds of asks that such a server may answer; which it does is tried."""

    @property
    def looks(self) -> tuple[str, ...]:
        """The paths that say what `about` tells."""

    @property
    def widest(self) -> int:
        """The most tokens that a `Next` may want."""

    @property
    def draws(self) -> int:
        """The most texts that a `Draw` may want."""

    def about(self, seen: Mapping[str, Any]) -> About:
        """What the replies of some paths say; a path that gave none is missing."""

    def requests(self, asks: Sequence[Ask]) -> list[Request]:
        """Asks of one kind as requests."""

    def computes(self, asks: Sequence[Ask]) -> int:
        """About how many tokens the server computes for asks of one kind."""

    def read(self, request: Request, reply: Any) -> list[Result]:
        """The results of a request's asks, all of them checked."""


@runtime_checkable
class Divides(Dialect, Protocol):
    """A dialect whose servers do not read every text in one request.

    `wide`: the tokens behind one beginning from which on these are better asked by a `Next`.
    """

    @property
    def wide(self) -> int:
        """How many tokens those are."""

    def divide(self, ids: Ids, reads: Ids) -> list[Rate | Next]:
        """The asks that read those places of a text, in order."""


def models_of(listed: Any) -> list[Mapping[str, Any]]:
    """The entries of a list of models; none where a server lists them otherwise."""
    entries = listed.get("data") if isinstance(listed, dict) else None
    named = entries if isinstance(entries, list) else []
    return [entry for entry in named if isinstance(entry, dict) and "id" in entry]


def told_context(seen: Mapping[str, Any], model: str) -> int | None:
    """The context that a list of models tells of one of them."""
    named = (entry for entry in models_of(seen.get("/v1/models")) if entry["id"] == model)
    length = next((entry.get("max_model_len") for entry in named), None)
    return length if isinstance(length, int) else None


def batches(asks: Sequence[Ask], size: int) -> list[Sequence[Ask]]:
    """So many at a time.

    >>> [len(part) for part in batches([None] * 5, 2)]
    [2, 2, 1]
    """
    return [asks[i : i + size] for i in range(0, len(asks), size)]


def at(value: Any, *path: str | int) -> Any:
    """What lies in a reply under names and numbers; Malformed where it does not."""
    found = value
    for step in path:
        try:
            found = found[step]
        except (KeyError, IndexError, TypeError):
            where = ".".join(map(str, path))
            raise Malformed(f"it has no {where} but {shown(value)}") from None
    return found


def listed(value: Any, *path: str | int) -> list[Any]:
    """A list that lies in a reply."""
    found = at(value, *path)
    if not isinstance(found, list):
        raise Malformed(f"{'.'.join(map(str, path))} is no list but {shown(found)}")
    return found


def text_at(value: Any, name: str) -> str:
    """A text that lies in a reply."""
    if not isinstance(text := at(value, name), str):
        raise Malformed(f"{name} is no text but {shown(text)}")
    return text


def in_order(choices: list[Any], count: int) -> list[Any]:
    """The choices of a reply by their index, as many as were asked for, each once."""
    if len(choices) != count:
        raise Malformed(f"it has {len(choices)} choices where {count} were asked for")
    found = {index: each for each in choices if isinstance(index := at(each, "index"), int)}
    if sorted(found) != list(range(count)):
        indexes = [at(each, "index") for each in choices]
        raise Malformed(f"its choices have the indexes {indexes} and not 0 to {count - 1}")
    return [found[index] for index in range(count)]


def logps(values: Sequence[Any], count: int) -> Floats:
    """So many log-probabilities: numbers, finite, none above 0 by more than rounding."""
    if len(values) != count:
        raise Malformed(f"it has {len(values)} log-probabilities where {count} were asked for")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Malformed(f"{shown(value)} stands where a log-probability belongs")
        if not math.isfinite(value) or value > LEAST:
            raise Malformed(f"{value} stands where a log-probability belongs")
    return np.minimum(np.array(values, dtype=np.float64), 0.0)


def ended(reason: Any, ends: Collection[str] = ("stop",), limit: str = "length") -> bool:
    """Whether a text came to its end, or else to its limit, by the reason that a server gives."""
    if reason != limit and reason not in ends:
        raise Malformed(f"it gave up a text ({shown(reason)})")
    return bool(reason != limit)


def check_greedy(known: Sequence[float], told: Any) -> None:
    """Check that written tokens are the likeliest of their places, where a server tells of others.

    `known` are their own log-probabilities; `told` has a table or a list of some for each place.
    """
    for own, place in zip(known, told if isinstance(told, list) else (), strict=False):
        entries = place.values() if isinstance(place, dict) else place or ()
        best = max((each for each in entries if isinstance(each, int | float)), default=own)
        if own < best - BELOW:
            raise Malformed(
                f"it wrote a token of {own:.3f} where another is likelier ({best:.3f}), and was "
                "told to write the likeliest"
            )


def same_length(told: Any, count: int) -> None:
    """Check the number of prompt tokens that a server tells, where it tells it."""
    if isinstance(told, int) and told != count:
        verb = "cut" if told < count else "added to"
        raise Malformed(f"its prompt has {told} tokens where {count} were sent: it was {verb}")


def same_pieces(told: Sequence[Any], ids: Ids, setting: Setting) -> None:
    """Check the words among tokens that a server returns against the local tokenizer's.

    Others, such as ends of lines, are written in several ways. The space before a word counts where
    the server is known to tell it; many do not tell that of the first word.
    """
    own = setting.pieces(ids)
    if len(told) != len(own):
        raise Malformed(f"it returns {len(told)} tokens where {len(own)} were sent")
    for theirs, ours, id, before in zip(map(str, told), own, ids, [None, *own], strict=False):
        spaced = setting.spaced and before is not None
        if (word := (ours or "").strip()).isalnum() and (
            with_spaces(theirs) != ours if spaced else bare(theirs) != word
        ):
            raise Malformed(f"it returns {theirs!r} for token {id}, which is {ours!r} here")


def with_spaces(text: str) -> str:
    """A text with its spaces, however a tokenizer marks them.

    >>> with_spaces("▁New Ġ York")
    ' New   York'
    """
    return re.sub("[▁Ġ]", " ", text)


def bare(text: str) -> str:
    """A text without its spaces, however a tokenizer marks them.

    >>> bare("▁New Ġ York")
    'NewYork'
    """
    return re.sub(r"[\s▁Ġ]", "", text)


def told_text(seen: Mapping[str, Any], path: str, name: str) -> str:
    """What a server says of itself under a path; nothing where it does not, or in another form.

    >>> told_text({"/version": {"version": "1.0"}}, "/version", "version"), told_text({}, "/", "a")
    ('1.0', '')
    """
    found = seen.get(path)
    value = found.get(name) if isinstance(found, dict) else None
    return value if isinstance(value, str) else ""


def shown(value: Any) -> str:
    """A value as a message shows it."""
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"
