"""Vectors are trained, and nothing else; each relation as if it were alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from sonde.core.errors import DataError, RunMismatch, StoreError
from sonde.core.facts import Entity
from sonde.core.texts import marker
from sonde.optimise.making import Made, Order, Task, optimise
from sonde.optimise.optiprompt import OptiPrompt
from sonde.optimise.optiprompt import vectors as vectors_module
from tests.tiny import CITIES

from .world import changed, dataset, fact, facts, opened

Folders = Callable[[str], Path]
QUICK: dict[str, Any] = {"epochs": 3, "vectors": 3, "rate": 0.03}


def run(folder: Path, out: Path, data: Any = None, order: Order | None = None, **given: Any) -> Any:
    """Train, and give each relation's result by its name."""
    method = OptiPrompt(**{**QUICK, **given})
    found = optimise(method, opened(folder), data or dataset(), out, order=order)
    return {made.relation: made for made in found}


def vectors(out: Path) -> dict[str, np.ndarray]:
    """The vectors that were kept."""
    found: dict[str, np.ndarray] = load_file(out / "vectors.safetensors")
    return found


@pytest.mark.parametrize("name", ["bert", "roberta", "gpt2", "convbert"])
@pytest.mark.parametrize("start", ["random", "manual"])
def test_training_raises_dev_accuracy(
    name: str, start: str, folder: Folders, tmp_path: Path
) -> None:
    data = dataset(vocabulary=CITIES)
    given: dict[str, Any] = {"start": start, "softmax": "allowed", "epochs": 12, "rate": 0.1}
    found = run(folder(name), tmp_path / "out", data, **given)
    assert all(made.epochs == 12 and not made.problem for made in found.values())
    assert all(made.after >= made.before for made in found.values())
    # random weights do not let everything be learnt, but the relations have different objects
    assert sum(made.after for made in found.values()) > sum(m.before for m in found.values())
    assert max(made.after for made in found.values()) >= 0.4


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_the_frozen_weights_are_bit_identical_after_training(
    name: str, folder: Folders, tmp_path: Path
) -> None:
    model = opened(folder(name))
    kept = {key: value.clone() for key, value in model.model.state_dict().items()}
    wanted = {n: p.requires_grad for n, p in model.model.named_parameters()}
    embedding = model.model.get_input_embeddings()
    optimise(OptiPrompt(**QUICK), model, dataset(), tmp_path / "out")
    assert all(torch.equal(kept[key], v) for key, v in model.model.state_dict().items())
    assert wanted == {n: p.requires_grad for n, p in model.model.named_parameters()}
    assert embedding is model.model.get_input_embeddings()
    with torch.no_grad():
        assert torch.equal(embedding(torch.tensor([3])), embedding.weight[[3]])


@pytest.mark.parametrize("name", ["bert", "roberta", "gpt2"])
def test_a_relation_trained_alone_is_the_one_trained_beside_others(
    name: str, folder: Folders, tmp_path: Path
) -> None:
    # fewer facts for one, so that steps, rates and checks of the two differ
    data = changed(dataset(), "P19", facts("P19")[:30])
    together = run(folder(name), tmp_path / "both", data, start="manual", batch=4)
    for relation in ("P36", "P19"):
        out = tmp_path / relation
        order = Order(relations=(relation,))
        alone = run(folder(name), out, data, order, start="manual", batch=4)
        assert alone[relation].after == together[relation].after
        assert alone[relation].counts == together[relation].counts
        for key, value in vectors(out).items():
            assert np.allclose(value, vectors(tmp_path / "both")[key], atol=1e-4)


