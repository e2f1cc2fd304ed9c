"""ic-lke: its prompts byte for byte, how choices are graded, and which facts are excluded."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from sonde.core.errors import AbilityError, DataError, TemplateError
from sonde.core.facts import Dataset, Template
from sonde.probes.ic_lke import IcLke
from sonde.probes.vary import Vary
from sonde.prompts import Generate, PromptBatch
from tests.worlds import entity, fact, facts, template, world

from .shares import Numbers, results

PAPER: dict[str, Any] = {"pair_separator": "space", "example_separator": "space"}
GOLDEN = Path(__file__).parents[1] / "golden" / "lke" / "ic-lke.txt"
ANSWERS = {"P36-Austria": "Vienna", "P36-Egypt": "Lima", "P1303-Gus": "violin"}


def rows(probe: IcLke, data: Dataset) -> list[dict[str, Any]]:
    """Every prompt, with its options."""
    batches: list[PromptBatch] = list(probe.prompts(data))
    return [
        prompt | {"options": batch.options[number] if batch.options else ()}
        for batch in batches
        for prompt, number in zip(
            batch.frame.iter_rows(named=True), batch.options_ids(), strict=True
        )
    ]


def answers(prompt: dict[str, Any]) -> dict[str, float]:
    """Austria is known, Egypt is answered with another city, and so on."""
    return {ANSWERS[prompt["fact"]]: 0.9} if prompt["fact"] in ANSWERS else {}


def lists(**shares: float) -> Any:
    return lambda prompt: shares


def with_templates(data: Dataset, *templates: Template) -> Dataset:
    changed = (replace(r, templates=templates if r.id == "P36" else ()) for r in data.relations)
    return replace(data, relations=tuple(changed))


def test_prompts_are_those_written_down() -> None:
    written = []
    others = {"shots": 2, "pair_separator": " : ", "example_separator": "\\n", "seeds": 2}
    for settings in ({"shots": 3, **PAPER}, others):
        for prompt in rows(IcLke(**settings), world()):
            key = f"{prompt['fact']} seed {prompt['seed']}"
            written.append(f"{key}\n{prompt['prefix']!r}\n{', '.join(prompt['options'])}\n")
    assert "\n".join(written) == GOLDEN.read_text(encoding="utf-8")


def test_examples_are_lines_with_a_colon_unless_set() -> None:
    prefix = rows(IcLke(shots=2), world(relations=("P36",)))[0]["prefix"]
    assert [" : " in line for line in prefix.split("\n")] == [True] * 3


def test_a_choice_is_correct_if_it_is_the_facts_own_object() -> None:
    numbers = Numbers(IcLke(), world(), answers)
    assert numbers("accuracy") == numbers("accuracy", "P36") == numbers("accuracy", "P1303") == 0.5
    assert numbers.line("accuracy")["n"] == 4


def test_mass_and_confidence_are_shares_of_the_options() -> None:
    numbers = Numbers(IcLke(), world(relations=("P36",)), lists(Vienna=0.02, Cairo=0.01, Lima=0.01))
    assert numbers("mass") == pytest.approx(0.375, abs=1e-6)
    assert numbers("confidence") == pytest.approx(0.5, abs=1e-6)


def test_accuracy_at_k_is_over_the_confident_choices() -> None:
    numbers = Numbers(IcLke(levels=(0.5,)), world(), answers)
    # two capitals, one of them correct; one instrument of two, and it is correct
    assert numbers("accuracy_at.0.5", "P36") == 0.5
    assert numbers("accuracy_at.0.5", "P1303") == 1
    assert numbers("accuracy_at.0.5", over="relations") == 0.75
    assert numbers("accuracy_at.0.5", over="facts") == pytest.approx(2 / 3)
    assert numbers("retained_at.0.5", over="relations") == 0.75


def test_the_curve_has_a_point_for_each_level() -> None:
    numbers = Numbers(IcLke(levels=(0.5, 0.9)), world(), answers)
    extra = IcLke().layout.extra
    assert extra is not None
    [curve] = extra(numbers.results, numbers.frame)
    assert curve.frame.sort("color", "x")["x"].to_list() == [0.5, 0.9, 0.5, 0.9]


def test_ties_are_wrong_and_counted() -> None:
    numbers = Numbers(IcLke(), world(), lists())
    assert numbers("accuracy") == 0
    assert numbers.results.counts()["tied"] == 4


def test_the_control_chooses_the_option_of_most_facts() -> None:
    held = [*facts(), fact("P1303", "Ida", "guitar"), fact("P1303", "Jan", "guitar")]
    numbers = Numbers(IcLke(), world(held, relations=("P1303",)), lists())
    # guitar is the object of three facts of the split, and Gus plays the violin
    assert numbers("accuracy", of="baseline") == 0.75


def test_seeds_draw_other_examples_for_the_same_options() -> None:
    one, other = (p for p in rows(IcLke(shots=3, seeds=2), world()) if p["fact"] == "P36-Austria")
    assert (one["seed"], other["seed"]) == (0, 1)
    assert one["prefix"] != other["prefix"]
    assert one["options"] == other["options"]
    [alone] = (p for p in rows(IcLke(shots=3), world(seed=1)) if p["fact"] == "P36-Austria")
    assert alone["prefix"] == other["prefix"]


def test_the_spread_over_seeds_is_that_of_their_accuracies() -> None:
    by_seed = ({"Vienna": 0.9, "Cairo": 0.5}, {"Lima": 0.9})
    data = world(relations=("P36",))
    numbers = Numbers(IcLke(seeds=2, shots=2), data, lambda prompt: by_seed[prompt["seed"]])
    assert [numbers("accuracy", "0"), numbers("accuracy", "1")] == [0.5, 0]
    assert numbers("accuracy.seeds.stdev") == pytest.approx(np.std([0.5, 0], ddof=1))
    assert numbers("accuracy") == 0.25


def test_a_fact_is_no_example_of_its_own() -> None:
    for prompt in rows(IcLke(shots=5), world(split="train", relations=("P36",))):
        assert prompt["prefix"].count(prompt["subject"]) == 1


def test_an_object_that_is_correct_by_another_fact_is_no_option() -> None:
    held = [*facts(), fact("P36", "Austria", "Lima", id="more", split="train")]
    options = next(p["options"] for p in rows(IcLke(), world(held)) if p["fact"] == "P36-Austria")
    assert "Vienna" in options and "Lima" not in options


def spelled_out() -> Dataset:
    """A city of two names is the object; a wrong one has two names, too."""
    shown = fact("P36", "Peru", entity("Lima", "City of Kings"), split="train")
    return world([shown, *facts()[1:6], fact("P36", "Austria", entity("Vienna", "Wien"))])


def test_options_are_usual_names_unless_all_are_wanted() -> None:
    [usual] = rows(IcLke(), spelled_out())
    assert "Vienna" in usual["options"] and "Wien" not in usual["options"]
    [every] = rows(IcLke(names="all"), spelled_out())
    assert {"Vienna", "Wien", "Lima", "City of Kings"} <= {*every["options"]}
    assert list(every["options"]) == sorted(every["options"])


def test_names_add_up_to_the_mass_and_not_to_the_choice() -> None:
    shares = {"Vienna": 0.2, "Wien": 0.3, "Lima": 0.3, "City of Kings": 0.2}
    numbers = Numbers(IcLke(names="all"), spelled_out(), lists(**shares))
    assert numbers("mass") == pytest.approx(0.5, abs=1e-6)
    assert numbers("confidence") == pytest.approx(0.6, abs=1e-6)
    assert numbers.results.rows["answer"].to_list() == ["Lima"]


def test_without_further_names_all_names_are_the_usual_ones() -> None:
    usual, every = (Numbers(IcLke(names=n), world(), answers).frame for n in ("usual", "all"))
    assert usual.equals(every)


def test_facts_without_a_choice_or_an_example_are_excluded() -> None:
    shown = fact("P36", "Egypt", "Cairo", id="shown", split="train")
    held = [shown, fact("P36", "Egypt", "Cairo"), fact("P36", "Austria", "Vienna")]
    lone = [fact("P1303", "Ann", "guitar", split="train"), fact("P1303", "Bob", "guitar")]
    table = results(IcLke(), world([*held, *lone]), lists()).facts
    assert table.select("fact", "excluded").rows() == [
        ("P36-Egypt", "no example"),
        ("P36-Austria", None),
        ("P1303-Bob", "one option"),
    ]
    assert table.filter(fact="P36-Austria").select("n_options", "n_examples").row(0) == (2, 1)


@pytest.mark.parametrize(
    ("held", "message"),
    [
        ([fact("P36", "Egypt", "Cairo", wrong=["Giza"])], "a relation needs two facts at least"),
        ([fact("P36", name, "Italy") for name in ("Rome", "Milan")], "two options.*trex-mc"),
    ],
)
def test_data_with_nothing_to_choose_are_rejected(held: list[Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(IcLke().prompts(world(held)))


def test_wrong_options_that_are_correct_after_all_are_counted() -> None:
    held = [*facts()[:6], fact("P36", "Egypt", "Cairo", wrong=["Giza", "Lima"]),
            fact("P36", "Egypt", "Giza", id="second", split="train")]  # fmt: skip
    [row] = IcLke().facts(world(held)).iter_rows(named=True)
    assert (row["dropped_wrong"], row["n_options"]) == (1, 2)


def test_a_template_is_filled_without_examples_once_for_all_seeds() -> None:
    data = with_templates(world(relations=("P36",)), template("t", "The capital of [X] is [Y]."))
    found = rows(IcLke(context="template", seeds=3), data)
    assert [(p["prefix"], p["suffix"]) for p in found] == [
        ("The capital of Austria is ", "."),
        ("The capital of Egypt is ", "."),
    ]
    assert {p["n_shots"] for p in found} == {0}


def test_examples_can_be_written_as_a_template() -> None:
    data = with_templates(world(relations=("P36",)), template("t", "The capital of [X] is [Y]."))
    prefix = rows(IcLke(context="template-examples", shots=2), data)[0]["prefix"]
    *shown, last = prefix.split("\n")
    assert last == "The capital of Austria is "
    assert all(line.startswith("The capital of ") and line.endswith(".") for line in shown)


def test_generated_answers_are_correct_if_they_contain_the_object() -> None:
    data = with_templates(world(relations=("P36",)), template("t", "[X] has [Y]."))
    texts = {"P36-Austria": " a city.\nIt is the Vienna of old", "P36-Egypt": " I don't know"}
    numbers = Numbers(IcLke(context="generate"), data, lambda prompt: texts[prompt["fact"]])
    assert numbers("accuracy") == numbers("abstained") == 0.5
    batches = list(IcLke(context="generate").prompts(data))
    assert {batch.request for batch in batches} == {Generate(max_tokens=50, stop="")}
    assert {text for batch in batches for text in batch.frame["suffix"]} == {""}


def test_the_context_decides_what_a_model_must_be_capable_of() -> None:
    IcLke(context="generate").resolve(frozenset({"generate"}))
    with pytest.raises(AbilityError, match="score"):
        IcLke().resolve(frozenset({"generate"}))


def test_a_sentence_that_answers_first_is_rejected() -> None:
    with pytest.raises(TemplateError, match="needs \\[X\\] first"):
        IcLke(pair_separator="[Y] is in [X]")


def test_settings_can_be_varied_in_one_run() -> None:
    probe = Vary(probe=IcLke(), vary={"shots": (1, 3)})
    numbers = Numbers(probe, world(relations=("P36",)), answers)
    assert numbers("accuracy", "1") == numbers("accuracy", "3") == 0.5
    assert numbers.results.rows["n_shots"].unique().sort().to_list() == [1, 3]
    assert isinstance(numbers.results.facts["n_options"], pl.Series)
