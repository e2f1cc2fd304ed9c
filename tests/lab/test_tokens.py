"""The tokenizer of a world: one token a word, nothing lost, and at home in the engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer

from sonde.core.errors import ModelError
from sonde.engine.encode import CausalEncoder, Start
from sonde.engine.masked_batch import MaskedEncoder
from sonde.engine.seams import has_seams
from sonde.lab.training.corpus import check_tokenizer, cut_words, make_tokenizer
from sonde.lab.training.train import Kind
from sonde.lab.worlds.text import documents
from sonde.lab.worlds.world import World, make_world

from .worlds import small

KINDS: tuple[Kind, Kind] = ("causal", "masked")


@pytest.fixture(scope="module")
def world() -> World:
    return make_world(small())


@pytest.fixture(scope="module")
def causal(world: World) -> Tokenizer:
    return make_tokenizer(world.words(), "causal")


@pytest.fixture(scope="module")
def masked(world: World) -> Tokenizer:
    return make_tokenizer(world.words(), "masked")


def pieces(tokenizer: Tokenizer, text: str) -> list[str]:
    return tokenizer.encode(text, add_special_tokens=False).tokens


@pytest.mark.parametrize("kind", KINDS)
def test_a_word_of_the_world_is_one_token(world: World, kind: Kind) -> None:
    assert not list(cut_words(make_tokenizer(world.words(), kind), world.words()))


def test_a_text_has_a_token_for_each_word_and_mark_and_is_given_back(
    world: World, causal: Tokenizer
) -> None:
    known = set(world.words())
    for document in documents(world, lists=0.6):
        causal.encode_special_tokens = True
        found = causal.encode(document.text)
        words = {token.removeprefix("▁") for token in found.tokens[1:]}
        assert words <= known, words - known
        assert causal.decode(found.ids) == document.text


@pytest.mark.parametrize("text", ["Zürich (京), tab\there", "a  b\n\n c", "x_y-z!", "⟦P:1⟧ it"])
def test_what_the_world_does_not_know_is_not_lost(causal: Tokenizer, text: str) -> None:
    found = causal.encode(text)
    assert "<unk>" not in found.tokens
    assert causal.decode(found.ids) == text


def test_the_first_word_of_a_line_is_the_same_token_as_behind_a_space(
    world: World, causal: Tokenizer
) -> None:
    name = next(iter(world.facts.values())).subject.names[1]
    assert pieces(causal, f"{name} {name}\n{name}\n") == [f"▁{name}"] * 2 + [
        "\n",
        f"▁{name}",
        "\n",
    ]


def test_a_space_before_a_closing_mark_says_nothing(causal: Tokenizer) -> None:
    assert pieces(causal, "The is .") == pieces(causal, "The is.")


def test_a_hole_stands_where_its_word_would(world: World, masked: Tokenizer) -> None:
    word = (world.dataset.vocabulary or ())[0]
    encoder = MaskedEncoder(masked, "[MASK]")
    hole = encoder.masked([("The is ", ", they say.")])[0]
    whole = masked.encode(f"The is {word}, they say.").ids
    filled = encoder.single_tokens([word], "The is ")[word]
    assert [filled if id == encoder.mask_id else id for id in hole.ids] == whole


def test_options_are_cut_off_at_the_seam(world: World, causal: Tokenizer) -> None:
    assert has_seams(causal)
    options = tuple((world.dataset.vocabulary or ())[:3])
    encoder = CausalEncoder(causal, Start(id=causal.token_to_id("<s>"), always=True))
    found = encoder.branch("Q: The is\nA: ", options, "")
    assert [len(span.ids) for span in found.spans] == [1, 1, 1]
    assert found.head == tuple(causal.encode("Q: The is\nA:").ids)


def test_a_tokenizer_that_cuts_a_word_is_refused_by_the_first_such_word(
    world: World, tmp_path: Path
) -> None:
    words = world.words()
    lost = next(word for word in words if word in (world.dataset.vocabulary or ()))
    make_tokenizer([w for w in words if w != lost], "masked").save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ModelError, match=f"does not fit the world: it cuts '{lost}' into"):
        check_tokenizer(world, tmp_path)


def test_a_tokenizer_that_does_not_know_a_word_is_refused(world: World, tmp_path: Path) -> None:
    from tests import tiny

    tiny.word_pieces().save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ModelError, match="does not fit the world"):
        check_tokenizer(world, tmp_path)


def test_a_folder_without_a_tokenizer_is_refused(world: World, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be read as a tokenizer"):
        check_tokenizer(world, tmp_path)
