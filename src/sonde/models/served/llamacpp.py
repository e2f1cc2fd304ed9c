"""`llamacpp`: llama.cpp's own server, by its own way of completing token ids.

It tells nothing of a prompt's tokens, only of those that it writes. A grammar of token ids makes it
write the very tokens that are to be read, and the log-probabilities it tells are still those of
the whole vocabulary. Three kinds of tokens it never writes so: those that end a text, parts of
characters, and tokens without a text (made to, it stops for good); these are read among the
likeliest tokens of their place, of which it tells as many as are wanted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Any, ClassVar

import numpy as np

from sonde.engine.prefixes import shared
from sonde.models.served.asks import (
    Ask,
    Draw,
    Floats,
    Ids,
    Kind,
    Next,
    Rate,
    Result,
    Spell,
    Write,
    Written,
)
from sonde.models.served.dialect import (
    About,
    Malformed,
    Request,
    Setting,
    at,
    check_greedy,
    ended,
    listed,
    logps,
    same_length,
    shown,
    text_at,
)

EVERY = 2**20
"""More tokens than a vocabulary has: all of them are told."""

SOMETHING = "root ::= [ -~]+"
"""A grammar of printable characters: after other tokens a server may tell nothing."""

ROUNDING = 1e-3
"""How far from 1 the probabilities of a whole vocabulary may sum."""

TELLING, WIDE = 64, 8
"""Tokens that a server could compute while it tells of a whole vocabulary, about; how many read in
one place make that worth it."""

EVEN: Mapping[str, Any] = {
    "samplers": ["temperature"],
    "dynatemp_range": 0.0,
    "top_k": 0,
    "top_p": 1.0,
    "min_p": 0.0,
    "typical_p": 1.0,
    "top_n_sigma": -1.0,
    "xtc_probability": 0.0,
    "repeat_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "dry_multiplier": 0.0,
    "mirostat": 0,
    "logit_bias": [],
    "ignore_eos": False,
    "min_keep": 0,
    "n_keep": 0,
    "n": 1,
    "stop": [],
    "stream": False,
    "cache_prompt": True,
    "return_tokens": True,
    "post_sampling_probs": False,
}
"""Every field of sampling is set: a server's own defaults cut the vocabulary and bend its odds."""


@dataclass(frozen=True, slots=True)
class LlamaCpp:
    """llama-server, or the same within this process. One prompt a request; it shares beginnings."""

    setting: Setting
    name: ClassVar[str] = "llamacpp"
    can: ClassVar[frozenset[Kind]] = frozenset({"rate", "next", "write", "draw", "spell"})
    looks: ClassVar[tuple[str, ...]] = ("/props",)
    widest: ClassVar[int] = EVERY
    wide: ClassVar[int] = WIDE
    draws: ClassVar[int] = 1  # a server with one slot refuses more

    def about(self, seen: Mapping[str, Any]) -> About:
        """Its version, how weights are stored, and how long a text each of its slots takes."""
        props = seen.get("/props")
        told = props if isinstance(props, dict) else {}
        named = (told.get("build_info"), told.get("model_ftype"))
        defaults = told.get("default_generation_settings")
        context = defaults.get("n_ctx") if isinstance(defaults, dict) else None
        slots = told.get("total_slots")
        return About(
            version=", ".join(str(name) for name in named if name),
            context=context if isinstance(context, int) else None,
            slots=slots if isinstance(slots, int) else 1,
        )

    def requests(self, asks: Sequence[Ask]) -> list[Request]:
        """A request for each."""
        return [
            Request(path="/detokenize", body={"tokens": list(ask.ids)}, asks=(ask,))
            if isinstance(ask, Spell)
            else Request(path="/completion", body=self._body(ask), asks=(ask,))
            for ask in asks
        ]

    def computes(self, asks: Sequence[Ask]) -> int:
        """What is new in each prompt behind the one before, and the tokens that are written."""
        prompts = sorted(_prompt(ask) for ask in asks)
        kept = sum(shared(one, other) for one, other in pairwise(prompts))
        return sum(map(len, prompts)) - kept + sum(map(_written, asks))

    def read(self, request: Request, reply: Any) -> list[Result]:
        """What is told of the tokens that were written."""
        (ask,) = request.asks
        if isinstance(ask, Spell):
            return [text_at(reply, "content")]
        (length,) = _ids([at(reply, "tokens_evaluated")])
        same_length(length, len(_prompt(ask)))
        match ask:
            case Rate():
                return [_read_tokens(reply, ask.ids[ask.first :])]
            case Next():
                return [_read_next(reply, ask)]
            case Draw():
                return [(_read_text(reply, ask),)]
            case Write():
                return [_read_text(reply, ask)]

    def _body(self, ask: Ask) -> dict[str, Any]:
        body = {**EVEN, "model": self.setting.model, "prompt": list(_prompt(ask))}
        greedy = {"temperature": 0.0, "seed": 0, "n_probs": 1}
        match ask:
            case Rate():
                forced = ask.ids[ask.first :]
                # forced to write another token, llama.cpp ends its whole process
                assert all(map(can_force, self.setting.pieces(forced))), "see divide()"
                return body | greedy | {"n_predict": len(forced), "grammar": forcing(forced)}
            case Next():
                every = {"n_predict": 1, "n_probs": EVERY, "grammar": SOMETHING}
                return body | greedy | every
            case Draw():
                drawn = {"temperature": 1.0, "seed": ask.seed, "n_probs": 0}
                return body | drawn | {"n_predict": ask.most, "stop": _stop(ask.until)}
            case Write():
                return body | greedy | {"n_predict": ask.most, "stop": _stop(ask.until)}
        raise AssertionError(f"{ask} is asked otherwise")

    def divide(self, ids: Ids, reads: Ids) -> list[Rate | Next]:
        """The asks that read those places of a text: tokens that follow each other in one.

        What stands between is put before them, since a prompt is quicker than what is written.
        """
        pieces = self.setting.pieces(tuple(ids[place] for place in reads))
        asks: list[Rate | Next] = []
        for place, piece in zip(reads, pieces, strict=True):
            last = asks[-1] if asks else None
            if not can_force(piece):
                asks.append(Next(ids[:place], (ids[place],)))
            elif isinstance(last, Rate) and len(last.ids) == place:
                asks[-1] = Rate(ids[: place + 1], last.first)
            else:
                asks.append(Rate(ids[: place + 1], place))
        return asks


