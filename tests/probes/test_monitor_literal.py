"""MONITOR computed literally, one text at a time through a tiny model, gives the same numbers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import transformers

from sonde.bridge import as_answers
from sonde.core.facts import Dataset
from sonde.evaluation.estimate import estimate_results
from sonde.evaluation.tables import collect_results
from sonde.models.options import LoadOptions
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.loading.weights import load_folder
from sonde.probes.monitor import Monitor
from sonde.testing import answer_all
from tests import tiny
from tests.worlds import fact

from .test_monitor import BIRTH, CAPITAL, world

MAX_TOKENS = 3
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
        encoded = self.tokenizer(text, return_offsets_mapping=True)
        ids = encoded["input_ids"]
        rows = self.model(torch.tensor([ids])).logits[0].double().softmax(-1)
        return [
            float(rows[i - 1, ids[i]])
            for i, (_, stop) in enumerate(encoded["offset_mapping"])
            if stop > len(prompt)  # with the space before
        ]

    @torch.no_grad()
    def generate(self, prompt: str) -> str:
        """The greedy answer, its first line, without closing punctuation."""
        ids = self.tokenizer(prompt)["input_ids"]
        new: list[int] = []
        for _ in range(MAX_TOKENS):
            logits = self.model(torch.tensor([ids + new])).logits[0, -1]
            new.append(int(logits.argmax()))
            if new[-1] == self.tokenizer.eos_token_id:
                new.pop()
                break
            if "\n" in self.tokenizer.decode(ids + new)[len(prompt) :]:
                break
        text = str(self.tokenizer.decode(ids + new))[len(str(self.tokenizer.decode(ids))) :]
        return text.partition("\n")[0].strip().rstrip(".,;:!?\"')]}-_/*#&%@ ")


def facts_of(data: Dataset) -> Iterator[tuple[str, str, list[str], list[str]]]:
    """Relation, gold, questions about the subject, wrong names."""
    for relation in data.relations:
        for one in data.asked(relation.id):
            gold = one.objects[0].name
            questions = [
                t.text.removesuffix(" [Y].").replace("[X]", one.subject.name)
                for t in relation.templates
                if t.style == "question"
            ]
            wrong = [w.name for w in one.wrong if w.name != gold]
            yield relation.id, gold, questions, wrong


def literally(model: Literal, data: Dataset) -> dict[str, tuple[float, float, float, int]]:
    """MONITOR, PFD, IRD and the number of anchors of every relation."""
    sums: dict[str, list[tuple[float, float, float]]] = {r.id: [] for r in data.relations}
    for relation, gold, questions, wrong in facts_of(data):
        base = questions[0]
        if model.generate(f"{gold}. {base}") != gold or not wrong:
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


def stable_name(model: Literal, base: str) -> str:
    """A name that the model repeats after itself, by trying; else where that ends."""
    name = "Oslo"
    for _ in range(12):
        answer = model.generate(f"{name}. {base}")
        if answer in (name, ""):
            break
        name = answer
    return name


def world_of(model: Literal) -> Dataset:
    """Facts whose objects are what the model itself generates, so that some anchors are valid."""
    facts = []
    for relation, base in ((CAPITAL, CAPITAL.templates[1]), (BIRTH, BIRTH.templates[0])):
        for i in range(8):
            subject = f"{relation.label} {i}"
            text = base.text.removesuffix(" [Y].").replace("[X]", subject)
            gold = stable_name(model, text) if i % 4 else "New York"
            wrong = WRONG[: 1 + i % 4] if i != 5 else (gold,)
            facts.append(fact(relation.id, subject, gold, wrong=wrong))
    return world(*facts)


@pytest.mark.parametrize("seed", [1, 5, 7])
def test_the_numbers_are_those_of_the_definitions(tmp_path: Path, seed: int) -> None:
    folder = tiny.gpt2(tmp_path / "model", seed=seed)
    literal = Literal(folder)
    data = world_of(literal)
    expected = literally(literal, data)
    loaded = load_folder("hf:tiny", folder, LoadOptions(device="cpu"), weights="tiny")
    probe = Monitor(max_tokens=MAX_TOKENS)
    answers = map(as_answers, answer_all(CausalModel(loaded), probe.ask(data)))
    results = collect_results(probe, data, answers)
    estimates = estimate_results(results).filter(of="value", over="relations")
    numbers = {
        (metric, *group): (value, n)
        for metric, group, value, n in estimates.select("metric", "group", "value", "n").iter_rows()
    }
    assert expected
    assert 0 < numbers[("monitor",)][1] == sum(row[3] for row in expected.values()) < 16
    for relation, row in expected.items():
        values = [numbers[name, relation][0] for name in ("monitor", "pfd", "ird")]
        assert values == pytest.approx(row[:3], abs=1e-6)
