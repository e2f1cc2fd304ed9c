"""BELIEF from end to end, with tiny models of both kinds and with a real one."""

from __future__ import annotations

from pathlib import Path

import pytest

import sonde
from sonde.core.abilities import Model
from sonde.core.facts import Dataset
from sonde.core.reports import Report
from sonde.reporting.render.html import page
from tests import tiny
from tests.worlds import entity, fact, template

from .belief_world import marked, world

FACTS = (
    fact("P36", entity("France", "New France"), "Paris"),
    fact("P36", "Austria", entity("Vienna", "York")),
    fact("P36", entity("Norway", "New Norway"), entity("Oslo", "New York")),
    fact("P36", "Peru", "New York"),
)
TEMPLATES = (
    template("t1", "The capital of [X] is [Y]."),
    template("t2", "[Y] is the capital of [X].", source="paraphrase", group="t1"),
    template("t3", "In [X] it was written in [Y], and Paris."),
)


def small() -> Dataset:
    return world(*FACTS, templates=TEMPLATES)


def finished(model: Model, folder: Path, dataset: Dataset) -> tuple[Report, Report]:
    """The report of a finished run, and that of the same answers in one shard per prompt."""
    probe = sonde.probe("belief", draws=500)
    run = sonde.run(probe, model, dataset, out=folder / "run")
    apart = sonde.run(probe, model, dataset, out=folder / "apart", shard_weight=1)
    return run.report(), apart.report()


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_a_masked_model_is_probed_from_end_to_end(kind: str, tmp_path: Path) -> None:
    folder = tiny.MASKED[kind](tmp_path / "model")
    report, apart = finished(sonde.model(f"hf:{folder}"), tmp_path, small())
    assert report.estimates["acc_at_1"].n == report.counts["pairs"]
    assert report.counts["pairs"] + report.counts["pairs_left_out_not_one_token"] == 4
    assert report.counts["pairs_left_out_not_one_token"] >= 1  # Peru's New York
    asked = report.counts["prompts"] + report.counts["prompts_left_out_not_one_token"]
    assert asked == 3 * (2 + 1 + 2 + 1)
    assert report.counts["content_free_prompts"] == 9
    # where a word at the start is another token than inside, few names are one token everywhere
    bias = ("bias.single",) if kind == "bert" else ()
    for name in ("consist", "overconf", "fluctuation.relation.stdev", *bias):
        value = report.estimates[name].value
        assert value is not None
        assert value == pytest.approx(apart.estimates[name].value, abs=1e-4)


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_a_causal_model_is_probed_from_end_to_end(kind: str, tmp_path: Path) -> None:
    folder = tiny.CAUSAL[kind](tmp_path / "model")
    report, apart = finished(sonde.model(f"hf:{folder}"), tmp_path, small())
    assert report.counts["pairs"] == 4 and report.counts["pairs_left_out_not_one_token"] == 0
    assert report.counts["prompts"] == 18 and report.counts["content_free_prompts"] == 9
    assert report.estimates["names_help.object"].value is None
    for name in ("consist", "overconf", "bias.single", "names_help.subject"):
        value = report.estimates[name].value
        assert value is not None
        assert value == pytest.approx(apart.estimates[name].value, abs=1e-4)


def test_the_report_can_be_shown_as_a_page(tmp_path: Path) -> None:
    model = sonde.model(f"hf:{tiny.bert(tmp_path / 'model')}")
    run = sonde.run(sonde.probe("belief", draws=50), model, small(), tmp_path / "run")
    html = page(run.report(), run.provenance())
    for title in ("Accuracy over 50 draws", "Accuracy of every template", "Coverage"):
        assert title in html


@pytest.mark.shared
def test_the_first_prompt_of_a_real_model_gives_the_score_of_lama(
    shared: Path, tmp_path: Path
) -> None:
    model = sonde.model(f"hf:{shared / 'models' / 'encoder-24m'}")
    atlas = marked(sonde.dataset("atlas", relations=("P30",), limit=10))
    belief = sonde.probe("belief", draws=50, templates="manual", bias=False)
    many = sonde.run(belief, model, atlas, out=tmp_path / "belief").report()
    lama = sonde.probe("lama", vocabulary="full")
    one = sonde.run(lama, model, atlas, out=tmp_path / "lama").report()
    mine = many.estimates["single_prompt.acc_at_1"]
    theirs = one.estimates["uhn.p_at_1.mean_over_facts"]
    assert mine == theirs
    assert mine.value is not None and mine.value > 0


@pytest.mark.shared
def test_the_bias_of_a_single_prompt_is_the_mean_over_the_templates_of_all_relations(
    shared: Path, tmp_path: Path
) -> None:
    data = shared / "data"
    joined = f"lama:{data / 'lama'}+pararel:{data / 'pararel'}"
    ids = ("P30", "P36", "P47")  # their numbers of templates differ
    few = sonde.dataset(joined, relations=ids, limit=1)
    model = sonde.model(f"hf:{shared / 'models' / 'encoder-11m'}")
    run = sonde.run(sonde.probe("belief", draws=50), model, few, out=tmp_path / "run")
    report = run.report()
    [templates] = [table.rows for table in report.tables if table.id == "every-template"]
    levels = [float(str(row[5])) for row in templates]
    single = report.estimates["bias.single"]
    assert single.n == len(levels)
    assert single.value == pytest.approx(sum(levels) / len(levels))
    means = [report.estimates[f"bias.single.relation.{id}"].value or 0.0 for id in ids]
    assert single.value != pytest.approx(sum(means) / len(means), abs=1e-3)
