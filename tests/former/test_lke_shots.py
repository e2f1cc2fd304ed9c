"""lke-shots: the curve over the number of examples, its mark, and what there is too little of."""

from __future__ import annotations

from pathlib import Path
from statistics import mean, stdev

import numpy as np
import pytest

import sonde
from sonde.core.abilities import Scores
from sonde.core.answers import Answered, Scored
from sonde.core.columns import one_by_one
from sonde.core.errors import DataError, UsageError
from sonde.core.facts import Dataset
from sonde.core.prompts import Score, prompts_of
from sonde.core.reports import Curves
from sonde.former.lke.shots import LkeShots, first_reaching
from sonde.prompting.sequences import Separators, asked, examples, training
from sonde.testing import check_probe
from tests import tiny
from tests.rows import answer_all
from tests.worlds import fact, world

from .lke_world import read, trained

OVER = "mean_over_relations"


@pytest.fixture(scope="module")
def atlas() -> Dataset:
    return sonde.dataset("atlas", relations=("P36", "P30"), limit=6)


def test_the_curve_is_that_of_a_literal_reading(atlas: Dataset, tmp_path: Path) -> None:
    """A real model, each prompt alone, prefixes, sums and averages written out."""
    model = sonde.model(f"hf:{tiny.llama(tmp_path, max_position_embeddings=512)}", device="cpu")
    assert isinstance(model, Scores)
    probe = LkeShots(n=(1, 6), seeds=2, options=3)
    prompts = list(probe.ask(atlas))
    right: dict[tuple[int, int, str], list[float]] = {}
    for prompt in prompts:
        key = prompt.key
        one = next(f for f in atlas.asked(key.relation) if f.id == key.fact)
        n, seed = prompt.own["shots"], prompt.own["draw"]
        lines = examples(training(atlas, key.relation, [seed])[0], one.subject, n)
        assert prompt.prefix == asked(lines, one.subject.name, Separators())
        [(_, answer)] = one_by_one(model.score([prompt]))
        sums = [sum(row) for row in answer.logps]
        best = answer.options[sums.index(max(sums))]
        place = (n, seed, key.relation)
        right.setdefault(place, []).append(float(best == one.objects[0].name))
    by_seed = {
        n: [mean(mean(right[n, seed, r]) for r in ("P36", "P30")) for seed in (0, 1)]
        for n in probe.n
    }
    report = probe.read(atlas, answer_all(model, prompts))
    for n, found in by_seed.items():
        assert report.estimates[f"accuracy.n.{n}.{OVER}"].value == pytest.approx(mean(found))
        assert report.estimates[f"deviation.n.{n}"].value == pytest.approx(stdev(found))
    most = mean(by_seed[6])
    assert most > 0, "a model that is always wrong shows nothing"
    reached = [n for n in probe.n if mean(by_seed[n]) >= 0.95 * most]
    assert report.estimates["enough"].value == min(reached)


def answered(data: Dataset, probe: LkeShots, right_from: int) -> list[Answered]:
    """Answers that are right with `right_from` examples or more."""
    rows = []
    for prompt in probe.ask(data):
        assert isinstance(prompt.want, Score)
        one = next(f for f in data.facts(prompt.key.relation) if f.id == prompt.key.fact)
        knows = prompt.own["shots"] >= right_from
        gold = one.objects[0].name
        logps = tuple((-1.0 if (o == gold) == knows else -2.0,) for o in prompt.want.options)
        answer = Scored(options=prompt.want.options, logps=logps)
        rows.append(
            Answered(key=prompt.key, prefix=prompt.prefix, suffix="", answer=answer, own=prompt.own)
        )
    return rows


def test_the_mark_is_the_fewest_examples_that_are_enough() -> None:
    data, probe = world(relations=("P36",)), LkeShots(n=(1, 2, 4), seeds=2)
    report = probe.read(data, answered(data, probe, right_from=2))
    mark = report.estimates["enough"]
    assert (mark.value, mark.low, mark.high) == (2, None, None)  # no other facts, no other mark
    assert report.estimates[f"less.n.1.{OVER}"].value == -1
    [figure] = report.figures
    assert isinstance(figure, Curves)
    assert figure.marks == (("95% with 2", 2),)
    [curve] = figure.curves
    assert curve.x == (1, 2, 4) and curve.y == (0, 1, 1)
    assert len(curve.low) == len(curve.high) == 3


def test_a_model_that_is_never_right_has_no_mark() -> None:
    report = read(LkeShots(n=(1, 2), seeds=1), world(), {})
    assert report.estimates["enough"].value is None
    assert "no number of them is enough" in report.findings[0]
    assert report.estimates["deviation.n.1"].value is None


def test_the_share_is_exact_to_rounding() -> None:
    assert first_reaching(np.array([0.7 * 0.1, 0.1]), (1, 5), share=0.7) == 1


def test_more_examples_than_there_are_become_all_there_are() -> None:
    probe = LkeShots(n=(2, 5, 50, 80), seeds=1)
    data = world(relations=("P36",))
    asked_with = {prompt.own["shots"] for prompt in probe.ask(data)}
    shown = len(training(data, "P36", [0])[0])
    assert asked_with == {2, 5, shown}
    report = read(probe, data)
    assert f"accuracy.n.{shown}.{OVER}" in report.estimates
    said = f"fewer training facts than the 80 asked for; {shown} were used: P36."
    assert any(said in finding for finding in report.findings)


def test_a_relation_with_fewer_facts_shows_all_it_has() -> None:
    facts = [
        *trained("A", "B", "C", "D"),
        *trained("E", "F", relation="P1303"),
        fact("P36", "G", "A City"),
        fact("P1303", "H", "E City"),
    ]
    report = read(LkeShots(n=(1, 4), seeds=1), world(facts), {"P36-G": "A City"})
    assert report.counts["prompts"] == 4
    assert report.estimates["accuracy.n.4.relation.P1303"].n == 1
    assert (
        "1 relation has fewer training facts than the 4 asked for; 2 were used: P1303."
        in report.findings
    )


def test_without_training_facts_each_is_an_example_of_the_other() -> None:
    data = world([fact("P36", "Peru", "Lima"), fact("P36", "Chile", "Quito")])
    prompts = list(prompts_of(LkeShots(n=(1,), seeds=1).ask(data)))
    assert [prompt.prefix for prompt in prompts] == ["Chile Quito Peru ", "Peru Lima Chile "]


def test_without_a_second_option_nothing_is_asked() -> None:
    facts = [fact("P36", "A", "X", split="train"), fact("P36", "B", "X")]
    with pytest.raises(DataError, match="two options"):
        list(LkeShots().ask(world(facts)))


@pytest.mark.parametrize("settings", [{"n": ()}, {"n": (0, 1)}, {"share": 0.0}, {"share": 1.5}])
def test_settings_that_make_no_sense_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        LkeShots(**settings)  # type: ignore[arg-type]


def test_it_passes_the_checks_on_both_bundled_datasets() -> None:
    check_probe(LkeShots(n=(1, 2), seeds=2, options=5), sonde.dataset("nobel", limit=3))
    check_probe(LkeShots(n=(3,), seeds=1), world())
