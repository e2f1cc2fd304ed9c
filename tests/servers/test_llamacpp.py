"""llama.cpp's own server gives what the same model gives here, whatever it is set to."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.abilities import abilities
from sonde.core.errors import EndpointError, ServerError
from sonde.models.load import load
from sonde.models.options import LoadOptions
from sonde.models.served.asks import Ask, Draw, Next, Rate, Write
from sonde.models.served.dialect import Malformed, Setting
from sonde.models.served.llamacpp import LlamaCpp, can_force
from sonde.models.served.model import Served, served_model
from sonde.models.served.reading import Reading, Text, by_both, by_nodes, whole
from sonde.models.served.tokens import LocalTokens, read_tokens
from sonde.models.served.trials import find
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.loading.weights import load_folder
from tests import tiny
from tests.servers.agreement import assert_agrees, assert_same, rows
from tests.servers.llama import Web, started, write_model
from tests.tiny import CITIES, score

BROKEN = ("Łódź", "🦙", "a\0b", "<|im_end|>", "日本")
"""Options whose tokens hold parts of characters, nothing that is shown, or what ends a text."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_model(tmp_path_factory.mktemp("llama"))


@pytest.fixture(scope="module")
def here(files: tuple[Path, Path]) -> CausalModel:
    return CausalModel(load_folder("hf:here", files[0], LoadOptions(device="cpu"), weights="w"))


@pytest.fixture(scope="module")
def tokens(files: tuple[Path, Path]) -> LocalTokens:
    return read_tokens(str(files[0]), LoadOptions(), "server:here")


@pytest.fixture(scope="module")
def server(files: tuple[Path, Path]) -> Any:
    return started(files[1])


@pytest.fixture(scope="module")
def served(server: Any, tokens: LocalTokens) -> Any:
    return _model(Web(server.listening_address), tokens)


def _model(transport: Web, tokens: LocalTokens) -> Served:
    trial = find(transport, tokens, "")
    return served_model(trial.found("here"), trial.dialect, transport, tokens)


def _answers(served: Any, *asks: Ask) -> list[Any]:
    found = dict(pair for pairs in served.answers(asks) for pair in pairs)
    return [found[ask] for ask in asks]


def test_it_is_found_and_gives_what_the_model_gives_here(served: Any, here: CausalModel) -> None:
    assert served.dialect.name == "llamacpp"
    assert abilities(served) == {"score", "trace", "generate", "sample"}
    assert served.context == 128
    assert_agrees(served, here)


def test_a_servers_own_settings_do_not_show(
    files: tuple[Path, Path], tokens: LocalTokens, here: CausalModel
) -> None:
    def odd(asked: Any) -> None:
        sampling = asked.sampling
        sampling.temp, sampling.top_k, sampling.top_p, sampling.min_p = 3.0, 2, 0.1, 0.5
        sampling.penalty_repeat, sampling.penalty_last_n, sampling.dry_multiplier = 5.0, 64, 3.0
        sampling.penalty_freq, sampling.penalty_present, sampling.mirostat = 2.0, 2.0, 2

    server = started(files[1], slots=2, settings=odd)
    assert_agrees(_model(Web(server.listening_address), tokens), here)


def test_tokens_that_llama_cpp_cannot_be_made_to_write_are_read_all_the_same(
    served: Any, here: CausalModel
) -> None:
    prompts = [score("The capital is ", (*BROKEN, "Paris")), score("", BROKEN, " is large.")]
    theirs, ours = rows(served.score(prompts), prompts), rows(here.score(prompts), prompts)
    assert_same([a.logps for a in theirs], [a.logps for a in ours])
    assert_same([a.suffix_logps for a in theirs], [a.suffix_logps for a in ours])


def test_an_option_is_one_request_and_many_that_begin_alike_share_one(served: Any) -> None:
    served.transport.sent.clear()
    list(served.score([score("The capital of France is ", CITIES)]))
    assert len(served.transport.sent) == len(CITIES)
    served.transport.sent.clear()
    words = [text for text in served.tokens.texts.plain if text and text[0] == " " and text[1:]]
    options = tuple(text[1:] for text in words if text[1:].isalpha())[:40]
    list(served.score([score("The capital of France is ", options)]))
    first, *rest = sorted(served.transport.sent, key=lambda request: len(request.asks[0].ids))
    assert isinstance(first.asks[0], Next) and len(first.asks[0].wanted) == 40
    assert len(rest) < 5


Way = Callable[[list[Text], LlamaCpp], Reading]
WAYS: dict[str, Way] = {
    "whole": whole,
    "nodes": lambda texts, dialect: by_nodes(texts, 3),
    "both": by_both,
}


