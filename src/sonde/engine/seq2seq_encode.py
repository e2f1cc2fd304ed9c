"""Token ids for models that read one text and write another: what is read, and what is answered.

The answer is a text of its own there, so it is tokenised alone. Where text follows the answer, a
token marks the gap in the text that is read, and opens the answer. Knows a `tokenizers.Tokenizer`;
nothing of models.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tokenizers import Tokenizer

from sonde.core.errors import PromptError
from sonde.engine.encode import literal, refuse_markers, tokens_around

GAP = "<extra_id_0>"

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What is read, and the tokens that open what is written after the model's own first one."""

    ids: tuple[int, ...]
    opens: tuple[int, ...]


class Seq2SeqEncoder:
    """Encodes texts to read and answers to write."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = literal(tokenizer)
        self.gap = tokenizer.token_to_id(GAP)
        self.opens, self.closes = tokens_around(self.tokenizer)

    def source(self, prefix: str, suffix: str = "") -> Source:
        """The text around an answer."""
        before = self._ids(prefix.rstrip(" "))
        if not suffix:
            ids = (*self.opens, *before, *self.closes)
            if not ids:
                raise PromptError("there is nothing to read before the answer, not even a token")
            return Source(ids=ids, opens=self.opens)
        if self.gap is None:
            raise PromptError(
                f"text follows the answer ({suffix!r}) and this tokenizer has no token for a gap "
                f"({GAP}); use a template that ends with the answer"
            )
        around = (*self.opens, *before, self.gap, *self._ids(suffix), *self.closes)
        return Source(ids=around, opens=(*self.opens, self.gap))

    def targets(self, options: Sequence[str]) -> list[tuple[int, ...]]:
        """The tokens of each answer: all of the answer's text, and no token that ends it."""
        encodings = self.tokenizer.encode_batch(list(options), add_special_tokens=False)
        for option, encoding in zip(options, encodings, strict=True):
            if not encoding.ids:
                raise PromptError(f"the answer {option!r} has no token in this model's tokenizer")
        return [tuple(encoding.ids) for encoding in encodings]

    def _ids(self, text: str) -> list[int]:
        refuse_markers(self.tokenizer, text)
        return list(self.tokenizer.encode(text, add_special_tokens=False).ids)


def beginnings(targets: Iterable[Ids]) -> list[Ids]:
    """What to feed so that every token of some answers is predicted, sorted; the fewest rows.

    An answer's last token is never fed, its first is predicted before anything is, and what begins
    another row needs none of its own.

    >>> beginnings([(1,), (1, 2), (1, 2, 3), (4, 5)])
    [(1, 2), (4,)]
    """
    fed = sorted({target[:-1] for target in targets if len(target) > 1})
    following = [*fed[1:], ()]
    return [ids for ids, after in zip(fed, following, strict=False) if after[: len(ids)] != ids]


def row_of(target: Ids, rows: Sequence[Ids]) -> int:
    """Which of the sorted `beginnings` an answer of several tokens goes through.

    >>> row_of((1, 2), [(1, 2), (4,)])
    0
    """
    return bisect_left(rows, target[:-1])
