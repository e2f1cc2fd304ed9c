"""Find out whether a tokenizer is the server's: by what the server says that tokens are.

It is asked; where it does not say, what it wrote tells, by its tokens and their text, or what it
makes of a text beside what it makes of its tokens. A server that tells in none of these ways is
refused: with other tokens, all its answers would be to other questions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from sonde.core.errors import ServerError
from sonde.engine.token_texts import BROKEN
from sonde.models.served.asking import Fails, answered
from sonde.models.served.asks import Ask, Draw, Ids, Spell, Write, Written
from sonde.models.served.dialect import bare, with_spaces
from sonde.models.served.forcing import (
    SAME,
    WRITTEN,
    Tests,
    apart,
    shown,
    wrote_alike,
)
from sonde.models.served.tokens import LocalTokens

PAIRS = 2
"""Words that are forced with and without a space before them."""

ENOUGH = 8
"""Different tokens in what a server wrote, to tell by them."""

ADVICE = "give --tokenizer the folder of the model that is served"


def check_tokenizer(tests: Tests) -> str:
    """By what a tokenizer is known to be the server's; refuses one that is not, or may not be."""
    return _by_spelling(tests) or _by_writing(tests) or _by_a_text(tests)


def _by_spelling(tests: Tests) -> str:
    """Have tokens spelled; nothing where the server does not say what tokens are."""
    tokens, words = tests.tokens, tests.words
    if "spell" not in tests.dialect.can or _spelled(tests, words[:2]) is None:
        return ""
    theirs = _spelled(tests, words)
    if theirs is None:
        raise ServerError(
            f"the tokenizer {tokens.name} is not the server's, which does not have all of its "
            f"{tokens.vocabulary} tokens; {ADVICE}"
        )
    ours = tokens.backend.decode(list(words), skip_special_tokens=False)
    if bare(theirs) != bare(ours):
        raise not_alike(tokens, words, ours, theirs)
    pieces = tokens.pieces(words)
    if with_spaces(theirs).lstrip() == "".join(piece or "" for piece in pieces).lstrip():
        kind: Any = type(tests.dialect)
        tests.dialect = kind(replace(tests.dialect.setting, spaced=True))
    elif tests.rated is not None:
        _reads_spaces(tests)
    tests.spelled = theirs
    return f"{len(words)} tokens that the server spells alike"


def _spelled(tests: Tests, ids: Ids) -> str | None:
    """What a server says that tokens are; None where it does not say."""
    try:
        spelled: str = tests.ask(Spell(ids))[0]
    except Fails:
        return None
    return spelled


def _reads_spaces(tests: Tests) -> None:
    """Have words rated with and without a space before them: they must not be the same."""
    pairs = list(islice(spaced_apart(tests.tokens), PAIRS))
    spaced, joined = (
        (tests.rated_behind(ids) for ids in zip(*pairs, strict=True)) if pairs else ((), ())
    )
    if pairs and apart(spaced, joined) < SAME:
        words = " and ".join(repr(tests.tokens.texts.plain[id]) for id in pairs[0])
        raise ServerError(
            f"the server loses the spaces before words: {words} get the same log-probability, "
            f"{shown(spaced[:1])}"
        )


def spaced_apart(tokens: LocalTokens) -> Iterator[tuple[int, int]]:
    """Tokens of one word, behind a space and not."""
    plain = tokens.texts.plain
    found = {text: id for id, text in enumerate(plain) if text and text.isalpha()}
    for id, text in enumerate(plain):
        if text and text[0] == " " and text[1:] in found:
            yield id, found[text[1:]]


def _by_writing(tests: Tests) -> str:
    """Hold texts against the tokens in which they were written; nothing where too few are told."""
    decode, told = tests.tokens.backend.decode, set[int]()
    for each in (tests.written, *tests.drawn):
        if each is None or not each.ids or not each.text:
            continue
        ours = decode(list(each.ids), skip_special_tokens=True)
        # parts of characters are put together in several ways, and what ends a text is left out
        own, said = (bare(text.partition(BROKEN)[0]) for text in (ours, each.text))
        if not (own.startswith(said) or (BROKEN in ours and said.startswith(own))):
            raise not_alike(tests.tokens, each.ids, ours, each.text)
        told |= {*each.ids} if said else set()
    return f"{len(told)} written tokens that read alike" if len(told) >= ENOUGH else ""


def _by_a_text(tests: Tests) -> str:
    """Send a text, and its tokens: the server must take one for the other."""
    text = tests.tokens.backend.decode(list(tests.words), skip_special_tokens=True)
    why = ""
    for ids in dict.fromkeys(_encoded(tests.tokens, text)):
        try:
            if wrote_alike(_continued(tests, ids), _continued(tests, ids, text)):
                return f"a text of {len(ids)} tokens that is answered as these are"
            why = "what it writes behind them is not the same"
        except Fails as fails:
            why = str(fails)
    raise ServerError(
        f"the tokenizer {tests.tokens.name} is not known to be the server's, which does not say "
        f"what its tokens are and does not answer a text as the tokens that it has here ({why}); "
        f"{ADVICE}"
    )


def _encoded(tokens: LocalTokens, text: str) -> Iterator[Ids]:
    """The tokens of a text, with what a server may put before them or not."""
    for special in (True, False):
        yield tuple(tokens.backend.encode(text, add_special_tokens=special).ids)


def _continued(tests: Tests, ids: Ids, text: str = "") -> Written:
    """What a server writes behind tokens, or behind the text that is sent in their place."""
    writes = tests.written is not None and tests.written.logps
    ask: Ask = Write(ids, WRITTEN) if writes else Draw(ids, 1, WRITTEN, "", 0)
    (request,) = tests.dialect.requests([ask])
    changed = {"temperature": 0, **({"prompt": text} if text else {})}
    sent = replace(request, body={**request.body, **changed})
    found = answered(tests.transport, tests.dialect, [sent])[ask]
    written: Written = found if isinstance(found, Written) else found[0]
    return written


def not_alike(tokens: LocalTokens, ids: Ids, ours: str, theirs: str) -> ServerError:
    """What is said of a tokenizer that is not the server's."""
    return ServerError(
        f"the tokenizer {tokens.name} is not the server's: tokens {ids[:3]} … are {ours[:40]!r} "
        f"here and {theirs[:40]!r} there; {ADVICE}"
    )
