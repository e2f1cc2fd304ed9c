"""Triggers are exchanged by gradient, kept as text that reads back, and never end up worse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sonde.core.errors import AbilityError
from sonde.core.facts import Entity
from sonde.core.texts import marker, markers
from sonde.models.controls import majority
from sonde.models.load import load
from sonde.models.options import LoadOptions
from sonde.models.torch.soft import soft_model
from sonde.optimise.autoprompt import AutoPrompt
from sonde.optimise.autoprompt import search as search_module
from sonde.optimise.autoprompt.search import Writer, candidates, ranked, searched, start_token
from sonde.optimise.making import Job, Made, Order, optimise, tasks
from sonde.optimise.state import Standing
from sonde.optimise.training import side_by_side
from tests import tiny

from .world import answers, changed, dataset, fact, facts, opened, opposed, prompts

Folders = Callable[[str], Path]
QUICK: dict[str, Any] = {"iterations": 12, "triggers": 3, "batch": 12, "candidates": 8}
EVERY = ["bert", "roberta", "gpt2"]


def run(folder: Path, out: Path, data: Any = None, order: Order | None = None, **given: Any) -> Any:
    """Search, and give each relation's result by its name."""
    method = AutoPrompt(**{**QUICK, **given})
    reference = f"hf:{folder}"
    found = optimise(
        method, opened(folder), data or dataset(), out, order=order, reference=reference
    )
    return {made.relation: made for made in found}


def allowed_of(model: Any, text: bool = True) -> set[int]:
    return set(np.flatnonzero(candidates(model, text=text)).tolist())


