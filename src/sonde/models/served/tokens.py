"""The tokenizer of a served model, read here: a server is sent token ids, never texts.

What a server wrote is held against it, to find where the text ends. Knows
transformers' tokenizers, no torch and no weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import transformers
from tokenizers import Tokenizer

from sonde.core.errors import ModelError, SondeError
from sonde.core.fingerprints import fingerprint
from sonde.core.prompts import Generate, Sample
from sonde.engine.causal_texts import start_token
from sonde.engine.encode import CausalEncoder
from sonde.engine.endings import End, Endings, spent
from sonde.engine.token_texts import BROKEN, TokenTexts
from sonde.models.chat import Chat, chat_of, encoder_of, endings_of, template_of
from sonde.models.options import LoadOptions, local_folder, read_json
from sonde.models.served.asks import Ids, Written

SETTINGS = ("generation_config.json", "config.json")
"""Files beside a tokenizer that name the tokens with which its model ends a text."""

ADVICE = "give --tokenizer the folder of the model that is served, or of its tokenizer"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LocalTokens:
    """A tokenizer, with what its folder says of the model: ends of texts, and the longest text.

    `vocabulary`: how many tokens there are. `longest` is None where no config says it.
    """

    name: str
    tokenizer: Any
    chat: Chat | None
    encoder: CausalEncoder
    texts: TokenTexts
    endings: Endings
    longest: int | None
    vocabulary: int

    @property
    def backend(self) -> Tokenizer:
        """The fast tokenizer, which knows character offsets."""
        return self.endings.tokenizer

    @property
    def fingerprint(self) -> str:
        """What names the tokenizer."""
        return fingerprint([self.backend.to_str()])

    @property
    def template(self) -> str:
        """What names its chat template; empty where it has none."""
        text = template_of(self.tokenizer)
        return fingerprint([text]) if text else ""

    @property
    def closing(self) -> list[str]:
        """The texts of the tokens that end a text."""
        return [self.backend.decode([id], skip_special_tokens=False) for id in self.endings.ends]

    def without_special(self, text: str) -> str:
        """A text as servers give it: special tokens that stand in it left out."""
        for token in self.tokenizer.all_special_tokens:
            text = text.replace(token, "")
        return text

    def divided(self, text: str) -> tuple[str, ...]:
        """A text in as many parts as it has tokens; one that ends within a character is empty."""
        offsets = self.backend.encode(text, add_special_tokens=False).offsets
        ends = [0, *(stop for _, stop in offsets[:-1]), len(text)]
        return tuple(text[a:b] for a, b in pairwise(ends))

    def pieces(self, ids: Ids) -> list[str | None]:
        """The text of each token; None for special ones and for parts of characters."""
        special, plain = self.tokenizer.all_special_ids, self.texts.plain
        return [None if id in special or id >= len(plain) else plain[id] for id in ids]


def read_tokens(reference: str, options: LoadOptions, name: str) -> LocalTokens:
    """The tokenizer of a folder or a hub id, for the model of that name."""
    folder = local_folder(reference, ADVICE)
    with _explained(reference):
        tokenizer: Any = transformers.AutoTokenizer.from_pretrained(
            reference if folder is None else folder,
            revision=options.revision,
            trust_remote_code=options.trust_remote_code,
            local_files_only=folder is not None,
        )
        if not getattr(tokenizer, "is_fast", False):
            raise ModelError(f"{reference}: its tokenizer has no fast form; give another folder")
    said = [] if folder is None else list(_settings(folder))
    backend: Tokenizer = tokenizer.backend_tokenizer
    size = max(len(tokenizer), backend.get_vocab_size(with_added_tokens=True))
    texts = TokenTexts(backend, size)
    chat = chat_of(tokenizer, options, name)
    lengths = (entry.get("max_position_embeddings") for entry in said)
    return LocalTokens(
        name=reference,
        tokenizer=tokenizer,
        chat=chat,
        encoder=encoder_of(backend, start_token(tokenizer, options.bos, name), chat),
        texts=texts,
        endings=endings_of(backend, _ends(said, tokenizer), chat, texts),
        longest=next((length for length in lengths if isinstance(length, int)), None),
        vocabulary=size,
    )


def read_written(
    tokens: LocalTokens, ids: tuple[int, ...], written: Written, want: Generate | Sample
) -> tuple[End, int, int, int]:
    """A text up to its end; how many tokens say what was thought, that and the text, and came.

    By its tokens where the server tells them, as for a model that is here; else by its text.
    """
    endings, path = tokens.endings, written.ids
    if not path:
        if want.thinking and not written.pieces:  # counted as the tokenizer would write it
            written = replace(written, pieces=tokens.divided(written.text))
        return _read_pieces(tokens, written, want)
    tail, count = endings.tail(ids), len(path)
    end = replace(endings.up_to(endings.text(tail, path), want.until), finished=written.ended)
    said = count
    for shorter in range(1, count + 1):
        ended = endings.end(tail, path[:shorter], want)
        # the server was asked for `most` tokens, and the answer may have fewer
        if ended is not None and (ended.finished or shorter < want.most):
            end, count = ended, shorter
            text = end.thoughts + end.text
            said = endings.said(tail, path[:count], text) if end.finished else count
            break
    return end, endings.thought(tail, path[:count], end.thoughts), said, count


def _read_pieces(
    tokens: LocalTokens, written: Written, want: Generate | Sample
) -> tuple[End, int, int, int]:
    """The same by the texts of tokens, counted in these alone: they may hold parts of characters.

    The text is that of the tokens, which has special ones in it as a text that is written here
    does; where it cannot be made of them, it is the server's.
    """
    written = _to_end_of_turn(tokens, written)
    endings, pieces, until = tokens.endings, written.pieces, want.until
    if written.ended and pieces and pieces[-1] in ("", *tokens.closing):
        pieces = pieces[:-1]
    if (count := _allowed(endings, pieces, written.text, want)) is not None:
        pieces = pieces[:count]
        written = replace(written, text="".join(pieces), pieces=pieces, ended=False)
    joined = "".join(pieces)
    counted, told = endings.up_to(joined, until), endings.up_to(written.text, until)
    length = len(counted.thoughts + counted.text)
    first, said = _thought(pieces, counted.thoughts), len(pieces)
    came = len(written.pieces)
    if counted.finished:
        said = _pieces_within(pieces, length)
        came = _pieces_within(pieces, length + len(until))
    whole = BROKEN not in joined and tokens.without_special(joined).startswith(written.text)
    end = counted if whole else told
    finished = counted.finished or told.finished or written.ended
    return replace(end, finished=finished), first, said, came


def _to_end_of_turn(tokens: LocalTokens, written: Written) -> Written:
    """A text up to a token that ends it, if the server knows that token as any other."""
    pieces, closing = written.pieces, tokens.closing
    at = next((n for n, piece in enumerate(pieces) if piece in closing), len(pieces))
    if at >= len(pieces) - written.ended:
        return written
    return replace(written, text="".join(pieces[:at]), pieces=pieces[: at + 1], ended=True)


def _allowed(
    endings: Endings, pieces: Sequence[str], told: str, want: Generate | Sample
) -> int | None:
    """How many tokens a text may have, if a chat model that may think wrote as many or more.

    None too for texts with parts of characters, which only the server can put together.
    """
    for count in range(1, min(len(pieces) + 1, want.most) if want.thinking else 1):
        text = "".join(pieces[:count])
        end = endings.up_to(text, want.until)
        if end.finished or (BROKEN in text and not told.startswith(text)):
            return None
        if spent(end, _thought(pieces[:count], end.thoughts), count, want):
            return count
    return None


def _pieces_within(pieces: Sequence[str], length: int) -> int:
    """How many tokens hold some of a text of so many characters; the rest only end it."""
    ends = np.cumsum([0, *map(len, pieces)])
    return int(np.searchsorted(ends, length))


def _thought(pieces: Sequence[str], thoughts: str) -> int:
    """How many tokens hold thoughts alone."""
    ends = np.cumsum([0, *map(len, pieces)])
    return int(np.searchsorted(ends, len(thoughts), side="right")) - 1 if thoughts else 0


def _settings(folder: Path) -> Iterator[dict[str, Any]]:
    """What the files beside a tokenizer say, in the order in which a model heeds them."""
    for name in SETTINGS:
        if (path := folder / name).is_file():
            yield read_json(path)


def _ends(said: list[dict[str, Any]], tokenizer: Any) -> frozenset[int]:
    """The tokens with which a text ends: as the model generates, else by config or tokenizer."""
    named = [entry.get("eos_token_id") for entry in said]
    for found in (*named, tokenizer.eos_token_id):
        if found is not None:
            return frozenset(found if isinstance(found, list) else [found])
    return frozenset()


@contextmanager
def _explained(reference: str) -> Iterator[None]:
    """Turn whatever a library raises over a tokenizer into an error that names it."""
    try:
        yield
    except SondeError:
        raise
    except Exception as error:  # transformers and tokenizers raise their own
        why = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ModelError(f"--tokenizer {reference} cannot be read ({why}); {ADVICE}") from error
