"""lke-sequence: what is listed and replaced, and means over places."""

from typing import Any

import pytest

import sonde
from sonde.core.errors import DataError
from sonde.core.facts import Dataset
from sonde.evaluation.estimate import estimate_results
from sonde.probes.sequence import LkeSequence
from tests.worlds import fact, facts, world

from .spans import Model, results

CAPITALS: dict[str, Any] = {"relations": ("P36",)}
PLACES = ("sequence", "place", "part", "place_group", "usual", "clean", "changed")


def prompts(probe: LkeSequence, data: Dataset) -> list[dict[str, Any]]:
    return [p for batch in probe.prompts(data) for p in batch.frame.iter_rows(named=True)]


def objects(prompt: dict[str, Any]) -> list[str]:
    return [prompt["prefix"][start:stop] for start, stop in prompt["spans"]]


class Numbers:
    """Estimates with a model that gives each place a probability."""

    def __init__(self, probe: LkeSequence, data: Dataset, model: Model) -> None:
        self.results = results(probe, data, model)
        self.frame = estimate_results(self.results)
        self.places = self.results.table(PLACES).collect().sort("sequence", "place")

    def __call__(self, metric: str, *group: str, of: str = "value") -> float | None:
        lines = self.frame.filter(metric=metric, of=of, over="relations", group=list(group))
        value: float | None = lines["value"].item()
        return value


def by_version(clean: float, changed: float) -> Model:
    return lambda prompt, number, text: clean if prompt["version"] == "clean" else changed


@pytest.fixture(scope="module")
def atlas() -> Dataset:
    return sonde.dataset("atlas", relations=("P36",), limit=20)


def test_spans_hold_the_objects_and_the_list_ends_with_the_last() -> None:
    probe = LkeSequence(seeds=1, pair_separator=" : ", example_separator="\\n")
    [prompt] = prompts(probe, world(**CAPITALS))
    golds = {f.id: f"{f.subject.name} : {f.objects[0].name}" for f in facts()}
    assert prompt["prefix"].split("\n") == [golds[name] for name in prompt["facts"]]
    assert objects(prompt) == [golds[name].partition(" : ")[2] for name in prompt["facts"]]


def test_training_facts_are_listed_like_those_of_the_split() -> None:
    [prompt] = prompts(LkeSequence(seeds=1), world(**CAPITALS))
    assert {*prompt["facts"]} == {f.id for f in facts() if f.relation == "P36"}


def test_each_list_has_an_order_of_its_own() -> None:
    lists = prompts(LkeSequence(seeds=3), world(**CAPITALS))
    assert len({tuple(prompt["facts"]) for prompt in lists}) == 3


def test_the_clean_list_is_the_same_whatever_is_replaced(atlas: Dataset) -> None:
    plain = prompts(LkeSequence(seeds=2), atlas)
    kinds: tuple[Any, ...] = ("unknown", "incorrect")
    for kind in kinds:
        every = prompts(LkeSequence(seeds=2, replace=kind), atlas)
        assert [p["prefix"] for p in every[::2]] == [p["prefix"] for p in plain]
        assert [p["version"] for p in every] == ["clean", "changed"] * 2


def test_facts_are_replaced_at_the_same_places_in_every_list(atlas: Dataset) -> None:
    lists = prompts(LkeSequence(replace="incorrect", seeds=3), atlas)
    assert len({tuple(prompt["replaced"]) for prompt in lists}) == 1
    for clean, changed in zip(lists[::2], lists[1::2], strict=True):
        pairs = zip(objects(clean), objects(changed), strict=True)
        assert [a != b for a, b in pairs] == clean["replaced"]


def test_an_incorrect_object_is_correct_by_no_fact() -> None:
    data = sonde.dataset("atlas", relations=("P30", "P47"), limit=20)
    true: dict[str, set[str]] = {}
    for relation in ("P30", "P47"):
        for f in data.facts(relation):
            names = {name for thing in f.objects for name in thing.names}
            true.setdefault(f"{relation} {f.subject.name}", set()).update(names)
    subjects = {f.id: f.subject.name for r in ("P30", "P47") for f in data.facts(r)}
    for prompt in prompts(LkeSequence(replace="incorrect", seeds=2), data):
        rows = zip(prompt["facts"], objects(prompt), prompt["replaced"], strict=True)
        for name, object, replaced in rows:
            known = object in true[f"{prompt['relation']} {subjects[name]}"]
            assert known != (replaced and prompt["version"] == "changed")


def test_an_unknown_subject_is_in_no_fact(atlas: Dataset) -> None:
    real = {name for f in atlas.facts("P36") for name in f.subject.names}
    clean, changed = prompts(
        LkeSequence(replace="unknown", seeds=1, example_separator="newline"), atlas
    )
    pairs = zip(clean["prefix"].split("\n"), changed["prefix"].split("\n"), strict=True)
    for (before, after), replaced in zip(pairs, clean["replaced"], strict=True):
        assert (before != after) == replaced
        if replaced:
            assert not any(after.startswith(f"{name} ") for name in real)


