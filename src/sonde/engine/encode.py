"""Turn texts into token ids and find the answer among them by character offsets.

Text and answer are tokenised as one text, never apart, and special tokens written inside a text
are taken literally. A hundred options behind the same long prefix would each cost a tokenisation of
the whole text. At a seam, a single space between two words, most tokenizers never join what stands
before with what stands after; there a text is tokenised in parts, and parts that return are not
again. Behind the last token that a chat template wrote, they never do.

Knows a `tokenizers.Tokenizer`; nothing of models.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from tokenizers import Encoding, Tokenizer

from sonde.core.errors import PromptError
from sonde.core.texts import markers
from sonde.engine.control_tokens import shielded, with_controls
from sonde.engine.prefixes import shared
from sonde.engine.seams import Beginnings, ends_word, has_seams

log = logging.getLogger("sonde")

Tokenised = tuple[tuple[int, ...], Sequence[tuple[int, int]]]
"""Token ids of a text, and the characters that each token holds."""


KNOWN = 2**16
"""Options whose tokens are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Token ids of one text; the answer is ids[start:stop], what follows it ids[stop:end]."""

    ids: tuple[int, ...]
    start: int
    stop: int
    end: int


class Spans(tuple[Span, ...]):
    """The spans of a prompt's options; many prompts have the very same, gone over once."""

    @cached_property
    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """A row of (start, stop, end, tokens) for each, and the tokens of all end to end."""
        rows = [(span.start, span.stop, span.end, len(span.ids)) for span in self]
        ids = [id for span in self for id in span.ids]
        return np.array(rows, dtype=np.int64).reshape(-1, 4), np.array(ids, dtype=np.int64)

    @cached_property
    def longest(self) -> int:
        """The tokens of the longest text."""
        return int(self.arrays[0][:, 3].max())

    @cached_property
    def highest(self) -> int:
        """The highest token id."""
        return int(self.arrays[1].max())


@dataclass(frozen=True, slots=True, kw_only=True)
class Branches:
    """Texts that open alike: the token ids before every answer, and each text as it goes on.

    The head has at least one token, the one that predicts the first that is read; a span begins
    before its answer only where texts part there. `whole`: texts are read from their first token
    on, which is where spans begin then, so that they part at once and meet those of other prompts.
    """

    head: tuple[int, ...]
    spans: tuple[Span, ...]
    whole: bool = False


