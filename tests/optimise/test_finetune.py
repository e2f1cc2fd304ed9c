"""Every weight follows the gradient, for each relation by itself; the model stays what it is."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import sonde
from sonde.cli.main import main
from sonde.compare.conditions import conditions, open_runs
from sonde.compare.learned import with_learning
from sonde.core.answers import Filled
from sonde.core.errors import AbilityError, ModelError, PromptError
from sonde.core.prompts import Fill
from sonde.data.format import write_dataset
from sonde.models.controls import majority
from sonde.models.load import load
from sonde.models.options import LoadOptions
from sonde.optimise.finetune import FineTune
from sonde.optimise.finetune.tuning import Copies, Stacked
from sonde.optimise.making import Order, optimise
from sonde.optimise.training import Adam
from tests import tiny, worlds
from tests.played import play

from .world import answers, changed, dataset, fact, facts, opened, opposed, prompts

Folders = Callable[[str], Path]
QUICK: dict[str, Any] = {"epochs": 3, "batch": 6, "rate": 0.003, "keep": "float32"}
CPU = LoadOptions(device="cpu")


def run(folder: Path, out: Path, data: Any = None, order: Order | None = None, **given: Any) -> Any:
    """Train, and give each relation's result by its name."""
    method, reference = FineTune(**{**QUICK, **given}), f"hf:{folder}"
    data = data or dataset()
    found = optimise(method, opened(folder), data, out, order=order, reference=reference)
    return {made.relation: made for made in found}


def change(out: Path, relation: str) -> dict[str, torch.Tensor]:
    """How the weights of a relation changed."""
    found: dict[str, torch.Tensor] = load_file(out / "weights" / f"{relation}.safetensors")
    return found


def felt(name: str) -> bool:
    """Whether a weight changes any answer; a key's bias adds the same to all that is compared.

    Its gradient is rounding alone, which Adam makes as large as any other.
    """
    return not name.endswith(("key.bias", "c_attn.bias"))


@pytest.mark.parametrize("name", ["bert", "roberta", "gpt2", "convbert"])
def test_training_raises_dev_accuracy_and_leaves_the_model(
    name: str, folder: Folders, tmp_path: Path
) -> None:
    model = opened(folder(name))
    kept = {key: value.clone() for key, value in model.model.state_dict().items()}
    for made in optimise(FineTune(**QUICK), model, dataset(), tmp_path / "out"):
        assert made.before == 0 and made.after is not None and made.after >= 0.7
        assert made.epochs == 3 and not made.problem and made.counts["weights_bytes"] > 0
    assert all(torch.equal(kept[key], v) for key, v in model.model.state_dict().items())
    assert all(p.requires_grad for p in model.model.parameters())


@pytest.mark.parametrize("name", ["bert", "roberta", "gpt2"])
def test_copies_trained_side_by_side_end_as_each_alone(
    name: str, folder: Folders, tmp_path: Path
) -> None:
    # fewer facts for one, so that it ends first, with smaller batches on the way
    data = changed(dataset(), "P19", facts("P19")[:31])
    together = run(folder(name), tmp_path / "both", data, together=2, decay=0.01)
    alone = run(folder(name), tmp_path / "each", data, together=1, decay=0.01)
    for relation in ("P36", "P19"):
        assert together[relation].after == alone[relation].after
        assert together[relation].epochs == alone[relation].epochs == 3
        one, other = (change(tmp_path / out, relation) for out in ("both", "each"))
        assert max(float(c.abs().max()) for c in one.values()) > 1e-3
        assert all(torch.allclose(one[n], other[n], atol=1e-5) for n in one if felt(n))


