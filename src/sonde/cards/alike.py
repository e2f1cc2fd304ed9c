"""Texts that are nearly the same, found exactly and without comparing all pairs.

Texts are folded to lower-case words. Two are alike where their numbers, Roman ones too, are the
same, and at least a share of all character trigrams of both stands in both (Jaccard). Of two such
sets the rarest few trigrams have some in common (a prefix filter): pairs without them are never
compared, and none that is alike is missed. Knows texts alone.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import ceil

from sonde.data.check import bare

LEAST = 0.8
"""The share of trigrams in common from which on texts are alike."""

ROUNDING = 1e-9

MET = 3
"""Rare trigrams that alike texts have in common at least; more are slower to look up, fewer leave
more pairs to compare."""


def folded(text: str) -> str:
    """Lower-case words; a text without any stays what it is.

    >>> folded("St. Paul's"), folded("?")
    ('st paul s', '?')
    """
    return bare(text) or text.casefold()


def trigrams(text: str) -> frozenset[str]:
    """Three characters each, of a folded text with a space at either end.

    >>> sorted(trigrams("oslo"))
    [' os', 'lo ', 'osl', 'slo']
    """
    padded = f" {text} "
    return frozenset(padded[i : i + 3] for i in range(len(padded) - 2))


def similarity(a: frozenset[str], b: frozenset[str]) -> float:
    """Jaccard's: the share of all trigrams of both that both have."""
    return len(a & b) / len(a | b)


NUMBER = re.compile(r"\d+|\b[ivxlcdm]+\b")


def numbers(text: str) -> str:
    """The numbers of a folded text, which must be the same: Apollo 11 is not Apollo 12.

    >>> numbers("apollo 11"), numbers("pius ix")
    ('11', 'ix')
    """
    return " ".join(NUMBER.findall(text))


Near = Mapping[str, Sequence[tuple[float, str]]]
"""The texts alike to each folded text, itself first, with how alike they are."""


def near(texts: Iterable[str], least: float = LEAST) -> Near:
    """What is alike to each of some texts, the likest first."""
    distinct = list(dict.fromkeys(map(folded, texts)))
    found = {text: [(1.0, text)] for text in distinct}
    for a, b, alike in pairs(distinct, least):
        found[a].append((alike, b))
        found[b].append((alike, a))
    for others in found.values():
        others.sort(key=lambda other: -other[0])
    return found


def pairs(texts: Sequence[str], least: float) -> Iterator[tuple[str, str, float]]:
    """All pairs of different folded texts that are alike.

    Of each text as many of the rarest trigrams are looked up as leave only few others: what is
    alike has at least `MET` of them in common, or all that must be where these are fewer.
    """
    grams = [trigrams(text) for text in texts]
    often = Counter(gram for own in grams for gram in own)
    needed = [ceil(least * len(own) - ROUNDING) for own in grams]
    tried: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, own in enumerate(grams):
        rarest = sorted(own, key=lambda gram: (often[gram], gram))
        said, met = numbers(texts[place]), Counter[int]()
        for gram in rarest[: len(own) - needed[place] + MET]:
            bucket = tried[said, gram]
            met.update(bucket)
            bucket.append(place)
        fewest = min(MET, needed[place])
        for other in sorted(other for other, n in met.items() if n >= min(fewest, needed[other])):
            alike = similarity(own, grams[other])
            if alike >= least:
                yield texts[other], texts[place], alike


def likest(
    groups: Sequence[str],
    texts: Sequence[str],
    counts: Callable[[int, int], bool],
    near: Near,
) -> dict[int, tuple[int, float]]:
    """For each text that has one, the likest other of its group, and how alike they are.

    Texts go by their places; `counts` says of two whether they may be a pair at all.
    """
    keys = [(group, folded(text)) for group, text in zip(groups, texts, strict=True)]
    holders: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, key in enumerate(keys):
        holders[key].append(place)
    found = {}
    for place, (group, text) in enumerate(keys):
        others = ((o, alike) for alike, text in near[text] for o in holders.get((group, text), ()))
        partner = next((p for p in others if p[0] != place and counts(place, p[0])), None)
        if partner is not None:
            found[place] = partner
    return found
