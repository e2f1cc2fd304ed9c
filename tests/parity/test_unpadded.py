"""Short texts in one row answer as they do alone, whatever stands beside them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.columns import one_by_one
from sonde.engine.masked_batch import MaskedText, columns
from sonde.models.torch.masked.logits import EQUAL, LONG, Ways, differs, mask_logits, ways_of
from sonde.models.torch.masked.model import MaskedModel
from sonde.models.torch.masked.unpadded import LONGEST, Feed, Recorder, Room, filled, laid_out
from sonde.models.torch.reference import fill_masked, score_masked
from tests.parity import kernels
from tests.parity.world import TOLERANCE, answers, assert_same
from tests.tiny import CITIES, MASKED, Load, fill, score

TEXTS = st.lists(
    st.lists(st.integers(5, 40), min_size=1, max_size=20).flatmap(
        lambda ids: st.tuples(st.just(tuple(ids)), st.integers(0, len(ids) - 1))
    ),
    min_size=1,
    max_size=30,
)

SIZES: dict[str, Any] = {
    "vocab_size": 60,
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 20,
    "max_position_embeddings": 70,
}
DISTIL = {"vocab_size": 60, "dim": 16, "n_layers": 3, "n_heads": 2, "hidden_dim": 20}
FAMILIES: dict[str, tuple[Any, bool, bool]] = {
    # what a family takes: the last layer at the mask alone, and texts in one row
    "Bert": (SIZES, True, True),
    "Roberta": (SIZES, True, True),
    "Electra": ({**SIZES, "embedding_size": 16}, True, True),
    "MegatronBert": (SIZES, True, False),  # attention cannot be exchanged
    "DebertaV2": (SIZES, True, False),
    "DistilBert": (DISTIL, False, True),
    "Albert": ({**SIZES, "embedding_size": 8}, False, True),  # one layer, again and again
}


@pytest.fixture(autouse=True)
def _plain(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU the kernels' twins stand in for them."""
    if device == "cpu":
        for name in ("attend", "normalise", "gelu"):
            monkeypatch.setattr(f"sonde.models.torch.masked.kernels.{name}", getattr(kernels, name))


def made(family: str, device: str) -> Any:
    torch.manual_seed(0)
    config: Any = getattr(transformers, f"{family}Config")(**FAMILIES[family][0])
    built = getattr(transformers, f"{family}ForMaskedLM")(config)
    for parameter in built.parameters():  # biases and norms too
        torch.nn.init.normal_(parameter, std=0.3)
    return built.to(device).eval()


def logps(model: Any, texts: list[MaskedText], ways: Ways) -> Any:
    found = mask_logits(model, columns(texts), np.arange(len(texts)), ways)
    return torch.log_softmax(found, -1)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_a_family_takes_is_found_by_trying(family: str, device: str) -> None:
    model = made(family, device)
    _, last, joins = FAMILIES[family]
    ways = ways_of(model)
    assert ways.narrow and ways.last is last
    whole = Ways(narrow=True, last=last, joins=True, first=ways.first)
    assert (not differs(model, whole, EQUAL, LONG)) is joins
    assert ways.joins is (joins and device == "cuda")


@pytest.mark.parametrize("family", FAMILIES)
@given(texts=TEXTS)
def test_texts_in_one_row_and_last_layers_at_the_mask_answer_as_each_text_alone(
    family: str, device: str, texts: list[MaskedText]
) -> None:
    model = made(family, device)
    _, last, joins = FAMILIES[family]
    first = ways_of(model).first
    alone = torch.cat([logps(model, [text], Ways()) for text in texts])
    for ways in (
        Ways(narrow=True, last=last),
        Ways(narrow=True, last=last, joins=joins, first=first),
    ):
        assert torch.allclose(logps(model, texts, ways), alone, atol=TOLERANCE)


