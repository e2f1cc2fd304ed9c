"""Scored options and traced spans as arrays: lists of numbers laid end to end.

Knows numbers and names of options; nothing of prompts or of what is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sonde.core.answers import Scored, Traced
from sonde.core.scores import Normalise

Ints = NDArray[Any]
Floats = NDArray[Any]

NONE: Ints = np.zeros(0, dtype=np.int32)


@dataclass(frozen=True, kw_only=True, eq=False)
class RatedColumns:
    """Scored options, or spans that were traced, of many prompts; nested lists laid end to end.

    Prompt i has the options `bounds[i]` to `bounds[i+1]`; option j is `names[options[j]]` and has
    the tokens `tokens[j]` to `tokens[j+1]` of `logps`. `suffix_tokens` and `suffix_logps` are the
    same for the text after each option, None where nothing was scored there for any prompt. Spans
    have no names.
    """

    bounds: Ints
    tokens: Ints
    logps: Floats
    suffix_tokens: Ints | None = None
    suffix_logps: Floats | None = None
    names: Sequence[str] = ()
    options: Ints | None = None

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @cached_property
    def owners(self) -> Ints:
        """The prompt that each option belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.bounds))

    def sums(self, *, suffix: bool = True) -> NDArray[np.float64]:
        """The log-probability of each option, with that of the text after it or without."""
        total = added(self.logps, self.tokens)
        if suffix and self.suffix_tokens is not None and self.suffix_logps is not None:
            total = total + added(self.suffix_logps, self.suffix_tokens)
        return total

    def counts(self, *, suffix: bool = True) -> Ints:
        """How many tokens each option has, with those of the text after it or without."""
        count = np.diff(self.tokens)
        if suffix and self.suffix_tokens is not None:
            count = count + np.diff(self.suffix_tokens)
        return count

    def compared(self, normalise: Normalise) -> NDArray[np.float64]:
        """What options are compared by: as `core.scores.option_logps` has it."""
        return self.sums() / (self.counts() if normalise == "tokens" else 1)

    def rows(self, chosen: slice | Ints) -> RatedColumns:
        """Some of the prompts, in the order given."""
        bounds, options = taken(self.bounds, chosen)
        tokens, places = taken(self.tokens, options)
        part = replace(self, bounds=bounds, tokens=tokens, logps=self.logps[places])
        if self.options is not None:
            part = replace(part, options=self.options[options])
        if self.suffix_tokens is None or self.suffix_logps is None:
            return part
        after, places = taken(self.suffix_tokens, options)
        return replace(part, suffix_tokens=after, suffix_logps=self.suffix_logps[places])

    def each(self) -> Iterator[Scored | Traced]:
        """One answer after the other, as an object."""
        logps = _lists(self.tokens, self.logps)
        after = None
        if self.suffix_tokens is not None and self.suffix_logps is not None:
            after = _lists(self.suffix_tokens, self.suffix_logps)
        known: dict[bytes, tuple[str, ...]] = {}
        for start, stop in pairwise(self.bounds.tolist()):
            if self.options is None:
                yield Traced(logps=tuple(logps[start:stop]))
                continue
            codes = self.options[start:stop]
            if (key := codes.tobytes()) not in known:
                known[key] = tuple([self.names[code] for code in codes.tolist()])
            rest = tuple(after[start:stop]) if after is not None else ()
            yield Scored(
                options=known[key],
                logps=tuple(logps[start:stop]),
                suffix_logps=rest if any(rest) else (),
            )

    @classmethod
    def scored(
        cls,
        options: Sequence[tuple[str, ...]],
        logps: Floats,
        counts: Sequence[int] | Ints,
        after: Sequence[int] | Ints | int = 0,
    ) -> RatedColumns:
        """Options of prompts, given what lies end to end: tokens of each option and after it.

        `counts` and `after`: how many tokens each option has, and how many follow it.
        """
        codes: dict[str, int] = {}
        seen: dict[int, Ints] = {}
        for names in options:  # prompts share their options: each tuple is looked up once
            if id(names) not in seen:
                numbers = [codes.setdefault(name, len(codes)) for name in names]
                seen[id(names)] = np.array(numbers, dtype=np.int32)
        both = np.stack(np.broadcast_arrays(counts, after), axis=1).astype(np.int64)
        own = np.repeat(np.tile([True, False], len(both)), both.ravel())
        some = bool(both[:, 1].any())
        return cls(
            bounds=ends_of([len(names) for names in options]),
            tokens=ends_of(both[:, 0]),
            logps=logps[own] if some else logps,
            suffix_tokens=ends_of(both[:, 1]) if some else None,
            suffix_logps=logps[~own] if some else None,
            names=list(codes),
            options=np.concatenate([NONE, *(seen[id(names)] for names in options)]),
        )

    @classmethod
    def traced(cls, spans: Sequence[int], logps: Floats, counts: Sequence[int]) -> RatedColumns:
        """Spans of prompts, so many of each, given the tokens of all laid end to end."""
        return cls(bounds=ends_of(spans), tokens=ends_of(counts), logps=logps)

    @classmethod
    def gathered(cls, answers: Sequence[Scored | Traced]) -> RatedColumns:
        """Answers that were given one by one, all of one kind."""
        scored = [answer for answer in answers if isinstance(answer, Scored)]
        if not scored:
            rows = [row for answer in answers for row in answer.logps]
            return cls.traced([len(a.logps) for a in answers], _flat(rows), list(map(len, rows)))
        pairs = [
            pair
            for a in scored
            for pair in zip(a.logps, a.suffix_logps or ((),) * len(a.options), strict=True)
        ]
        counts, after = ([len(pair[side]) for pair in pairs] for side in (0, 1))
        logps = _flat([row for pair in pairs for row in pair])
        return cls.scored([a.options for a in scored], logps, counts, after)

    @classmethod
    def joined(cls, parts: Sequence[RatedColumns]) -> RatedColumns:
        """Several under each other."""
        if len(parts) == 1:
            return parts[0]
        names, options = _same_names(parts)
        after = [part for part in parts if part.suffix_logps is not None]
        return cls(
            bounds=ends_of(np.concatenate([np.diff(part.bounds) for part in parts])),
            tokens=ends_of(np.concatenate([np.diff(part.tokens) for part in parts])),
            logps=np.concatenate([part.logps for part in parts]),
            suffix_tokens=ends_of(np.concatenate(list(map(_after, parts)))) if after else None,
            suffix_logps=np.concatenate([part.suffix_logps for part in after]) if after else None,
            names=names,
            options=np.concatenate(options) if options else None,
        )