@pytest.mark.parametrize("name", EVERY)
def test_the_ranking_is_that_of_a_literal_implementation(
    name: str, folder: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gradient by the trigger's embedding, and its product with each candidate's, in turn."""
    model = opened(folder(name))
    data = dataset("P36")
    given = tasks(data, data.relations, Order())
    job = Job(
        model=model, tasks=given, vocabulary=None, folder=Path(), seed=0, tick=lambda *_: None
    )
    first = start_token(model, candidates(model, text=True))
    assert first is not None
    seen: list[Any] = []

    def spied(triggers: Any, *parts: Any, **named: Any) -> Any:
        vectors = triggers.vectors().requires_grad_(True)
        gradient = triggers.losses.gradient(triggers.train, [np.arange(5)], vectors)
        seen.append((triggers, gradient))
        return side_by_side(triggers, *parts, **named)

    monkeypatch.setattr(search_module, "side_by_side", spied)
    list(searched(AutoPrompt(**QUICK), job))
    found, grad = seen[0]
    found.ids[:] = first
    literal = _literal_gradient(model, found, first)
    assert torch.allclose(grad[0], literal, atol=1e-6)
    table = model.model.get_input_embeddings().weight.detach()
    open_ = [i for i in np.flatnonzero(found.allowed[0].numpy()).tolist() if i != first]
    for place in range(3):
        scores = {i: -float((table[i] * literal[place]).sum()) for i in open_}
        expected = sorted(open_, key=lambda i: -scores[i])[:8]
        current = torch.tensor([first])
        best = ranked(found.table, grad[:, place], found.allowed, current, 8)[0].tolist()
        assert np.allclose([scores[i] for i in best], [scores[i] for i in expected], atol=1e-5)
        assert set(best) <= set(open_)


def _literal_gradient(model: Any, search: Any, token: int) -> torch.Tensor:
    """One text after the other, through `inputs_embeds` of the model as transformers has it."""
    plain, total = model.model, torch.zeros(3, 32)
    embedding = plain.get_input_embeddings()
    for row in range(5):
        length = int(search.train.lengths[row])
        ids = torch.from_numpy(search.train.ids[row, :length].copy())
        places = search.train.vectors[row]
        ids[places] = token
        inputs = embedding(ids).detach().requires_grad_(True)
        logits = plain(inputs_embeds=inputs[None]).logits[0].float()
        loss = torch.zeros(())
        for place, golds in zip(search.train.places[row], search.train.golds[row], strict=True):
            if place >= 0:
                right = [int(g) for g in golds if g >= 0]
                loss = loss + torch.logsumexp(logits[place], 0)
                loss = loss - torch.logsumexp(logits[place][right], 0)
        (grad,) = torch.autograd.grad(loss, inputs)
        total += grad[places] / 5
    return total


@pytest.mark.parametrize("name", [*EVERY, "convbert"])
def test_a_search_never_ends_worse_than_it_began(
    name: str, folder: Folders, tmp_path: Path
) -> None:
    for seed in (0, 1):
        found = run(folder(name), tmp_path / f"{seed}", order=Order(seed=seed))
        for made in found.values():
            assert made.after is not None and made.before is not None
            assert made.after >= made.before and not made.problem


@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_what_serves_dev_facts_worse_is_not_kept(
    name: str, folder: Folders, tmp_path: Path
) -> None:
    words = ["York", "Paris"]
    start = run(folder(name), tmp_path / "start", opposed(*words), iterations=0)["P36"]
    if start.before < 0.5:
        words.reverse()
    found = run(folder(name), tmp_path / "out", opposed(*words), iterations=30)["P36"]
    assert found.before >= 0.5 and found.after >= found.before
    assert found.counts["replaced"] > 0


@pytest.mark.parametrize("name", EVERY)
def test_a_search_lowers_the_loss_of_dev_facts(
    name: str, folder: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[float] = []
    look = Standing.look

    def spied(self: Standing, share: float | None, loss: float) -> bool:
        looks.append(loss)
        return look(self, share, loss)

    monkeypatch.setattr(Standing, "look", spied)
    made = run(folder(name), tmp_path / "out", iterations=25, order=Order(relations=("P36",)))
    # the first look is at the start, each other one at triggers that were exchanged
    assert len(looks) == made["P36"].counts["replaced"] + 1 and len(looks) > 3
    assert min(looks) < looks[0] - 0.1


@pytest.mark.parametrize("name", EVERY)
def test_a_text_gives_the_model_the_very_tokens_that_were_found(
    name: str, folder: Folders, tmp_path: Path
) -> None:
    """Asked as text and as vectors, the same triggers are answered alike."""
    model = opened(folder(name))
    writer, own = Writer(model.loaded.backend), allowed_of(model)
    made = run(folder(name), tmp_path / "text", iterations=25)["P36"]
    assert made.counts["as_text"] == 1 and not markers(made.templates[0].text)
    words = made.templates[0].text.removeprefix("[X] ").removesuffix(" [Y] .")
    before = writer.tokenizer.encode("Paris", add_special_tokens=False).ids
    ids = writer.tokenizer.encode(f"Paris {words}", add_special_tokens=False).ids[len(before) :]
    assert len(ids) == 3 and own.issuperset(ids)
    subjects = ("France", "Marie Curie", "New Norway")
    found = answers(model, prompts(model, made.templates[0], subjects))
    vectors = {marker("P36", k + 1): _row(model, id) for k, id in enumerate(ids)}
    soft = soft_model("soft", model, vectors, "")
    template = replace(made.templates[0], text="[X]⟦P36:1⟧⟦P36:2⟧⟦P36:3⟧ [Y] .")
    assert found == answers(soft, prompts(soft, template, subjects))


def _row(model: Any, id: int) -> np.ndarray:
    row: np.ndarray = model.model.get_input_embeddings().weight[id].detach().float().numpy()
    return row


def test_triggers_that_hold_a_mask_are_kept_as_vectors(folder: Folders, tmp_path: Path) -> None:
    found = run(folder("bert"), tmp_path / "out", iterations=0)
    for made in found.values():
        assert made.counts["as_vectors"] == 1 and len(markers(made.templates[0].text)) == 3
        assert made.before == made.after
    soft = load(f"soft:{tmp_path / 'out'}", LoadOptions(device="cpu"))
    assert answers(soft, prompts(soft, found["P36"].templates[0], ("France",)))


def test_any_token_may_be_a_vector(folder: Folders, tmp_path: Path) -> None:
    model = opened(folder("bert"))
    assert allowed_of(model, text=True) < allowed_of(model, text=False)
    found = run(folder("bert"), tmp_path / "out", form="vectors")
    assert all(made.counts["as_vectors"] == 1 for made in found.values())


@pytest.mark.parametrize("name", ["bert", "roberta", "gpt2", "llama", "metaspace"])
def test_no_candidate_is_special_or_capitalised(name: str, folder: Folders) -> None:
    model = opened(folder(name))
    tokenizer = model.loaded.tokenizer
    for id in allowed_of(model, text=False):
        assert id not in tokenizer.all_special_ids
        letters = [c for c in tokenizer.decode([id]) if c.isalpha()]
        assert not letters or not letters[0].isupper()


@pytest.mark.parametrize("name", EVERY)
def test_no_trigger_is_an_answer(name: str, folder: Folders, tmp_path: Path) -> None:
    # "is" and "in" would otherwise be words to use
    data = changed(
        dataset("P36"),
        "P36",
        [
            replace(f, objects=(Entity(id="o", names=("is" if i % 2 else "in",)),))
            for i, f in enumerate(facts("P36"))
        ],
    )
    made = run(folder(name), tmp_path / "out", data, iterations=25)["P36"]
    assert made.templates and not {"is", "in"} & set(made.templates[0].text.split())


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_a_relation_searched_alone_is_the_one_searched_beside_others(
    name: str, folder: Folders, tmp_path: Path
) -> None:
    data = changed(dataset(), "P19", facts("P19")[:30])
    together = run(folder(name), tmp_path / "both", data)
    for relation in ("P36", "P19"):
        alone = run(folder(name), tmp_path / relation, data, Order(relations=(relation,)))
        assert alone[relation].templates == together[relation].templates
        assert alone[relation].after == together[relation].after


def test_the_model_is_as_it_was_after_a_search(folder: Folders, tmp_path: Path) -> None:
    model = opened(folder("bert"))
    kept = {key: value.clone() for key, value in model.model.state_dict().items()}
    optimise(AutoPrompt(**QUICK), model, dataset(), tmp_path / "out")
    assert all(torch.equal(kept[key], v) for key, v in model.model.state_dict().items())
    embedding = model.model.get_input_embeddings()
    assert torch.equal(embedding(torch.tensor([3])), embedding.weight[[3]])


def test_without_dev_facts_some_training_facts_are_held_out(
    folder: Folders, tmp_path: Path
) -> None:
    data = changed(dataset("P36"), "P36", [f for f in facts("P36") if f.split != "dev"])
    made = run(folder("bert"), tmp_path / "out", data)["P36"]
    assert made.counts["held_out"] == made.counts["dev"] == 7


def test_a_relation_whose_loss_breaks_is_reported_and_the_others_go_on(tmp_path: Path) -> None:
    # a token that one relation's subjects hold alone, and that is no answer
    model = opened(tiny.bert(tmp_path / "model", tie_word_embeddings=False))
    with torch.no_grad():
        id = model.loaded.tokenizer.convert_tokens_to_ids("written")
        model.model.get_input_embeddings().weight[id] = torch.nan
    broken = [fact("P19", f"written {i}", "York", s) for i, s in enumerate(["train", "dev"] * 4)]
    data = changed(dataset(), "P19", broken)
    found: list[Made] = optimise(AutoPrompt(**QUICK), model, data, tmp_path / "out")
    by = {made.relation: made for made in found}
    assert "finite" in by["P19"].problem and by["P19"].templates
    assert not by["P36"].problem and by["P36"].counts["replaced"] > 0


def test_a_model_without_gradients_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AbilityError, match="no weights and no gradients"):
        optimise(AutoPrompt(), majority(dataset()), dataset(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_relations_without_usable_facts_are_told(folder: Folders, tmp_path: Path) -> None:
    data = replace(dataset(), vocabulary=("Paris", "Vienna"))
    found = run(folder("bert"), tmp_path / "out", data)
    assert "no object that may be answered" in found["P19"].problem
    assert not found["P19"].templates and found["P36"].templates
