"""SGLang's own `/generate`: texts read from a place on, nodes by `token_ids_logprob`.

Every prompt of a request has its own place and its own tokens. Tokens come back with their texts,
which are held against the local tokenizer's. Written from SGLang's sources, and not yet run against
a server of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from sonde.engine.prefixes import shared
from sonde.models.served.asks import (
    KINDS,
    Ask,
    Draw,
    Floats,
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
    listed,
    logps,
    same_length,
    same_pieces,
    shown,
    text_at,
    told_context,
    told_text,
)

PATH = "/generate"

PROMPTS = 64
"""Prompts in a request."""

EVEN: Mapping[str, Any] = {
    "top_p": 1,
    "top_k": -1,
    "min_p": 0,
    "repetition_penalty": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "skip_special_tokens": True,
}
"""Every field of sampling is set: one that is missing comes from generation_config.json."""


@dataclass(frozen=True, slots=True)
class Sglang:
    """SGLang's server."""

    setting: Setting
    name: ClassVar[str] = "sglang"
    can: ClassVar[frozenset[Kind]] = frozenset({"rate", "next", "write", "draw", "spell"})
    looks: ClassVar[tuple[str, ...]] = ("/get_server_info",)
    widest: ClassVar[int] = 1024
    draws: ClassVar[int] = 256

    def about(self, seen: Mapping[str, Any]) -> About:
        """Its version, and the context where it is told beside the model's name."""
        context = told_context(seen, self.setting.model)
        version = told_text(seen, "/get_server_info", "version")
        # a token is always written
        return About(version=f"SGLang {version}".strip(), context=context and context - 1)

    def requests(self, asks: Sequence[Ask]) -> list[Request]:
        """Several prompts in a request; texts are drawn for one at a time."""
        kind = KINDS[type(asks[0])] if asks else "rate"
        size = 1 if kind == "draw" else min(self.setting.batch, PROMPTS)
        parts = batches(asks, size)
        return [Request(path=PATH, body=body_of(part), asks=part) for part in parts]

    def computes(self, asks: Sequence[Ask]) -> int:
        """What its cache does not hold of the prompt before, and all tokens that are read."""
        kept = (min(shared(a.ids, b.ids), _unread(b)) for a, b in pairwise(asks))
        return sum(len(ask.ids) + written_by(ask) for ask in asks) - sum(kept)

    def read(self, request: Request, reply: Any) -> list[Result]:
        """An object for each prompt, or for each text that is drawn after one, in their order."""
        first = request.asks[0]
        count = first.count if isinstance(first, Draw) else len(request.asks)
        if not isinstance(reply, list) or len(reply) != count:
            raise Malformed(f"it is no list of {count} answers but {shown(reply)}")
        if isinstance(first, Draw):
            return [tuple(self._written(each, first) for each in reply)]
        return [self._result(ask, each) for ask, each in zip(request.asks, reply, strict=True)]

    def _result(self, ask: Ask, told: Any) -> Result:
        match ask:
            case Write():
                return self._written(told, ask)
            case Next():
                same_length(at(told, "meta_info", "prompt_tokens"), len(ask.ids))
                return likely(ask, listed(told, "meta_info", "output_token_ids_logprobs", 0))
        same_length(at(told, "meta_info", "prompt_tokens"), len(ask.ids))
        start = _unread(ask)
        entries = listed(told, "meta_info", "input_token_logprobs")
        ids = ask.ids[start:]
        if [at(entry, 1) for entry in entries] != list(ids):
            raise Malformed(f"it reads the tokens {shown(entries)} where {shown(ids)} were sent")
        texts = [at(entry, 2) for entry in entries]
        if isinstance(ask, Spell):
            return "".join(map(str, texts))
        same_pieces(texts, ids, self.setting)
        # the first was read for the sake of the one behind it, and has no number
        return logps([at(entry, 0) for entry in entries[1:]], len(ids) - 1)

    def _written(self, told: Any, ask: Write | Draw) -> Written:
        same_length(at(told, "meta_info", "prompt_tokens"), len(ask.ids))
        entries = listed(told, "meta_info", "output_token_logprobs")
        if len(entries) > ask.most:
            raise Malformed(f"it wrote {len(entries)} tokens where {ask.most} were the most")
        whole = ended(at(told, "meta_info", "finish_reason", "type"))
        known = tuple(logps([at(entry, 0) for entry in entries], len(entries)).tolist())
        ids = tuple(at(entry, 1) for entry in entries)
        if isinstance(ask, Write):
            tops = told["meta_info"].get("output_top_logprobs") or ()
            check_greedy(known, [[at(entry, 0) for entry in place or ()] for place in tops])
        return Written(text=text_at(told, "text"), ended=whole, ids=ids, logps=known)


def body_of(asks: Sequence[Ask]) -> dict[str, Any]:
    """What is sent for asks of one kind."""
    body: dict[str, Any] = {
        "input_ids": [list(ask.ids) for ask in asks],
        "return_logprob": True,
        "logprob_start_len": [-1 if _writes(ask) else _unread(ask) for ask in asks],
        "return_text_in_logprobs": True,
        "sampling_params": [sampling(ask) for ask in asks],
    }
    first = asks[0]
    if isinstance(first, Draw):  # one by one, because `n` draws of one seed would all be the same
        seeds = [{"sampling_seed": first.seed + i} for i in range(first.count)]
        body["input_ids"] *= first.count
        body["logprob_start_len"] *= first.count
        body["sampling_params"] = [sampling(first) | seed for seed in seeds]
    if isinstance(first, Write):
        body["top_logprobs_num"] = [1] * len(asks)
    if isinstance(first, Next):
        body["token_ids_logprob"] = [list(ask.wanted) for ask in asks if isinstance(ask, Next)]
    return body


def sampling(ask: Ask) -> dict[str, Any]:
    """How the text after a prompt is written; one token where none is wanted."""
    most = ask.most if isinstance(ask, Write | Draw) else 1
    drawn = {"temperature": 1 if isinstance(ask, Draw) else 0, "max_new_tokens": most}
    until = ask.until if isinstance(ask, Write | Draw) else ""
    return {**EVEN, **drawn, **({"stop": [until]} if until else {})}


def likely(ask: Next, entries: Sequence[Any]) -> Floats:
    """The log-probabilities of the tokens that were wanted, by their ids."""
    found = {at(entry, 1): at(entry, 0) for entry in entries}
    if missing := [id for id in ask.wanted if id not in found]:
        raise Malformed(f"it says nothing of token {missing[0]}, which was asked for")
    return logps([found[id] for id in ask.wanted], len(ask.wanted))


def _writes(ask: Ask) -> bool:
    return isinstance(ask, Write | Draw | Next)


def _unread(ask: Ask) -> int:
    """How many tokens stand before those of which something is told."""
    match ask:
        case Rate():
            return ask.first - 1
        case Spell():
            return 0
    return len(ask.ids) - 1
