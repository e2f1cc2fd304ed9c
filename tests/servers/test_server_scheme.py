"""`server:URL`: a model behind a real server on loopback answers as the same model does here, and
what is wrong with an address, a key, a name or a tokenizer is said in a sentence."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from sonde.core.abilities import abilities, deciding
from sonde.core.errors import (
    AbilityError,
    EndpointError,
    ModelError,
    PromptTooLong,
    ServerError,
    SondeError,
    UsageError,
)
from sonde.models.load import load
from sonde.models.options import LoadOptions
from sonde.models.server import KEY
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.loading.weights import load_folder
from sonde.probes.lama import Lama
from sonde.runs.refusals import suited
from tests import tiny as worlds
from tests.data.loopback import Reply
from tests.servers.agreement import DRAWN, SCORED, assert_agrees, assert_same, rows
from tests.servers.answering import Answering, Face, refusal, serving
from tests.servers.odd_faces import Deaf, Short, Untold
from tests.tiny import score
from tests.worlds import world


@pytest.fixture(scope="module")
def here(folder: Path) -> CausalModel:
    return CausalModel(load_folder("hf:here", folder, LoadOptions(device="cpu"), weights="w"))


HASTY: dict[str, Any] = {"server_backoff": 0.01}


@contextmanager
def served(face: Face, folder: Path, **options: Any) -> Iterator[Any]:
    with serving(face) as address:
        yield load(f"server:{address}/v1", LoadOptions(tokenizer=str(folder), **options))


def refused(face: Face, folder: Path, kind: type[SondeError], **options: Any) -> str:
    """What is said of a server that is refused, with the exit code of its kind."""
    with pytest.raises(kind) as caught, served(face, folder, **options):
        pass
    return str(caught.value)


def test_a_model_behind_a_server_answers_as_it_does_here(
    answering: Answering, folder: Path, here: CausalModel
) -> None:
    with served(Face(answering), folder) as model:
        assert abilities(model) == {"score", "trace", "generate", "sample"}
        assert_agrees(model, here)


WITHOUT_TORCH = """
import sys
from importlib.machinery import PathFinder

from sonde.core.prompts import Key, Prompt, Score
from sonde.models.load import load
from sonde.models.options import LoadOptions


