"""EIC-LKE: its sequences, and that it equals its definition carried out literally."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sonde.core.errors import AbilityError
from sonde.core.facts import Dataset, Fact, Selection
from sonde.core.fingerprints import draw_key
from sonde.core.prompts import Prompt, Trace
from sonde.models.controls import majority
from sonde.former.lke.asking import Item
from sonde.former.lke.eic import EicLke, in_turn
from sonde.former.lke.ic import IcLke
from sonde.testing import check_probe
from tests.rows import answer_all
from tests.worlds import fact, facts, world

from .lke_literal import Reader, assert_equal, causal, cities
from .lke_world import read, trained

PAPER: dict[str, Any] = {"inside": "space", "between": "comma"}
GOLDEN = Path(__file__).parents[1] / "golden" / "lke" / "eic-lke.txt"


def parts(prompt: Prompt) -> list[str]:
    """The texts that a prompt asks the model to read."""
    assert isinstance(prompt.want, Trace)
    return [prompt.prefix[start:stop] for start, stop in prompt.want.spans]


def test_sequences_are_those_written_down() -> None:
    written = []
    for layout in ("facts", "options"):
        probe = EicLke(training=6, start=2, stride=2, options=4, layout=layout, **PAPER)
        for prompt in probe.ask(world(relations=("P36",))):
            key = f"{layout} {prompt.own['option']}: {', '.join(dict.fromkeys(prompt.facts))}"
            written.append(f"{key}\n{prompt.prefix!r}\n{parts(prompt)!r}\n")
    assert "\n".join(written) == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "settings",
    [
        {"layout": "options", "options": 3},
        {"training": 4, "start": 1, "stride": 1},
        {"inside": " : ", "between": "\\n"},
    ],
)
def test_other_settings_pass_the_checks(settings: dict[str, Any]) -> None:
    check_probe(EicLke(**settings), world())


def test_a_hundred_facts_have_ten_places_between_them() -> None:
    assert len(EicLke().spots(100)) == 10


def test_each_sequence_tests_one_option_of_each_fact() -> None:
    probe = EicLke(training=6, start=2, stride=2)
    prompts = list(probe.ask(world(relations=("P36",))))
    assert len(prompts) == 8
    for place in range(2):
        assert len({parts(prompt)[place] for prompt in prompts}) == 8


def test_options_of_two_facts_come_in_different_orders() -> None:
    prompts = list(EicLke(training=6, start=2, stride=2).ask(world(relations=("P36",))))
    assert any(len(set(parts(prompt))) == 2 for prompt in prompts)


def test_the_turn_of_an_option_does_not_tell_whether_it_is_right() -> None:
    names = [f"n{i}" for i in range(10)]
    held = [fact("P36", f"s{i}", names[i % 10]) for i in range(400)]
    turns = [in_turn(Item(fact=f, options=tuple(names)), 0).index(f.objects[0].name) for f in held]
    assert all(20 <= turns.count(place) <= 65 for place in range(10))


def test_a_fact_with_fewer_options_is_read_as_often_as_it_has_options() -> None:
    held = [*facts(), fact("P36", "Iraq", "Baghdad"), fact("P36", "Iraq", "Lima", split="other")]
    data = world(held, relations=("P36",))
    report = read(EicLke(training=6, start=1, stride=2), data, {"P36-Iraq": "Baghdad"})
    assert report.estimates["accuracy.mean_over_facts"].value == pytest.approx(1 / 3)
    assert report.counts["options"] == 9 + 9 + 8


def test_a_subject_that_is_tested_is_not_among_the_training_facts() -> None:
    held = [*facts(), fact("P36", "Peru", "Lima")]
    for prompt in EicLke(training=6, start=2, stride=2).ask(world(held, relations=("P36",))):
        assert ("P36-Peru" in prompt.facts) == ("Peru" in prompt.prefix)
        assert prompt.prefix.count("Peru") <= 1


def test_fewer_training_facts_start_the_tests_earlier_and_are_told() -> None:
    report = read(EicLke(**PAPER), world(relations=("P36",)))
    assert report.counts["relations_fewer_examples"] == 1
    assert "6 were used" in " ".join(report.findings)
    prompt = next(EicLke(**PAPER).ask(world(relations=("P36",))))
    assert prompt.prefix.count(",") == 4  # three training facts, then the one that is tested


def test_the_cost_is_told_beside_that_of_ic_lke() -> None:
    counts = read(EicLke(training=6, start=2, stride=2), world(relations=("P36",))).counts
    assert counts["sequences"] == 8
    assert counts["names_read"] == 8 * 2 * 6  # two training facts before each that is tested
    assert counts["names_read_shared"] == 12 + 7 * 7
    assert counts["names_ic_lke_naive"] == 2 * 8 * 6
    assert counts["names_ic_lke_shared"] == 4 + 2 * 9


def test_a_model_that_cannot_read_texts_is_refused() -> None:
    with pytest.raises(AbilityError, match="trace"):
        EicLke().suited(frozenset({"score"}))


def test_it_can_be_set_beside_ic_lke() -> None:
    data, asked = world(), {}
    for probe in (IcLke(), EicLke()):
        judged = probe.judged(data, answer_all(majority(data), list(probe.ask(data))))
        asked[probe.name] = [judged.pairs[pair] for pair in judged.grid.pair.tolist()]
        asked[probe.name] += [template.id for template in judged.templates]
    assert asked["ic-lke"] == asked["eic-lke"]


# The definition, carried out step by step with nothing of the probe's but its draws.


def literal(folder: Path, data: Dataset, probe: EicLke) -> dict[str, dict[str, float]]:
    """The log-probability of each option of each fact."""
    reads = Reader(folder)
    held = list(data.facts("P36"))
    rows = [f for f in held if f.split == "train"]
    rows.sort(key=lambda f: draw_key(0, f"lke:{f.id}"))
    shown = [f"{f.subject.name} {f.objects[0].name}" for f in rows[: probe.training]]
    names = {f.objects[0].name for f in held}
    found: dict[str, dict[str, float]] = {}
    for group in groups([f for f in held if f.split == "test"], probe):
        for plan in sequences(group, sorted(names), probe):
            text, places = written(shown, plan, probe)
            for (asked, option), logp in zip(plan, reads.parts(text, places), strict=True):
                found.setdefault(asked.id, {})[option] = logp
    return found


def groups(asked: list[Fact], probe: EicLke) -> Iterator[list[Fact]]:
    size = 1 if probe.layout == "options" else len(range(probe.start, probe.training, probe.stride))
    for start in range(0, len(asked), size):
        yield asked[start : start + size]


def sequences(
    group: list[Fact], names: list[str], probe: EicLke
) -> Iterator[list[tuple[Fact, str]]]:
    """What each sequence tests: facts with an option, in order."""
    turned = {
        f.id: sorted(names, key=lambda o, id=f.id: draw_key(0, f"turn:{id}:{o}"))  # type: ignore[misc]
        for f in group
    }
    if probe.layout == "facts":
        for number in range(len(names)):
            yield [(f, turned[f.id][number]) for f in group]
    else:
        size = len(range(probe.start, probe.training, probe.stride))
        for start in range(0, len(names), size):
            yield [(group[0], option) for option in turned[group[0].id][start : start + size]]


def written(
    shown: list[str], plan: list[tuple[Fact, str]], probe: EicLke
) -> tuple[str, list[tuple[int, int]]]:
    """All training facts, joined by commas, with the tested ones after 3, 5, 7 of them."""
    left = list(plan)
    text = ""
    places = []
    for number, pair in enumerate(shown, start=1):
        text += pair + ", "
        if number >= probe.start and (number - probe.start) % probe.stride == 0 and left:
            asked, option = left.pop(0)
            text += asked.subject.name + " " + option
            places.append((len(text) - len(option), len(text)))
            text += ", "
    return text.removesuffix(", "), places


@pytest.mark.parametrize("layout", ["facts", "options"])
def test_it_equals_its_definition(layout: str, folder: Path) -> None:
    data = cities()
    probe = EicLke(training=9, start=3, stride=2, layout=layout, **PAPER)  # type: ignore[arg-type]
    answered = answer_all(causal(folder), list(probe.ask(data)))
    judged = probe.judged(data, answered)
    assert_equal(judged, data, literal(folder, data, probe))


def test_sequences_of_a_block_share_their_training_facts() -> None:
    held = [*trained("A", "B", "C", "D"), fact("P36", "x", "X"), fact("P36", "y", "Y")]
    data = world(held).select(Selection(relations=("P36",)))
    prompts = list(EicLke(training=4, start=2, stride=1).ask(data))
    assert len({prompt.prefix.partition("x ")[0] for prompt in prompts}) == 1
