"""`plain`: OpenAI-compatible completions that return the prompt's log-probabilities (`echo`).

Tokens come back as texts and not as numbers, so they are held against the local tokenizer's. A
token can be forced only by putting it into the prompt: what follows a prompt is told for the
likeliest tokens alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from sonde.engine.token_texts import BROKEN
from sonde.models.served.asks import (
    KINDS,
    Ask,
    Draw,
    Kind,
    Next,
    Rate,
    Result,
    Spell,
    Write,
    Written,
    written_by,
)
from sonde.models.served.dialect import (
    About,
    Malformed,
    Request,
    Setting,
    at,
    batches,
    check_greedy,
    ended,
    in_order,
    listed,
    logps,
    same_length,
    same_pieces,
    shown,
    text_at,
    told_context,
    told_text,
)

PATH = "/v1/completions"

DRAWS = 16
"""Texts that are drawn in one request, where the server heeds `n`."""

UNTOLD = "its reply does not say in usage.prompt_tokens how many tokens it read"
"""Of a prompt that is echoed, its tokens tell that."""

_GAPS = re.compile(r"[\s▁Ġ]+|<[^<>\s]+>")

EVEN: Mapping[str, Any] = {"top_p": 1, "frequency_penalty": 0, "presence_penalty": 0}
"""Every field of sampling that such servers share: what they take for one that is missing is
their own. `top_k` and others have no value that means the same to all."""


@dataclass(frozen=True, slots=True)
class Plain:
    """Any server that speaks completions as OpenAI's did."""

    setting: Setting
    name: ClassVar[str] = "plain"
    can: ClassVar[frozenset[Kind]] = frozenset({"rate", "write", "draw", "spell"})
    looks: ClassVar[tuple[str, ...]] = ("/version",)
    widest: ClassVar[int] = 0

    @property
    def draws(self) -> int:
        """Texts in one request."""
        return self.setting.draws or DRAWS

    def about(self, seen: Mapping[str, Any]) -> About:
        """The version, and the context that some servers tell beside the model's name."""
        version = told_text(seen, "/version", "version")
        return About(version=version, context=told_context(seen, self.setting.model))

    def requests(self, asks: Sequence[Ask]) -> list[Request]:
        """Several prompts in one request, except where texts are drawn."""
        kind = KINDS[type(asks[0])] if asks else "rate"
        size = 1 if kind == "draw" else self.setting.batch
        if kind == "write":  # those of one request have the same limits
            alike: dict[tuple[int, str], list[Ask]] = {}
            for ask in asks:
                assert isinstance(ask, Write)
                alike.setdefault((ask.most, ask.until), []).append(ask)
            parts = [part for own in alike.values() for part in batches(own, size)]
        else:
            parts = batches(asks, size)
        return [Request(path=PATH, body=self._body(part), asks=part) for part in parts]

    def computes(self, asks: Sequence[Ask]) -> int:
        """Every token of every prompt, and those that are written."""
        return sum(len(ask.ids) + written_by(ask) for ask in asks)

    def read(self, request: Request, reply: Any) -> list[Result]:
        """The choices, in the order of the prompts."""
        first = request.asks[0]
        count = first.count if isinstance(first, Draw) else len(request.asks)
        choices = in_order(listed(reply, "choices"), count)
        usage = reply.get("usage")
        known = usage if isinstance(usage, dict) else {}
        told, came = known.get("prompt_tokens"), known.get("completion_tokens")
        if not isinstance(told, int) and isinstance(first, Write | Draw):
            raise Malformed(f"{UNTOLD} (found: {shown(usage)}), so that a prompt may have been cut")
        same_length(told, sum(len(ask.ids) for ask in request.asks))
        if isinstance(first, Draw):
            if isinstance(came, int) and came > written_by(first):
                raise Malformed(f"it wrote {came} tokens where {written_by(first)} were the most")
            return [tuple(self._drawn(choice, first) for choice in choices)]
        pairs = zip(request.asks, choices, strict=True)
        return [self._result(ask, choice) for ask, choice in pairs]

    def _body(self, asks: Sequence[Ask]) -> dict[str, Any]:
        first = asks[0]
        prompts = [list(ask.ids) for ask in asks]
        single = self.setting.batch == 1 or isinstance(first, Draw)
        body = {"model": self.setting.model, "prompt": prompts[0] if single else prompts, **EVEN}
        match first:
            case Rate() | Spell():  # not 0 tokens: some servers take that for no limit
                return body | {"echo": True, "logprobs": 1, "max_tokens": 1, "temperature": 0}
            case Write():
                greedy = {"logprobs": 1, "max_tokens": first.most, "temperature": 0}
                return body | greedy | _stop(first.until)
            case Draw():
                drawn = {"n": first.count, "seed": first.seed, "max_tokens": first.most}
                return body | drawn | {"temperature": 1} | _stop(first.until)
            case Next():
                raise AssertionError("such servers tell only the likeliest tokens")

    def _result(self, ask: Ask, choice: Any) -> Result:
        if isinstance(ask, Write):
            return self._written(choice, ask)
        tokens, values = listed(choice, "logprobs", "tokens"), self._values(choice)
        count = len(ask.ids)
        if not count <= len(tokens) <= count + 1:
            raise Malformed(f"it returns {len(tokens)} tokens where {count} were sent")
        if isinstance(ask, Spell):
            return "".join(map(str, tokens[:count]))
        assert isinstance(ask, Rate)
        same_pieces(tokens[:count], ask.ids, self.setting)
        return logps(values[ask.first : count], count - ask.first)

    def _written(self, choice: Any, ask: Write) -> Written:
        pieces, values = listed(choice, "logprobs", "tokens"), self._values(choice)
        if len(pieces) > ask.most:
            raise Malformed(f"it wrote {len(pieces)} tokens where {ask.most} were the most")
        text, whole = text_at(choice, "text"), ended(at(choice, "finish_reason"))
        if not begins_with(pieces, text):
            raise Malformed(f"it wrote {shown(text)} and rates the tokens {shown(pieces)}")
        if not whole and len(pieces) < ask.most:
            raise Malformed(f"it stopped after {len(pieces)} of {ask.most} tokens without an end")
        known = tuple(float(value) for value in logps(values, len(values)))
        check_greedy(known, choice["logprobs"].get("top_logprobs"))
        return Written(text=text, ended=whole, pieces=tuple(map(str, pieces)), logps=known)

    def _drawn(self, choice: Any, ask: Draw) -> Written:
        return Written(text=text_at(choice, "text"), ended=ended(at(choice, "finish_reason")))

    def _values(self, choice: Any) -> list[Any]:
        tokens = listed(choice, "logprobs", "tokens")
        values = listed(choice, "logprobs", "token_logprobs")
        if len(tokens) != len(values):
            raise Malformed(f"it has {len(values)} log-probabilities for {len(tokens)} tokens")
        return values


def begins_with(pieces: Sequence[Any], text: str) -> bool:
    """Whether tokens say a text, and maybe more; spaces and parts of characters do not count.

    Nor do special tokens, which most servers leave out of a text.

    >>> begins_with([" Par", "is", "."], " Paris"), begins_with(["token_id:7"], " Paris")
    (True, False)
    """
    theirs, ours = (_GAPS.sub("", each) for each in ("".join(map(str, pieces)), text))
    return theirs.startswith(ours) or BROKEN in theirs + ours


def _stop(until: str) -> dict[str, Any]:
    return {"stop": [until]} if until else {}
