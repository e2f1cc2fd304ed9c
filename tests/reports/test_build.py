"""What the report of a run states, in which order."""

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from sonde.core.facts import Dataset
from sonde.evaluation.estimate import Contrast, Group, estimate_results
from sonde.evaluation.layout import Exhibit
from sonde.probes.bear import Bear
from sonde.probes.lama import Lama
from sonde.probes.vary import Vary
from sonde.reports.build import build
from sonde.reports.model import Facts
from sonde.reports.sentences import text
from tests.reports.sample import sample_report, sample_run, say, world
from tests.worlds import dataset_of, fact, relation


def test_the_title_states_the_score_and_the_verdict() -> None:
    data = world(facts=40, objects=["a", "b", "c", "d", "e"])
    gold = {f.id: f.objects[0].name for f in data.facts("P0")}
    assert text(sample_report(data, say(**gold)).title) == (
        "tiny is correct on 40 of 40 facts, 80.0 points above the majority baseline"
    )
    several = text(sample_report(world(3, 12), say(default="b")).title)
    assert several.startswith("tiny: P@1 25.0%, mean over 3 relations")


def test_the_title_of_a_varied_run_names_each_value_and_pools_none() -> None:
    probe = Vary(probe=Lama(answer="score"), vary={"capitalize": (False, True)})
    report = sample_report(world(facts=8), say(default="b"), probe)
    title = text(report.title)
    assert title == "tiny: P@1 25.0% (capitalize False), 25.0% (capitalize True)"
    assert "not pooled" in text(report.summary[1]) and len(report.summary) == 2


def test_the_title_states_a_collapse_of_one_relation_and_a_warning_of_several() -> None:
    report = sample_report(world(facts=20), say(default="b"))
    assert text(report.title).startswith("tiny answers “b” for 20 of 20 facts and is correct on 5")
    assert [heading for heading, _ in report.warnings] == ["Dominating answers"]
    ((_, lines),) = sample_report(world(3, 12), say(default="b")).warnings
    assert text(lines[0]).startswith("On 3 of 3 relations, one or two answers dominate")


def test_the_first_sentence_states_exclusions_with_the_reason() -> None:
    data = dataset_of([fact("P1", f"s{n}", "a b" if n < 3 else "a") for n in range(9)])
    report = sample_report(data, say(default="a"), Lama(answer="fill"))
    assert "; 3 of them are excluded (no " in text(report.summary[0])
    (heading, lines), *_ = report.warnings
    assert heading == "Excluded facts" and "`sonde run lama … --answer score`" in text(lines[-1])


def test_one_relation_has_no_tables_by_relation() -> None:
    items = sample_report(world(), say(default="b")).items()
    ids = [item.id for item in items if isinstance(item, Exhibit | Facts)]
    assert "facts" in ids and not any("relation" in id for id in ids)
    report = sample_report(world(2), say(default="b"))
    assert isinstance(report["by-relation"], Exhibit)
    facts = report["facts"]
    assert isinstance(facts, Facts)
    assert facts.shown == ["subject", "relation", "gold", "answer", "gold rank", "probability"]


def test_facts_have_their_outcome_and_every_prompt() -> None:
    data = world(facts=4)
    facts = sample_report(data, say(default="b"))["facts"]
    assert isinstance(facts, Facts) and facts.depth is not None
    assert facts.frame["share"].to_list() == [0, 1, 0, 0] and facts.outcome == [2, 0, 2, 2]
    (prompt,) = facts.depth([1]).iter_rows(named=True)
    assert (prompt["text"], prompt["correct"], prompt["rank"]) == (
        "subject 0-1 of 0 is ____.", True, 1,
    )  # fmt: skip
    assert prompt["answer"][0] == "b" and prompt["gold"][0]


def test_several_prompts_of_a_fact_are_counted() -> None:
    report = sample_report(two_templates(), say(default="b"), Bear())
    facts = report["facts"]
    assert isinstance(facts, Facts)
    assert facts.frame["correct prompts"].to_list()[:2] == [[0.0, 2.0], [2.0, 2.0]]
    assert "most common answer" in facts.shown and "median gold rank" in facts.shown
    assert isinstance(report["by-template"], Exhibit)


def test_a_fact_that_is_excluded_is_in_the_table() -> None:
    data = dataset_of([fact("P1", f"s{n}", "a b" if n < 3 else "a") for n in range(9)])
    facts = sample_report(data, say(default="a"), Lama(answer="fill"))["facts"]
    assert isinstance(facts, Facts)
    assert facts.frame["share"].to_list() == [None] * 3 + [1.0] * 6 and facts.outcome[0] == 3
    made = [fact(f"P{r}", f"s{r}-{n}", "ab"[n % 2]) for r in (1, 2) for n in range(9)]
    two = [relation("P1", label="first"), relation("P2", "[X] a [Y].", "[X] b [Y].")]
    facts = sample_report(dataset_of(made, *two), say(default="a"), Bear())["facts"]
    assert isinstance(facts, Facts)
    excluded = facts.frame.row(0, named=True)
    assert excluded["relation"] == "first" and excluded["correct prompts"] is None


def two_templates() -> Dataset:
    facts = [fact("P1", f"s{n}", "ab"[n % 2]) for n in range(12)]
    return dataset_of(facts, relation("P1", "[X] a [Y].", "[X] b [Y]."))


def test_groups_are_by_any_column_and_contrasts_are_figures_of_their_own() -> None:
    report = sample_report(
        two_templates(),
        lambda prompt: {"b" if prompt["prefix"].endswith(" a ") else "a": 0.6},
        Bear(),
        groups=[Group(("gold",))],
        contrasts=[Contrast("template_no", 1, ("accuracy",))],
    )
    by = report["by-gold"]
    assert isinstance(by, Exhibit) and by.frame["label"].to_list()[0] == "All"
    difference = report["difference-template-accuracy"]
    assert isinstance(difference, Exhibit) and difference.units["x"] == "points"
    assert difference.frame.select("label", "facts").rows() == [("2", 12)]


def test_columns_that_are_never_pooled_keep_lines_of_their_own() -> None:
    results, run = sample_run(world(facts=12), say(default="b"))
    half = pl.Series(["x", "y"] * 6)
    probe = type("Separate", (Lama,), {"separate": ("task",), "axes": ("task",)})(answer="score")
    results = replace(results, probe=probe, rows=results.rows.with_columns(task=half))
    report = build(results, estimate_results(results), run=run)
    facts = report["facts"]
    assert isinstance(facts, Facts) and "task" in facts.shown and facts.frame.height == 12
    answers = report["answers"]
    assert isinstance(answers, Exhibit)
    assert answers.title == "Answers next to gold answers · task x"


def test_headlines_of_another_unit_are_a_table() -> None:
    report = sample_report(world(facts=12), say(default="b"))
    assert [item.id for item in report.lead] == ["headlines", "further"]
    assert report.lead[0].frame["label"].to_list()[:2] == ["P@1", "the majority baseline"]


@pytest.mark.parametrize(
    ("manifest", "start"),
    [
        (
            {"certificate": {"verdict": "close", "reference": "hf:x"}},
            "The certificate of this model",
        ),
        ({"model": {"name": "server:http://h", "details": {}}}, "The numbers of another program"),
    ],
)
def test_doubts_about_the_numbers_are_warnings(manifest: dict[str, Any], start: str) -> None:
    report = sample_report(world(facts=4), say(default="b"), **manifest)
    warnings = dict(report.warnings)
    assert text(warnings["Certificate"][0]).startswith(start)
