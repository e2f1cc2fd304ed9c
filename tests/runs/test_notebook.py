"""What a user holds is told on a line, and shown by a notebook without a script."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sonde
from sonde.core.components import settings_of
from sonde.core.errors import UsageError
from sonde.probes import PROBES
from sonde.runs.run import Run

LINE = 160  # characters


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    data = sonde.dataset("atlas", relations=("P36", "P30"), limit=3)
    majority = sonde.model("control:majority", data=data)
    return sonde.run(sonde.probe("lama"), majority, data, tmp_path_factory.mktemp("lama") / "run")


def held(run: Run) -> dict[str, Any]:
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
        "results": run.results(),
        "answers": next(run.answers()),
        "prompts": next(run.answers()).batch,
        "plan": sonde.plan(probe, model, data),
    }


def test_everything_that_is_held_is_told_on_a_line(run: Run, tmp_path: Path) -> None:
    for what, thing in held(run).items():
        line = repr(thing)
        assert "\n" not in line and len(line) < LINE + len(str(tmp_path)), f"{what}: {line}"


def test_names_are_told_before_sizes(run: Run) -> None:
    assert repr(run.dataset()) == (
        "<Dataset 'atlas' 1.0: 2 of 41 relations, split 'test', at most 3 facts of each>"
    )
    assert repr(run).endswith("/run': lama on atlas, control:majority>")


def test_what_a_notebook_shows_fetches_nothing(run: Run) -> None:
    shown = {name: thing for name, thing in held(run).items() if hasattr(thing, "_repr_html_")}
    assert shown.keys() >= {"dataset", "run", "report"}
    for what, thing in shown.items():
        text = thing._repr_html_()
        assert "https://" not in text, what
        assert text.count("http://") == text.count("http://www.w3.org/"), what  # names of SVG
        assert "<script" not in text, what  # that of a page is in a frame
        assert len(text) < 300_000, what


def test_a_dataset_shows_its_relations_and_a_run_what_was_asked(run: Run) -> None:
    data, told = run.dataset()._repr_html_(), run._repr_html_()
    assert "capital" in data and "6 of 188 facts are asked about" in data
    assert str(run.path) in told and "template_no=1" in told and "P36, P30" in told


def test_a_report_finds_its_tables_and_figures_by_name(run: Run) -> None:
    report = run.report()
    assert report["headlines"].id == "headlines"
    with pytest.raises(UsageError, match="no table or figure 'headline'; did you mean"):
        report["headline"]


def test_facts_have_their_answer_and_whether_it_is_correct(run: Run) -> None:
    facts = run.facts()
    row = facts.filter(fact="P36:Q31").row(0, named=True)
    assert row["subject"] == "Belgium" and row["gold"] == "Brussels"
    assert row["correct"] == float(row["answer"] == "Brussels")
    assert row["prompts"] == 1 and row["rank"] > 1 and 0 < row["confidence"] < 1


def apart(facts: pl.DataFrame, run: Run) -> list[str]:
    """The columns whose values are never pooled, such as the task."""
    return [name for name in run.results().probe.separate if name in facts.columns]


@pytest.mark.parametrize("name", sorted(PROBES))
def test_every_probe_has_a_row_for_each_fact(name: str, tmp_path: Path) -> None:
    data = sonde.dataset("atlas", relations=("P36",), limit=4)
    known = {s.name for s in settings_of(PROBES[name])}
    small = {"samples": 0, "seeds": 1, "paraphrases": 1, "frames": 1, "templates_per_source": 1}
    probe = sonde.probe(name, **{key: small[key] for key in known & small.keys()})
    run = sonde.run(probe, sonde.model("control:majority", data=data), data, tmp_path / "run")
    facts = run.facts()
    assert facts.height == facts.unique(["fact", *apart(facts, run)]).height >= 4
    assert facts["gold"].null_count() == facts["subject"].null_count() == 0


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
