"""What is sent to vLLM and what is read of its replies: recorded from vLLM 0.32.0 with SmolLM2."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.models.served.asks import Ask, Draw, Ids, Next, Rate, Spell, Write
from sonde.models.served.dialect import Malformed, Request, Setting
from sonde.models.served.vllm import TOKENS, WIDEST, Vllm

RECORDED = Path(__file__).parent.parent / "golden" / "served" / "vllm.jsonl"

FRANCE = (504, 3575, 282, 4649, 314)
"""The capital of France is"""

PARIS, LONDON, DOT, COMMA = 7042, 4528, 30, 28

ASKED: list[list[Ask]] = [
    [Rate((*FRANCE, PARIS), 5), Rate((*FRANCE, LONDON, COMMA), 5)],
    [Next(FRANCE, (PARIS, LONDON)), Next((*FRANCE, PARIS), (DOT, COMMA))],
    [Write(FRANCE, 8, "\n"), Write((*FRANCE, PARIS, COMMA), 3, "\n")],
    [Draw(FRANCE, 2, 4, "\n", 7)],
    [Spell((*FRANCE, PARIS))],
]


def dialect(batch: int = 8) -> Vllm:
    return Vllm(Setting(model="smollm2", pieces=lambda ids: [None] * len(ids), batch=batch))


def recorded() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    first, *rest = map(json.loads, RECORDED.read_text(encoding="utf-8").splitlines())
    return first["seen"], rest


SEEN, EXCHANGES = recorded()
REQUESTS = [request for asks in ASKED for request in dialect().requests(asks)]
RATE, NEXT, WRITE, _, DRAW, SPELL = range(6)


def test_requests_are_those_that_the_server_answered() -> None:
    sent = [{"path": r.path, "body": dict(r.body)} for r in REQUESTS]
    assert sent == [{"path": each["path"], "body": each["body"]} for each in EXCHANGES]


def results(number: int) -> list[Any]:
    return dialect().read(REQUESTS[number], EXCHANGES[number]["reply"])


def test_whole_texts_and_nodes_of_their_tree_get_the_same_numbers() -> None:
    paris, london = results(RATE)
    first, after_paris = results(NEXT)
    assert [float(paris[0]), float(london[0])] == first.tolist()
    assert len(london) == 2 and london[1] == pytest.approx(-1.606442, abs=1e-6)
    assert after_paris == pytest.approx([-0.380129, -1.658490], abs=1e-6)


def test_texts_come_with_their_tokens_and_say_whether_they_ended() -> None:
    (ended,), (cut,) = results(WRITE), results(WRITE + 1)
    assert (ended.text, ended.ended, ended.ids[-1]) == (" Paris.", True, 198)
    assert (cut.ended, len(cut.ids), len(cut.logps)) == (False, 3, 3)
    (drawn,) = results(DRAW)
    assert [each.text for each in drawn] == [" Paris, the capital", " Monaco, which"]
    assert results(SPELL) == ["The capital of France is Paris"]


def test_version_and_context_are_told_less_the_token_that_is_always_written() -> None:
    about = dialect().about(SEEN)
    assert (about.version, about.context) == ("vLLM 0.32.0", 2047)
    assert dialect().about({}).context is None


def put(*path: str | int, to: Any) -> Callable[[Any], None]:
    def change(reply: Any) -> None:
        for step in path[:-1]:
            reply = reply[step]
        reply[path[-1]] = to

    return change


def drop(*path: str | int) -> Callable[[Any], None]:
    def change(reply: Any) -> None:
        for step in path[:-1]:
            reply = reply[step]
        del reply[path[-1]]

    return change


def shift(reply: Any) -> None:
    """Log-probabilities one token too early, as some servers give them without BOS."""
    for choice in reply["choices"]:
        choice["prompt_logprobs"] = [*choice["prompt_logprobs"][1:], None]


def words(reply: Any) -> None:
    """Keys that are texts, as they are without `return_tokens_as_token_ids`."""
    steps = reply["choices"][0]["logprobs"]["top_logprobs"]
    steps[0] = {f"word {n}": value for n, value in enumerate(steps[0].values())}


PARIS_LOGP = ("choices", 0, "prompt_logprobs", 5, str(PARIS), "logprob")
STEP = ("choices", 0, "logprobs", "top_logprobs", 0)

WRONG: dict[str, tuple[int, Callable[[Any], None]]] = {
    "a choice is missing": (RATE, drop("choices", 1)),
    "an index comes twice": (RATE, put("choices", 1, "index", to=0)),
    "an index is no number": (RATE, put("choices", 1, "index", to=None)),
    "the prompt was cut": (RATE, put("choices", 1, "prompt_token_ids", to=[LONDON, COMMA])),
    "a token was put before the prompt": (
        NEXT,
        put("choices", 0, "prompt_token_ids", to=[1, *FRANCE]),
    ),
    "the prompt's tokens are not told": (NEXT, drop("choices", 0, "prompt_token_ids")),
    "prompt_logprobs is absent": (RATE, drop("choices", 0, "prompt_logprobs")),
    "prompt_logprobs is null": (RATE, put("choices", 0, "prompt_logprobs", to=None)),
    "prompt_logprobs is short": (RATE, drop("choices", 0, "prompt_logprobs", 0)),
    "prompt_logprobs is shifted": (RATE, shift),
    "a log-probability is null": (RATE, put(*PARIS_LOGP, to=None)),
    "a log-probability is a word": (RATE, put(*PARIS_LOGP, to="-1")),
    "a log-probability is NaN": (RATE, put(*PARIS_LOGP, to=float("nan"))),
    "a log-probability is infinite": (RATE, put(*PARIS_LOGP, to=-float("inf"))),
    "a log-probability is that of nothing": (RATE, put(*PARIS_LOGP, to=-9999.0)),
    "a probability stands there": (RATE, put(*PARIS_LOGP, to=0.77)),
    "a wanted token is missing": (NEXT, drop(*STEP, f"token_id:{LONDON}")),
    "keys are texts": (NEXT, words),
    "logits stand there": (NEXT, put(*STEP, f"token_id:{LONDON}", to=-0.1)),
    "no step is told": (NEXT, put("choices", 0, "logprobs", to=None)),
    "a text is too long": (WRITE, put("choices", 0, "token_ids", to=list(range(9)))),
    "tokens are not those that are rated": (WRITE, put("choices", 0, "token_ids", to=[1, 2, 3])),
    "a text was given up": (WRITE, put("choices", 0, "finish_reason", to="abort")),
    "a text is none": (WRITE, put("choices", 0, "text", to=None)),
    "the error is the body": (WRITE, put("error", to={"message": "engine dead", "code": 500})),
    "fewer texts were drawn": (DRAW, drop("choices", 1)),
    "the spelling is none": (SPELL, put("prompt", to=3)),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_reply_that_is_not_what_was_asked_for_is_refused(fault: str) -> None:
    number, change = WRONG[fault]
    reply = copy.deepcopy(EXCHANGES[number]["reply"])
    change(reply)
    with pytest.raises(Malformed):
        dialect().read(REQUESTS[number], reply)


@pytest.mark.parametrize("reply", [None, [], "busy", {"choices": {}}, {"object": "error"}])
def test_a_reply_of_another_form_is_refused(reply: Any) -> None:
    for request in REQUESTS:
        with pytest.raises(Malformed):
            dialect().read(request, reply)


def test_choices_in_another_order_are_put_in_theirs() -> None:
    reply = copy.deepcopy(EXCHANGES[RATE]["reply"])
    reply["choices"].reverse()
    there: list[Any] = dialect().read(REQUESTS[RATE], reply)
    assert all(np.array_equal(a, b) for a, b in zip(there, results(RATE), strict=True))


def logp(ids: Ids, token: int) -> float:
    """A number that depends on a text and the token after it."""
    return -20.0 - hash((*ids, token)) % 1000 / 100


def pretended(request: Request) -> dict[str, Any]:
    """What a server would answer whose log-probabilities are `logp`."""
    choices = []
    for index, prompt in enumerate(request.body["prompt"]):
        ids = tuple(prompt)
        steps = [{str(t): {"logprob": logp(ids[:n], t)}} for n, t in enumerate(ids)]
        told = {f"token_id:{t}": logp(ids, t) for t in request.body.get("logprob_token_ids", ())}
        choices.append(
            {
                "index": index,
                "prompt_token_ids": prompt,
                "prompt_logprobs": [None, *steps[1:]],
                "logprobs": {"top_logprobs": [told]},
            }
        )
    return {"choices": choices}


TEXTS = st.lists(st.integers(0, 300), min_size=2, max_size=40).map(tuple)
NODES = st.tuples(TEXTS, st.lists(st.integers(0, 500), min_size=1, max_size=100, unique=True))


def answers(asks: list[Ask], batch: int) -> list[tuple[Ask, list[float]]]:
    found = []
    for request in dialect(batch).requests(asks):
        values: list[Any] = dialect(batch).read(request, pretended(request))
        found += [(ask, value.tolist()) for ask, value in zip(request.asks, values, strict=True)]
    return found


@given(st.lists(TEXTS, max_size=12), st.integers(1, 6))
def test_texts_in_batches_are_rated_as_one_by_one(texts: list[Ids], batch: int) -> None:
    asks: list[Ask] = [Rate(ids, 1 + len(ids) // 2) for ids in texts]
    naive = [
        (ask, [logp(ask.ids[:n], ask.ids[n]) for n in range(1 + len(ask.ids) // 2, len(ask.ids))])
        for ask in asks
    ]
    assert answers(asks, batch) == naive


@given(st.lists(NODES, max_size=12), st.integers(1, 6))
def test_nodes_in_batches_are_answered_as_one_by_one(
    nodes: list[tuple[Ids, list[int]]], batch: int
) -> None:
    asks: list[Ask] = [Next(ids, tuple(wanted)) for ids, wanted in nodes]
    requests = dialect(batch).requests(asks)
    assert all(len(r.body["logprob_token_ids"]) <= WIDEST for r in requests)
    assert all(len(r.asks) <= batch for r in requests)
    naive = [[logp(ids, token) for token in wanted] for ids, wanted in nodes]
    assert answers(asks, batch) == list(zip(asks, naive, strict=True))


def test_long_texts_are_spread_over_requests() -> None:
    asks: list[Ask] = [Rate(tuple(range(3000)), n) for n in range(1, 6)]
    sizes = [sum(len(ids) for ids in r.body["prompt"]) for r in dialect(32).requests(asks)]
    assert max(sizes) <= TOKENS and len(sizes) == 3


def test_a_node_costs_what_the_cache_does_not_hold() -> None:
    head = tuple(range(700))
    nodes: list[Ask] = [Next((*head, n), (n,)) for n in range(100)]
    texts: list[Ask] = [Rate((*head, n), 700) for n in range(100)]
    assert dialect().computes(texts) == 70_100
    assert dialect().computes(nodes) == 701 + 99 * (701 - 688)
    assert dialect().computes([]) == 0
    assert dialect().computes([Write(head, 8), Write(head, 8)]) == 2 * 708 - 688
    assert dialect().computes([Draw(head, 20, 8, "", 0)]) == 700 + 160


@pytest.mark.parametrize("odd", [None, [], "busy", {"data": None}, {"data": ["a", {"id": []}]}])
def test_a_server_that_speaks_oddly_of_itself_says_nothing(odd: Any) -> None:
    paths = ("/v1/models", *dialect().looks)
    about = dialect().about(dict.fromkeys(paths, odd))
    assert (about.version, about.context) == ("vLLM", None)
