"""Runs of probes: their tables, estimates, controls and passes, read back from the folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars import col

import sonde
from sonde.core.errors import DataError, UsageError
from sonde.core.facts import Dataset
from sonde.evaluation.estimate import Metric
from sonde.models.scripted import Scripted
from sonde.probes.bear import Bear
from sonde.probes.lama import Lama
from sonde.probes.vary import Vary
from sonde.runs.run import Run
from tests import tiny
from tests.command import process
from tests.worlds import dataset_of, fact, relation, world


def capitals(limit: int | None = 4) -> Dataset:
    return sonde.dataset("atlas", relations=("P30", "P36"), limit=limit)


def oracle(data: Dataset) -> Scripted:
    """Knows the capitals, and nothing of continents."""
    return Scripted(answers={fact.id: fact.objects[0].name for fact in data.facts("P36")})


def value(estimates: pl.DataFrame, metric: str, **more: Any) -> float:
    wanted = {"of": "value", "over": "relations", "group_by": [], "group": [], **more}
    lists = {name: wanted.pop(name) for name in ("group_by", "group")}
    rows = estimates.filter(col("metric") == metric, **wanted)
    [row] = [
        row for row in rows.iter_rows(named=True) if all(row[n] == v for n, v in lists.items())
    ]
    return float(row["value"])


def test_a_run_has_tables_of_facts_prompts_and_estimates(tmp_path: Path) -> None:
    data = capitals()
    run = sonde.run(Bear(), oracle(data), data, tmp_path / "run")
    results = run.results()
    assert results.counts()["facts"] == results.counts()["scored"] == 8
    rows = run.rows()
    assert rows.height == results.rows.height and {"subject", "template", "answer"} <= {
        *rows.columns
    }
    facts = run.facts()
    assert facts["fact_no"].to_list() == list(range(8))
    correct = facts.group_by("relation").agg(col("correct").mean()).sort("relation")
    assert correct["correct"].to_list() == [0.0, 1.0]
    estimates = run.estimates()
    assert value(estimates, "accuracy") == 0.5
    assert value(estimates, "accuracy", group_by=["relation"], group=["P36"]) == 1.0
    opened = sonde.open_run(run.path)
    assert opened.estimates().equals(estimates)


def test_analysis_only_settings_may_change_after_the_run(tmp_path: Path) -> None:
    data = capitals()
    run = sonde.run(Lama(), oracle(data), data, tmp_path / "run")
    assert {"p_at_10", "p_at_5"} & {*run.estimates()["metric"]} == {"p_at_10"}
    assert {"p_at_10", "p_at_5"} & {*run.estimates(k=5)["metric"]} == {"p_at_5"}
    with pytest.raises(UsageError, match="setting top_k decided the prompts; make another run"):
        run.results(top_k=5)
    with pytest.raises(UsageError, match="unknown setting 'q'"):
        run.results(q=5)


def test_a_control_is_estimated_next_to_the_run(tmp_path: Path) -> None:
    data = capitals()
    run = sonde.run(Bear(), oracle(data), data, tmp_path / "run")
    alone = run.estimates()
    assert run.controls() == {} and alone["run"].null_count() == alone.height
    sonde.run(Bear(), "control:class-prior", data, run.path / "controls/class-prior")
    assert [*run.controls()] == ["class-prior"]
    estimates = run.estimates()
    control = value(estimates, "accuracy", run="class-prior")
    difference = value(estimates, "accuracy", of="difference", reference="class-prior")
    assert difference == pytest.approx(0.5 - control)
    assert value(estimates, "accuracy", of="difference", reference="class-prior",
                 group_by=["relation"], group=["P36"]) > 0  # fmt: skip
    sonde.run(Bear(score="answer"), "control:majority", data, run.path / "controls/majority")
    assert [*run.controls()] == ["class-prior"]  # the other has other prompts


def test_passes_are_one_run_and_are_read_back(tmp_path: Path) -> None:
    data, probe = capitals(), Vary(probe=Bear(), vary={"score": ("sentence", "answer")})
    run = sonde.run(probe, oracle(data), data, tmp_path / "run")
    entry = run.manifest.probe
    assert entry["vary"] == {"score": ["sentence", "answer"]} and entry["repeats"] == 1
    opened = sonde.open_run(run.path)
    assert opened.probe() == probe
    assert opened.probe(normalize="tokens").normalize == "tokens"  # type: ignore[attr-defined]
    rows = opened.rows()
    assert rows.group_by("score").len()["len"].n_unique() == 1
    estimates = opened.estimates()
    levels = [value(estimates, "accuracy", group_by=["score"], group=[s]) for s in
              ("sentence", "answer")]  # fmt: skip
    difference = value(estimates, "accuracy", of="difference", reference="sentence",
                       group_by=["score"], group=["answer"])  # fmt: skip
    assert difference == pytest.approx(levels[1] - levels[0])
    before = len(list((run.path / "shards").iterdir()))
    sonde.run(probe, oracle(data), data, tmp_path / "run")  # complete: nothing is computed
    assert len(list((run.path / "shards").iterdir())) == before
    other = Vary(probe=Bear(), vary={"score": ("answer", "sentence")})
    with pytest.raises(sonde.core.errors.RunMismatch, match=r"probe.vary.score"):
        sonde.run(other, oracle(data), data, tmp_path / "run")


@dataclass(frozen=True, kw_only=True)
class Misspelled(Bear):
    """A metric of a column that no row has."""

    metrics = (Metric("sure", num=col("confidense").mean()),)


def test_a_metric_that_names_a_missing_column_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sonde.runs.run.PROBES", _Only(Misspelled))
    run = sonde.run(Misspelled(), "control:majority", capitals(), tmp_path / "run")
    with pytest.raises(UsageError, match=r"metric names a missing column: .*confidense"):
        run.estimates()


class _Only(dict[str, Any]):
    def __init__(self, probe: type) -> None:
        self.find = lambda name: probe


def test_facts_that_no_model_can_answer_are_rejected_together(tmp_path: Path) -> None:
    bert = f"hf:{tiny.bert(tmp_path / 'bert')}"
    data = dataset_of(
        [fact("P36", "Peru", "Qzxv Wqxz"), fact("P36", "Chad", "Xxqz Qqz")],
        relation("P36", "[X] has [Y]."),
    )
    run = sonde.run(Lama(answer="fill"), bert, data, tmp_path / "run")
    with pytest.raises(DataError, match=r"0 of 2 facts can be scored, because .* --answer score"):
        run.results()


def test_relations_without_a_template_are_excluded_with_a_reason(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    facts = [fact(id, name, name[::-1]) for id in ("P1", "P2") for name in ("Peru", "Chad")]
    data = dataset_of(facts, relation("P1", "[X] has [Y]."), relation("P2"))
    run = sonde.run(Bear(), "control:majority", data, tmp_path / "run")
    assert "no template for P2, so none is filled with its facts; give one with" in caplog.text
    counts = run.results().counts()
    assert counts["scored"] == 2 and counts["excluded.the relation has no template"] == 2
    with pytest.raises(DataError, match="relation P2 has no template; give one with --template"):
        sonde.run(Lama(), "control:majority", data, tmp_path / "lama")


def test_a_table_with_one_fact_is_estimated_without_a_test(tmp_path: Path) -> None:
    data = dataset_of([fact("P36", "Peru", "Lima")], relation("P36", "[X] has [Y]."))
    run = sonde.run(Lama(), "control:majority", data, tmp_path / "run")
    row = run.estimates().filter(metric="p_at_1", of="difference", over="facts").row(0, named=True)
    assert (row["value"], row["n"]) == (0.0, 1)


ASKED = ("-m", "control:majority", "-d", "atlas", "--relations", "P30", "--limit", "3", "--no-html")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--vary", "scor=a,b"], "unknown setting 'scor'; did you mean 'score'?"),
        (["--vary", "score"], "--vary takes SETTING=A,B,C, not 'score'"),
        (["--vary", "score=answer"], "--vary score takes two or more different values"),
        (["--vary", "score=answer,x"], "setting score must be one of sentence, answer; not 'x'"),
        (["--vary", "normalize=none,tokens"], "setting normalize changes no prompt"),
        (["--vary", "score=answer,sentence", "--score", "answer"], "--score and --vary both give"),
        (["--repeats", "2"], "draws nothing at random with these settings"),
    ],
)
def test_what_cannot_be_varied_is_one_sentence(words: list[str], message: str) -> None:
    done = process("run", "bear", *ASKED, *words)
    assert message in " ".join(done.refused(2).split())


def test_one_fact_is_shown_in_depth(tmp_path: Path) -> None:
    data = capitals()
    run = sonde.run(Lama(), oracle(data), data, tmp_path / "run")
    name = str(run.facts()["subject"][0])
    assert name in run.show(name).to_terminal(80)
    with pytest.raises(UsageError, match="the run has no fact"):
        run.show("nowhere")


def test_a_run_reports_itself(tmp_path: Path) -> None:
    data = world()
    run: Run = sonde.run(Bear(), oracle(capitals()), data, tmp_path / "run")
    assert "BEAR" in run.report().to_terminal(80)
