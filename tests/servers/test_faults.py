"""Every fault of a server is survived with the same answers or refused in a sentence: no fault ends
in a number. Real HTTP on loopback; llama.cpp's is its own server behind one that spoils replies.

Where a fault is tried, if not by its name in `WRONG` (every dialect, from the beginning and later):

transport       `PASSING`, `test_an_answer_that_does_not_come_to_an_end_is_given_up`; of any server,
                tests/http/test_server.py; refused, another model or tokenizer: test_lost_server.py
prompt cut      test_server_scheme.py: more than is told, told wrongly, not told, spaces lost
a wrong model   accepted: test_server_scheme.py
noise, a temperature in all numbers     test_certified_servers.py: no broken server, other numerics
a tokenizer     that is not the server's, however little it tells: test_tokenizers.py
bad input       test_server_scheme.py: address, key, name, tokenizer, a text that is too long; their
                exit codes, and that nothing is left: tests/cli/test_server_command.py
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from sonde.core.abilities import abilities
from sonde.core.errors import ModelError
from sonde.core.prompts import Generate, Sample
from sonde.models.load import load
from sonde.models.options import LoadOptions
from sonde.models.served import tokens
from sonde.models.served.model import served_model
from tests import tiny as worlds
from tests.data.loopback import Reply, Request, listening
from tests.servers.agreement import NEAR, TRACED, rows, write
from tests.servers.answering import Answering, Face, answer, refusal
from tests.servers.faulty import (
    PASSING,
    WRONG,
    Fault,
    Faulty,
    always,
    at_first,
    busy,
    drawn_as,
    edited,
    ignoring,
    numbers,
    serving,
)
from tests.servers.sglang_face import SglangFace
from tests.servers.vllm_face import VllmFace
from tests.tiny import CITIES, score

FACES: Mapping[str, Callable[[Answering], Face]] = {
    "plain": Face,
    "vllm": VllmFace,
    "sglang": SglangFace,
}
DIALECTS = [*FACES, "llamacpp"]

LONG = "The capital of France is Paris. The capital of Norway is Oslo, and Vienna that of Austria. "
ASKED = {
    "score": [score("The capital of France is ", CITIES)],
    "tree": [score(LONG + "It is ", CITIES)],  # long enough to be asked along the options' tree
    "trace": TRACED,
    "generate": [
        write(f"The capital of {name} is", Generate(most=6))
        for name in ("France", "Norway", "Oslo")
    ],
    "sample": [write("The capital is", Sample(count=3, most=3))],
}


HASTY: dict[str, Any] = {"server_retries": 2, "server_backoff": 0.001}


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "read_tokens", cache(tokens.read_tokens))


@dataclass(frozen=True)
class World:
    """What answers in a dialect, its tokenizer's folder, a model behind it, its sound answers."""

    behind: Callable[[], Face | str]
    folder: Path
    server: Faulty
    model: Any
    sound: Mapping[str, Any]


@pytest.fixture(scope="module")
def made_worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], World]]:
    """Makes the world of a dialect once."""
    with ExitStack() as stack:

        @cache
        def world_of(dialect: str) -> World:
            behind, folder = made(dialect, tmp_path_factory.mktemp(dialect))
            server = Faulty(behind())
            address = stack.enter_context(serving(server))
            model: Any = load(f"server:{address}", LoadOptions(tokenizer=str(folder), **HASTY))
            assert model.dialect.name == dialect
            assert abilities(model) == {"score", "trace", "generate", "sample"}
            sound = {kind: answers(model, kind) for kind in ASKED}
            return World(behind, folder, server, model, sound)

        yield world_of


@pytest.fixture
def world(
    request: pytest.FixtureRequest, made_worlds: Callable[[str], World], _impatient: None
) -> World:
    return made_worlds(request.param)


