r"""The tokenizer of a world: a token for every word, so that an object is always one.

A word has its space in its token, and the first word of a line is the same token as elsewhere; a
mark and the end of a line are tokens of their own. Japanese has no spaces: a word is a run of one
script. What a world does not know becomes bytes, so
that nothing is lost. Knows words and the tokenizers library, nothing of models.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)

from sonde.core.errors import ModelError
from sonde.lab.training.train import Kind
from sonde.lab.worlds.language import RUNS
from sonde.lab.worlds.world import World

SPACE = "▁"
BYTES = {f"<0x{byte:02X}>": byte for byte in range(256)}
WORD_SCORE, BYTE_SCORE = -1.0, -100.0

SPECIAL: Mapping[Kind, Mapping[str, str]] = {
    # one token opens and ends a text: it stands between any two
    "causal": {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "<s>"},
    "masked": {
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
    },
}
PAD, UNKNOWN = 0, 1
"""Their ids, of either kind."""

UNKNOWNS = ("<unk>", "[UNK]")
BEFORE = {"en": "a ", "ja": "。"}
"""What a word may stand behind, by language."""


NORMALIZER: Any = normalizers.Sequence(
    [
        normalizers.Replace(Regex(r"\n(?=[^\n])"), "\n "),
        normalizers.Replace(Regex(r" (?=[.,?!:;])"), ""),
    ]
)
"""The first word of a line gets its space; the space before a closing mark goes: prompts that are
optimised write one there, and ' .' is '.' to a world."""

SPLITTER: Any = pre_tokenizers.Sequence(
    [
        pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="first", split=True),
        pre_tokenizers.Split(Regex(rf"\n|{SPACE}?[^\w\s{SPACE}]"), "isolated"),
    ]
)
"""Words with the space before them; marks and ends of lines alone."""

DECODER: Any = decoders.Sequence(
    [
        decoders.ByteFallback(),
        decoders.Fuse(),
        decoders.Replace(f"\n{SPACE}", "\n"),
        decoders.Replace(SPACE, " "),
        decoders.Strip(" ", 1, 0),
    ]
)
"""Bytes to text, then the spaces; a line and a text open without one."""


JAPANESE_SPLITTER: Any = pre_tokenizers.Split(Regex(rf"{RUNS}|\n|\u3000|[^\w\s]"), "isolated")
"""Runs of one script, marks and ends of lines alone; there are no spaces between words."""

JAPANESE_DECODER: Any = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])


def make_tokenizer(words: Iterable[str], kind: Kind, language: str = "en") -> Tokenizer:
    """A tokenizer in which each of the words, wherever the language puts it, is one token."""
    special = list(dict.fromkeys(SPECIAL[kind].values()))
    spaced = language != "ja"
    tokenizer = Tokenizer(models.Unigram())
    if spaced:
        tokenizer.normalizer = NORMALIZER
    tokenizer.pre_tokenizer = SPLITTER if spaced else JAPANESE_SPLITTER
    pieces = dict.fromkeys([*special, *BYTES, "\n", SPACE if spaced else "\u3000"])
    for word in filter(str.strip, words):
        pieces.update(dict.fromkeys(_pieces(word) if spaced else [word]))
    scores = [(piece, BYTE_SCORE if piece in BYTES else WORD_SCORE) for piece in pieces]
    tokenizer.model = models.Unigram(scores, unk_id=UNKNOWN, byte_fallback=True)
    tokenizer.decoder = DECODER if spaced else JAPANESE_DECODER
    # the mask takes the space before it, as the word that it stands for does
    tokenizer.add_special_tokens(
        [
            AddedToken(name, special=True, lstrip=spaced and name == "[MASK]", normalized=False)
            for name in special
        ]
    )
    around = "<s> $A" if kind == "causal" else "[CLS] $A [SEP]"
    ids = [(name, tokenizer.token_to_id(name)) for name in special if name in around]
    tokenizer.post_processor = processors.TemplateProcessing(single=around, special_tokens=ids)
    return tokenizer


def check_tokenizer(world: World, folder: Path) -> None:
    """Refuse a model folder in whose tokenizer a word of the world is not one token."""
    path = folder / "tokenizer.json"
    try:
        tokenizer: Tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare exceptions
        raise ModelError(f"{path} cannot be read as a tokenizer: {error}") from None
    tokenizer.encode_special_tokens = True
    for word, pieces in cut_words(tokenizer, world.words(), BEFORE[world.settings.language]):
        raise ModelError(
            f"the tokenizer of {folder} does not fit the world: it cuts {word!r} into "
            f"{', '.join(map(repr, pieces))}; give a model that was trained on this world"
        )


def cut_words(
    tokenizer: Tokenizer, words: Iterable[str], lead: str = "a "
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The words that are not one known token behind a lead, such as a space, with their pieces.

    Marks do not count: no answer is one.
    """
    asked = [word for word in words if word.isalnum()]
    before = len(tokenizer.encode(lead.rstrip(" "), add_special_tokens=False).ids)
    found = tokenizer.encode_batch([f"{lead}{word}" for word in asked], add_special_tokens=False)
    for word, encoding in zip(asked, found, strict=True):
        if len(encoding.ids) != before + 1 or encoding.tokens[-1] in UNKNOWNS:
            yield word, tuple(encoding.tokens[before:])


def _pieces(word: str) -> Iterator[str]:
    """How a word is split behind a space; a mark also without the space."""
    for piece, _ in SPLITTER.pre_tokenize_str(word):
        yield piece
        if not any(c.isalnum() for c in piece):
            yield piece.removeprefix(SPACE)
            yield SPACE + piece.removeprefix(SPACE)