def span_arrays(prompts: Sequence[Branches]) -> tuple[np.ndarray, np.ndarray]:
    """The spans of all prompts as rows of (start, stop, end, tokens), and their tokens end to end.

    >>> span_arrays([Branches(head=(1,), spans=(Span(ids=(5, 6), start=0, stop=1, end=2),))])
    (array([[0, 1, 2, 2]]), array([5, 6]))
    """
    every = [texts.spans for texts in prompts]
    pairs = [each.arrays if isinstance(each, Spans) else Spans(each).arrays for each in every]
    rows, ids = zip(Spans().arrays, *pairs, strict=True)
    return np.concatenate(rows), np.concatenate(ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The token a causal text opens with.

    `always` puts it before every text. Otherwise it stands only before a text whose answer comes
    first, since that answer's first token would have nothing to be predicted from.
    """

    id: int | None
    always: bool


class CausalEncoder:
    """Encodes prefix + option + suffix for models that read from left to right.

    `controls`: special tokens that a chat template writes, which are read as such in a prefix.
    """

    def __init__(self, tokenizer: Tokenizer, start: Start, controls: Sequence[str] = ()) -> None:
        self.tokenizer = literal(tokenizer, controls)
        self.start = start
        self.controls = tuple(controls)
        self.seams = has_seams(self.tokenizer)
        self.parted = 0
        self.beginnings = Beginnings(self.tokenizer)
        self._options = lru_cache(maxsize=256)(self._tokenise_options)
        self._in_turn = lru_cache(maxsize=256)(self._tokenise_turn)
        self._known = lru_cache(maxsize=16)(lambda _: dict[str, Span]())

    def encode(
        self, prefix: str, options: Sequence[str], suffix: str, *, whole: bool = False
    ) -> list[Span]:
        """One span per option; with `whole` it begins where the text does."""
        refuse_markers(self.tokenizer, prefix, suffix)
        options, suffix = self._shielded(options), shielded(suffix, self.controls)
        texts = [prefix + option + suffix for option in options]
        if len(texts) == 1:  # a batch of one would wake as many threads as a large one
            encodings = [self.tokenizer.encode(texts[0], add_special_tokens=False)]
        else:
            encodings = self.tokenizer.encode_batch(texts, add_special_tokens=False)
        spans = [span_of(e, prefix, o) for e, o in zip(encodings, options, strict=True)]
        spans = [replace(span, start=0) for span in spans] if whole else spans
        # for all options or for none, or else they would be compared after different beginnings
        if self.start.always or any(span.start == 0 for span in spans):
            return [self._opened(span) for span in spans]
        return spans

    def branch(
        self, prefix: str, options: tuple[str, ...], suffix: str, *, whole: bool = False
    ) -> Branches:
        """What `encode` gives, the beginning and each option tokenised only where they are new."""
        if not options:
            return Branches(head=(), spans=())
        if whole:
            return replace(gathered(self.encode(prefix, options, suffix, whole=True)), whole=True)
        found = self._parted(prefix, options, suffix) if self.seams else None
        if found is None:
            return gathered(self.encode(prefix, options, suffix))
        refuse_markers(self.tokenizer, prefix, suffix)
        self.parted += 1
        if self.parted <= 8 or self.parted % 256 == 0:
            self._check(found, prefix, options[0], suffix)
        return found if self.seams else gathered(self.encode(prefix, options, suffix))

    def _parted(self, prefix: str, options: tuple[str, ...], suffix: str) -> Branches | None:
        """Beginning and options tokenised apart; None where the prefix does not end at a seam."""
        opening = (self.start.id,) if self.start.always and self.start.id is not None else ()
        if turn := self._turn(prefix):
            behind = self._in_turn(prefix[turn:], options, suffix)
            head = (*opening, *self.beginnings.encode(prefix[:turn]), *behind.head)
            return replace(behind, head=head)
        spans = self._options(options, suffix) if ends_word(prefix) else ()
        if not spans:
            return None
        return Branches(head=(*opening, *self.beginnings.encode(prefix[:-1])), spans=spans)

    def _turn(self, prefix: str) -> int:
        """Where the last token that a template wrote begins; 0 where there is none."""
        return max(0, *(prefix.rfind(control) for control in self.controls), 0)

    def _tokenise_turn(self, prefix: str, options: tuple[str, ...], suffix: str) -> Branches:
        """Options behind the beginning of a turn: they are the same whatever was said before."""
        return gathered(self.encode(prefix, options, suffix))

    def _shielded(self, options: Sequence[str]) -> Sequence[str]:
        return [shielded(option, self.controls) for option in options] if self.controls else options

    def _check(self, found: Branches, prefix: str, option: str, suffix: str) -> None:
        """Hold a text in parts against the whole; should they differ, there are no seams."""
        (whole,) = self.encode(prefix, [option], suffix)
        if whole != lengthened(found.spans[0], found.head):
            log.warning("this tokenizer joins words over a space; texts are tokenised whole")
            self.seams = False

    def prepare(self, asked: Iterable[tuple[str, tuple[str, ...], str]]) -> None:
        """Tokenise what `branch` will want of many (prefix, options, suffix), all of it at once."""
        if not self.seams:
            return
        texts: list[str] = []
        options: dict[str, dict[str, None]] = {}
        for prefix, own, suffix in asked:
            if turn := self._turn(prefix):
                texts.append(prefix[:turn])
            elif ends_word(prefix):
                texts.append(prefix[:-1])
                options.setdefault(suffix, {}).update(dict.fromkeys(own))
        self.beginnings.prepare(texts)
        for suffix, names in options.items():
            self._learn([name for name in names if name[:1].isalnum()], suffix)

    def _tokenise_options(self, options: tuple[str, ...], suffix: str) -> Spans:
        """Options as they are tokenised behind any word and a space; none if one is no word."""
        if not all(option[:1].isalnum() for option in options):
            return Spans()
        known = self._learn(options, suffix)
        if missing := [option for option in options if option not in known]:
            raise PromptError(f"the answer {missing[0]!r} has no token in this model's tokenizer")
        return Spans([known[option] for option in options])

    def _learn(self, options: Sequence[str], suffix: str) -> dict[str, Span]:
        """The spans of options before a suffix, at least of these but those that have no token."""
        known = self._known(suffix)
        if len(known) > KNOWN:
            known.clear()
        new = [option for option in dict.fromkeys(options) if option not in known]
        written, behind = self._shielded(new), shielded(suffix, self.controls)
        texts = [f"a {option}{behind}" for option in written]
        encodings = self.tokenizer.encode_batch(texts, add_special_tokens=False) if new else ()
        for option, text, encoding in zip(new, written, encodings, strict=True):
            with suppress(PromptError):
                span = span_of(encoding, "a ", text)
                known[option] = shortened(span, span.start)
        return known

    def open(self, prefix: str) -> tuple[int, ...]:
        """Token ids of a text to write on from; spaces that close it are left to the model."""
        return self.opened(prefix, self.to_open([prefix])[0])

    def to_open(self, prefixes: Sequence[str]) -> list[Sequence[int]]:
        """The tokens of texts to write on from, all at once because that is quicker."""
        texts = [prefix.rstrip(" ") for prefix in prefixes]
        encodings = self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def opened(self, prefix: str, ids: Sequence[int]) -> tuple[int, ...]:
        """The same with what opens a text; refused where there is nothing to write on from."""
        refuse_markers(self.tokenizer, prefix)
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


def untruncated(form: str) -> Tokenizer:
    """A tokenizer, given as JSON, that takes every text whole and as long as it is."""
    copy: Tokenizer = Tokenizer.from_str(form)
    copy.no_truncation()
    copy.no_padding()
    return copy


def literal(tokenizer: Tokenizer, controls: Sequence[str] = ()) -> Tokenizer:
    """A copy that reads special tokens in a text as ordinary characters, and never truncates.

    Its offsets are not trimmed: a token's span holds the spaces that the token holds. Special
    tokens among `controls` are read as such, unless they are shielded.
    """
    form = tokenizer.to_str().replace('"trim_offsets":true', '"trim_offsets":false')
    copy = untruncated(with_controls(form, controls) if controls else form)
    copy.encode_special_tokens = True
    return copy


def tokens_around(tokenizer: Tokenizer) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The special tokens that a tokenizer itself puts before and after a text."""
    encoding = tokenizer.encode("a")
    inner = [i for i, special in enumerate(encoding.special_tokens_mask) if not special]
    first, last = (inner[0], inner[-1]) if inner else (len(encoding.ids), len(encoding.ids) - 1)
    return tuple(encoding.ids[:first]), tuple(encoding.ids[last + 1 :])


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
    return Branches(head=head, spans=Spans(shortened(span, length) for span in spans))


def shortened(span: Span, length: int) -> Span:
    """The same text without its first tokens."""
    return _moved(span, span.ids[length:], -length)


def lengthened(span: Span, ids: tuple[int, ...]) -> Span:
    """The same text with some tokens before it."""
    return _moved(span, ids + span.ids, len(ids))


def _moved(span: Span, ids: tuple[int, ...], by: int) -> Span:
    return Span(ids=ids, start=span.start + by, stop=span.stop + by, end=span.end + by)


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


def span_of(encoding: Encoding, prefix: str, option: str) -> Span:
    """A text as tokens, and where the option with the space before it stands in them."""
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