def can_force(piece: str | None) -> bool:
    """Whether a grammar makes llama.cpp write a token of that text; None: it has none by itself.

    A text in angle brackets may end a text, whatever kind of token a tokenizer takes it for.

    >>> [can_force(piece) for piece in (" Oslo", None, "", "\\0", "<|im_end|>", "</s>")]
    [True, False, False, False, False, False]
    """
    if not piece or piece[0] == "\0":
        return False
    return not (piece.startswith("<") and piece.endswith(">"))


def forcing(ids: Sequence[int]) -> str:
    """The grammar that lets a server write these tokens and no others.

    >>> forcing((11452, 30))
    'root ::= <[11452]> <[30]>'
    """
    return "root ::= " + " ".join(f"<[{id}]>" for id in ids)


def _read_tokens(reply: Any, ids: Ids) -> Floats:
    """The log-probabilities of tokens that the server was made to write."""
    told = listed(reply, "completion_probabilities")
    found = _ids([at(each, "id") for each in told])
    if found != ids:
        raise Malformed(f"it wrote the tokens {list(found)} where {list(ids)} were asked for")
    return logps([at(each, "logprob") for each in told], len(ids))


def _read_next(reply: Any, ask: Next) -> Floats:
    """The log-probabilities of some tokens among those of all."""
    every = listed(reply, "completion_probabilities", 0, "top_logprobs")
    ids = _ids([at(each, "id") for each in every])
    known = dict(zip(ids, (at(each, "logprob") for each in every), strict=True))
    if missing := [id for id in ask.wanted if id not in known]:
        raise Malformed(
            f"it tells of {len(known)} tokens, and token {missing[0]} is not among them"
        )
    mass = float(np.exp(logps(list(known.values()), len(every))).sum())
    if abs(mass - 1) > ROUNDING:
        raise Malformed(f"the probabilities of its {len(known)} tokens sum to {mass:.4g}")
    return logps([known[id] for id in ask.wanted], len(ask.wanted))


def _read_text(reply: Any, ask: Write | Draw) -> Written:
    """What it wrote; the log-probabilities of the first tokens, up to one that has none."""
    text, ids = text_at(reply, "content"), _ids(listed(reply, "tokens"))
    if len(ids) > ask.most:
        raise Malformed(f"it wrote {len(ids)} tokens where {ask.most} were the most")
    whole = ended(at(reply, "stop_type"), ("eos", "word"), "limit")
    if at(reply, "truncated") or (not whole and len(ids) < ask.most):
        raise Malformed(f"it stopped after {len(ids)} of {ask.most} tokens without an end")
    told = listed(reply, "completion_probabilities") if "completion_probabilities" in reply else []
    pairs = takewhile(lambda pair: pair[0] == at(pair[1], "id"), zip(ids, told, strict=False))
    places = [each for _, each in pairs]
    known = tuple(logps([at(each, "logprob") for each in places], len(places)).tolist())
    if isinstance(ask, Write):
        tops = (each.get("top_logprobs") or () for each in places)
        check_greedy(known, [[at(other, "logprob") for other in top] for top in tops])
    return Written(text=text, ended=whole, ids=ids, logps=known)


def _ids(values: Sequence[Any]) -> Ids:
    """Numbers of tokens."""
    if strange := [each for each in values if type(each) is not int]:
        raise Malformed(f"{shown(strange[0])} stands where a number belongs")
    return tuple(values)


def _prompt(ask: Ask) -> Ids:
    """What is sent of an ask: the tokens before those that are read."""
    return ask.ids[: ask.first] if isinstance(ask, Rate) else ask.ids


def _written(ask: Ask) -> int:
    """The tokens that are written, or what it takes to tell of all."""
    match ask:
        case Rate():
            return len(ask.ids) - ask.first
        case Next():
            return TELLING
        case Write() | Draw():
            return ask.most
    return 0


def _stop(until: str) -> list[str]:
    return [until] if until else []