def test_training_is_what_a_literal_loop_does(folder: Folders, tmp_path: Path) -> None:
    """One relation, by the optimizer and the schedule of the libraries, through inputs_embeds."""
    import transformers

    data = dataset("P36")
    run(folder("bert"), tmp_path / "start", data, epochs=0)
    start = vectors(tmp_path / "start")
    # dev facts are those trained on, so that the last vectors, whose loss is least, are kept
    own = [f for f in facts("P36") if f.split == "train"]
    dev = [replace(f, id=f"{f.id}:dev", split="dev") for f in own]
    run(folder("bert"), tmp_path / "ours", changed(data, "P36", [*own, *dev]), epochs=2, batch=10)

    model = opened(folder("bert"))
    network, tokenizer = model.model, model.loaded.tokenizer
    given = np.stack([start[marker("P36", i + 1)] for i in range(3)])
    learnt = torch.nn.Parameter(torch.tensor(given))
    steps = 2 * -(-len(own) // 10)
    optimizer = torch.optim.AdamW([learnt], lr=0.03, weight_decay=0)
    linear: Any = transformers.get_linear_schedule_with_warmup
    schedule = linear(optimizer, int(steps * 0.1), steps)
    for epoch in range(2):
        order = list(range(len(own)))
        Random(f"0:P36:{epoch}").shuffle(order)
        for at in range(0, len(order), 10):
            batch = [own[i] for i in order[at : at + 10]]
            loss = sum(literal_loss(network, tokenizer, learnt, f) for f in batch) / len(batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    ours = vectors(tmp_path / "ours")
    found = np.stack([ours[marker("P36", i + 1)] for i in range(3)])
    assert np.allclose(found, learnt.detach().numpy(), atol=1e-4)
    assert not np.allclose(found, given, atol=1e-2)


def literal_loss(model: Any, tokenizer: Any, learnt: Any, given: Any) -> Any:
    """Cross-entropy of the object at the mask, over every token, for one fact."""
    subject = tokenizer.encode(given.subject.name, add_special_tokens=False)
    (gold,) = tokenizer.encode(given.objects[0].name, add_special_tokens=False)
    (dot,) = tokenizer.encode(".", add_special_tokens=False)
    table = model.get_input_embeddings().weight.detach()
    opens = [tokenizer.cls_token_id, *subject]
    closes = [tokenizer.mask_token_id, dot, tokenizer.sep_token_id]
    embeds = torch.cat([table[opens], learnt, table[closes]])
    logits = model(inputs_embeds=embeds[None]).logits[0, len(opens) + len(learnt)]
    return torch.nn.functional.cross_entropy(logits[None], torch.tensor([gold]))


def test_the_untrained_prompt_is_kept_where_training_only_harms(
    folder: Folders, tmp_path: Path
) -> None:
    own = [f for f in facts("P36") if f.split == "train"]

    def pulled(towards: str, liked: str) -> Any:
        """Training facts with one object, dev facts with another."""
        train = [replace(f, objects=(Entity(id=towards, names=(towards,)),)) for f in own]
        objects = (Entity(id=liked, names=(liked,)),)
        dev = [replace(f, id=f"{f.id}:d", split="dev", objects=objects) for f in own]
        return changed(dataset("P36", vocabulary=CITIES), "P36", [*train, *dev])

    before = {}
    for city in ("Paris", "Vienna", "Warsaw", "York", "Oslo"):
        out = tmp_path / city
        before[city] = run(folder("bert"), out, pulled("Paris", city), start="manual", epochs=0)
    liked = max(before, key=lambda city: before[city]["P36"].before)
    other = "Paris" if liked != "Paris" else "Vienna"
    given: dict[str, Any] = {"start": "manual", "epochs": 4, "rate": 1.0, "softmax": "allowed"}
    found = run(folder("bert"), tmp_path / "out", pulled(other, liked), **given)["P36"]
    kept, start = vectors(tmp_path / "out"), vectors(tmp_path / liked)
    assert found.before == found.after and found.after > 0 and found.epochs == 4
    assert all(np.array_equal(kept[key], start[key]) for key in start)


def test_a_killed_training_goes_on_and_ends_the_same(folder: Folders, tmp_path: Path) -> None:
    method = OptiPrompt(**QUICK, together=1)
    whole = optimise(method, opened(folder("bert")), dataset(), tmp_path / "whole")
    steps = []

    def killed(done: int, total: int, how: str) -> None:
        steps.append(done)
        if done > total * 0.75:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        optimise(method, opened(folder("bert")), dataset(), tmp_path / "parts", tick=killed)
    assert len((tmp_path / "parts" / "progress.jsonl").read_text().splitlines()) == 1
    # half a line, as a kill may leave it
    with (tmp_path / "parts" / "progress.jsonl").open("a") as file:
        file.write('{"relation": "P1')
    resumed: list[int] = []
    found = optimise(
        method,
        opened(folder("bert")),
        dataset(),
        tmp_path / "parts",
        tick=lambda done, total, how: resumed.append(total),
    )
    assert found == whole
    assert max(resumed) < max(steps) * 1.25, "the finished relation was trained again"
    for name in ("templates.jsonl", "manifest.json", "vectors.safetensors"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_finished_folder_is_not_trained_again(folder: Folders, tmp_path: Path) -> None:
    first = run(folder("bert"), tmp_path / "out")
    ticks: list[int] = []
    again = optimise(
        OptiPrompt(**QUICK),
        opened(folder("bert")),
        dataset(),
        tmp_path / "out",
        tick=lambda done, total, how: ticks.append(done),
    )
    assert again == list(first.values()) and not ticks


def test_a_loss_that_is_no_number_stops_its_relation_and_keeps_the_last_good(
    folder: Folders, tmp_path: Path
) -> None:
    found = run(folder("bert"), tmp_path / "out", rate=1e38, start="manual", epochs=4)
    run(folder("bert"), tmp_path / "start", start="manual", epochs=0)
    for made in found.values():
        assert "no longer a finite number" in made.problem
        assert made.templates and made.epochs < 4
    kept = vectors(tmp_path / "out")
    assert all(np.isfinite(value).all() for value in kept.values())
    assert kept.keys() == vectors(tmp_path / "start").keys()


def test_a_relation_that_breaks_leaves_the_one_beside_it_alone(
    folder: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(folder("bert"), tmp_path / "well")
    plain = vectors_module.random_form

    def spoilt(model: Any, task: Task, count: int, seed: int) -> Any:
        form = plain(model, task, count, seed)
        return form._replace(vectors=form.vectors * np.nan) if task.relation.id == "P19" else form

    monkeypatch.setattr(vectors_module, "random_form", spoilt)
    found = run(folder("bert"), tmp_path / "out")
    assert "finite" in found["P19"].problem and not found["P36"].problem
    well, kept = vectors(tmp_path / "well"), vectors(tmp_path / "out")
    ours = [key for key in kept if "P36" in key]
    assert all(np.allclose(well[key], kept[key], atol=1e-4) for key in ours)


def test_relations_without_usable_facts_are_told_and_the_others_go_on(
    folder: Folders, tmp_path: Path
) -> None:
    empty = changed(dataset(), "P19", [f for f in facts("P19") if f.split != "train"])
    found = run(folder("bert"), tmp_path / "empty", empty)
    assert found["P19"].problem == "it has no training facts" and not found["P19"].templates
    assert found["P36"].templates
    strange = changed(
        dataset(), "P19", [fact("P19", f"New {w}", "Norwegian", "train") for w in "abc"]
    )
    found = run(folder("bert"), tmp_path / "strange", strange)
    assert "none of its 2 training facts" in found["P19"].problem
    assert found["P19"].counts["outside_vocabulary"] == 3
    assert found["P36"].templates


def test_objects_outside_the_vocabulary_are_counted_and_left_out(
    folder: Folders, tmp_path: Path
) -> None:
    data = dataset("P36", vocabulary=("Paris", "Oslo"))
    found = run(folder("bert"), tmp_path / "out", data)["P36"]
    own = [f for f in facts("P36") if f.split != "test"]
    vienna = [f for f in own if f.objects[0].name == "Vienna"]
    assert found.counts["outside_vocabulary"] == len(vienna)
    assert found.counts["train"] + found.counts["dev"] == len(own) - len(vienna)
    # only two answers are allowed, and dev facts are judged among these
    assert found.before is not None and found.before > 0


def test_a_dataset_without_training_facts_is_refused(folder: Folders, tmp_path: Path) -> None:
    data = changed(dataset("P36"), "P36", [f for f in facts("P36") if f.split == "test"])
    with pytest.raises(DataError, match="nothing to learn from"):
        run(folder("bert"), tmp_path / "out", data)


def test_training_facts_that_are_tested_are_refused_or_dropped(
    folder: Folders, tmp_path: Path
) -> None:
    tested = next(f for f in facts("P36") if f.split == "test")
    leak = replace(tested, id="leak", split="train")
    data = changed(dataset(), "P36", [*facts("P36"), leak])
    with pytest.raises(DataError, match=r"1 facts .*P36 train: .*--drop-leaked"):
        run(folder("bert"), tmp_path / "out", data)
    found = run(folder("bert"), tmp_path / "out", data, Order(drop_leaked=True))
    assert found["P36"].counts["leaked"] == 1
    clean = run(folder("bert"), tmp_path / "clean")
    assert found["P36"].counts["train"] == clean["P36"].counts["train"]


def test_a_part_of_the_training_facts_is_held_out_where_there_are_none_for_development(
    folder: Folders, tmp_path: Path
) -> None:
    own = [f for f in facts("P36") if f.split == "train"]
    found = run(folder("bert"), tmp_path / "out", changed(dataset("P36"), "P36", own))["P36"]
    assert found.counts["held_out"] == found.counts["dev"] == len(own) // 5
    assert found.counts["train"] == len(own) - len(own) // 5


def test_patience_ends_a_relation_early(folder: Folders, tmp_path: Path) -> None:
    found = run(folder("bert"), tmp_path / "out", epochs=40, rate=1e-9, patience=3)
    assert all(made.epochs < 10 for made in found.values())


def test_the_seed_decides_vectors_and_order(folder: Folders, tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        run(folder("bert"), tmp_path / name, order=Order(seed=seed), epochs=0)
    a, b, c = (vectors(tmp_path / name) for name in "abc")
    assert all(np.array_equal(a[key], b[key]) for key in a)
    assert not any(np.array_equal(a[key], c[key]) for key in a)
    spread = np.concatenate([*a.values()]).std()
    assert 0.01 < spread < 0.03  # the model's initializer_range is 0.02


def test_another_request_in_the_same_folder_is_refused(folder: Folders, tmp_path: Path) -> None:
    run(folder("bert"), tmp_path / "out", epochs=0)
    with pytest.raises(RunMismatch, match="settings"):
        run(folder("bert"), tmp_path / "out", epochs=1)
    with pytest.raises(RunMismatch, match="another model"):
        run(folder("roberta"), tmp_path / "out", epochs=0)
    half = opened(folder("bert"), "bfloat16")
    with pytest.raises(RunMismatch, match="dtype float32, not bfloat16"):
        optimise(OptiPrompt(**{**QUICK, "epochs": 0}), half, dataset(), tmp_path / "out")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(StoreError, match="holds other files"):
        run(folder("bert"), tmp_path / "other", epochs=0)


def test_half_precision_trains_vectors_in_single(folder: Folders, tmp_path: Path) -> None:
    from sonde.models.load import load
    from sonde.models.options import LoadOptions

    options = LoadOptions(device="cpu", dtype="float16")
    model = load(f"hf:{folder('bert')}", options)
    (made, _) = optimise(OptiPrompt(**QUICK), model, dataset(), tmp_path / "out")
    assert isinstance(made, Made) and not made.problem
    assert all(value.dtype == np.float32 for value in vectors(tmp_path / "out").values())


def test_the_loss_may_be_over_the_answers_allowed(folder: Folders, tmp_path: Path) -> None:
    data = dataset("P36", vocabulary=CITIES)
    found = run(folder("bert"), tmp_path / "a", data, softmax="allowed")
    run(folder("bert"), tmp_path / "m", data)
    a, m = vectors(tmp_path / "a"), vectors(tmp_path / "m")
    assert found["P36"].after is not None
    assert not all(np.allclose(a[key], m[key], atol=1e-4) for key in a)