def made(dialect: str, folder: Path) -> tuple[Callable[[], Face | str], Path]:
    """What answers in a dialect, anew each time, and the folder of its tokenizer."""
    if dialect == "llamacpp":
        from tests.servers.llama import started, write_model

        plain, gguf = write_model(folder)
        real = started(gguf)
        return lambda: str(real.listening_address), plain
    answering = Answering(worlds.gpt2(folder), 64)
    return lambda: FACES[dialect](answering), folder


def answers(model: Any, kind: str) -> Any:
    """What a model answers, as plain values; of draws, how many there are."""
    match kind:
        case "score" | "tree":
            (found,) = rows(model.score(ASKED[kind]), ASKED[kind])
            return [float(value) for logps in found.logps for value in logps]
        case "trace":
            read = rows(model.trace(ASKED[kind]), ASKED[kind])
            return [float(value) for each in read for logps in each.logps for value in logps]
        case "generate":
            written = rows(model.generate(ASKED[kind]), ASKED[kind])
            return [part for each in written for part in (each.text, *each.logps)]
    (found,) = rows(model.sample(ASKED[kind]), ASKED[kind])
    return [sum(found.counts)]


def assert_same(found: list[Any], sound: list[Any]) -> None:
    """The same answers; a number that differs is the worst that can happen."""
    assert len(found) == len(sound)
    for one, other in zip(found, sound, strict=True):
        assert one == other if isinstance(one, str) else abs(one - other) < NEAR


def told(world: World, fault: Fault, kind: str) -> str:
    """What is said of a fault that a server has got since it was loaded; nothing if survived."""
    world.server.fault = fault
    try:
        assert_same(answers(world.model, kind), world.sound[kind])
    except ModelError as error:  # whose exit code is 4
        return str(error)
    finally:
        world.server.fault = None
    return ""


@contextmanager
def loaded(world: World, fault: Fault, **options: Any) -> Iterator[Any]:
    """A model behind a server that was faulty from the beginning."""
    with serving(Faulty(world.behind(), fault, world.server.heard)) as address:
        how = LoadOptions(tokenizer=str(world.folder), **{**HASTY, **options})
        yield load(f"server:{address}", how)


def told_at_once(world: World, fault: Fault) -> str:
    """What is said of a server that was faulty from the beginning: by its refusal, or of what it
    cannot do; nothing if it can do all. Whatever it can do gives the same answers."""
    try:
        with loaded(world, fault) as model:
            can = abilities(model) | ({"tree"} if "score" in abilities(model) else set())
            for kind in ASKED:
                if kind in can:
                    assert_same(answers(model, kind), world.sound[kind])
            return " ".join(model.found.why.values())
    except ModelError as error:  # whose exit code is 4
        return str(error)


NO_NUMBER = "stands where a log-probability belongs"
OTHER = "another model has come up"
COUNT = "prompt has|answers the prompt|returns .* (tokens where|for token)|reads the tokens"

