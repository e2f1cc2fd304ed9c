"""Turn texts into token ids and find the answer among them by character offsets.

Text and answer are tokenised as one text, never apart, and special tokens written inside a text
are taken literally. Knows a `tokenizers.Tokenizer`; nothing of models.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from tokenizers import Encoding, Tokenizer

from sonde.core.errors import PromptError
from sonde.core.markers import OPENS, markers
from sonde.core.prompts import capitalised
from sonde.engine.masked_batch import MaskedTexts, columns, masked_at
from sonde.engine.prefixes import shared
from sonde.engine.token_boundaries import Beginnings, ends_at_seam, has_seams

log = logging.getLogger("sonde")

Tokenised = tuple[tuple[int, ...], Sequence[tuple[int, int]]]
"""Token ids of a text, and the characters that each token holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Token ids of one text; the answer is ids[start:stop], what follows it ids[stop:end]."""

    ids: tuple[int, ...]
    start: int
    stop: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Branches:
    """Texts that open alike: the token ids before every answer, and each text as it goes on.

    The head has at least one token, the one that predicts the first of the answer; a span begins
    before its answer only where texts part there.
    """

    head: tuple[int, ...]
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The token a causal text opens with.

    `always` puts it before every text. Otherwise it stands only before a text whose answer comes
    first, since that answer's first token would have nothing to be predicted from.
    """

    id: int | None
    always: bool


class CausalEncoder:
    """Encodes prefix + option + suffix for models that read from left to right."""

    def __init__(self, tokenizer: Tokenizer, start: Start) -> None:
        self.tokenizer = literal(tokenizer)
        self.start = start
        self.seams = has_seams(self.tokenizer)
        self.parted = 0
        self.beginnings = Beginnings(self.tokenizer)
        self._options = lru_cache(maxsize=256)(self._tokenise_options)

    def encode(self, prefix: str, options: Sequence[str], suffix: str) -> list[Span]:
        """One span per option."""
        refuse_markers(self.tokenizer, prefix, suffix)
        texts = [prefix + option + suffix for option in options]
        encodings = self.tokenizer.encode_batch(texts, add_special_tokens=False)
        spans = [_span(e, prefix, o) for e, o in zip(encodings, options, strict=True)]
        # for all options or for none, or else they would be compared after different beginnings
        if self.start.always or any(span.start == 0 for span in spans):
            return [self._opened(span) for span in spans]
        return spans

    def branch(self, prefix: str, options: tuple[str, ...], suffix: str) -> Branches:
        """What `encode` gives, the beginning and each option tokenised only where they are new."""
        if not options:
            return Branches(head=(), spans=())
        if not self.seams or not ends_at_seam(prefix, options):
            return gathered(self.encode(prefix, options, suffix))
        refuse_markers(self.tokenizer, prefix, suffix)
        spans = self._options(options, suffix)
        opening = (self.start.id,) if self.start.always and self.start.id is not None else ()
        found = Branches(head=(*opening, *self.beginnings.encode(prefix[:-1])), spans=spans)
        self.parted += 1
        if self.parted <= 8 or self.parted % 64 == 0:
            self._check(found, prefix, options[0], suffix)
        return found if self.seams else gathered(self.encode(prefix, options, suffix))

    def _check(self, found: Branches, prefix: str, option: str, suffix: str) -> None:
        """Hold a text in parts against the whole; should they differ, there are no seams."""
        (whole,) = self.encode(prefix, [option], suffix)
        if whole != lengthened(found.spans[0], found.head):
            log.warning("this tokenizer joins words over a space; texts are tokenised whole")
            self.seams = False

    def _tokenise_options(self, options: tuple[str, ...], suffix: str) -> tuple[Span, ...]:
        """Options as they are tokenised behind any word and a space."""
        texts = [f"a {option}{suffix}" for option in options]
        encodings = self.tokenizer.encode_batch(texts, add_special_tokens=False)
        spans = [_span(e, "a ", option) for e, option in zip(encodings, options, strict=True)]
        return tuple(shortened(span, span.start) for span in spans)

    def open(self, prefix: str) -> tuple[int, ...]:
        """Token ids of a text to write on from; spaces that close it are left to the model."""
        refuse_markers(self.tokenizer, prefix)
        ids = self.tokenizer.encode(prefix.rstrip(" "), add_special_tokens=False).ids
        if not self.start.always and ids:
            return tuple(ids)
        if self.start.id is None:
            raise PromptError(
                "there is no text to write on from and this tokenizer has no token to start from; "
                "use a template with text before the answer"
            )
        return (self.start.id, *ids)

    def whole(self, texts: Sequence[str]) -> list[Tokenised]:
        """Each text in one piece, all at once because that is quicker."""
        refuse_markers(self.tokenizer, *texts)
        encodings = self.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [(tuple(encoding.ids), encoding.offsets) for encoding in encodings]

    def _opened(self, span: Span) -> Span:
        if self.start.id is None:
            raise PromptError(
                "an answer opens the text and this tokenizer has no token to start from; use a "
                "template with text before the answer"
            )
        return lengthened(span, (self.start.id,))