@given(lengths=st.lists(st.integers(1, LONGEST), min_size=1, max_size=60), first=st.integers(0, 2))
def test_tiles_hold_whole_texts_and_every_token_once(lengths: list[int], first: int) -> None:
    texts = columns([(tuple(range(n)), n // 2) for n in [3, *lengths]])
    ids, positions, owners, tiles, places = laid_out(texts, np.arange(1, len(texts)), first)
    assert ids.tolist() == [i for n in lengths for i in range(n)]
    assert (positions - first).tolist() == ids.tolist()
    assert np.bincount(owners).tolist() == lengths
    assert ids[places].tolist() == [n // 2 for n in lengths]
    assert (tiles[0], tiles[-1]) == (0, len(ids))
    assert all(0 < end - start <= LONGEST for start, end in pairwise(tiles.tolist()))
    assert set(tiles.tolist()) <= {0, *np.cumsum(lengths).tolist()}
    exact = Room(tokens=len(ids), tiles=len(tiles), reads=len(places))
    wide = replace(exact, tokens=len(ids) + 5, tiles=len(tiles) + 3, reads=len(places) + 2)
    for room in (exact, wide):
        feed = Feed(torch.from_numpy(filled((ids, positions, owners, tiles, places), room)), room)
        assert feed.ids[: len(ids)].tolist() == ids.tolist() and len(feed.ids) == room.tokens
        assert feed.places[: len(places)].tolist() == places.tolist()
        assert feed.tiles[: len(tiles)].tolist() == tiles.tolist()
        assert (feed.tiles[len(tiles) :] == len(ids)).all()


@given(st.lists(st.integers(8, LONGEST), min_size=1, max_size=300))
def test_a_full_pass_has_room_for_any_texts_that_are_not_very_short(lengths: list[int]) -> None:
    lengths = sorted(lengths, reverse=True)  # as passes have them
    texts = columns([((7,) * n, 0) for n in lengths])
    parts = laid_out(texts, np.arange(len(lengths)), 0)
    room = Room.full(sum(lengths))
    assert all(len(part) <= size for part, size in zip(parts, room.sizes, strict=True))


@pytest.mark.parametrize("kind", MASKED)
def test_a_pass_that_was_recorded_gives_what_a_first_one_gives(
    tiny: Load, kind: str, device: str
) -> None:
    model = tiny(kind).model
    first = ways_of(model).first
    batches = [
        columns([(tuple(5 + (i * k + j) % 40 for j in range(9 + i % 4)), i % 9) for i in range(40)])
        for k in (1, 3, 7)
    ]
    orders = [np.argsort(-masked.lengths, kind="stable") for masked in batches]
    recorder = Recorder(model, last=True, first=first)
    full = len(batches[0].ids) + 1
    with torch.inference_mode():
        for masked, order in zip([*batches, *batches], [*orders, *orders], strict=True):
            found = recorder.logits(masked, order, full=full).clone()
            plain = mask_logits(model, masked, order, Ways())
            assert torch.allclose(found, plain, atol=TOLERANCE)
    assert list(recorder._recorded) == ([full] if device == "cuda" else [])


@pytest.mark.parametrize("fails", ["recording", "what is recorded"])
def test_a_pass_that_cannot_be_recorded_goes_as_it_is(
    tiny: Load, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    model, tries = tiny("bert").model, []

    class Broken:
        def __init__(self, *_args: Any, **_more: Any) -> None:
            tries.append(1)
            if fails == "recording":
                raise RuntimeError("operation not permitted when stream is capturing")

        def run(self, parts: Any) -> Any:
            """As a graph that is empty."""
            room = Room(tokens=len(parts[0]), tiles=len(parts[3]), reads=len(parts[4]))
            output, inputs = recorder._plain(parts, room)
            output.last_hidden_state = torch.zeros_like(output.last_hidden_state)
            return output, inputs

    monkeypatch.setattr("sonde.models.torch.masked.unpadded.Recorded", Broken)
    recorder = Recorder(model, last=True, first=ways_of(model).first)
    recorder.usable = True
    masked = columns([(tuple(range(5, 14 + i % 4)), i % 9) for i in range(40)])
    order = np.argsort(-masked.lengths, kind="stable")
    plain = mask_logits(model, masked, order, Ways())
    with torch.inference_mode():
        for _ in range(4):
            found = recorder.logits(masked, order, full=len(masked.ids) + 1)
            assert torch.allclose(found, plain, atol=TOLERANCE)
    assert tries == [1] and not recorder.usable and not recorder._recorded


def test_texts_too_long_for_a_tile_go_in_rows(tiny: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("model", "logits", "unpadded"):
        monkeypatch.setattr(f"sonde.models.torch.masked.{module}.LONGEST", 16)
    model = MaskedModel(tiny("bert"))
    model.ways = replace(model.ways, joins=True)
    texts = columns([(tuple(range(5, 5 + n)), n // 2) for n in (3, 19, 16, 17, 2, 16)])
    steps = [step.members for step in model.passes("fill", texts.lengths.tolist())]
    assert steps == [[1, 3], [2, 5, 0, 4]]
    for members in steps:
        found = model.mask_logits("fill", texts, np.array(members))
        plain = mask_logits(model.model, texts, members, Ways())
        assert torch.allclose(found, plain, atol=TOLERANCE)


@pytest.mark.parametrize("kind", MASKED)
def test_filling_and_scoring_in_one_row_equal_the_reference(tiny: Load, kind: str) -> None:
    model = MaskedModel(tiny(kind))
    model.ways = replace(model.ways, joins=True)
    sides = [("It is ", "."), ("The capital of France is ", " in France."), ("It is the ", "?")]
    asked = [fill(*each, watched=CITIES, vocabulary=CITIES) for each in sides]
    found = dict(one_by_one(model.fill(asked)))
    for i, whole in fill_masked(model.model, model.encoder, asked, {}):
        assert found[i].top_logps == pytest.approx(whole.top_logps, abs=TOLERANCE)
    options = [score("It is ", CITIES, "."), score("The capital of France is ", CITIES)]
    for i, expected in score_masked(model.model, model.encoder, options):
        assert_same(answers(model, options)[i], expected)


def test_a_model_is_left_as_it_was(tiny: Load) -> None:
    model = tiny("bert").model
    before = model.config._attn_implementation
    texts = columns([((1, 2, 3), 1)])
    mask_logits(model, texts, [0], Ways(narrow=True, last=True, joins=True))
    with pytest.raises(IndexError):
        mask_logits(model, texts, [5], Ways(narrow=True, last=True, joins=True))
    assert model.config._attn_implementation == before
    for module in model.modules():
        assert not module._forward_hooks and not module._forward_pre_hooks
        assert "forward" not in module.__dict__


@pytest.mark.parametrize("device", [pytest.param("cuda", marks=pytest.mark.gpu)], indirect=True)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("size", [12, 64])
def test_kernels_give_what_their_twins_give(dtype: Any, size: int) -> None:
    from sonde.models.torch.masked import kernels as own

    torch.manual_seed(0)
    masked = columns([((7,) * n, 0) for n in (64, 30, 30, 17, 17, 17, 17, 5, 1)])
    _, _, owners, tiles, _ = (
        torch.from_numpy(part.astype(np.int32)).cuda() for part in laid_out(masked, np.arange(9), 0)
    )
    q, k, v = torch.randn(3, 1, len(owners), 3, size, device="cuda", dtype=dtype).transpose(2, 3)
    more = {torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 2e-3}[dtype]
    found = own.attend(q, k, v, tiles, owners, 0.3, LONGEST)
    expected = kernels.attend(q.float(), k.float(), v.float(), tiles, owners, 0.3, LONGEST)
    assert torch.allclose(found.float(), expected, atol=more, rtol=more)
    norm = torch.nn.LayerNorm(3 * size, device="cuda", dtype=dtype)
    values, added = torch.randn(2, 7, 3 * size, device="cuda", dtype=dtype)
    for extra in (None, added):
        twin = torch.nn.LayerNorm(3 * size, device="cuda")
        expected = kernels.normalise(None if extra is None else extra.float(), twin, values.float())
        assert torch.allclose(own.normalise(extra, norm, values).float(), expected, atol=more)
    wide = torch.linspace(-12, 12, 5001, device="cuda").to(dtype)
    expected = kernels.gelu(wide.float())
    assert torch.allclose(own.gelu(wide).float(), expected, atol=1e-6, rtol=more)
    logits = torch.randn(5, 1000 * size + 7, device="cuda") * 4
    norms, found = own.peaks(logits)
    sums, highest = kernels.peaks(logits)
    assert torch.allclose(norms, sums, atol=1e-5) and torch.equal(found, highest)
    assert own.usable(logits.device)