@pytest.mark.parametrize("name", WAYS)
@given(data=st.data())
def test_every_way_of_reading_covers_what_is_read_and_forces_nothing_else(
    name: str, data: st.DataObject
) -> None:
    # tokens under 5 cannot be forced, and a text parts from another early on
    ids = st.lists(st.integers(0, 12), min_size=2, max_size=9).map(tuple)
    dialect = LlamaCpp(Setting(model="m", pieces=lambda own: [_piece(id) for id in own]))
    texts = []
    for own in data.draw(st.lists(ids, max_size=5)):
        places = data.draw(st.sets(st.integers(1, len(own) - 1), min_size=1))
        texts.append(Text(ids=own, reads=tuple(sorted(places))))
    reading = WAYS[name](texts, dialect)
    requests = dialect.requests(list(reading.owners))
    assert all(request.body["prompt"] for request in requests)
    answers = {ask: _made_up(ask) for ask in reading.owners}
    for text, values in zip(texts, reading.values(answers), strict=True):
        expected = [_logp(text.ids[:place], text.ids[place]) for place in text.reads]
        np.testing.assert_array_equal(values, expected)


def _piece(id: int) -> str | None:
    return None if id < 5 else f" word{id}"


def _logp(ids: tuple[int, ...], token: int) -> float:
    return -float(hash((ids, token)) % 1000) - 1


def _made_up(ask: Any) -> Any:
    if isinstance(ask, Rate):
        places = range(ask.first, len(ask.ids))
        return np.array([_logp(ask.ids[:place], ask.ids[place]) for place in places])
    return np.array([_logp(ask.ids, token) for token in ask.wanted])


def test_both_ways_to_a_token_give_the_very_same_number(served: Any) -> None:
    ids = served.encoder.open("The capital of France is")
    wanted = tuple(id for id in range(300, 340))
    (every,) = _answers(served, Next(ids, wanted))
    asks = [Rate((*ids, id), len(ids)) for id in wanted]
    forced = np.concatenate(_answers(served, *asks))
    np.testing.assert_allclose(every, forced, atol=2e-6)  # the first computes the prompt


def test_draws_follow_the_seed_and_the_models_own_probabilities(served: Any) -> None:
    ids = served.encoder.open("The capital of France is")
    draws = [Draw(ids, 1, 1, "", seed) for seed in range(400)]
    texts = [written.ids[0] for (written,) in _answers(served, *draws)]
    again = [written.ids[0] for (written,) in _answers(served, *draws[:9])]
    assert again == texts[:9]
    (every,) = _answers(served, Next(ids, tuple(range(served.vocabulary))))
    expected = 400 * np.exp(every)
    counts = np.bincount(texts, minlength=served.vocabulary)
    common = expected > 5
    spread = (counts[common] - expected[common]) / np.sqrt(expected[common])
    assert common.sum() > 5 and np.abs(spread).max() < 5
    assert len(set(texts)) > 100  # the tail is there: nothing was cut off


def _without(reply: Any) -> None:
    del reply["completion_probabilities"]


def _first(reply: Any, **changes: Any) -> None:
    reply["completion_probabilities"][0].update(changes)


def _cut(reply: Any) -> None:
    reply["completion_probabilities"].pop()


