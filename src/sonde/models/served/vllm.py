"""vLLM: whole texts by `prompt_logprobs`, nodes of the options' tree by `logprob_token_ids`.

Both take several prompts a request, as token ids. A node costs what the server's prefix cache does
not hold; `prompt_logprobs` never reads that cache, so that a text is computed whole. Fields of
sampling that are left out would be taken from the model's generation_config.json: all are set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
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
    written_by,
)
from sonde.models.served.dialect import (
    LEAST,
    About,
    Malformed,
    Request,
    Setting,
    at,
    check_greedy,
    ended,
    in_order,
    listed,
    logps,
    shown,
    text_at,
    told_context,
    told_text,
)

WIDEST = 128
"""Token ids that vLLM takes in `logprob_token_ids`."""

PROMPTS = 64
"""Prompts in a request; vLLM takes 1,024, but one that is lost is asked anew as a whole."""

TOKENS = 2**13
"""Tokens of whole texts in a request, for the same reason."""

BLOCK = 16
"""Tokens that vLLM's prefix cache holds together: a prefix is found up to a multiple of it."""

NOTHING = -9999.0
"""What vLLM writes for the logarithm of 0."""

GREEDY: Mapping[str, Any] = {
    "temperature": 0,
    "top_p": 1,
    "top_k": 0,
    "min_p": 0,
    "repetition_penalty": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "add_special_tokens": False,
    "return_token_ids": True,
    "return_tokens_as_token_ids": True,
}


