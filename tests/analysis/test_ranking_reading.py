"""Ranking knowledge, read from the stored scores of any probe that scores options."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sonde
from sonde.analysis.readings import Asked
from sonde.analysis.readings.ranking import ranked_facts
from sonde.core.facts import Dataset
from sonde.core.scores import Normalise, option_logps
from sonde.metrics.ranking import ranked
from sonde.models.torch.causal.model import CausalModel
from sonde.testing import oracle_for
from tests.rows import rows_of
from tests.tiny import Load
from tests.worlds import world

PROBES = (
    sonde.probe("lama", answer="score", uhn="names"),
    sonde.probe("lama", answer="score", normalise="tokens"),
    sonde.probe("belief", answer="score", draws=50),
    sonde.probe("ic-lke", n=2, options=4, seeds=2),
)


def one_by_one(asked: Asked, data: Dataset) -> dict[str, float]:
    """The share of each fact, an answered prompt after the other."""
    facts = [fact for relation in data.relations for fact in data.facts(relation.id)]
    about = {fact.id: fact for fact in facts}
    shares: dict[str, list[float]] = {}
    for row in rows_of(asked.answers()):
        if row.key.fact not in about or row.key.template.startswith("uhn-"):
            continue
        subject = about[row.key.fact].subject.id
        same = (f for f in facts if f.relation == row.key.relation and f.subject.id == subject)
        correct = {name for fact in same for o in fact.objects for name in o.names}
        right = [option in correct for option in row.answer.options]  # type: ignore[union-attr]
        compared = option_logps(row.answer, asked.normalise)  # type: ignore[arg-type]
        share = ranked(compared.tolist(), right)
        if share is not None:
            shares.setdefault(row.key.fact, []).append(share)
    return {fact: float(np.mean(own)) for fact, own in shares.items()}


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
def test_shares_of_facts_are_those_of_their_prompts(
    probe: sonde.Probe, tiny: Load, tmp_path: Path
) -> None:
    data = world()
    run = sonde.run(probe, CausalModel(tiny("llama")), data, tmp_path / "run")
    normalise: Normalise = getattr(probe, "normalise", "none")
    asked = Asked(dataset=data, judged=run.judge(), answers=run.answers, normalise=normalise)
    facts = asked.facts()
    means, full = ranked_facts(asked, facts)
    naive = one_by_one(asked, data)
    assert dict(zip(facts["fact"], means.tolist(), strict=True)) == pytest.approx(naive)
    assert ((full == 1) == (means == 1)).all()
    report = run.report()
    way = "By mean log-prob" if normalise == "tokens" else "By summed log-prob"
    assert report.table("ranking").note.startswith(way)
    found = report.estimates["ranking.mean_over_facts"]
    assert found.value == pytest.approx(np.mean(means)) and found.n == len(naive)


def test_all_options_below_the_correct_one_are_all_pairs(tmp_path: Path) -> None:
    data = world()
    model = oracle_for(data)
    report = sonde.run(sonde.probe("lama", answer="score"), model, data, tmp_path / "run").report()
    assert report.estimates["ranking.mean_over_relations"].value == 1.0
    assert report.table("ranking").rows[0][0] == "all relations"


def test_a_run_that_scores_nothing_has_no_ranking(tmp_path: Path) -> None:
    data = world()
    model = sonde.model("control:majority", data=data)
    report = sonde.run(sonde.probe("lama", answer="fill"), model, data, tmp_path / "run").report()
    assert not any(name.startswith("ranking") for name in report.estimates)
