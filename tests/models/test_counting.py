"""Controls that are fitted on training facts: the class prior and naive Bayes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from math import exp, log
from pathlib import Path

import polars as pl
import pytest

import sonde
import sonde.testing
from sonde.core.abilities import abilities
from sonde.core.answers import Scored
from sonde.core.errors import DataError
from sonde.core.facts import Dataset, Selection
from sonde.core.prompts import Key, Prompt, Score
from sonde.evaluation.estimate import estimate_results
from sonde.evaluation.tables import collect_results
from sonde.models.load import load
from sonde.probes.lama import Lama
from sonde.testing import check_model
from tests.rows import answer_all, asked
from tests.worlds import dataset_of, entity, fact, relation

TRAINED = (
    ("Jan van Eyck", "Dutch"),
    ("Piet van Dam", "Dutch"),
    ("Piet Bos", "Dutch"),
    ("Jan Kos", "Czech"),
    ("Anna Kos", "Czech"),
    ("Anna Li", "Czech"),
)
ASKED = (("Jan van Gent", "Dutch"), ("Anna Kos", "Czech"))


def world(trained: Sequence[tuple[str, str]] = TRAINED, split: str = "train") -> Dataset:
    rows = [(*pair, "test") for pair in ASKED] + [(*pair, split) for pair in trained]
    facts = [
        fact("P1", entity(subject, id=f"s{i}"), object, id=f"f{i}", split=split)
        for i, (subject, object, split) in enumerate(rows)
    ]
    return dataset_of(facts, relation("P1", "[X] speaks [Y].", label="language"))


def prompt(subject: str, *options: str) -> Prompt:
    key = Key(fact="f", relation="P1", template="t", subject=subject)
    return Prompt(key=key, prefix="", want=Score(options=options))


def shares(name: str, subject: str, *options: str) -> dict[str, float]:
    (row,) = answer_all(load(f"control:{name}", dataset=world()), [prompt(subject, *options)])
    assert isinstance(row.answer, Scored)
    return {o: logps[0] for o, logps in zip(options, row.answer.logps, strict=True)}


def test_the_class_prior_answers_with_the_commonest_training_object() -> None:
    found = shares("class-prior", "Jan van Eyck", "Dutch", "Czech", "Greek")
    assert found["Dutch"] > found["Czech"] > found["Greek"]  # the leaked fact is not counted


def test_naive_bayes_equals_its_formula_by_hand() -> None:
    # the leak is dropped: 3 Dutch facts with 8 words, 2 Czech ones with 4
    words = {"Jan": (1, 1), "van": (2, 0), "Gent": (0, 0)}
    dutch, czech = log(3 / 5), log(2 / 5)
    vocabulary = len({"Jan", "van", "Eyck", "Piet", "Dam", "Bos", "Kos", "Anna", "Li"})
    for in_dutch, in_czech in words.values():
        dutch += log((in_dutch + 1) / (8 + vocabulary))
        czech += log((in_czech + 1) / (4 + vocabulary))
    found = shares("naive-bayes", "Jan van Gent", "Dutch", "Czech")
    assert found["Dutch"] - found["Czech"] == pytest.approx(dutch - czech, abs=1e-3)
    assert sum(map(exp, found.values())) == pytest.approx(1)


def test_naive_bayes_puts_what_it_never_saw_last() -> None:
    found = shares("naive-bayes", "Jan " * 40, "Dutch", "Czech", "Greek")
    assert found["Greek"] < min(found["Dutch"], found["Czech"])


def test_leaked_facts_are_dropped_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    model = load("control:naive-bayes", dataset=world())
    assert model.identity.details["leaked_dropped"] == "1"
    assert model.identity.details["fitted_on"] == "5 facts of split train"
    assert "1 more were dropped because they are also asked about" in caplog.text


def test_facts_of_other_splits_are_not_learned() -> None:
    with pytest.raises(DataError, match="dataset 'world' has none for what is asked"):
        load("control:class-prior", dataset=world(split="dev"))
    with pytest.raises(DataError, match="control:naive-bayes learns from training facts"):
        load("control:naive-bayes", dataset=world(()))


@pytest.mark.parametrize("name", ["class-prior", "naive-bayes"])
def test_a_fitted_control_does_everything_the_majority_does(name: str) -> None:
    model = load(f"control:{name}", dataset=world())
    assert abilities(model) == {"score", "fill", "generate", "sample", "trace"}
    for probe in ("lama", "belief", "belief-icl"):
        settings = {"context": "zero-shot"} if probe == "belief-icl" else {}
        suited = sonde.probe(probe, **settings).suited(abilities(model))
        check_model(model, asked(suited, world()))


def test_a_control_is_named_by_what_it_counted() -> None:
    one, other = (load("control:naive-bayes", dataset=world(t)) for t in (TRAINED, TRAINED[1:]))
    assert one.identity.weights != other.identity.weights
    turned = load("control:naive-bayes", dataset=world(TRAINED[::-1]))
    assert one.identity.weights == turned.identity.weights


def on_all_of_lama(name: str, shared: Path) -> Callable[..., float]:
    """The percentages of a control on every fact of LAMA: over relations, or of a group."""
    dataset = sonde.dataset(str(shared / "data/lama"))
    probe = Lama().resolve(frozenset({"fill"}))
    control = load(f"control:{name}", dataset=dataset)
    answers = sonde.testing.answer_batches(control, probe.prompts(dataset))
    results = collect_results(probe, dataset, answers)
    assert results.rows.height == 34_017
    estimates = estimate_results(results).filter(metric="p_at_1", of="value", over="relations")

    def share(*group: str) -> float:
        value: float = estimates.filter(pl.col("group") == list(group))["value"].item()
        return 100 * value

    return share


@pytest.mark.shared
def test_the_class_prior_gives_the_known_numbers_on_all_of_lama(shared: Path) -> None:
    share = on_all_of_lama("class-prior", shared)
    groups = ((), ("1-1",), ("N-1",), ("N-M",), ("P463",), ("P176",))
    known = (17.3, 0.2, 23.2, 11.0, 2.2, 8.9)
    assert [share(*group) for group in groups] == pytest.approx(known, abs=0.06)


@pytest.mark.slow
@pytest.mark.shared
def test_naive_bayes_gives_the_known_number_on_all_of_lama(shared: Path) -> None:
    """Golden values hold it to more digits, on fewer facts."""
    assert on_all_of_lama("naive-bayes", shared)() == pytest.approx(24.6, abs=0.3)


def test_only_relations_that_are_asked_about_need_training_facts() -> None:
    dataset = world().select(Selection(relations=("P1",)))
    assert (
        load("control:class-prior", dataset=dataset).identity.details["fitted_on"].startswith("5")
    )
