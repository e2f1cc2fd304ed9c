"""Templates are chosen by training facts, and several of them answer as one model."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sonde.cli.main import main
from sonde.core.answers import Filled, Scored
from sonde.core.errors import AbilityError, ModelError, PromptError
from sonde.core.facts import Dataset, Template
from sonde.core.prompts import Cloze, Fill, Prompt
from sonde.data.format import write_dataset
from sonde.models.load import load
from sonde.models.options import LoadOptions
from sonde.optimise.lpaqa import Lpaqa
from sonde.optimise.lpaqa.choosing import judged, weighed
from sonde.optimise.making import Made, optimise
from sonde.testing import check_model

from .world import answers, dataset, facts, opened, prompts

Folders = Callable[[str], Path]
CPU = LoadOptions(device="cpu")
TEXTS = (
    "The capital of [X] is [Y] .",
    "[Y] is the capital of [X] .",
    "[X] , and [Y] that of it .",
    "Who was [X] ? It was [Y] .",
)
WORDS = ("Paris", "Vienna", "Oslo", "Warsaw", "York", "the", "cities", "language")


def worded(vocabulary: tuple[str, ...] | None = WORDS, texts: tuple[str, ...] = TEXTS) -> Dataset:
    """P36 under several templates."""
    data = dataset("P36", vocabulary=vocabulary)
    found = [Template(id=f"t{i}", text=text, group=f"t{i}") for i, text in enumerate(texts)]
    return replace(data, relations=(replace(data.relations[0], templates=tuple(found)),))


def run(folder: Path, out: Path, data: Dataset | None = None, **given: Any) -> Made:
    """Choose for P36."""
    reference = f"hf:{folder}"
    method = Lpaqa(**given)
    (made,) = optimise(method, opened(folder), data or worded(), out, reference=reference)
    return made


def shares(model: Any, split: str, vocabulary: tuple[str, ...] | None = WORDS) -> list[float]:
    """The share of facts right under each template, asked one after the other."""
    asked = [f for f in facts("P36") if f.split == split]
    found = []
    for template in worded().relations[0].templates:
        base = prompts(model, template, [f.subject.name for f in asked])
        right = 0
        for one, prompt in zip(asked, base, strict=True):
            if isinstance(prompt.want, Fill):
                want = replace(prompt.want, vocabulary=vocabulary, top=1)
                (answer,) = answers(model, [replace(prompt, want=want)])
                right += answer.top[0] == one.objects[0].name
        found.append(right / len(asked))
    return found


@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_the_best_template_is_the_one_that_answers_most_training_facts(
    name: str, folder: Folders, tmp_path: Path
) -> None:
    texts = TEXTS if name == "bert" else TEXTS[:1] + TEXTS[2:]  # a word that opens is another token
    made = run(folder(name), tmp_path / "out", worded(texts=texts))
    train = shares(opened(folder(name)), "train")
    dev = shares(opened(folder(name)), "dev")
    (best,) = made.templates
    place = TEXTS.index(best.text)
    assert best.weight == 1.0 and best.source == "manual"
    assert train[place] == max(train[TEXTS.index(text)] for text in texts)
    assert made.before == pytest.approx(dev[0]) and made.after == pytest.approx(dev[place])
    assert made.counts["templates"] == len(texts)


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_an_ensemble_answers_with_the_average_of_its_templates(
    name: str, folder: Folders, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    made = run(folder(name), out, choose="weighted", k=3, epochs=3)
    weights = [template.weight or 0.0 for template in made.templates]
    assert (
        len(weights) == 3 and sum(weights) == pytest.approx(1) and weights == sorted(weights)[::-1]
    )
    base, together = opened(folder(name)), load(f"ensemble:{out}", CPU)
    for subject in ("France", "Marie Curie"):
        asked = _asked(base, made.templates[0], subject)
        (found,) = answers(together, [asked])
        total = np.zeros(len(WORDS))
        for template, weight in zip(made.templates, weights, strict=True):
            (answer,) = answers(base, [_asked(base, template, subject)])
            total += weight * np.array(_logps(answer))
        if isinstance(found, Filled):
            total -= np.logaddexp.reduce(total)
            assert found.mass == pytest.approx(0, abs=1e-5)
            order = np.argsort(-total)
            assert found.top == tuple(WORDS[i] for i in order[:5])
            assert found.watched_ranks == tuple(int(r) + 1 for r in np.argsort(order))
        assert np.allclose(_logps(found), total, atol=1e-4)


def _asked(model: Any, template: Template, subject: str) -> Prompt:
    (prompt,) = prompts(model, template, (subject,))
    want: Any = prompt.want
    if isinstance(want, Fill):
        return replace(prompt, want=Fill(top=5, watched=WORDS, vocabulary=WORDS))
    return replace(prompt, want=replace(want, options=WORDS))


def _logps(answer: Any) -> list[float]:
    if isinstance(answer, Filled):
        return [float(value or 0) for value in answer.watched_logps]
    assert isinstance(answer, Scored)
    suffixes = answer.suffix_logps or ((),) * len(answer.logps)
    return [sum(a) + sum(b) for a, b in zip(answer.logps, suffixes, strict=True)]


def test_a_word_that_is_another_token_in_each_template_is_one_answer(
    folder: Folders, tmp_path: Path
) -> None:
    # in byte-level BPE a word that opens a text is another token than after a space
    words = ("the", "York", "Paris", "is", "in", "a", "s", "t", "of", "Norway", "Oslo", "Vienna")
    base = opened(folder("roberta"))
    after = base.encoder.single_tokens(words, "France is ")
    opens = base.encoder.single_tokens(words, "")
    both = [word for word in words if word in after and word in opens]
    assert both and any(after[word] != opens[word] for word in both)
    object = next(word for word in both if after[word] != opens[word])
    data = worded(words)
    given = [replace(f, objects=(replace(f.objects[0], names=(object,)),)) for f in facts("P36")]
    data = replace(data, read=lambda _: given)
    run(folder("roberta"), tmp_path / "out", data, choose="average")
    together = load(f"ensemble:{tmp_path / 'out'}", CPU)
    (prompt,) = prompts(base, data.relations[0].templates[0], ("France",))
    want = Fill(top=20, watched=words, vocabulary=words)
    (found,) = answers(together, [replace(prompt, want=want)])
    assert isinstance(found, Filled) and set(found.top) <= set(both)
    assert found.watched_ranks[words.index(object)] is not None


def test_equal_weights_average_and_tuned_ones_fit_training_facts_better(
    folder: Folders, tmp_path: Path
) -> None:
    average = run(folder("bert"), tmp_path / "average", choose="average", k=0)
    assert {template.weight for template in average.templates} == {0.25}
    tuned = run(folder("bert"), tmp_path / "tuned", choose="weighted", k=0, epochs=20)
    assert tuned.after is not None and average.after is not None
    assert tuned.after >= average.after
    untuned = run(folder("bert"), tmp_path / "untuned", choose="weighted", k=0, epochs=0)
    assert {template.weight for template in untuned.templates} == {0.25}
    assert untuned.after == average.after
    train = [f.subject.name for f in facts("P36") if f.split == "train"]
    objects = [f.objects[0].name for f in facts("P36") if f.split == "train"]
    losses = []
    for out in ("average", "tuned"):
        model = load(f"ensemble:{tmp_path / out}", CPU)
        asked = [_asked(opened(folder("bert")), average.templates[0], s) for s in train]
        found = [_logps(answer) for answer in answers(model, asked)]
        losses.append(-np.mean([v[WORDS.index(o)] for v, o in zip(found, objects, strict=True)]))
    assert losses[1] < losses[0] - 0.01


def test_the_average_is_over_logarithms_and_made_a_distribution_again() -> None:
    logps = torch.log_softmax(torch.randn(2, 3, 5, generator=torch.manual_seed(0)), -1)
    logits = torch.tensor([0.5, -1.0, 0.2])
    weights = torch.softmax(logits, 0)
    expected = torch.stack([weights[t] * logps[:, t] for t in range(3)]).sum(0)
    assert torch.allclose(weighed(logps, logits), torch.log_softmax(expected, -1))
    golds = torch.zeros(2, 5, dtype=torch.bool)
    golds[0, 1] = golds[1, 2] = golds[1, 3] = True
    even = torch.full((2, 5), float(np.log(0.2)))
    loss, hit = judged(even, golds)  # a tie is wrong, two right answers share
    assert loss.exp().tolist() == pytest.approx([5, 2.5]) and hit.tolist() == [0, 0]


def test_an_ensemble_is_run_like_any_model(folder: Folders, tmp_path: Path, capsys: Any) -> None:
    world, out = tmp_path / "world", tmp_path / "out"
    write_dataset(worded(), world)
    common = ["-d", str(world), "--device", "cpu"]
    words = ["optimise", "lpaqa", "-m", f"hf:{folder('bert')}", "-o", str(out), *common]
    assert main([*words, "--choose", "weighted", "--k", "2"]) == 0
    words = ["run", "lama", "-m", f"ensemble:{out}", "-o", str(tmp_path / "run"), *common]
    assert main([*words, "--no-html"]) == 0
    assert "P@1" in capsys.readouterr().out
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["model"]["name"] == f"ensemble:{out}"
    model = load(f"ensemble:{out}", CPU)
    template = worded().relations[0].templates[0]
    check_model(model, [_asked(opened(folder("bert")), template, s) for s in ("France", "Oslo")])


def test_candidates_come_from_another_source(folder: Folders, tmp_path: Path, capsys: Any) -> None:
    world, lpaqa = tmp_path / "world", tmp_path / "lpaqa" / "mine"
    write_dataset(dataset(), world)
    lpaqa.mkdir(parents=True)
    rows = [{"template": text, "weight": 0.1} for text in TEXTS]
    (lpaqa / "P36.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["optimise", "lpaqa", "-m", f"hf:{folder('bert')}", "-d", str(world), "--device", "cpu"]
    out = ["-o", str(tmp_path / "out"), "--json"]
    assert main([*words, *out, "--template", f"lpaqa:{tmp_path / 'lpaqa'}"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["relations"]
    assert row["counts"]["templates"] == 4 and row["templates"][0]["source"] == "mined"


def test_what_cannot_be_used_is_told(folder: Folders, tmp_path: Path) -> None:
    made = run(folder("bert"), tmp_path / "words", worded(("Oslo", "the")))
    assert "none of its training facts" in made.problem and made.counts["outside_vocabulary"] == 48
    bare = replace(worded(), relations=(replace(worded().relations[0], templates=()),))
    assert run(folder("bert"), tmp_path / "bare", bare).problem == "it has no templates"
    with pytest.raises(AbilityError, match="can neither fill"):
        optimise(Lpaqa(), _Mute(), worded(), tmp_path / "mute")
    run(folder("bert"), tmp_path / "out")
    together = load(f"ensemble:{tmp_path / 'out'}", CPU)
    prompt = _asked(opened(folder("bert")), worded().relations[0].templates[0], "France")
    other = replace(prompt, cloze=Cloze(relation="P19", subject="France"))
    with pytest.raises(PromptError, match="no templates for relation 'P19'"):
        answers(together, [other])
    (tmp_path / "out" / "templates.jsonl").unlink()
    with pytest.raises(ModelError, match="not finished"):
        load(f"ensemble:{tmp_path / 'out'}", CPU)


class _Mute:
    """A model that can do nothing."""

    identity: Any = replace(load("control:majority", CPU, dataset()).identity, name="mute")
