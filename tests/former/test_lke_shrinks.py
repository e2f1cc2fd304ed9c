"""What there is too little of is used as it is, and told; where nothing is left it is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sonde.core.abilities import Probe
from sonde.core.errors import DataError, PromptTooLong
from sonde.core.facts import Entity, Fact
from sonde.core.prompts import Score, prompts_of
from sonde.models.options import LoadOptions
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.loading.weights import load_folder
from sonde.former.lke.eic import EicLke
from sonde.former.lke.ic import IcLke
from sonde.former.lke.separators import LkeSeparators
from sonde.former.lke.shots import LkeShots
from sonde.runs.plan import plan
from sonde.runs.run import run
from tests import tiny
from tests.docs import program
from tests.worlds import fact, facts, world

from .lke_world import read, trained

PROBES = (IcLke, EicLke)
Kind = type[IcLke] | type[EicLke]
ASKED = [fact("P36", "Austria", "Vienna"), fact("P36", "Egypt", "Cairo")]


@pytest.mark.parametrize("probe", PROBES)
def test_fewer_training_facts_than_asked_for_are_all_used_and_told(probe: Kind) -> None:
    report = read(probe(), world(relations=("P36",)))
    assert report.counts["relations_fewer_examples"] == 1
    assert report.counts["facts_fewer_examples"] == 2
    assert "6 were used: P36" in " ".join(report.findings)
    [table] = [t for t in report.tables if t.id == "by-relation"]
    place = [column.title for column in table.columns].index("examples")
    assert [row[place] for row in table.rows] == [6]


def test_as_many_training_facts_as_asked_for_are_no_finding() -> None:
    report = read(IcLke(n=6), world(relations=("P36",)))
    assert report.counts["relations_fewer_examples"] == 0
    assert "fewer training facts" not in " ".join(report.findings)


@pytest.mark.parametrize("probe", PROBES)
def test_a_relation_without_training_facts_shows_others_that_are_asked(probe: Kind) -> None:
    players = {"Gus": "violin", "Hal": "guitar", "Ida": "piano", "Jan": "flute"}
    data = world([*facts()[:8], *(fact("P1303", name, what) for name, what in players.items())])
    report = read(probe(), data)
    assert report.counts["relations"] == 2
    assert report.counts["relations_without_training"] == 1
    assert "asked about: P1303" in " ".join(report.findings)
    for prompt in prompts_of(IcLke().ask(data)):
        if prompt.key.relation == "P1303":
            assert prompt.prefix.count(prompt.key.subject) == 1, "it is not its own example"
            others = set(players) - {prompt.key.subject}
            assert all(f"{name} : {players[name]}\n" in prompt.prefix for name in others)


@pytest.mark.parametrize("probe", PROBES)
def test_a_fact_that_is_alone_in_its_relation_is_refused(probe: Kind) -> None:
    wrong = (Entity.named("Cairo"),)
    with pytest.raises(DataError, match="a relation needs two facts at least"):
        list(probe().ask(world([replace(ASKED[0], wrong=wrong)])))


@pytest.mark.parametrize("probe", PROBES)
def test_a_single_option_is_refused(probe: Kind) -> None:
    only = [fact("P36", "Rome", "Italy", split="train"), fact("P36", "Milan", "Italy")]
    with pytest.raises(DataError, match=r"two options.*P36: 1 object, 1 of them right.*trex-mc"):
        list(probe().ask(world(only)))


@pytest.mark.parametrize("probe", PROBES)
def test_a_fact_with_a_single_option_is_left_out_and_told(probe: Kind) -> None:
    both = fact("P36", "Egypt", "Cairo")
    held = [*trained("Peru"), *ASKED, replace(both, id="else", objects=_named("Vienna"))]
    held[0] = replace(held[0], objects=_named("Vienna"))
    report = read(probe(), world(held))
    assert report.counts["facts"] == 1
    assert report.counts["facts_without_options"] == 2
    assert "only one option" in " ".join(report.findings)


def _named(name: str) -> tuple[Entity, ...]:
    return (Entity(id=name, names=(name,)),)


@pytest.mark.parametrize("probe", PROBES)
def test_two_objects_of_one_subject_are_never_each_others_options(probe: Kind) -> None:
    held = [*facts(), replace(fact("P36", "Egypt", "Giza"), id="second")]
    data = world(held, relations=("P36",))
    report = read(probe(), data, {"P36-Egypt": "Cairo", "second": "Giza"})
    assert report.counts["facts_several_objects"] == 2
    assert report.counts["facts"] == 3
    [table] = [t for t in report.tables if t.id == "facts"]
    assert [row[-1] for row in table.rows] == ["tied", "right", "right"]
    for prompt in IcLke().ask(data):
        assert isinstance(prompt.want, Score)
        assert len({"Cairo", "Giza"} & set(prompt.want.options)) <= (
            2 if prompt.key.subject == "Austria" else 1
        )


@pytest.mark.parametrize("probe", PROBES)
def test_an_option_that_is_right_after_all_is_dropped_and_told(probe: Kind) -> None:
    wrong = (*_named("Lima"), *_named("Giza"))
    second = replace(fact("P36", "Egypt", "Giza", split="train"), id="second")
    held = [*trained("Peru"), replace(fact("P36", "Egypt", "Cairo"), wrong=wrong), second]
    report = read(probe(), world(held))
    assert report.counts["options_correct_after_all"] == 1
    assert report.counts["options"] == 2
    assert "right for their subject after all" in " ".join(report.findings)


@pytest.mark.parametrize("probe", PROBES)
def test_the_only_example_cannot_be_about_the_fact_itself(probe: Kind) -> None:
    held = [fact("P36", "Egypt", "Cairo", split="train"), *ASKED]
    held[0] = replace(held[0], id="shown")
    report = read(probe(), world(held))
    assert report.counts["facts"] == 1
    assert report.counts["facts_without_examples"] == 1


def test_an_id_of_two_lines_stands_in_a_sequence_like_any_other() -> None:
    held = [*trained("Peru"), replace(ASKED[0], id="two\nlines")]
    assert (
        read(EicLke(), world(held), {"two\nlines": "Vienna"})
        .estimates["accuracy.mean_over_facts"]
        .value
        == 1
    )


def test_fewer_options_than_asked_for_are_told() -> None:
    report = read(IcLke(options=9), world(relations=("P36",)))
    assert report.counts["facts_fewer_options"] == 2
    [said] = [finding for finding in report.findings if "options" in finding]
    assert said == (
        "2 facts have fewer options than the 9 asked for, because the dataset names few wrong "
        "objects (P36: 8 objects, 1 of them right for a subject, 8 options left). Take data with "
        "more, such as T-REx-MC ('sonde data build trex-mc'), or ask for no more than there are: "
        "--options 8."
    )
    assert read(IcLke(options=8), world()).counts["facts_fewer_options"] == 2  # of P1303


def test_objects_that_are_right_too_are_told_from_those_that_are_missing() -> None:
    held = [*facts(), replace(fact("P36", "Egypt", "Giza"), id="second")]
    said = " ".join(read(IcLke(), world(held, relations=("P36",))).findings)
    assert "(P36: 9 objects, 1 to 2 of them right for a subject, 8 to 9 options left)" in said
    assert "--options 8." in said


def test_few_wrong_objects_that_the_dataset_names_for_a_fact_are_told() -> None:
    wrong = (*_named("Lima"), *_named("Oslo"))
    held = [*trained("Peru", "Chile"), replace(fact("P36", "Egypt", "Cairo"), wrong=wrong)]
    said = " ".join(read(IcLke(), world(held)).findings)
    assert "(P36: 2 wrong objects for a fact, none of them right after all, 3 options left)" in said


@pytest.mark.parametrize("probe", [LkeShots(n=(1,), seeds=1), LkeSeparators(n=1, seeds=1)])
def test_studies_say_the_same(probe: Probe) -> None:
    said = " ".join(read(probe, world(relations=("P36",))).findings)
    assert "(P36: 8 objects, 1 of them right for a subject, 8 options left)" in said


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> CausalModel:
    """A model that takes 64 tokens."""
    folder = tiny.gpt2(tmp_path_factory.mktemp("gpt2"))
    loaded = load_folder("hf:gpt2", folder, LoadOptions(device="cpu"), weights="gpt2")
    return CausalModel(loaded)


def long() -> list[Fact]:
    return [*trained(*(f"Land {i}" for i in range(20))), *ASKED]


@pytest.mark.parametrize("probe", PROBES)
def test_a_sequence_too_long_is_refused_with_the_largest_that_fits(
    probe: Kind, small: CausalModel, tmp_path: Path
) -> None:
    data = world(long())
    with pytest.raises(PromptTooLong, match=f"largest {probe.shrinks} that fits") as refused:
        run(probe(), small, data, tmp_path / "run")
    value = int(str(refused.value).rpartition(" ")[2])
    assert value > 0
    run(probe(**{probe.shrinks: value}), small, data, tmp_path / "fits")  # type: ignore[arg-type]
    with pytest.raises(PromptTooLong):
        run(probe(**{probe.shrinks: value + 1}), small, data, tmp_path / "more")  # type: ignore[arg-type]


def test_a_plan_says_the_same(small: CausalModel) -> None:
    with pytest.raises(PromptTooLong, match="largest n that fits"):
        plan(IcLke(), small, world(long()), seconds=0)


def test_where_nothing_fits_that_is_said(small: CausalModel, tmp_path: Path) -> None:
    data = world([*trained("long " * 100), *ASKED])
    with pytest.raises(PromptTooLong, match="No value of n"):
        run(IcLke(), small, data, tmp_path / "run")


def test_levels_are_given_as_a_list_with_commas(tmp_path: Path) -> None:
    words = ["run", "ic-lke", "-m", "control:majority", "--relations", "P30", "--limit", "2"]
    outcome = program.sonde([*words, "--levels", "0.1,0.2", "-o", "run"], tmp_path)
    assert outcome.code == 0, outcome.printed
    assert "0.2" in outcome.printed
    again = program.sonde(["report", "run", "--set", "levels=0.3"], tmp_path)
    assert again.code == 0
    assert "Accuracy@0.3" in again.printed


def test_a_bad_sentence_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    words = ["run", "ic-lke", "-m", "control:majority", "--inside", "[Y] of [X]", "-o", "run"]
    outcome = program.sonde(words, tmp_path)
    assert outcome.code == 3
    assert "cannot separate subject and object" in " ".join(outcome.printed.split())
