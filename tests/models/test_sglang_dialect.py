"""What is sent to SGLang and what is read of its replies, in the form that its sources give."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.models.served.asks import Ask, Draw, Ids, Next, Rate, Spell, Write
from sonde.models.served.dialect import Malformed, Request, Setting
from sonde.models.served.sglang import Sglang


def piece(id: int) -> str:
    return f"w{id}"


def dialect(batch: int = 8) -> Sglang:
    return Sglang(Setting(model="m", pieces=lambda ids: list(map(piece, ids)), batch=batch))


def logp(ids: Ids, token: int) -> float:
    """A number that depends on a text and the token after it."""
    return -1.0 - hash((*ids, token)) % 1000 / 100


def pretended(request: Request) -> list[dict[str, Any]]:
    """What a server would answer whose log-probabilities are `logp`; it writes 7, 8 and ends."""
    body = request.body
    told = []
    for number, prompt in enumerate(body["input_ids"]):
        ids, start = tuple(prompt), body["logprob_start_len"][number]
        read = range(start, len(ids)) if start >= 0 else ()
        entries = [[logp(ids[:n], ids[n]), ids[n], piece(ids[n])] for n in read]
        if entries:
            entries[0][0] = None
        most = body["sampling_params"][number]["max_new_tokens"]
        path = (7, 8)[:most]
        wrote = [[logp((*ids, *path[:n]), id), id, piece(id)] for n, id in enumerate(path)]
        info = {
            "prompt_tokens": len(ids),
            "input_token_logprobs": entries,
            "output_token_logprobs": wrote,
            "finish_reason": {"type": "stop" if most > 2 else "length"},
        }
        if "token_ids_logprob" in body:
            wanted = body["token_ids_logprob"][number]
            info["output_token_ids_logprobs"] = [[[logp(ids, t), t, None] for t in wanted]]
        told.append({"text": "".join(map(piece, path)), "meta_info": info})
    return told


def answers(asks: list[Ask], batch: int) -> list[tuple[Ask, Any]]:
    found: list[tuple[Ask, Any]] = []
    for request in dialect(batch).requests(asks):
        results = dialect(batch).read(request, pretended(request))
        found += zip(request.asks, results, strict=True)
    return found


TEXTS = st.lists(st.integers(0, 300), min_size=2, max_size=20).map(tuple)


@given(st.lists(TEXTS, max_size=8), st.integers(1, 4))
def test_texts_and_nodes_in_batches_are_answered_as_one_by_one(
    texts: list[Ids], batch: int
) -> None:
    rates: list[Ask] = [Rate(ids, 1 + len(ids) // 2) for ids in texts]
    for ask, values in answers(rates, batch):
        ids = ask.ids
        naive = [logp(ids[:n], ids[n]) for n in range(1 + len(ids) // 2, len(ids))]
        assert values.tolist() == naive
    nodes: list[Ask] = [Next(ids, ids[::-1][:2]) for ids in texts if ids[-1] != ids[-2]]
    for ask, values in answers(nodes, batch):
        assert values.tolist() == [logp(ask.ids, token) for token in ask.ids[::-1][:2]]


def test_texts_are_written_and_drawn_each_with_a_seed_of_its_own() -> None:
    write, draw = Write((1, 2), 4, "\n"), Draw((1, 2), 3, 2, "", 5)
    ((_, written),), ((_, drawn),) = answers([write], 8), answers([draw], 8)
    assert (written.text, written.ended, written.ids) == ("w7w8", True, (7, 8))
    assert written.logps == (logp((1, 2), 7), logp((1, 2, 7), 8))
    assert len(drawn) == 3 and not drawn[0].ended
    (request,) = dialect().requests([draw])
    assert [p["sampling_seed"] for p in request.body["sampling_params"]] == [5, 6, 7]
    assert {p["temperature"] for p in request.body["sampling_params"]} == {1}


def test_tokens_are_spelled_by_the_server() -> None:
    assert answers([Spell((4, 5))], 8) == [(Spell((4, 5)), "w4w5")]


def test_version_and_context_are_told_where_the_server_tells_them() -> None:
    models = {"data": [{"id": "m", "max_model_len": 512}]}
    about = dialect().about({"/get_server_info": {"version": "0.5.6"}, "/v1/models": models})
    assert (about.version, about.context) == ("SGLang 0.5.6", 511)
    assert dialect().about({}).context is None


def test_a_text_costs_what_stands_behind_the_one_before_it() -> None:
    head = tuple(range(700))
    assert dialect().computes([Rate((*head, n), 700) for n in range(100)]) == 701 + 99 * 2
    assert dialect().computes([Next((*head, n), (n,)) for n in range(100)]) == 701 + 99


RATED, WANTED = Rate((1, 2, 3), 2), Next((1, 2), (3, 4))
INFO = (0, "meta_info")


def put(*path: str | int, to: Any) -> Callable[[Any], None]:
    def change(reply: Any) -> None:
        for step in path[:-1]:
            reply = reply[step]
        reply[path[-1]] = to

    return change


WRONG: dict[str, tuple[Ask, Callable[[Any], None]]] = {
    "an answer too many": (RATED, lambda reply: reply.append(reply[0])),
    "none": (RATED, lambda reply: reply.clear()),
    "the prompt was cut": (RATED, put(*INFO, "prompt_tokens", to=2)),
    "the prompt grew": (WANTED, put(*INFO, "prompt_tokens", to=3)),
    "other tokens": (RATED, put(*INFO, "input_token_logprobs", 1, 1, to=9)),
    "another tokenizer": (RATED, put(*INFO, "input_token_logprobs", 1, 2, to="x")),
    "null": (RATED, put(*INFO, "input_token_logprobs", 1, 0, to=None)),
    "NaN": (RATED, put(*INFO, "input_token_logprobs", 1, 0, to=float("nan"))),
    "a probability": (RATED, put(*INFO, "input_token_logprobs", 1, 0, to=0.2)),
    "nothing is told": (RATED, put(*INFO, "input_token_logprobs", to=None)),
    "a wanted token is missing": (WANTED, put(*INFO, "output_token_ids_logprobs", 0, 0, 1, to=9)),
    "no wanted token is told": (WANTED, put(*INFO, "output_token_ids_logprobs", to=[])),
    "a text was given up": (Write((1,), 4), put(*INFO, "finish_reason", "type", to="abort")),
    "a text is too long": (
        Write((1,), 1),
        put(*INFO, "output_token_logprobs", to=[[-1, 1, ""]] * 2),
    ),
    "a text is none": (Write((1,), 4), put(0, "text", to=None)),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_reply_that_is_not_what_was_asked_for_is_refused(fault: str) -> None:
    ask, change = WRONG[fault]
    (request,) = dialect().requests([ask])
    reply = copy.deepcopy(pretended(request))
    change(reply)
    with pytest.raises(Malformed):
        dialect().read(request, reply)


@pytest.mark.parametrize("reply", [None, {}, "busy", [{}], {"error": {"message": "x"}}])
def test_a_reply_of_another_form_is_refused(reply: Any) -> None:
    for ask in (RATED, WANTED, Write((1,), 4), Draw((1,), 1, 2, "", 0), Spell((1,))):
        (request,) = dialect().requests([ask])
        with pytest.raises(Malformed):
            dialect().read(request, reply)


@pytest.mark.parametrize("odd", [None, [], "busy", {"data": None}, {"data": ["a", {"id": []}]}])
def test_a_server_that_speaks_oddly_of_itself_says_nothing(odd: Any) -> None:
    paths = ("/v1/models", *dialect().looks)
    about = dialect().about(dict.fromkeys(paths, odd))
    assert (about.version, about.context) == ("SGLang", None)