SAID: Mapping[str, str] = {
    "log-probabilities absent": "has no|does not answer|gives no log-prob",
    "null": f"None {NO_NUMBER}",
    "texts": f"'-[0-9.]+' {NO_NUMBER}",
    "NaN": f"nan {NO_NUMBER}",
    "-inf": f"-inf {NO_NUMBER}",
    "positive": f"[0-9.]+ {NO_NUMBER}",
    "probabilities": f"0\\.[0-9]+ {NO_NUMBER}",
    "all the same": f"-2.500, -2.500.*{OTHER}|same log-prob|add up|sum to",
    "masked": f"0.000, 0.000.*{OTHER}|same log-prob|add up|sum to|together more than all",
    "chat shape": "has no (logprobs.to|text)",
    "shifted by one": f"{OTHER}|None stands|different tokens in one place the same",
    "shifted back": f"{OTHER}|belong to other tokens",
    "one row for all places": f"{OTHER}|cannot be trusted",
    "temperature in the prompt's": f"{OTHER}|cannot be trusted",
    "nodes one place before": f"{OTHER}|cannot be trusted",
    "nodes rotated": f"{OTHER}|depend on what else is asked|cannot be trusted",
    "nodes masked": f"{OTHER}|same log-prob|cannot be trusted|another is likelier",
    "nodes at a temperature": f"{OTHER}|cannot be trusted",
    "one node for all": f"{OTHER}|another is likelier",
    "a temperature in what is written": f"{OTHER}|cannot be trusted",
    "temperature ignored": "where another is likelier",
    "beginning added": COUNT,
    "tokenised anew": COUNT,
    "prompt truncated": COUNT,
    "fewer answers": "choices where|no list of",
    "one number for all answers": "have the indexes",
    "one answer for all": f"{COUNT}|{OTHER}",
    "answers swapped": f"{COUNT}|{OTHER}",
    "answers in another order": COUNT,
    "top only": "has no|says nothing of|tells of 1 tokens|sum to",
    "echo ignored": "has no prompt_logprobs|returns 1 tokens where",
    "unknown fields ignored": "has no",
    "the list of ids ignored": "has no",
    "n ignored": "1 choices where",
    "keys that are texts": r"has no .*token_id:|wrote the tokens .* and rates",
    "a token more": r"(wrote|returns) (\d+|the) tokens .*where",
}
"""What is said of each fault, whichever dialect it is in."""

SEVERAL = {"fewer answers", "one number for all answers", "one answer for all"} | {
    "answers swapped",
    "answers in another order",
}
TEXTS = "keys that are texts"
FEW = {"one node for all"}
NODES = {"nodes one place before", "nodes rotated", "nodes masked", "nodes at a temperature"} | FEW
READ = {"shifted by one", "shifted back", "one row for all places", "temperature in the prompt's"}

FOREIGN: Mapping[str, set[str]] = {
    "plain": {"top only", "unknown fields ignored", "the list of ids ignored", TEXTS} | NODES,
    "vllm": set(),
    "sglang": {"chat shape", "echo ignored", "n ignored", "one number for all answers", TEXTS}
    | FEW,
    "llamacpp": {"chat shape", "echo ignored", "n ignored", "the list of ids ignored", TEXTS}
    | {"nodes one place before", "nodes masked"}  # it is real, and tells of a whole vocabulary
    | FEW
    | SEVERAL
    | READ,
}
"""Faults that a dialect's servers cannot have."""

SURVIVES: Mapping[str, set[str]] = {
    "answers in another order": {"plain", "vllm"},  # whose answers have numbers
}
"""Dialects to which a fault does nothing."""


PAIRS = [(dialect, name) for dialect in DIALECTS for name in SAID if name not in FOREIGN[dialect]]
"""Each dialect with each fault that its servers can have."""


@pytest.mark.parametrize(("world", "name"), PAIRS, indirect=["world"])
def test_a_reply_that_goes_wrong_later_is_refused(world: World, name: str) -> None:
    """Or survived by what does not meet it: each kind of question is asked by itself."""
    said = {kind: told(world, WRONG[name], kind) for kind in ASKED}
    assert all(re.search(SAID[name], each) for each in said.values() if each), said
    survives = world.model.dialect.name in SURVIVES.get(name, ())
    assert any(said.values()) != survives, said


AT_ONCE: Mapping[str, str] = {
    **SAID,
    "all the same": "same log-probabilities",
    "masked": "same log-probabilities",
    "fewer answers": "0 choices where|no list of 1",
    "n ignored": "1 choices where 8 were asked for|^$",
    TEXTS: "returns 1 tokens where",  # asked as any server is, which tells nothing of prompts
    "one answer for all": "draws .* 8 times out of 8|^$",
    "tokenised anew": f"{COUNT}|not the server's",
}
"""What is said of a server that was so from the beginning."""

GOES_ROUND = SEVERAL | FEW | {"top only", "the list of ids ignored", "echo ignored"}
"""Faults that another way of asking does not meet: one prompt a request, another kind of ask."""