@pytest.mark.parametrize("replaced", [1, 500])
def test_a_share_of_a_short_list_is_replaced_but_two_facts_stay(
    atlas: Dataset, replaced: int
) -> None:
    probe = LkeSequence(length=10, replace="unknown", replaced=replaced, seeds=1)
    assert sum(prompts(probe, atlas)[0]["replaced"]) == min(replaced, 8)
    short = LkeSequence(replace="incorrect", seeds=1)  # 40 of 200, so 2 of 8
    assert sum(prompts(short, world(**CAPITALS))[0]["replaced"]) == 2


def test_places_are_grouped_by_the_last_replaced_one() -> None:
    probe = LkeSequence(replace="incorrect", sequence_layout="block", length=8, replaced=2)
    numbers = Numbers(probe, world(**CAPITALS), by_version(0.5, 0.5))
    groups = numbers.places.filter(sequence=0)["place_group"].to_list()
    assert groups == ["before"] * 3 + ["replaced"] * 2 + ["after_1", "after_2", "after_3"]
    assert numbers.places.filter(sequence=0)["part"].to_list() == [1, 2, 3, 4, 6, 7, 8, 9]


def test_effects_are_differences_at_the_same_places() -> None:
    probe = LkeSequence(replace="incorrect", sequence_layout="block", length=8, replaced=2, seeds=2)

    def model(prompt: dict[str, Any], number: int, text: str) -> float:
        return 0.8 if prompt["version"] == "clean" or number < 3 else 0.2 if number < 6 else 0.4

    numbers = Numbers(probe, world(**CAPITALS), model)
    assert numbers("likely") == 1
    assert numbers("probability.clean") == pytest.approx(0.8)
    assert numbers("effect.after_1", of="difference") == pytest.approx(-0.6, abs=1e-6)
    assert numbers("effect.neighbors", of="difference") == pytest.approx(-1.4 / 3, abs=1e-6)
    assert numbers("effect", "before", of="difference") == pytest.approx(0)
    assert numbers("effect", "replaced", of="difference") == pytest.approx(-0.6, abs=1e-6)
    # of those that stayed: three before, one right after, two further
    assert numbers("probability.changed") == pytest.approx((3 * 0.8 + 0.2 + 2 * 0.4) / 6, abs=1e-6)


def test_the_control_is_the_share_of_the_list_with_the_same_object() -> None:
    held = [fact("P36", f"s{i}", "Lima" if i < 3 else f"n{i}") for i in range(4)]
    numbers = Numbers(LkeSequence(seeds=1), world(held), by_version(0.9, 0.9))
    assert numbers("probability.clean", of="baseline") == (3 * 0.75 + 0.25) / 4
    assert numbers("likely", of="baseline") == 0.75
    assert numbers("likely", of="difference") == 0.25


def test_an_object_without_a_token_of_its_own_is_not_measured() -> None:
    def model(prompt: dict[str, Any], number: int, text: str) -> float | None:
        return None if number == 1 else 0.5

    numbers = Numbers(LkeSequence(seeds=1), world(**CAPITALS), model)
    assert numbers("probability.clean") == pytest.approx(0.5)
    [line] = numbers.frame.filter(metric="probability.clean", of="value", over="facts", group=[])[
        "n"
    ]
    assert line == 7


def test_nothing_is_changed_unless_it_is_set() -> None:
    probe = LkeSequence()
    assert {metric.id for metric in probe.metrics} == {"likely", "probability.clean"}
    assert len(prompts(probe, world(**CAPITALS))) == 5


def test_facts_of_a_relation_with_too_few_are_excluded() -> None:
    held = [*(fact("P36", c, f"{c} City") for c in "ABC"), fact("P1303", "E", "guitar")]
    numbers = Numbers(LkeSequence(seeds=1), world(held), by_version(0.5, 0.5))
    assert numbers.results.facts["excluded"].to_list() == [None] * 3 + ["in no list"]
    with pytest.raises(DataError, match="no relation with 3 facts"):
        list(LkeSequence().prompts(world(held[1:])))


def test_a_figure_shows_every_place() -> None:
    probe = LkeSequence(replace="incorrect", length=8, replaced=2, seeds=2)
    numbers = Numbers(probe, world(), by_version(0.5, 0.25))
    assert probe.layout.extra is not None
    [places] = probe.layout.extra(numbers.results, numbers.frame)
    assert places.frame.group_by("x").len()["len"].to_list() == [1] * 8
    assert places.frame["y"].to_list() == pytest.approx([0.25] * 8)