def added(values: Floats, ends: Ints) -> NDArray[np.float64]:
    """The sums of values that are laid end to end in lists; those of a list are in float64."""
    owners = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    sums = np.bincount(owners, weights=values, minlength=len(ends) - 1)
    return np.asarray(sums, dtype=np.float64)


def ends_of(lengths: Sequence[int] | Ints) -> Ints:
    """Where lists of some lengths begin when they are laid end to end, and where the last ends."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def taken(ends: Ints, chosen: slice | Ints) -> tuple[Ints, Ints]:
    """Some of the lists that are laid end to end: where they begin, and the values they have."""
    lengths = np.diff(ends)[chosen]
    kept = ends_of(lengths)
    shift = np.repeat(ends[:-1][chosen] - kept[:-1], lengths)
    return kept, shift + np.arange(kept[-1])


def _after(part: RatedColumns) -> Ints:
    """How many tokens follow each option."""
    if part.suffix_tokens is None:
        return np.zeros(len(part.tokens) - 1, dtype=np.int64)
    return np.diff(part.suffix_tokens)


def _lists(ends: Ints, values: Floats) -> list[tuple[float, ...]]:
    flat = values.tolist()
    return [tuple(flat[start:stop]) for start, stop in pairwise(ends.tolist())]


def _flat(rows: Sequence[Sequence[float]]) -> Floats:
    return np.fromiter(chain.from_iterable(rows), dtype=np.float32)


def _same_names(parts: Sequence[RatedColumns]) -> tuple[list[str], list[Ints]]:
    """The names of all, and the options of each that has any, numbered by these."""
    codes: dict[str, int] = {}
    options = []
    for part in parts:
        numbers = np.array([codes.setdefault(name, len(codes)) for name in part.names], np.int32)
        if part.options is not None:
            options.append(numbers[part.options])
    return list(codes), options