def test_a_step_is_that_of_torchs_own_adamw(folder: Folders, tmp_path: Path) -> None:
    data = changed(dataset("P36"), "P36", [f for f in facts("P36") if f.split == "train"][:2])
    data = changed(data, "P36", [*data.facts("P36"), fact("P36", "Who York", "Paris", "dev")])
    settings: dict[str, Any] = {"epochs": 2, "batch": 2, "warmup": 0.0, "decay": 0.1}
    out = tmp_path / "out"
    run(folder("bert"), out, data, **settings)
    model = opened(folder("bert")).model
    own = {n: p.detach().clone() for n, p in model.named_parameters()}
    adam = torch.optim.AdamW(model.parameters(), lr=0.003, weight_decay=0.1)
    given = [f for f in data.facts("P36") if f.split == "train"]
    tokenizer = opened(folder("bert")).loaded.tokenizer
    golds = tokenizer.convert_tokens_to_ids([f.objects[0].name.lower() for f in given])
    best: dict[str, torch.Tensor] = {}
    for rate in (0.003, 0.0015):
        adam.param_groups[0]["lr"] = rate
        loss = torch.zeros(())
        for one, gold in zip(given, golds, strict=True):
            text = f"The capital of {one.subject.name} is [MASK] ."
            inputs = tokenizer(text, return_tensors="pt", return_token_type_ids=False)
            at = inputs["input_ids"][0].tolist().index(tokenizer.mask_token_id)
            logits = model(**inputs).logits[0, at]
            loss = loss - torch.log_softmax(logits, 0)[gold] / 2
        adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        adam.step()
        best = {n: p.detach() - own[n] for n, p in model.named_parameters()}
    found = change(out, "P36")
    assert all(torch.allclose(found[n], best[n], atol=1e-5) for n in best if felt(n))


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_the_fused_step_is_the_plain_one_at_a_rate_for_each_relation(decay: float) -> None:
    draws = torch.Generator().manual_seed(0)
    start = [torch.randn(shape, generator=draws) for shape in ((3, 4, 5), (3, 7))]
    plain, fused = ([weight.clone() for weight in start] for _ in range(2))
    adams = Adam(plain, decay), Adam(fused, decay)
    rates = torch.tensor([0.1, 0.0, 0.003])
    for count in range(1, 6):
        grads = [torch.randn(w.shape, generator=draws) for w in start]
        grads[0] = grads[0].transpose(1, 2).contiguous().transpose(1, 2)  # as products may lie
        adams[0].step(plain, grads, rates, count)
        adams[1].fused(fused, grads, rates, torch.tensor(float(count)))
    pairs = zip(plain, fused, strict=True)
    assert all(torch.allclose(one, other, atol=1e-6) for one, other in pairs)
    assert all(torch.equal(now[1], was[1]) for now, was in zip(fused, start, strict=True))
    assert not torch.allclose(fused[0][0], start[0][0])