@dataclass(frozen=True, slots=True)
class Vllm:
    """vLLM's server, or its engine in this process."""

    setting: Setting
    name: ClassVar[str] = "vllm"
    can: ClassVar[frozenset[Kind]] = frozenset({"rate", "next", "write", "draw", "spell"})
    looks: ClassVar[tuple[str, ...]] = ("/version",)
    widest: ClassVar[int] = WIDEST
    draws: ClassVar[int] = 1024

    def about(self, seen: Mapping[str, Any]) -> About:
        """Its version, and how many tokens it was started to take."""
        context = told_context(seen, self.setting.model)
        version = told_text(seen, "/version", "version")
        # a token is always written
        return About(version=f"vLLM {version}".strip(), context=context and context - 1)

    def requests(self, asks: Sequence[Ask]) -> list[Request]:
        """Asks of one kind in their order, as many in a request as go together."""
        groups: list[list[Ask]] = []
        for ask in asks:
            if not groups or not self._together([*groups[-1], ask]):
                groups.append([])
            groups[-1].append(ask)
        model = {"model": self.setting.model}
        return [
            Request(path=path_of(own[0]), body=model | body_of(own), asks=own) for own in groups
        ]

    def _together(self, asks: Sequence[Ask]) -> bool:
        """Whether one request can hold these, so that none of its replies is late or too wide."""
        if len(asks) > min(self.setting.batch, PROMPTS):
            return False
        match asks[0]:
            case Rate():
                return sum(len(ask.ids) for ask in asks) <= TOKENS
            case Next():
                return len(wanted_by(asks)) <= WIDEST
            case Write() as first:
                return all(ends(ask) == ends(first) for ask in asks if isinstance(ask, Write))
        return False

    def computes(self, asks: Sequence[Ask]) -> int:
        """A text is computed whole; a prompt from where the one before it parts from it."""
        whole = sum(len(ask.ids) + written_by(ask) for ask in asks)
        if not asks or isinstance(asks[0], Rate):
            return whole
        return whole - sum(shared(a.ids, b.ids) // BLOCK * BLOCK for a, b in pairwise(asks))

    def read(self, request: Request, reply: Any) -> list[Result]:
        """The results of a request's asks; refuses a reply for other prompts than were sent."""
        first = request.asks[0]
        if isinstance(first, Spell):
            return [text_at(reply, "prompt")]
        if isinstance(reply, dict) and reply.get("error"):
            raise Malformed(f"it holds an error: {shown(reply['error'])}")
        each = first.count if isinstance(first, Draw) else 1
        choices = in_order(listed(reply, "choices"), len(request.asks) * each)
        groups = [choices[i : i + each] for i in range(0, len(choices), each)]
        return [answer(ask, own) for ask, own in zip(request.asks, groups, strict=True)]


def path_of(ask: Ask) -> str:
    """Where an ask is answered."""
    return "/detokenize" if isinstance(ask, Spell) else "/v1/completions"


def body_of(asks: Sequence[Ask]) -> dict[str, Any]:
    """What is sent for asks that go together, without the model's name."""
    first = asks[0]
    body = {"prompt": [list(ask.ids) for ask in asks], **GREEDY}
    match first:
        case Rate():  # it must write a token, which is not read
            return body | {"prompt_logprobs": 0, "max_tokens": 1}
        case Next():
            return body | {"logprobs": 1, "logprob_token_ids": wanted_by(asks), "max_tokens": 1}
        case Write():
            return body | {"logprobs": 1, **ends(first)}
        case Draw():
            drawn = {"temperature": 1, "n": first.count, "seed": first.seed}
            return body | {"logprobs": 0, **ends(first), **drawn}
        case Spell():
            return {"tokens": list(first.ids)}


def wanted_by(asks: Sequence[Ask]) -> list[int]:
    """The tokens that one of some nodes wants; a request tells of all of them at each node."""
    return list(dict.fromkeys(i for ask in asks if isinstance(ask, Next) for i in ask.wanted))


def ends(ask: Write | Draw) -> dict[str, Any]:
    """Where a text ends."""
    return {"max_tokens": ask.most, "stop": [ask.until] if ask.until else []}


def answer(ask: Ask, choices: Sequence[Any]) -> Result:
    """What an ask is answered with, given the choices that are for it."""
    for choice in choices:
        same_ids(at(choice, "prompt_token_ids"), ask.ids)
    match ask:
        case Rate():
            return rated(ask, choices[0])
        case Next():
            return likely(ask, choices[0])
        case Write():
            return written(ask, choices[0])
        case Draw():
            return tuple(written(ask, choice) for choice in choices)
        case Spell():
            raise AssertionError("no completion spells tokens")


def rated(ask: Rate, choice: Any) -> Floats:
    """The log-probabilities of a prompt's own tokens."""
    steps = listed(choice, "prompt_logprobs")
    if len(steps) != len(ask.ids):
        raise Malformed(f"it rates {len(steps)} tokens of a prompt that has {len(ask.ids)}")
    pairs = list(zip(steps, ask.ids, strict=True))[ask.first :]
    return possible([at(step, str(id), "logprob") for step, id in pairs], len(pairs))


def likely(ask: Next, choice: Any) -> Floats:
    """The log-probabilities of the tokens that were wanted after a prompt."""
    step = at(choice, "logprobs", "top_logprobs", 0)
    found = possible([at(step, f"token_id:{id}") for id in ask.wanted], len(ask.wanted))
    total = float(np.exp(logps(list(step.values()), len(step))).sum())
    if total > 1 + len(step) * LEAST:
        raise Malformed(f"the probabilities of {len(step)} tokens add up to {total:.3f}")
    return found


def written(ask: Write | Draw, choice: Any) -> Written:
    """A text with its tokens; the last of these may be what ended it."""
    ids = tuple(listed(choice, "token_ids"))
    told = listed(choice, "logprobs", "tokens")
    if told != [f"token_id:{id}" for id in ids]:
        raise Malformed(f"it wrote the tokens {shown(ids)} and rates {shown(told)}")
    if len(ids) > ask.most:
        raise Malformed(f"it wrote {len(ids)} tokens where {ask.most} were allowed")
    known = tuple(possible(listed(choice, "logprobs", "token_logprobs"), len(ids)).tolist())
    if isinstance(ask, Write):
        check_greedy(known, choice["logprobs"].get("top_logprobs"))
    return Written(
        text=text_at(choice, "text"),
        ended=ended(at(choice, "finish_reason")),
        ids=ids,
        logps=known,
    )


def possible(values: Sequence[Any], count: int) -> Floats:
    """Log-probabilities, none of them the number that stands for a probability of 0."""
    if NOTHING in values:
        raise Malformed(f"{NOTHING:g} stands where a log-probability belongs: it has none")
    return logps(values, count)


def same_ids(told: Any, sent: Ids) -> None:
    """Check the prompt that was answered, token by token."""
    if told != list(sent):
        raise Malformed(f"it answers the prompt {shown(told)} where {shown(list(sent))} was sent")
