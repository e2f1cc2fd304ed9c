"""What a user holds is told on a line, and shown by a notebook without a script."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import sonde
from sonde.core.components import settings_of
from sonde.core.errors import UsageError
from sonde.core.reports import Estimate
from sonde.metrics.judged import FACT_COLUMNS
from sonde.former import PROBES
from sonde.runs.run import Run

LINE = 160  # characters


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    data = sonde.dataset("atlas", relations=("P36", "P30"), limit=3)
    majority = sonde.model("control:majority", data=data)
    return sonde.run(sonde.probe("lama"), majority, data, tmp_path_factory.mktemp("lama") / "run")


def held(run: Run, folder: Path) -> dict[str, Any]:
    data = run.dataset()
    model, probe = sonde.model("control:majority", data=data), sonde.probe("lama")
    report = run.report()
    return {
        "dataset": data,
        "relation": data.relations[0],
        "model": model,
        "naive bayes": sonde.model("control:naive-bayes", data=data),
        "run": run,
        "report": report,
        "table": report.tables[0],
        "figure": report.figures[0],
        "estimate": report.estimates["p_at_1.mean_over_relations"],
        "judged": run.judge(),
        "answers": next(run.answers()),
        "plan": sonde.plan(probe, model, data),
        "sweep": sonde.sweep(probe, model, data, {"template": [1, 2]}, folder / "sweep"),
    }


def test_everything_that_is_held_is_told_on_a_line(run: Run, tmp_path: Path) -> None:
    for what, thing in held(run, tmp_path).items():
        line = repr(thing)
        assert "\n" not in line and len(line) < LINE + len(str(tmp_path)), f"{what}: {line}"


def test_names_are_told_before_sizes(run: Run) -> None:
    assert repr(run.dataset()) == (
        "<Dataset 'atlas' 1.0: 2 of 41 relations, split 'test', at most 3 facts of each>"
    )
    assert repr(run).endswith("/run': lama on atlas, control:majority>")
    assert repr(Estimate(value=0.25, low=0.125, high=0.5, n=1200)) == (
        "<Estimate 0.25 [0.125, 0.5], n = 1,200>"
    )
    assert repr(Estimate.not_measured()) == "<Estimate: not measured>"


def test_what_a_notebook_shows_has_no_script_and_fetches_nothing(run: Run, tmp_path: Path) -> None:
    shown = {
        name: thing for name, thing in held(run, tmp_path).items() if hasattr(thing, "_repr_html_")
    }
    assert shown.keys() >= {"dataset", "run", "report", "table", "figure", "sweep"}
    for what, thing in shown.items():
        text = thing._repr_html_()
        assert "<script" not in text and "http" not in text, what
        assert len(text) < 200_000, what


def test_a_dataset_shows_its_relations_and_a_run_what_was_asked(run: Run) -> None:
    data, told = run.dataset()._repr_html_(), run._repr_html_()
    assert "capital" in data and "6 of 188 facts are asked about" in data
    assert str(run.path) in told and "template=1" in told and "P36, P30" in told


def test_a_report_finds_its_tables_and_figures_by_name(run: Run) -> None:
    report = run.report()
    for table in report.tables:
        assert report.table(table.id) is table
    for figure in report.figures:
        assert report.figure(figure.id) is figure
    with pytest.raises(UsageError, match="no figure 'p-at-1-by-relatoin'; did you mean"):
        report.figure("p-at-1-by-relatoin")


def test_facts_have_what_is_right_what_was_said_and_how_that_was_judged(run: Run) -> None:
    facts = run.facts()
    assert facts.columns == [
        *("relation", "subject", "gold", "answer", "verdict"),
        *("rank", "confidence", "right", "prompts", "fact"),
    ]
    row = facts.filter(fact="P36:Q31").row(0, named=True)
    assert row["subject"] == "Belgium" and row["gold"] == "Brussels"
    assert row["verdict"] == ("right" if row["answer"] == "Brussels" else "wrong")
    assert row["rank"] > 1 and 0 < row["confidence"] < 1


@pytest.mark.parametrize("name", sorted(PROBES))
def test_facts_have_the_same_columns_whatever_the_probe(name: str, tmp_path: Path) -> None:
    data = sonde.dataset("atlas", relations=("P36",), limit=4)
    known = {s.name for s in settings_of(PROBES[name])}
    small = {"samples": 0, "draws": 50, "seeds": 1, "paraphrases": 1, "frames": 1, "templates": 1}
    some = {key: small[key] for key in known & small.keys() if name != "belief" or key == "draws"}
    if name == "belief-icl":
        some.pop("templates")
    probe = sonde.probe(name, **some)
    made = sonde.run(probe, sonde.model("control:majority", data=data), data, tmp_path / "run")
    facts = made.facts()
    assert facts.columns == list(FACT_COLUMNS) and facts.height >= 4
    assert facts["gold"].null_count() == facts["subject"].null_count() == 0
    assert set(facts["verdict"]) <= {"right", "wrong", "empty", "abstained"}


def test_the_package_lists_its_public_names_and_no_others() -> None:
    assert dir(sonde) == sorted(sonde.__all__)
    assert {"run", "dataset", "model", "probe", "open_run", "Report"} <= set(dir(sonde))
    for name in dir(sonde):
        assert getattr(sonde, name) is not None


def test_the_package_is_a_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sonde", "--version"], capture_output=True, text=True, check=True
    )
    assert sonde.__version__ in done.stdout
