"""A tokenizer that is not the server's is refused, also where the server spells no tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sonde.core.abilities import abilities
from sonde.core.errors import ServerError
from sonde.models.load import load
from sonde.models.options import LoadOptions
from tests import tiny as worlds
from tests.data.loopback import Reply
from tests.servers.answering import Answering, Body, Face, refusal, serving
from tests.servers.odd_faces import Deaf, Silent
from tests.servers.vllm_face import VllmFace


@pytest.fixture(scope="module")
def renumbered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same tokens under other numbers."""
    return worlds.renumbered(worlds.gpt2(tmp_path_factory.mktemp("renumbered")))


def proxied(path: str, body: Body, reply: Reply) -> Reply:
    """A proxy that shows only what begins with /v1."""
    return reply if path.startswith("/v1/") else refusal(404, "Not Found")


class Textless(VllmFace):
    """Its tokens have no texts, of what it wrote either."""

    def choice(self, index: int, ids: list[int], body: Body, number: int) -> Any:
        return {**super().choice(index, ids, body, number), "text": ""}


ALL = {"score", "trace", "generate", "sample"}

SERVERS: Mapping[str, tuple[type[Face], set[str], str]] = {
    "vLLM behind a proxy": (VllmFace, ALL, r"\d+ written tokens that read alike"),
    "vLLM that tells no texts": (
        Textless,
        ALL - {"sample"},
        r"a text of \d+ tokens that is answered as",
    ),
    "only writes": (Deaf, {"generate", "sample"}, r"a text of \d+ tokens that is answered as"),
    "only draws": (Silent, {"sample"}, r"a text of \d+ tokens that is answered as"),
}
"""What spells no tokens: what it can do, and by what its tokenizer is known."""


@pytest.mark.parametrize("name", SERVERS)
def test_the_right_tokenizer_is_known_where_no_token_is_spelled(
    answering: Answering, folder: Path, name: str
) -> None:
    kind, can, told = SERVERS[name]
    with serving(kind(answering, change=proxied)) as address:
        model = load(f"server:{address}", LoadOptions(tokenizer=str(folder)))
    assert abilities(model) == can
    assert re.match(told, model.identity.details["tokenizer checked by"])


@pytest.mark.parametrize("name", SERVERS)
def test_another_tokenizer_is_refused_where_no_token_is_spelled(
    answering: Answering, renumbered: Path, name: str
) -> None:
    with (
        serving(SERVERS[name][0](answering, change=proxied)) as address,
        pytest.raises(ServerError) as caught,
    ):
        load(f"server:{address}", LoadOptions(tokenizer=str(renumbered)))
    told = f"the tokenizer {renumbered} is not (known to be )?the server's"
    assert re.match(told, str(caught.value)), str(caught.value)
    assert str(caught.value).endswith("give --tokenizer the folder of the model that is served")


def test_a_server_that_says_in_no_way_what_its_tokens_are_is_refused(
    answering: Answering, folder: Path
) -> None:
    def no_texts(path: str, body: Body, reply: Reply) -> Reply:
        texts = isinstance(body.get("prompt"), str)
        return refusal(400, "prompts are token ids here") if texts else reply

    with (
        serving(Deaf(answering, change=no_texts)) as address,
        pytest.raises(ServerError, match=r"is not known to be .*prompts are token ids here"),
    ):
        load(f"server:{address}", LoadOptions(tokenizer=str(folder)))
