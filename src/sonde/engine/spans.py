"""Find the tokens of some parts of a text by character offsets, to be read in one pass.

Knows token ids and the characters they hold; nothing of tokenizers or models.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from sonde.core.errors import PromptError
from sonde.engine.encode import Start, Tokenised

Part = tuple[int, int]
"""Characters from start up to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanTokens:
    """Token ids of one text, and for each of its parts the range of the tokens that are its own.

    Every token that is read has one before it, which predicts it.
    """

    ids: tuple[int, ...]
    ranges: tuple[tuple[int, int], ...]

    @property
    def reads(self) -> tuple[int, ...]:
        """The places of all tokens that are read, in order."""
        return tuple(i for start, stop in self.ranges for i in range(start, stop))

    @property
    def fed(self) -> tuple[int, ...]:
        """The tokens that must be fed: those before the last that is read."""
        return self.ids[: self.ranges[-1][1] - 1]

    @property
    def unread(self) -> tuple[int, ...]:
        """What may be fed without reading anything: short of the token before the first read."""
        return self.ids[: self.reads[0] - 1]

    def after(self, length: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The text without its first tokens, none of which is read, and the places that are."""
        return self.ids[length:], tuple(i - length for i in self.reads)


def mark(tokenised: Tokenised, text: str, parts: Sequence[Part], start: Start) -> SpanTokens:
    """The tokens of each part; a start token stands first where every text or this one needs it."""
    check_parts(parts, len(text))
    ids, offsets = tokenised
    ranges = part_tokens(offsets, parts)
    for i, (part, (first, stop)) in enumerate(zip(parts, ranges, strict=True)):
        if first == stop and not _taken(offsets, part, ranges[i - 1] if i else None):
            raise PromptError(
                f"the part {text[slice(*part)]!r} has no token in this model's tokenizer"
            )
    if not start.always and ranges[0][0] > 0:
        return SpanTokens(ids=ids, ranges=ranges)
    if start.id is None:
        raise PromptError(
            "a part that is read opens the text and this tokenizer has no token to start from; "
            "let other text stand before it"
        )
    return SpanTokens(ids=(start.id, *ids), ranges=tuple((a + 1, b + 1) for a, b in ranges))


def check_parts(parts: Sequence[Part], length: int) -> None:
    """Refuse parts that do not rise, overlap, are empty or lie outside the text."""
    if not parts:
        raise PromptError("there is no part of the text to read")
    end = 0
    for start, stop in parts:
        if not end <= start < stop <= length:
            raise PromptError(
                f"the parts {list(parts)} of a text of {length} characters must rise, hold at "
                f"least one character each and not overlap; ({start}, {stop}) does not"
            )
        end = stop


def part_tokens(
    offsets: Sequence[tuple[int, int]], parts: Sequence[Part]
) -> tuple[tuple[int, int], ...]:
    """For each part the range of its tokens; one that two parts share is the first one's.

    >>> part_tokens([(0, 3), (3, 8), (8, 9)], [(4, 6), (6, 9)])
    ((1, 2), (2, 3))
    """
    starts, ends = [a for a, _ in offsets], [b for _, b in offsets]
    found: list[tuple[int, int]] = []
    free = 0
    for begin, end in parts:
        first = max(bisect_right(ends, begin), free)
        free = max(bisect_left(starts, end), first)
        found.append((first, free))
    return tuple(found)


def _taken(offsets: Sequence[tuple[int, int]], part: Part, before: tuple[int, int] | None) -> bool:
    """Whether the last token of the part before holds some of this part."""
    return before is not None and before[1] > 0 and offsets[before[1] - 1][1] > part[0]