@pytest.mark.parametrize(("world", "name"), PAIRS, indirect=["world"])
def test_a_server_that_was_wrong_from_the_beginning_is_found_out(world: World, name: str) -> None:
    said = told_at_once(world, WRONG[name])
    assert re.search(AT_ONCE[name], said) or (not said and name in GOES_ROUND), said


@pytest.mark.parametrize("world", ["plain"], indirect=True)
@pytest.mark.parametrize("name", PASSING)
def test_what_passes_is_survived(world: World, name: str) -> None:
    assert told(world, at_first(2, PASSING[name]), "score") == ""


FOR_EVER: Mapping[str, str] = {
    "reset in mid-body": "cannot be reached: ",
    "cut short": "cannot be reached: peer closed connection",
    "truncated JSON": "gave no JSON but '{",
    "HTML from a proxy": "gave no JSON but '<html>",
    "503 while loading": "HTTP 503: Loading model",
    "429, seconds": "HTTP 429: Too many requests",
    "429, a date": "HTTP 429: Too many requests",
    "429, nothing": "HTTP 429: Too many requests",
    "408": "HTTP 408: Request Timeout",
    "500": "HTTP 500: CUDA error",
    "502": "HTTP 502: <html>",
    "504": "HTTP 504: <html>",
    "200 with an error": "engine died",
    "200 with nothing": "gave no JSON but ''",
}


@pytest.mark.parametrize("world", ["plain"], indirect=True)
@pytest.mark.parametrize("name", FOR_EVER)
def test_what_does_not_pass_is_told_with_what_to_do(world: World, name: str) -> None:
    said = told(world, always(PASSING[name]), "score")
    assert FOR_EVER[name] in said and "(given up after 3 tries)" in said, said
    assert said.endswith("run the same command again once it answers: what is finished is kept")


@pytest.mark.parametrize("world", ["plain"], indirect=True)
def test_a_wait_beyond_all_patience_is_told_at_once(world: World) -> None:
    for wait in ("86400", "Fri, 31 Dec 9999 23:59:59 GMT"):
        said = told(world, always(busy(wait)), "score")
        assert re.search(r"HTTP 429: Too many requests and asks to wait [0-9,]+ s", said), said


@pytest.mark.parametrize("world", ["plain"], indirect=True)
@pytest.mark.parametrize("way", ["hang", "stall", "drip"])
def test_an_answer_that_does_not_come_to_an_end_is_given_up(world: World, way: str) -> None:
    silent: Any = {"drip": 0.05} if way == "drip" else {way: True}
    server = Faulty(world.behind())
    with serving(server) as address:
        options = LoadOptions(tokenizer=str(world.folder), server_timeout=5.0, server_retries=0)
        model: Any = load(f"server:{address}", options)
        model.transport.server._client._address = replace(
            model.transport.server.address, timeout=0.2
        )
        server.fault = always(Reply(body=" " * 1000, **silent))
        with pytest.raises(ModelError, match=r"gave no answer in 0.2 s \(given up after one try\)"):
            answers(model, "score")


CUT_OFF = {
    "plain": ("finish_reason", "abort"),
    "vllm": ("finish_reason", "abort"),
    "sglang": ("finish_reason", {"type": "abort"}),
    "llamacpp": ("stop_type", "none"),
}
"""How each server says that it gave up a text."""


@pytest.mark.parametrize("world", DIALECTS, indirect=True)
@pytest.mark.parametrize("kind", ["generate", "sample"])
def test_a_text_that_was_given_up_is_no_answer(world: World, kind: str) -> None:
    name, reason = CUT_OFF[world.model.dialect.name]

    def given_up(value: Any) -> None:
        every = value if isinstance(value, list) else value.get("choices", [value])
        for each in every:
            each.get("meta_info", each)[name] = reason

    said = told(world, edited(given_up), kind)
    assert re.search("gave up a text|without an end|ended by", said), said