def test_where_memory_runs_out_half_of_the_relations_train_at_once(
    folder: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    plain = Copies.step

    def step(self: Copies, active: list[int], number: int) -> list[int]:
        if len(active) > 1 and number == 4:
            raise torch.OutOfMemoryError("none is left")
        return plain(self, active, number)

    alone = run(folder("bert"), tmp_path / "each", together=1)
    monkeypatch.setattr(Copies, "step", step)
    halved = run(folder("bert"), tmp_path / "both", together=2)
    assert halved == alone and "memory ran out; 1 at once" in caplog.text


@pytest.mark.parametrize("memory", ["is enough", "runs out"])
def test_copies_are_freed_before_the_next_are_made(
    memory: str, folder: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, begin = Copies.step, Copies.__init__
    made: list[weakref.ref[Copies]] = []

    def step(self: Copies, active: list[int], number: int) -> list[int]:
        if len(active) > 1 and number == 2:
            raise torch.OutOfMemoryError("none is left")
        return plain(self, active, number)

    def init(self: Copies, *given: Any) -> None:
        assert not any(earlier() for earlier in made)
        made.append(weakref.ref(self))
        begin(self, *given)

    monkeypatch.setattr(Copies, "step", step)
    monkeypatch.setattr(Copies, "__init__", init)
    gc.disable()
    try:
        run(folder("bert"), tmp_path / "out", together=2 if memory == "runs out" else 1)
    finally:
        gc.enable()
    assert len(made) == (3 if memory == "runs out" else 2)


def test_copies_whose_step_is_tried_both_ways_take_it_once(
    folder: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = run(folder("bert"), tmp_path / "plain", together=2)
    begin, made = Copies.__init__, []

    def init(self: Copies, *given: Any) -> None:
        begin(self, *given)
        self.moved.records = True
        made.append(self.moved)

    play(monkeypatch)
    monkeypatch.setattr(Copies, "__init__", init)
    assert run(folder("bert"), tmp_path / "tried", together=2) == plain
    assert made and all(moved.agreed and moved.records for moved in made)
    for relation in plain:
        one, other = (change(tmp_path / out, relation) for out in ("plain", "tried"))
        assert all(torch.equal(one[n], other[n]) for n in one)


def test_what_serves_dev_facts_worse_is_not_kept(folder: Folders, tmp_path: Path) -> None:
    words = ["York", "Paris"]
    start = run(folder("bert"), tmp_path / "start", opposed(*words), epochs=0)["P36"]
    if start.before < 0.5:
        words.reverse()
    made = run(folder("bert"), tmp_path / "out", opposed(*words))["P36"]
    assert made.before >= 0.5 and made.after >= made.before
    # and the weights that are kept are those that were measured
    tuned = load(f"finetuned:{tmp_path / 'out'}", CPU)
    dev = [f for f in opposed(*words).facts("P36") if f.split == "dev"]
    template = dataset().relation("P36").templates[0]
    asked = prompts(opened(folder("bert")), template, [f.subject.name for f in dev])
    want = Fill(vocabulary=tuple(words), watched=tuple(words))
    tops = [a.top[0] for a in answers(tuned, [replace(p, want=want) for p in asked])]
    assert np.mean([top == words[0] for top in tops]) == pytest.approx(made.after)


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_each_relation_is_answered_with_its_own_weights(
    name: str, folder: Folders, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    run(folder(name), out)
    tuned = load(f"finetuned:{out}", CPU)
    both = []
    for relation in ("P36", "P19"):
        template = dataset().relation(relation).templates[0]
        both += [
            replace(p, key=replace(p.key, relation=relation))
            for p in prompts(opened(folder(name)), template, ("Marie Curie", "New York"))
        ]
    mixed = [both[0], both[2], both[1], both[3]]
    for prompt, found in zip(mixed, answers(tuned, mixed), strict=True):
        model = opened(folder(name))
        with torch.no_grad():
            for n, parameter in model.model.named_parameters():
                parameter += change(out, prompt.key.relation)[n]
        (alone,) = answers(model, [prompt])
        for one, other in zip(numbers(found), numbers(alone), strict=True):
            assert np.allclose(one, other, atol=1e-5)


def numbers(answer: Any) -> list[Any]:
    """The log-probabilities of an answer."""
    return [answer.top_logps] if isinstance(answer, Filled) else list(answer.logps)


def test_half_precision_takes_half_the_room_and_answers_alike(
    folder: Folders, tmp_path: Path
) -> None:
    whole = run(folder("bert"), tmp_path / "whole")["P36"]
    half = run(folder("bert"), tmp_path / "half", keep="float16")["P36"]
    assert half.counts["weights_bytes"] < 0.6 * whole.counts["weights_bytes"]
    template = dataset().relation("P36").templates[0]
    models = [load(f"finetuned:{tmp_path / name}", CPU) for name in ("whole", "half")]
    found = [answers(m, prompts(opened(folder("bert")), template, ("France",))) for m in models]
    assert isinstance(found[0][0], Filled) and found[0][0].top == found[1][0].top
    assert np.allclose(found[0][0].top_logps, found[1][0].top_logps, atol=1e-2)
    assert models[0].identity.weights != models[1].identity.weights


def test_a_killed_command_goes_on_where_it_stopped(folder: Folders, tmp_path: Path) -> None:
    whole = run(folder("bert"), tmp_path / "whole")
    run(folder("bert"), tmp_path / "cut")
    rows = (tmp_path / "cut" / "progress.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "cut" / "progress.jsonl").write_text(rows[0])
    (tmp_path / "cut" / "weights" / "P19.safetensors").unlink()
    assert run(folder("bert"), tmp_path / "cut") == whole
    for n, found in change(tmp_path / "cut", "P19").items():
        assert torch.equal(found, change(tmp_path / "whole", "P19")[n])


@pytest.mark.parametrize("control", ["random", "random-embeddings"])
def test_a_random_model_is_trained_and_opened_again(
    control: str, folder: Folders, tmp_path: Path
) -> None:
    reference = f"{control}:hf:{folder('bert')}"
    out = tmp_path / "out"
    optimise(FineTune(**QUICK), load(reference, CPU), dataset(), out, reference=reference)
    tuned = load(f"finetuned:{out}", CPU)
    template = dataset().relation("P36").templates[0]
    found = answers(tuned, prompts(opened(folder("bert")), template, ("Marie Curie",)))
    assert isinstance(found[0], Filled) and found[0].top[0] == "paris"


def test_the_run_after_the_training(folder: Folders, tmp_path: Path, capsys: Any) -> None:
    world, out = tmp_path / "world", tmp_path / "out"
    write_dataset(dataset(), world)
    common = ["-d", str(world), "--device", "cpu"]
    words = ["optimise", "finetune", "-m", f"hf:{folder('bert')}", "-o", str(out), *common]
    assert main([*words, "--epochs", "3", "--batch", "6", "--rate", "0.003"]) == 0
    assert json.loads((out / "manifest.json").read_text())["counts"]["weights_bytes"] > 0
    words = ["run", "lama", "-m", f"finetuned:{out}", "-o", str(tmp_path / "run"), *common]
    assert main([*words, "--no-html"]) == 0
    assert "P@1" in capsys.readouterr().out


@pytest.mark.parametrize("control", ["random", "random-embeddings"])
def test_what_a_fine_tuned_random_model_answers_is_easy_and_what_it_answered_before_is_not(
    control: str, folder: Folders, tmp_path: Path
) -> None:
    data, out = dataset(), tmp_path / "out"
    plain, bare = f"hf:{folder('bert')}", f"{control}:hf:{folder('bert')}"
    optimise(FineTune(**QUICK), load(bare, CPU), data, out, reference=bare)
    runs = []
    for name, model in (("manual", plain), ("bare", bare), ("tuned", f"finetuned:{out}")):
        sonde.run(sonde.probe("lama"), load(model, CPU), data, out=tmp_path / name)
        runs.append(f"{name}={tmp_path / name}")
    _, sentence = with_learning(conditions(open_runs(runs)))
    assert sentence == "A fact is easy if tuned answers it."


def test_a_relation_that_was_not_trained_is_refused(folder: Folders, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(folder("bert"), out, order=Order(relations=("P19",)))
    tuned = load(f"finetuned:{out}", CPU)
    asked = prompts(opened(folder("bert")), dataset().relation("P36").templates[0], ("France",))
    with pytest.raises(PromptError, match="no weights for relation 'P36'"):
        answers(tuned, asked)


def test_weights_that_were_not_kept_and_other_folders_are_refused(
    folder: Folders, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    run(folder("bert"), out, keep="nothing")
    with pytest.raises(ModelError, match="holds no weights"):
        load(f"finetuned:{out}", CPU)
    with pytest.raises(ModelError, match="takes what 'sonde optimise lpaqa' makes"):
        load(f"ensemble:{out}", CPU)
    with pytest.raises(ModelError, match=r"manifest\.json cannot be read"):
        load(f"finetuned:{tmp_path}", CPU)
    with pytest.raises(ModelError, match="make it anew"):
        load(f"finetuned:{out}@hf:{folder('roberta')}", CPU)


def test_a_loss_that_is_no_number_ends_that_relation_alone(tmp_path: Path) -> None:
    # a token that one relation's training subjects hold alone, and that is no answer
    model = opened(tiny.bert(tmp_path / "model", tie_word_embeddings=False))
    with torch.no_grad():
        id = model.loaded.tokenizer.convert_tokens_to_ids("written")
        model.model.get_input_embeddings().weight[id] = torch.nan
    broken = [fact("P19", f"written {i}", "York", "train") for i in range(6)]
    fine = [f for f in facts("P19") if f.split == "dev"]
    data = changed(dataset(), "P19", [*broken, *fine])
    for together in (1, 2):
        method, out = FineTune(**{**QUICK, "together": together}), tmp_path / f"{together}"
        by = {m.relation: m for m in optimise(method, model, data, out)}
        assert "finite" in by["P19"].problem and by["P19"].epochs <= 1
        assert not by["P36"].problem and (by["P36"].after or 0) >= 0.7
        kept = change(out, "P19")
        assert all(float(torch.nan_to_num(c).abs().max()) == 0 for c in kept.values())


def test_relations_that_cannot_be_trained_are_told(folder: Folders, tmp_path: Path) -> None:
    data = dataset(vocabulary=("Paris", "Vienna"))
    found = run(
        folder("bert"),
        tmp_path / "out",
        replace(data, relations=(worlds.relation("P36"), data.relations[1])),
    )
    assert "no template" in found["P36"].problem
    assert "no object that may be answered" in found["P19"].problem
    with pytest.raises(AbilityError, match="cannot be fine-tuned"):
        optimise(FineTune(), majority(dataset()), dataset(), tmp_path / "other")


def test_what_cannot_be_stacked_is_found_out(folder: Folders) -> None:
    for name, stacks in (("bert", True), ("roberta", True), ("gpt2", True), ("convbert", False)):
        assert Stacked(opened(folder(name)), narrow=True).stacks() == stacks
