"""The tables of an evaluation: facts and pairs, packed rows, what is counted and looked up."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars import col

from sonde.core.errors import DataError, UsageError
from sonde.core.facts import Dataset
from sonde.evaluation import metrics as m
from sonde.evaluation.layout import Layout
from sonde.evaluation.tables import (
    Results,
    collect_results,
    fact_table,
    merge_batches,
    pack,
    template_table,
)
from sonde.probes.base import Probe
from sonde.prompts import FillMask, PromptBatch, Score
from tests.probes.shares import Model, answer, by_fact, results
from tests.worlds import dataset_of, entity, fact, relation, template, world


@dataclass(frozen=True, kw_only=True)
class Cloze(Probe):
    """Every template with every name, options or a mask."""

    mask: bool = False
    metrics = (m.accuracy(),)
    layout = Layout(headlines=("accuracy",))
    name = "cloze"
    requires = (frozenset({"score"}),)

    def prompts(self, data: Dataset) -> Iterator[PromptBatch]:
        for about in data.asked_relations():
            rows = [
                {"relation": about.id, "fact": f.id, "template": t.id, "subject": name}
                | {"prefix": t.fill(name)[0]}
                for f in data.asked(about.id)
                for t in self.templates(about)
                for name in f.subject.names
            ]
            names = data.object_names(about.id, aliases=self.mask)
            if self.mask:
                yield PromptBatch.of(rows, FillMask(targets=names))
            elif rows:
                yield PromptBatch.of([row | {"options": names} for row in rows], Score())


def test_a_row_of_facts_says_what_is_asked_and_what_is_correct() -> None:
    table = fact_table(world())
    assert table["fact_no"].to_list() == [0, 1, 2, 3]
    first = table.row(0, named=True)
    assert (first["fact"], first["label"], first["kind"]) == ("P36-Austria", "capital", "1-1")
    assert first["aliases"] == ["Austria", "old Austria"]
    assert (first["gold"], first["gold_names"]) == ("Vienna", [["Vienna"]])
    assert first["excluded"] is None
    # the most common object of each relation, the first by name among several
    assert table["majority_correct"].to_list() == [False, True, False, True]
    assert "date" not in table.columns and table["question_names"].is_null().all()


def test_relations_of_one_label_are_labeled_with_their_ids() -> None:
    relations = [replace(relation(id, "[X]: [Y]."), label="capital") for id in ("P36.en", "P36.fr")]
    facts = [fact(each.id, "Peru", "Lima") for each in relations] + [fact("P1", "Ann", "x")]
    table = fact_table(dataset_of(facts, *relations, relation("P1", "[X]: [Y].")))
    labels = dict(zip(table["fact"].str.split("-").list.first(), table["label"], strict=True))
    assert labels["P36.en"] == "capital (P36.en)" and labels["P36.fr"] == "capital (P36.fr)"
    assert "(" not in labels["P1"]


def test_the_columns_of_a_user_and_dates_are_columns_of_facts() -> None:
    one, other = fact("P1", "Ann", "x"), fact("P1", "Bob", "x")
    one = replace(one, details={"genre": "pop"}, numbers={"views": 3.0}, date="2010")
    table = fact_table(dataset_of([one, other]))
    columns = table.select("details.genre", "numbers.views", "date")
    assert columns.rows() == [("pop", 3.0, "2010"), (None, None, None)]


def test_an_answer_in_the_subjects_name_is_guessable() -> None:
    facts = [fact("P1", "New York City", "new york"), fact("P1", "Rome", "New York")]
    assert fact_table(dataset_of(facts))["guessable"].to_list() == [True, False]


def several() -> Dataset:
    """Two facts of one subject, a third for training, and one of another subject."""
    ann, both = entity("Ann", "A. B.", id="ann"), entity("B", "Bee", id="b")
    return dataset_of(
        [
            fact("P1", ann, entity("C", id="c"), id="1"),
            fact("P1", entity("A. B.", "Ann", id="ann"), both, id="2"),
            fact("P1", ann, "D", id="3", split="train", tags=("apart",)),
            fact("P1", "Cy", both, id="4"),
        ]
    )


def test_facts_of_one_subject_share_a_cluster() -> None:
    table = fact_table(several())
    assert table["fact"].to_list() == ["1", "2", "4"]
    ann, again, cy = table["cluster"]
    assert ann == again != cy
    assert table["gold_names"].to_list() == [[["C"]], [["B", "Bee"]], [["B", "Bee"]]]
    assert table["question_names"].to_list() == [[["C"], ["B", "Bee"]]] * 2 + [None]


def test_a_pair_has_the_objects_and_names_of_all_its_facts() -> None:
    table = fact_table(several(), "pair")
    assert table["fact"].to_list() == ["1", "4"]
    assert table["aliases"].to_list() == [["Ann", "A. B."], ["Cy"]]
    assert table["gold"].to_list() == ["C, B, D", "B"]


def graded(*rows: tuple[str, str, str, str]) -> pl.DataFrame:
    columns = ("fact", "template", "subject", "answer")
    frame = pl.DataFrame(rows, columns, orient="row")
    correct = col("answer") == "Vienna"
    return frame.with_columns(relation=pl.lit("P36"), correct=correct, answer_mode=pl.lit("score"))


def test_rows_are_in_order_whatever_order_the_answers_come_in() -> None:
    facts, templates = fact_table(world()), template_table(world(), lambda r: r.templates)
    first = graded(("P36-Egypt", "P36-1", "Egypt", "Cairo"), ("", "P36-1", "N/A", "Rome"))
    second = graded(
        ("P36-Austria", "P36-2", "old Austria", "Vienna"),
        ("P36-Austria", "P36-2", "Austria", "Rome"),
        ("P36-Austria", "P36-1", "Austria", "Rome"),
    )
    rows = pack([first, second], facts, templates)
    keys = rows.select("fact_no", "template_no", "alias_no").rows()
    assert keys == [(0, 1, 0), (0, 2, 0), (0, 2, 1), (1, 1, 0)]
    assert rows["answer"].dtype == pl.Enum and rows["relation"].dtype == facts["relation"].dtype
    assert rows.rows() == pack([second, first], facts, templates).rows()


def test_of_two_answers_to_a_prompt_the_later_counts() -> None:
    facts, templates = fact_table(world()), template_table(world(), lambda r: r.templates)
    row = ("P36-Austria", "P36-1", "Austria")
    parts = [graded((*row, "Rome")), graded((*row, "Vienna"))]
    assert pack(parts, facts, templates)["answer"].to_list() == ["Vienna"]
    axis = [part.with_columns(cue=pl.lit(n)) for n, part in enumerate(parts)]
    assert pack(axis, facts, templates, axes=("cue",))["answer"].to_list() == ["Rome", "Vienna"]
    other = [part.with_columns(template=pl.lit("none of the probe's")) for part in parts]
    assert pack(other, facts, templates)["template_no"].to_list() == [0, 0]


def test_a_packed_row_takes_few_bytes() -> None:
    made = results(Cloze(), world(), by_fact())
    sizes = {
        name: made.rows[name].estimated_size() / made.rows.height for name in made.rows.columns
    }
    assert sum(sizes.values()) < 60, sizes


@pytest.fixture
def made() -> Results:
    """Austria is always answered, with Vienna under its usual name alone."""

    def model(prompt: dict[str, Any]) -> dict[str, float]:
        if prompt["fact"] == "P36-Austria":
            return {"Cairo" if prompt["subject"].startswith("old") else "Vienna": 0.9}
        return {"Cairo": 0.8} if prompt["relation"] == "P36" else {"piano": 0.8}

    return results(Cloze(), world(), model)


def test_a_row_looks_up_its_fact_and_its_template(made: Results) -> None:
    table = made.table(["subject", "text", "correct", "baseline", "finished"]).collect()
    assert table.columns == ["subject", "text", "correct", "baseline", "finished"]
    assert table.row(0) == ("Austria", "The capital of [X] is [Y].", True, False, None)
    assert table.row(8) == ("Egypt", "The capital of [X] is [Y].", True, True, None)
    with pytest.raises(UsageError, match="no column 'corect'; did you mean 'correct'"):
        made.table(["corect"])


def test_rows_are_selected_by_relation_and_by_any_column(made: Results) -> None:
    assert made.select(relations=["P36"]).rows.height == 16
    usual = made.select(where=(col("alias_no") == 0) & (col("subject") == "Austria"))
    assert usual.rows.height == 4 and usual.rows["correct"].all()


def test_counts_are_of_facts_and_prompts(made: Results) -> None:
    assert made.counts() == {"facts": 4, "scored": 4, "prompts": 28}


def test_a_fact_is_browsed_with_its_most_frequent_answer(made: Results) -> None:
    # of equally frequent answers the first by name
    lines = made.browse(["subject", "gold", "answer", "correct", "rank"])
    assert lines.row(0) == (0, 8, "Austria", "Vienna", "Cairo", 0.5, 4.5)
    assert lines["answer"].to_list() == ["Cairo", "Cairo", "piano", "piano"]


def test_values_that_are_never_pooled_have_lines_of_their_own(made: Results) -> None:
    apart = Cloze()
    object.__setattr__(apart, "separate", ("alias_no",))
    lines = replace(made, probe=apart).browse(["answer"])
    assert lines.head(2).rows() == [(0, 0, 4, "Vienna"), (0, 1, 4, "Cairo")]


def test_answers_are_counted_next_to_gold_answers(made: Results) -> None:
    table = made.answer_distribution().filter(col("relation") == "P36")
    assert table.select("answer", "n", "correct", "gold").rows() == [
        ("Cairo", 12, 8, 8),
        ("Vienna", 4, 4, 8),
    ]


def test_names_of_one_object_are_counted_as_its_usual_one() -> None:
    data = dataset_of([fact("P1", "Ann", entity("USA", "America")), fact("P1", "Bob", "Peru")])
    model: Model = by_fact(**{"P1-Ann": "America", "P1-Bob": "America"})
    table = results(Cloze(mask=True), data, model).answer_distribution()
    assert table.select("answer", "n", "correct", "gold").rows() == [
        ("USA", 2, 1, 1),
        ("Peru", 0, 0, 1),
    ]


def test_small_batches_are_judged_together() -> None:
    whole = [answer(batch, by_fact()) for batch in Cloze().prompts(world())]
    parts = [each.select(np.array([i])) for each in whole for i in range(len(each))]
    merged = list(merge_batches(parts))
    assert [len(each) for each in merged] == [16, 12]
    for one, other in zip(merged, whole, strict=True):
        assert one.frame.drop("options_id").equals(other.frame.drop("options_id"))
        assert one.result.to_arrow().equals(other.result.to_arrow())
        assert one.batch.options == other.batch.options


def test_facts_that_cannot_be_scored_are_excluded_with_a_reason() -> None:
    data = dataset_of([fact("P1", "Ann", "two words"), fact("P1", "Bob", "one")])
    probe = Cloze(mask=True)
    object.__setattr__(probe, "answerable_only", True)
    made = results(probe, data, by_fact())
    assert made.facts["excluded"].to_list() == ["no correct name can be answered", None]
    assert made.counts() == {
        "facts": 2,
        "scored": 1,
        "prompts": 1,
        "excluded.no correct name can be answered": 1,
    }
    with pytest.raises(DataError, match=r"0 of 1 facts can be scored.*--answer score"):
        results(probe, dataset_of([fact("P1", "Ann", "two words")]), by_fact())


def test_a_choice_among_one_option_is_excluded() -> None:
    facts = [fact("P1", "Ann", "x"), fact("P2", "Bob", "x"), fact("P2", "Cy", "y")]
    made = results(Cloze(), dataset_of(facts), by_fact())
    assert made.facts["excluded"].to_list() == ["there is only one option", None, None]
    assert made.rows.height == 2 and "only_option" not in made.rows.columns
    with pytest.raises(DataError, match="0 of 1 facts can be scored, because there is only one"):
        results(Cloze(), dataset_of(facts[:1]), by_fact())


def test_a_dataset_without_templates_is_an_error_with_its_fix() -> None:
    bare = dataset_of([fact("P1", "Ann", "x")], relation("P1"))
    with pytest.raises(DataError, match="no prompt about a fact of 'world'; give a template, such"):
        results(Cloze(), bare, by_fact())
    with pytest.raises(DataError, match="no prompt about a fact of 'world'; choose relations"):
        collect_results(Cloze(), world(), [])


def test_templates_are_numbered_among_those_of_the_probe() -> None:
    table = template_table(world(), lambda r: r.templates[1:])
    assert table.select("template", "template_no").rows()[:2] == [("P36-2", 1), ("P36-3", 2)]
    own = relation("P1", template("t", "[X] is [Y].", source="paraphrase", origin="lama"))
    (row,) = template_table(dataset_of([fact("P1", "a", "b")], own), lambda r: r.templates).rows(
        named=True
    )
    assert (row["source"], row["origin"], row["group"]) == ("paraphrase", "lama", "t")
