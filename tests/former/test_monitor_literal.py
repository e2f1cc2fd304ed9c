"""MONITOR carried out literally, a text at a time through a tiny model, gives the same numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import transformers

from sonde.core.facts import Dataset
from sonde.models.options import LoadOptions
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.loading.weights import load_folder
from sonde.former.monitor.probe import Monitor
from tests import tiny
from tests.rows import answer_all
from tests.worlds import fact

from .monitor_world import BIRTH, CAPITAL, world

MOST = 3
WRONG = ("Oslo", "New York", "Bern", "St. Gallen")


class Literal:
    """The definitions, with transformers alone and no sharing."""

    def __init__(self, folder: Path) -> None:
        self.model = transformers.AutoModelForCausalLM.from_pretrained(folder)
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)

    @torch.no_grad()
    def probabilities(self, prompt: str, answer: str) -> list[float]:
        """P of each token of the answer after "prompt "."""
        text = f"{prompt} {answer}"
        given = self.tokenizer(text, return_offsets_mapping=True)
        ids = given["input_ids"]
        rows = self.model(torch.tensor([ids])).logits[0].double().softmax(-1)
        return [
            float(rows[i - 1, ids[i]])
            for i, (_, stop) in enumerate(given["offset_mapping"])
            if stop > len(prompt)  # with the space before
        ]

    @torch.no_grad()
    def writes(self, prompt: str) -> str:
        """The greedy answer, its first line, without closing punctuation."""
        ids = self.tokenizer(prompt)["input_ids"]
        new: list[int] = []
        for _ in range(MOST):
            logits = self.model(torch.tensor([ids + new])).logits[0, -1]
            new.append(int(logits.argmax()))
            if new[-1] == self.tokenizer.eos_token_id:
                new.pop()
                break
            if "\n" in self.tokenizer.decode(ids + new)[len(prompt) :]:
                break
        text = str(self.tokenizer.decode(ids + new))[len(str(self.tokenizer.decode(ids))) :]
        return text.partition("\n")[0].strip().rstrip(".,;:!?\"')]}-_/*#&%@ ")


def asked(data: Dataset) -> Iterator[tuple[str, str, str, list[str], list[str]]]:
    """Relation, fact, gold, frames filled in, wrong names."""
    for relation in data.relations:
        for one in data.asked(relation.id):
            gold = one.objects[0].name
            questions = [
                t.text.removesuffix(" [Y].").replace("[X]", one.subject.name)
                for t in relation.templates
                if t.style == "question"
            ]
            wrong = [w.name for w in one.wrong if w.name != gold]
            yield relation.id, one.id, gold, questions, wrong


def literally(model: Literal, data: Dataset) -> dict[str, tuple[float, float, float, int]]:
    """MONITOR, PFD, IRD and the number of anchors of every relation."""
    sums: dict[str, list[tuple[float, float, float]]] = {r.id: [] for r in data.relations}
    for relation, _, gold, questions, wrong in asked(data):
        base = questions[0]
        if model.writes(f"{gold}. {base}") != gold or not wrong:
            continue
        anchor = model.probabilities(f"{gold}. {base}", gold)
        length = len(anchor)
        pfd = ird = 0.0
        for question in questions:
            other = model.probabilities(question, gold)
            assert len(other) == length
            pfd += sum(abs(a - b) for a, b in zip(anchor, other, strict=True)) / length
        for name in wrong:
            other = model.probabilities(f"{name}. {base}", gold)
            ird += sum(abs(a - b) for a, b in zip(anchor, other, strict=True)) / length
        sums[relation].append((pfd / len(questions), ird / len(wrong), sum(anchor) / length))
    return {
        relation: (
            sum(((p * p + i * i + p * i) / 3) ** 0.5 for p, i, _ in rows)
            / sum(a for _, _, a in rows),
            sum(p for p, _, _ in rows) / len(rows),
            sum(i for _, i, _ in rows) / len(rows),
            len(rows),
        )
        for relation, rows in sums.items()
        if rows
    }


def settled(model: Literal, base: str) -> str:
    """A name that the model writes after that name, found by trying; else where it got to."""
    name = "Oslo"
    for _ in range(12):
        said = model.writes(f"{name}. {base}")
        if said in (name, ""):
            break
        name = said
    return name


def made(model: Literal) -> Dataset:
    """Facts whose objects are what the model itself says, so that some anchors are valid."""
    facts = []
    for relation, base in ((CAPITAL, CAPITAL.templates[1]), (BIRTH, BIRTH.templates[0])):
        for i in range(8):
            subject = f"{relation.label} {i}"
            text = base.text.removesuffix(" [Y].").replace("[X]", subject)
            gold = settled(model, text) if i % 4 else "New York"
            wrong = WRONG[: 1 + i % 4] if i != 5 else (gold,)
            facts.append(fact(relation.id, subject, gold, wrong=wrong))
    return world(facts)


@pytest.mark.parametrize("seed", [1, 5, 7])
def test_the_numbers_are_those_of_the_definitions(tmp_path: Path, seed: int) -> None:
    folder = tiny.gpt2(tmp_path / "model", seed=seed)
    literal = Literal(folder)
    data = made(literal)
    expected = literally(literal, data)
    loaded = load_folder("hf:tiny", folder, LoadOptions(device="cpu"), weights="tiny")
    probe = Monitor(most=MOST)
    answered = answer_all(CausalModel(loaded), list(probe.ask(data)))
    report = probe.read(data, answered)
    assert expected
    assert any(len(anchor) > 1 for anchor in probe.monitored(data, answered).anchor)
    counted = report.counts["facts_counted"]
    assert counted == sum(row[3] for row in expected.values())
    assert 0 < counted < report.counts["facts"]
    for relation, row in expected.items():
        found = [
            report.estimates[f"{name}.relation.{relation}"].value
            for name in ("monitor", "pfd", "ird")
        ]
        assert found == pytest.approx(row[:3], abs=1e-6)