class MaskedEncoder:
    """Encodes texts with one mask for models that see both sides of it."""

    def __init__(self, tokenizer: Tokenizer, mask: str) -> None:
        self.tokenizer = Tokenizer.from_str(tokenizer.to_str())
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self.literal = literal(tokenizer)
        self.mask = mask
        mask_id = tokenizer.token_to_id(mask)
        if mask_id is None:
            raise PromptError(f"this tokenizer has no mask token {mask!r}")
        self.mask_id = mask_id
        added = tokenizer.get_added_tokens_decoder()
        self.special = tuple(token.content for token in added.values() if token.special)
        self.strips_left = added[mask_id].lstrip if mask_id in added else False
        self.strips_right = added[mask_id].rstrip if mask_id in added else False

    def columns(self, texts: Sequence[tuple[str, str]]) -> MaskedTexts:
        """What `masked` gives, as columns of numbers; texts without anything special at once."""
        together = "\n".join(chain.from_iterable(texts))
        if not any(token in together for token in (OPENS, *self.special)):
            encodings = self.tokenizer.encode_batch_fast([self.mask.join(pair) for pair in texts])
            ids = [encoding.ids for encoding in encodings]
            if (found := masked_at(ids, self.mask_id)) is not None:
                return found
        return columns([(span.ids, span.start) for span in self.masked(texts)])

    def masked(self, texts: Sequence[tuple[str, str]]) -> list[Span]:
        """For each (prefix, suffix), the ids with one mask between them."""
        for pair in texts:
            refuse_markers(self.tokenizer, *pair)
        plain = [i for i, pair in enumerate(texts) if not self._mentions_special(pair)]
        encodings = self.tokenizer.encode_batch_fast([self.mask.join(texts[i]) for i in plain])
        spans = {
            i: self._span_of(e.ids)
            for i, e in zip(plain, encodings, strict=True)
            # a tokenizer that folds case may find the mask in a text that does not spell it so
            if e.ids.count(self.mask_id) == 1
        }
        return [
            spans[i] if i in spans else self._literal_span(*texts[i]) for i in range(len(texts))
        ]

    def options(self, prefix: str, options: Sequence[str], suffix: str) -> list[Span]:
        """For each option, the ids of the whole text and where the option stands in them."""
        refuse_markers(self.literal, prefix, suffix)
        texts = [prefix + option + suffix for option in options]
        encodings = self.literal.encode_batch(texts)
        return [_span(e, prefix, o) for e, o in zip(encodings, options, strict=True)]

    def single_tokens(
        self, words: Iterable[str], prefix: str, *, capitals: bool = False
    ) -> dict[str, int]:
        """The words that are one known token at a mask after `prefix`, with the token's id.

        With `capitals`, the token is that of the word with a capital where the mask opens the text.
        """
        words = list(dict.fromkeys(words))
        before = opening(prefix)
        written = list(map(capitalised, words)) if capitals and not before else words
        unknown = self.tokenizer.token_to_id("[UNK]")
        if unknown is None:
            unknown = self.tokenizer.token_to_id("<unk>")
        found = {}
        encodings = self.literal.encode_batch([before + text for text in written])
        for word, text, encoding in zip(words, written, encodings, strict=True):
            start, stop = answer_place(encoding.offsets, before, text)
            if stop != start + 1 or encoding.ids[start] == unknown:
                continue
            own = encoding.offsets[start][0]
            if not before[own:].strip(" "):  # what holds more than the space is another word
                found[word] = encoding.ids[start]
        return found

    def _mentions_special(self, pair: tuple[str, str]) -> bool:
        return any(token in text for text in pair for token in self.special)

    def _literal_span(self, prefix: str, suffix: str) -> Span:
        """Tokenise both sides apart, as the tokenizer itself does around a special token."""
        if self.strips_left:
            prefix = prefix.rstrip()
        if self.strips_right:
            suffix = suffix.lstrip()
        before = self.literal.encode(prefix, add_special_tokens=False).ids
        after = self.literal.encode(suffix, add_special_tokens=False).ids
        around = self.tokenizer.encode(self.mask).ids
        middle = around.index(self.mask_id)
        ids = (*around[:middle], *before, self.mask_id, *after, *around[middle + 1 :])
        start = middle + len(before)
        return Span(ids=ids, start=start, stop=start + 1, end=len(ids))

    def _span_of(self, ids: Sequence[int]) -> Span:
        start = ids.index(self.mask_id)
        return Span(ids=tuple(ids), start=start, stop=start + 1, end=len(ids))