@pytest.mark.parametrize("world", ["vllm"], indirect=True)
def test_a_batch_refused_for_one_member_names_its_prompt(world: World) -> None:
    behind: Any = world.behind()
    (bad,) = behind.answering.tokenizer(" Vienna").input_ids

    def taken(body: Any, sound: Reply) -> Reply:
        member = any(bad in ids for ids in body["prompt"])
        return refusal(400, "token not allowed") if member else sound

    prompts = [
        replace(prompt, key=replace(prompt.key, fact=name))
        for name in ("France", "Vienna", "Norway", "Oslo", "Paris")
        for prompt in [write(f"The capital of {name} is", Generate(most=6))]
    ]
    world.server.fault = Fault(said=taken)
    try:
        with pytest.raises(ModelError, match=r"fact 'Vienna'.* HTTP 400: token not allowed"):
            list(world.model.generate(prompts))
    finally:
        world.server.fault = None


@pytest.mark.parametrize("world", ["vllm"], indirect=True)
@pytest.mark.parametrize("most", [1, 3])
def test_a_server_that_takes_fewer_prompts_at_once_is_sent_fewer(world: World, most: int) -> None:
    def taken(body: Any, sound: Reply) -> Reply:
        return refusal(400, "too many prompts") if len(body["prompt"]) > most else sound

    assert told(world, Fault(said=taken), "score") == ""


@pytest.mark.parametrize("world", ["vllm"], indirect=True)
def test_a_shorter_list_of_ids_than_known_is_told(world: World) -> None:
    def taken(body: Any, sound: Reply) -> Reply:
        many = len(body.get("logprob_token_ids", ())) > 1
        return refusal(400, "at most 1 token ids") if many else sound

    said = told(world, Fault(said=taken), "tree")
    assert said == "" or "at most 1 token ids" in said


@pytest.mark.parametrize("world", ["vllm"], indirect=True)
def test_more_options_than_a_list_of_ids_holds_are_asked_for_in_parts(world: World) -> None:
    pieces = {
        text.strip() for text in world.model.tokens.texts.plain if text and text.isprintable()
    }
    prompts = [score(LONG + "It is ", tuple(sorted(pieces - {""})))]
    (nodes,), sent = rows(world.model.score(prompts), prompts), world.server.behind.seen  # type: ignore[union-attr]
    lists = [body["logprob_token_ids"] for _, body in sent if "logprob_token_ids" in body]
    assert max(map(len, lists)) == 128 < len(pieces)
    texts = replace(world.model.found, can=frozenset({"rate"}))
    alone = served_model(texts, world.model.dialect, world.model.transport, world.model.tokens)
    (whole,) = rows(alone.score(prompts), prompts)  # type: ignore[attr-defined]
    assert nodes.options == whole.options
    assert_same([x for row in nodes.logps for x in row], [x for row in whole.logps for x in row])


OWN_WAYS = {"llama-server's": (0.8, 40), "cold": (0.4, 380), "a few": (1.0, 60)}
"""A temperature, and how many of the likeliest tokens are drawn from."""


@pytest.mark.parametrize("world", ["plain", "vllm", "sglang"], indirect=True)
@pytest.mark.parametrize("way", OWN_WAYS)
def test_a_server_that_draws_in_a_way_of_its_own_is_not_let_draw(world: World, way: str) -> None:
    """Its log-probabilities are sound, and so is every reply by itself."""
    with loaded(world, drawn_as(*OWN_WAYS[way])) as model:
        assert abilities(model) == {"score", "trace", "generate"}
        assert "draws other tokens than" in model.lacks()["sample"]


@pytest.mark.parametrize("world", ["llamacpp"], indirect=True)
def test_draws_of_llamacpp_by_its_own_defaults_are_found_out(world: World) -> None:
    fields = ("samplers", "temperature", "top_k", "top_p", "min_p")

    def taken(body: Any) -> Any:
        draws = body.get("temperature") == 1.0
        return ignoring(*fields).taken(body) if draws else body

    with loaded(world, Fault(taken=taken)) as model:
        assert abilities(model) == {"score", "trace", "generate"}
        assert "draws other tokens than" in model.lacks()["sample"]