WRONG: dict[str, tuple[Callable[[Any], None], str]] = {
    "no log-probabilities": (_without, "no completion_probabilities"),
    "one is missing": (_cut, "wrote the tokens"),
    "another token": (lambda reply: _first(reply, id=7), "wrote the tokens"),
    "a log-probability above 0": (lambda reply: _first(reply, logprob=0.5), "0.5 stands where"),
    "NaN": (lambda reply: _first(reply, logprob=float("nan")), "nan stands where"),
    "null": (lambda reply: _first(reply, logprob=None), "None stands where"),
    "probabilities": (lambda reply: _first(reply, logprob=0.25), "0.25 stands where"),
    "chat shape": (lambda reply: reply.clear(), "no tokens_evaluated"),
    "prompt cut": (lambda reply: reply.update(tokens_evaluated=2), "2 tokens where .* it was cut"),
    "BOS added": (lambda reply: reply.update(tokens_evaluated=9), "9 tokens where .* added to"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_reply_that_is_not_what_was_asked_for_ends_in_no_number(name: str, served: Any) -> None:
    change, message = WRONG[name]
    (request,) = served.dialect.requests([Rate((283, 307, 264, 293, 300), 3)])
    reply = deepcopy(_reply(served, request))
    served.dialect.read(request, reply)
    change(reply)
    with pytest.raises(Malformed, match=message):
        served.dialect.read(request, reply)


ODD: tuple[Any, ...] = (
    None,
    3,
    "text",
    [],
    {},
    [None],
    [3],
    {"id": []},
    [{"id": [], "logprob": -1}],
)


@pytest.mark.parametrize("value", ODD, ids=repr)
def test_replies_of_any_shape_end_in_a_sentence(value: Any, served: Any) -> None:
    asks = [Rate((283, 307, 300), 2), Next((283, 307), (300,)), Write((283, 307), 2, "\n")]
    for request in served.dialect.requests([*asks, Draw((283, 307), 1, 2, "", 1)]):
        sound = _reply(served, request)
        named = ("tokens_evaluated", "tokens", "content", "completion_probabilities")
        for reply in (value, *({**sound, name: value} for name in named)):
            with suppress(Malformed):  # and nothing else; not every field is looked at
                served.dialect.read(request, reply)
    assert served.dialect.about({"/props": value, "/v1/models": value}).context is None


def test_probabilities_that_are_not_all_told_or_bent_are_refused(served: Any) -> None:
    (request,) = served.dialect.requests([Next((283, 307), (300, 301))])
    reply = _reply(served, request)
    every = reply["completion_probabilities"][0]["top_logprobs"]
    top = deepcopy(reply)
    top["completion_probabilities"][0]["top_logprobs"] = every[:5]
    with pytest.raises(Malformed, match=r"tells of 5 tokens, and token 30[01] is not among them"):
        served.dialect.read(request, top)
    for each in every:
        each["logprob"] /= 2
    with pytest.raises(Malformed, match="sum to"):
        served.dialect.read(request, reply)


def test_a_text_that_stopped_short_or_went_on_is_refused(served: Any) -> None:
    (request,) = served.dialect.requests([Write((283, 307), 5, "")])
    reply = _reply(served, request)
    with pytest.raises(Malformed, match="stopped after 3 of 5"):
        served.dialect.read(request, reply | {"tokens": reply["tokens"][:3]})
    with pytest.raises(Malformed, match="wrote 6 tokens where 5"):
        served.dialect.read(request, reply | {"tokens": [*reply["tokens"], 300]})


def test_tokens_that_stop_the_server_are_never_sent_to_be_forced(tokens: LocalTokens) -> None:
    dialect = LlamaCpp(Setting(model="m", pieces=tokens.pieces))
    refused = [
        id for id, piece in enumerate(tokens.pieces(tuple(range(380)))) if not can_force(piece)
    ]
    assert {0, 1} < {*refused} and len(refused) > 100  # bytes of other scripts
    for id in refused:
        with pytest.raises(AssertionError):
            dialect.requests([Rate((300, id), 1)])
        assert dialect.divide((300, id), (1,)) == [Next((300,), (id,))]


def _reply(served: Any, request: Any) -> Any:
    [(_, reply)] = served.transport.send([request], lambda _, reply: reply, lambda _: ())
    return reply


def test_a_server_with_slots_is_asked_over_http_in_lanes(
    files: tuple[Path, Path], here: CausalModel
) -> None:
    server = started(files[1], slots=3)
    options = LoadOptions(tokenizer=str(files[0]), concurrency=8)
    model: Any = load(f"server:{server.listening_address}", options)
    assert model.identity.details["dialect"] == "llamacpp"
    assert model.transport.slots == 3  # more at once would only wait
    assert_agrees(model, here)


def test_a_server_that_wants_a_key_gets_it_and_refuses_another(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(asked: Any) -> None:
        asked.api_keys = ["sesame"]

    server = started(files[1], settings=closed)
    reference, options = f"server:{server.listening_address}", LoadOptions(tokenizer=str(files[0]))
    monkeypatch.setenv("SONDE_API_KEY", "sesame")
    model: Any = load(reference, options)
    assert "sesame" not in str(model.identity)
    monkeypatch.setenv("SONDE_API_KEY", "wrong")
    with pytest.raises(EndpointError, match="HTTP 401"):
        load(reference, options)


def test_a_tokenizer_that_is_not_the_servers_is_refused(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    other = tiny.gpt2(tmp_path / "other")
    form = json.loads((other / "tokenizer.json").read_text())
    vocabulary = form["model"]["vocab"]
    turned = {token: id if id < 258 else 258 + 379 - id for token, id in vocabulary.items()}
    form["model"]["vocab"] = turned
    (other / "tokenizer.json").write_text(json.dumps(form))
    server = started(files[1])
    with pytest.raises(ServerError, match="is not the server's"):
        load(f"server:{server.listening_address}", LoadOptions(tokenizer=str(other)))