def literal(tokenizer: Tokenizer) -> Tokenizer:
    """A copy that reads special tokens in a text as ordinary characters, and never truncates.

    Its offsets are not trimmed: a token's span holds the spaces that the token holds.
    """
    text = tokenizer.to_str().replace('"trim_offsets":true', '"trim_offsets":false')
    copy: Tokenizer = Tokenizer.from_str(text)
    copy.encode_special_tokens = True
    copy.no_truncation()
    copy.no_padding()
    return copy


def refuse_markers(tokenizer: Tokenizer, *texts: str) -> None:
    """Refuse vectors of a soft prompt that this tokenizer has no tokens for.

    They would be read as brackets, letters and numbers, and answered all the same.
    """
    for text in texts:
        for found in markers(text):
            if tokenizer.token_to_id(found) is None:
                raise PromptError(
                    f"{found} is a vector of a soft prompt, which this model does not have; ask "
                    "the model soft:FOLDER, with the folder that 'sonde optimise' made it in"
                )


def gathered(spans: Sequence[Span]) -> Branches:
    """Texts with what they share before their answers taken out.

    >>> gathered([Span(ids=(1, 2, 3), start=2, stop=3, end=3)]).head
    (1, 2)
    """
    common = shared(min(s.ids for s in spans), max(s.ids for s in spans))
    length = min(common, *(span.start for span in spans))
    head = spans[0].ids[:length]
    return Branches(head=head, spans=tuple(shortened(span, length) for span in spans))


def shortened(span: Span, length: int) -> Span:
    """The same text without its first tokens."""
    return Span(
        ids=span.ids[length:],
        start=span.start - length,
        stop=span.stop - length,
        end=span.end - length,
    )


def lengthened(span: Span, ids: tuple[int, ...]) -> Span:
    """The same text with some tokens before it."""
    return Span(
        ids=ids + span.ids,
        start=span.start + len(ids),
        stop=span.stop + len(ids),
        end=span.end + len(ids),
    )


def opening(prefix: str) -> str:
    """The shortest text after which a word is tokenised as it is after `prefix`.

    Tokenizers that mark a leading space write a word otherwise at the start of a text, after a
    space, and right after a bracket or a quote.

    >>> opening("The capital of France is "), opening(""), opening("France (")
    ('. ', '', '(')
    """
    if not prefix.strip():
        return ""
    return ". " if prefix[-1] == " " else prefix[-1]


def _span(encoding: Encoding, prefix: str, option: str) -> Span:
    start, stop = answer_place(encoding.offsets, prefix, option)
    if start == stop:
        raise PromptError(f"the answer {option!r} has no token in this model's tokenizer")
    return Span(ids=tuple(encoding.ids), start=start, stop=stop, end=len(encoding.ids))


def answer_place(offsets: Sequence[tuple[int, int]], prefix: str, option: str) -> tuple[int, int]:
    """Token range of an option with the space before it; empty if the option has no token.

    Some words take the space into their first token and some leave it a token of its own. Options
    are comparable only if each of them accounts for it.

    >>> answer_place([(0, 2), (2, 3), (3, 7)], "is ", "Oslo")
    (1, 3)
    """
    end = len(prefix) + len(option)
    start, stop = answer_tokens(offsets, len(prefix), end)
    if start == stop:
        return 0, 0
    return answer_tokens(offsets, len(prefix.rstrip(" ")), end)[0], stop


def answer_tokens(offsets: Sequence[tuple[int, int]], begin: int, end: int) -> tuple[int, int]:
    """Token range that covers characters begin..end; a token that straddles a boundary is in.

    >>> answer_tokens([(0, 3), (3, 6), (6, 12)], 7, 12)
    (2, 3)
    """
    inside = [i for i, (a, b) in enumerate(offsets) if b > begin and a < end]
    return (inside[0], inside[-1] + 1) if inside else (0, 0)