@pytest.mark.parametrize("world", DIALECTS, indirect=True)
def test_draws_that_were_held_against_their_probabilities_are_in_the_manifest(world: World) -> None:
    assert "as its log-probabilities say" in world.model.identity.details["sampling"]


@pytest.mark.parametrize("world", ["plain", "vllm", "sglang"], indirect=True)
def test_a_seed_that_is_not_heeded_is_in_the_manifest(world: World) -> None:
    with loaded(world, WRONG["seed ignored"]) as model:
        assert "does not heed its seed" in model.identity.details["sampling"]
    assert "does not heed" not in world.model.identity.details["sampling"]


@pytest.mark.parametrize("world", ["plain"], indirect=True)
def test_what_is_written_without_its_end_is_read(world: World) -> None:
    """The stop token missing: a server that tells nothing of the token that ended a text."""

    def cut(value: Any) -> None:
        for each in value["choices"]:
            if each["finish_reason"] == "stop":
                for name in ("tokens", "token_logprobs"):
                    each["logprobs"][name].pop()

    assert told(world, edited(cut), "generate") == ""


@pytest.mark.parametrize("world", ["plain"], indirect=True)
def test_numbers_that_move_with_load_are_within_what_trials_allow(world: World) -> None:
    """Noise of 4e-3 is other numerics, which a certificate tells; it is no broken server."""
    noise = count()
    moved = numbers(lambda value: min(value + 4e-3 * (next(noise) % 3 - 1), 0.0))
    with loaded(world, moved) as model:
        assert abilities(model) == {"score", "trace", "generate", "sample"}
        found, sound = answers(model, "score"), world.sound["score"]
        assert 1e-3 < max(abs(a - b) for a, b in zip(found, sound, strict=True)) < 5e-3


STRANGE: Mapping[str, Any] = {
    "usage a list": lambda value: value | {"usage": [1, 2]},
    "usage a text": lambda value: value | {"usage": "much"},
    "a number": lambda value: 7,
    "a list of texts": lambda value: ["a"],
    "choices null": lambda value: {"choices": None},
    "choices of texts": lambda value: {"choices": ["a"] * len(value["choices"])},
    "logprobs a text": lambda value: {
        "choices": [each | {"logprobs": "none"} for each in value["choices"]]
    },
}


@pytest.mark.parametrize("world", ["plain", "vllm"], indirect=True)
@pytest.mark.parametrize("name", STRANGE)
def test_json_of_a_strange_form_ends_in_a_sentence(world: World, name: str) -> None:
    def said(body: Any, sound: Reply) -> Reply:
        return replace(sound, body=json.dumps(STRANGE[name](json.loads(sound.body))))

    text = told(world, Fault(said=said), "score")
    assert "cannot be taken" in text or "of a form" in text or (name.startswith("usage")), text


@pytest.mark.parametrize("world", ["plain", "vllm"], indirect=True)
@pytest.mark.parametrize(
    ("path", "strange"),
    [
        ("/v1/models", {"data": None}),
        ("/v1/models", {"data": ["a"]}),
        ("/v1/models", ["a"]),
        ("/version", "1.0"),
        ("/version", [1]),
    ],
)
def test_what_a_server_strangely_says_of_itself_says_nothing(
    world: World, path: str, strange: Any
) -> None:
    behind = world.behind()

    def reply(request: Request) -> Reply:
        sound = answer(behind, request)  # type: ignore[arg-type]
        return replace(sound, body=json.dumps(strange)) if request.path == path else sound

    with listening(reply) as address:
        options = LoadOptions(tokenizer=str(world.folder), served_model="tiny")
        model = load(f"server:{address}", options)
        assert_same(answers(model, "score"), world.sound["score"])