class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        hidden = name.split(".")[0] == "torch"
        return None if hidden else super().find_spec(name, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = Without
model = load(sys.argv[1], LoadOptions(tokenizer=sys.argv[2]))
key = Key(fact="f", relation="r", template="t", subject="s")
asked = Prompt(key=key, prefix="It is ", want=Score(options=("Paris", "Oslo")))
((_, found),) = model.score([asked])
print(len(found), "torch" in sys.modules)
"""


def test_a_served_model_needs_no_torch(answering: Answering, folder: Path) -> None:
    with serving(Face(answering)) as address:
        words = [sys.executable, "-c", WITHOUT_TORCH, f"server:{address}", str(folder)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["1", "False"], done.stderr


def test_several_prompts_go_in_one_request(answering: Answering, folder: Path) -> None:
    face = Face(answering)
    with served(face, folder) as model:
        face.seen.clear()
        prompts = [score("The capital is ", ("Paris", "Oslo", "Par", "York"))] * 3
        list(model.score(prompts))
    sent = [body for path, body in face.seen if path == "/v1/completions"]
    assert max(len(body["prompt"]) for body in sent) == 4  # what is asked thrice is asked once


def test_the_identity_names_server_and_tokenizer_and_no_address(
    answering: Answering, folder: Path
) -> None:
    with served(Face(answering, version="9.9"), folder) as model:
        identity = model.identity
    assert identity.name.endswith(" tiny") and identity.architecture == "server (plain)"
    assert identity.weights.startswith("tiny on plain 9.9, writes ")
    assert len(identity.tokenizer) == 16
    assert identity.details["context"] == "64 tokens"
    assert "not the engine's" in identity.details["sampling"]


def test_another_model_of_the_same_name_is_another(
    answering: Answering, folder: Path, tmp_path: Path
) -> None:
    other = Answering(worlds.gpt2(tmp_path, seed=1), 64)
    found = []
    for each in (answering, other, answering):
        with served(Face(each), folder) as model:
            found.append(asdict(model.identity))
    one, two, again = map(deciding, found)
    assert one == again and {name for name in one if one[name] != two[name]} == {"weights"}


def test_a_key_is_sent_and_never_shown(
    answering: Answering, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, "sesame")
    with served(Face(answering, key="sesame"), folder) as model:
        assert "sesame" not in repr(model.identity) + repr(model)
    monkeypatch.setenv(KEY, "simsim")
    said = refused(Face(answering, key="sesame"), folder, EndpointError)
    assert "HTTP 401" in said and KEY in said and "simsim" not in said


def test_a_proxy_that_shows_only_completions_is_asked_for_them(
    answering: Answering, folder: Path
) -> None:
    def guarded(path: str, body: dict[str, Any], reply: Reply) -> Reply:
        return reply if path.startswith("/v1/") else refusal(403, "Forbidden")

    with served(Face(answering, change=guarded), folder) as model:
        assert model.dialect.name == "plain" and "score" in abilities(model)


def test_a_key_that_is_wanted_for_completions_alone_is_asked_for(
    answering: Answering, folder: Path
) -> None:
    def guarded(path: str, body: dict[str, Any], reply: Reply) -> Reply:
        return refusal(401, "Unauthorized") if body else reply

    said = refused(Face(answering, change=guarded), folder, EndpointError)
    assert "HTTP 401" in said and KEY in said


def test_a_model_that_is_not_served_is_refused(answering: Answering, folder: Path) -> None:
    said = refused(Face(answering), folder, ServerError, served_model="large")
    assert said == "--served-model large: the server has no such model; it has tiny"


class Taking(Face):
    """It takes every name for that of its model."""

    def completions(self, body: dict[str, Any]) -> Any:
        return super().completions({**body, "model": self.served})


def test_a_model_that_is_not_served_is_refused_also_where_every_name_is_taken(
    answering: Answering, folder: Path
) -> None:
    assert "no such model" in refused(Taking(answering), folder, ServerError, served_model="large")


def unlisted(path: str, body: dict[str, Any], reply: Reply) -> Reply:
    """A server that shows no list of models."""
    return refusal(404, "Not Found") if path == "/v1/models" else reply


def test_a_name_that_nothing_confirms_is_told_where_a_server_shows_no_list(
    answering: Answering, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with served(Taking(answering, change=unlisted), folder, served_model="large") as model:
        assert model.identity.details["served name"].startswith("not confirmed: ")
    assert "answers to any name: that it serves 'large' is not known" in caplog.text
    with served(Face(answering, change=unlisted), folder, served_model="tiny") as model:
        assert "served name" not in model.identity.details
    said = refused(Face(answering, change=unlisted), folder, ServerError, served_model="large")
    assert "The model `large` does not exist." in said


def test_a_server_that_is_loading_is_waited_for(answering: Answering, folder: Path) -> None:
    left = count(-6)

    def loading(path: str, body: dict[str, Any], reply: Reply) -> Reply:
        return refusal(503, "Loading model") if next(left) < 0 else reply

    with served(Face(answering, change=loading), folder, **HASTY) as model:
        assert "score" in abilities(model)


def test_a_tokenizer_that_is_not_there_is_told_with_its_flag(answering: Answering) -> None:
    said = refused(Face(answering), Path("/nowhere"), ModelError)
    assert said.startswith("/nowhere is not a folder; give --tokenizer the folder of the model")


def test_a_tokenizer_is_needed(answering: Answering) -> None:
    with serving(Face(answering)) as address, pytest.raises(UsageError, match="needs --tokenizer"):
        load(f"server:{address}", LoadOptions())


def test_what_is_no_address_is_refused() -> None:
    with pytest.raises(UsageError, match="must begin with http"):
        load("server:127.0.0.1:8000", LoadOptions(tokenizer="x"))


def test_another_tokenizer_than_the_servers_is_refused(
    answering: Answering, tmp_path: Path
) -> None:
    """The same tokens under other numbers, so that only what they say tells them apart."""
    worlds.renumbered(worlds.gpt2(tmp_path))
    said = refused(Face(answering), tmp_path, ServerError)
    assert said.startswith(f"the tokenizer {tmp_path} is not the server's: tokens")


def test_a_tokenizer_with_more_tokens_than_the_server_is_refused(
    answering: Answering, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def few(path: str, body: dict[str, Any], reply: Reply) -> Reply:
        prompt = body.get("prompt", [[0]])
        flat = prompt if isinstance(prompt[0], int) else [id for each in prompt for id in each]
        return reply if max(flat) < 340 else refusal(400, "token id is out of vocabulary")

    assert "does not have all of its" in refused(Face(answering, change=few), folder, ServerError)


def test_a_text_that_is_too_long_is_refused_naming_its_fact(
    answering: Answering, folder: Path
) -> None:
    with served(Face(answering), folder) as model, pytest.raises(PromptTooLong, match="fact 'f'"):
        list(model.score([score("Paris is " * 60, ("Paris", "Oslo"))]))


def test_a_server_that_tells_only_what_it_writes_says_so_and_what_it_can_serve(
    answering: Answering, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with served(Deaf(answering), folder) as model:
        assert abilities(model) == {"generate", "sample"}
        assert "cannot score: " in caplog.text
        with pytest.raises(AbilityError) as caught:
            suited(Lama(), model, world())
    said = str(caught.value)
    assert "needs a model that can fill or score; this one can generate, sample" in said
    assert "Why it is not able to score: it returns 1 tokens where" in said
    assert "Probes that it can serve: " in said and "monitor" not in said.split("serve: ")[1]


class Single(Face):
    """It passes over `n`."""

    def completions(self, body: dict[str, Any]) -> Any:
        return super().completions({**body, "n": 1})


def test_a_server_that_draws_one_text_at_a_time_is_asked_so(
    answering: Answering, folder: Path
) -> None:
    with served(Single(answering), folder) as model:
        assert model.dialect.draws == 1 and model.dialect.setting.batch > 1
        (drawn,) = [answer for _, answer in model.sample([DRAWN[0]])]
    assert sum(drawn.counts) == 40


class Unison(Face):
    """It draws all texts of a request from one seed."""

    def draw(self, body: dict[str, Any], number: int) -> Any:
        return super().draw(body, 0)


def test_texts_that_are_all_drawn_from_one_seed_are_asked_for_one_by_one(
    answering: Answering, folder: Path
) -> None:
    with served(Unison(answering), folder) as model:
        assert model.dialect.draws == 1
        (drawn,) = [answer for _, answer in model.sample([DRAWN[0]])]
    assert sum(drawn.counts) == 40 and len(drawn.texts) > 10


def test_an_address_without_a_list_of_models_is_named(answering: Answering, folder: Path) -> None:
    def lost(path: str, body: dict[str, Any], reply: Reply) -> Reply:
        return Reply(body="<html>Welcome</html>")

    said = refused(Face(answering, change=lost), folder, UsageError)
    assert said.startswith("http://127.0.0.1:") and "no list of models (/v1/models)" in said


def test_a_prompt_that_was_cut_is_no_answer(answering: Answering, folder: Path) -> None:
    with (
        served(Short(answering), folder, server_retries=1, **HASTY) as model,
        pytest.raises(EndpointError, match=r"where \d+ were sent"),
    ):
        list(model.score([score("Paris is " * 25, ("Paris", "Oslo"))]))


class Forgetful(Deaf):
    """It keeps the last three tokens of a prompt and says that it read all of them."""

    def completions(self, body: dict[str, Any]) -> Any:
        (prompt,) = [self.answering.ids(body["prompt"])]
        cut = [ids[-3:] for ids in prompt] if isinstance(prompt[0], list) else prompt[-3:]
        usage = {"prompt_tokens": len(prompt)}
        return {**super().completions({**body, "prompt": cut}), "usage": usage}


def test_a_server_that_writes_after_a_cut_prompt_is_found_out(
    answering: Answering, folder: Path
) -> None:
    with served(Forgetful(answering), folder) as model:
        assert "generate" not in abilities(model)
        assert "it is cut" in model.lacks()["generate"]


def test_a_server_that_does_not_tell_how_much_it_read_is_not_let_write(
    answering: Answering, folder: Path
) -> None:
    said = refused(Untold(answering), folder, ServerError)
    assert "does not say in usage.prompt_tokens how many tokens it read (found: None)" in said


class Echo(Face):
    """It tells the log-probabilities of a prompt, and none of what it writes."""

    def choice(self, index: int, ids: list[int], body: dict[str, Any], number: int) -> Any:
        found = super().choice(index, ids, body, number)
        return found if body.get("echo") else {**found, "logprobs": None}


def test_numbers_that_nothing_confirms_are_not_taken(answering: Answering, folder: Path) -> None:
    with served(Echo(answering), folder) as model:
        assert abilities(model) == {"sample"}
        assert "nothing confirms them" in model.lacks()["score"]
        assert "not held against log-probabilities" in model.identity.details["sampling"]


class Vague(Face):
    """Scaled numbers of a prompt, and parts of characters for all that it writes."""

    def choice(self, index: int, ids: list[int], body: dict[str, Any], number: int) -> Any:
        found = super().choice(index, ids, body, number)
        told = found["logprobs"] or {}
        if body.get("echo"):
            values = told["token_logprobs"]
            told["token_logprobs"] = [None, *(2 * value for value in values[1:])]
        elif told:
            told["tokens"] = ["\ufffd"] * len(told["tokens"])
        return found


def test_what_is_written_in_tokens_that_say_nothing_confirms_no_numbers(
    answering: Answering, folder: Path
) -> None:
    with served(Vague(answering), folder) as model:
        assert "score" not in abilities(model)
        assert "nothing confirms them" in model.lacks()["score"]


def test_texts_that_several_tokens_may_have_confirm_numbers_where_one_of_them_fits(
    answering: Answering, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sonde.models.served.forcing.Tests._ids", lambda self, pieces: ())
    with served(Face(answering), folder) as model:
        assert abilities(model) == {"score", "trace", "generate", "sample"}


class Stripped(Face):
    """It tells the texts of tokens without the spaces before them, as many decoders do."""

    def logprobs(self, tokens: list[int], values: list[float | None]) -> Any:
        told = super().logprobs(tokens, values)
        return {**told, "tokens": [piece.lstrip(" ") or piece for piece in told["tokens"]]}


def test_words_that_are_told_without_their_spaces_are_taken(
    answering: Answering, folder: Path, here: CausalModel
) -> None:
    with served(Stripped(answering), folder) as model:
        assert not model.dialect.setting.spaced
        found, ours = (rows(each.score(SCORED), SCORED) for each in (model, here))
    assert_same([a.logps for a in found], [a.logps for a in ours])


class Spaceless(Stripped):
    """It reads every word of a prompt as if no space stood before it."""

    def completions(self, body: dict[str, Any]) -> Any:
        texts = self.answering.tokenizer.convert_ids_to_tokens(range(380))
        known = {text: id for id, text in enumerate(texts)}
        joined = {id: known.get(text.lstrip("Ġ"), id) for text, id in known.items()}
        single = isinstance(body["prompt"][0], int)
        prompts = [
            [joined[id] for id in ids] for ids in ([body["prompt"]] if single else body["prompt"])
        ]
        return super().completions({**body, "prompt": prompts[0] if single else prompts})


def test_a_server_that_loses_spaces_is_refused(answering: Answering, folder: Path) -> None:
    said = refused(Spaceless(answering), folder, ServerError)
    assert said.startswith("the server loses the spaces before words: ' ")


def test_a_space_that_is_lost_later_is_noticed(answering: Answering, folder: Path) -> None:
    asked = [score("The capital is ", ("Paris", "Oslo"))]
    face = Face(answering)
    with served(face, folder, server_retries=1, **HASTY) as model:
        assert model.dialect.setting.spaced
        face.change = stripped
        with pytest.raises(
            EndpointError, match=r"returns '\w+' for token \d+, which is ' \w+' here"
        ):
            list(model.score(asked))


def stripped(path: str, body: dict[str, Any], reply: Reply) -> Reply:
    """A reply whose words have lost their spaces."""
    return replace(reply, body=str(reply.body).replace('" ', '"'))


def test_a_server_that_answers_501_to_what_it_does_not_know_is_asked_what_it_does(
    answering: Answering, folder: Path
) -> None:
    def unknown(path: str, body: dict[str, Any], reply: Reply) -> Reply:
        return refusal(501, "Not Implemented") if reply.status == 404 else reply

    with served(Face(answering, change=unknown), folder) as model:
        assert model.dialect.name == "plain" and "score" in abilities(model)


def test_an_address_that_takes_connections_and_never_answers_is_told_soon(
    answering: Answering, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever an answer may take later, here ten minutes."""
    monkeypatch.setattr("sonde.http.client.KNOCK", 0.05)
    monkeypatch.setattr("sonde.models.server.LOADING", 0.1)

    def silent(path: str, body: dict[str, Any], reply: Reply) -> Reply:
        return Reply(body="", hang=True)

    said = refused(Face(answering, change=silent), folder, EndpointError, **HASTY)
    assert "gave no answer in 0.05 s, and was not back in 0.1 s; check the address" in said


def test_a_list_of_models_that_never_comes_is_told_soon(
    answering: Answering, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sonde.http.client.LOOK", 0.05)

    def silent(path: str, body: dict[str, Any], reply: Reply) -> Reply:
        return Reply(body="", hang=True) if path == "/v1/models" else reply

    said = refused(Face(answering, change=silent), folder, EndpointError, **HASTY)
    assert "gave no answer in 0.05 s (given up after 3 tries); check the address" in said
