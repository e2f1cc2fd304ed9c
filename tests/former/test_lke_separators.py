"""lke-separators: the same examples, facts and options under several separators."""

from __future__ import annotations

from pathlib import Path
from statistics import mean

import pytest

import sonde
from sonde.core.abilities import Scores
from sonde.core.columns import one_by_one
from sonde.core.errors import TemplateError, UsageError
from sonde.core.facts import Dataset
from sonde.core.prompts import Prompt, Score
from sonde.core.reports import DotPlot, Report
from sonde.former.lke.separators import SEPARATORS, LkeSeparators
from sonde.prompting.sequences import NAMES
from sonde.testing import check_probe
from tests import tiny
from tests.rows import answer_all
from tests.worlds import world

from .lke_world import Told, read, read_as

OVER = "mean_over_relations"


@pytest.fixture(scope="module")
def atlas() -> Dataset:
    return sonde.dataset("atlas", relations=("P36", "P30"), limit=5)


def by_way(prompts: list[Prompt]) -> dict[str, list[Prompt]]:
    found: dict[str, list[Prompt]] = {}
    for prompt in prompts:
        found.setdefault(prompt.own["separators"], []).append(prompt)
    return found


def test_only_separators_differ_between_the_ways(atlas: Dataset) -> None:
    found = by_way(list(LkeSeparators(n=3, seeds=2).ask(atlas)))
    assert list(found) == list(SEPARATORS)
    usual = found.pop("space/space")
    for name, prompts in found.items():
        inside, between = (NAMES[part] for part in name.split("/"))
        for one, other in zip(usual, prompts, strict=True):
            assert (one.key.fact, one.own["draw"]) == (other.key.fact, other.own["draw"])
            assert one.want == other.want
            plain = other.prefix.replace(between, " ").replace(inside, " ")
            assert plain == one.prefix
            assert other.prefix.endswith(f"{one.key.subject}{inside}")
            assert other.prefix.count(inside) >= 4 and other.prefix.count(between) >= 3


def test_every_number_is_that_of_a_literal_reading(atlas: Dataset, tmp_path: Path) -> None:
    model = sonde.model(f"hf:{tiny.llama(tmp_path, max_position_embeddings=512)}", device="cpu")
    assert isinstance(model, Scores)
    probe = LkeSeparators(separators=("space/space", "colon/newline"), n=3, seeds=2, options=3)
    prompts = list(probe.ask(atlas))
    right: dict[str, dict[str, list[float]]] = {}
    for prompt in prompts:
        one = next(f for f in atlas.asked(prompt.key.relation) if f.id == prompt.key.fact)
        [(_, answer)] = one_by_one(model.score([prompt]))
        sums = [sum(row) for row in answer.logps]
        best = answer.options[sums.index(max(sums))]
        row = right.setdefault(prompt.own["separators"], {}).setdefault(prompt.key.relation, [])
        row.append(float(best == one.objects[0].name))
    first, second = (mean(map(mean, right[way].values())) for way in probe.separators)
    report = probe.read(atlas, answer_all(model, prompts))
    assert first != second, "a difference of nothing shows nothing"
    got = [report.estimates[f"accuracy.separator.{k}.{OVER}"].value for k in (1, 2)]
    assert got == pytest.approx([first, second])
    change = report.estimates[f"above_first.separator.2.{OVER}"].value
    assert change == pytest.approx(second - first)


def test_the_table_and_the_figure_have_a_row_for_each() -> None:
    report = read(LkeSeparators(n=2), world())
    [table], [figure] = report.tables, report.figures
    assert [row[0] for row in table.rows] == list(SEPARATORS)
    assert isinstance(figure, DotPlot) and figure.labels == SEPARATORS
    assert len(figure.series) == 3


def right_for(shares: dict[str, int], data: Dataset) -> Report:
    return read_as(LkeSeparators(separators=tuple(shares), n=2, seeds=1), data, shares)


def test_the_best_separator_is_named_only_where_a_paired_test_says_so() -> None:
    data = sonde.dataset("atlas", relations=("P36",), limit=40)
    few = right_for({"space/space": 20, "colon/space": 22, "comma/space": 18}, data)
    assert few.summary == "Under 3 separators accuracy lies between 45.0% and 55.0%."
    assert few.findings[0] == (
        "Which separator is right most often cannot be told: colon/space (55.0%) is not "
        "distinguishable from space/space, comma/space."
    )
    assert few.findings[1] == "No separator is distinguishable from space/space on these facts."
    clear = right_for({"space/space": 10, "colon/space": 30, "comma/space": 12}, data)
    assert clear.findings[0] == "colon/space is right most often: 75.0% of facts."
    assert "colon/space is clearly better" in clear.findings[1]


def test_many_separators_make_a_difference_to_the_first_harder_to_tell() -> None:
    data = sonde.dataset("atlas", relations=("P36",), limit=40)
    ways = ("colon/space", "comma/space", "newline/space", "space/comma", "space/newline")
    # seven won and none lost: p 0.016, which is no proof where five are tried
    alone = right_for({"space/space": 10, "colon/comma": 17}, data)
    assert any("colon/comma is clearly better" in finding for finding in alone.findings)
    many = right_for({"space/space": 10, **dict.fromkeys(ways, 11), "colon/comma": 17}, data)
    assert not any("clearly better" in finding for finding in many.findings)


def test_a_separator_named_twice_is_asked_once() -> None:
    probe = LkeSeparators(separators=("space/space", "space/space"), n=2, seeds=1)
    assert len(list(probe.ask(world()))) == 4


def test_mass_tells_what_accuracy_does_not() -> None:
    probe, data = LkeSeparators(n=2, seeds=1), world(relations=("P36",))
    model = Told(table={"Vienna": 0.02, "Cairo": 0.01, "Lima": 0.01})
    report = probe.read(data, answer_all(model, list(probe.ask(data))))
    assert report.estimates[f"mass.separator.1.{OVER}"].value == pytest.approx(0.375, abs=1e-4)


def test_fewer_examples_than_asked_for_are_said() -> None:
    said = " ".join(read(LkeSeparators(), world(relations=("P36",))).findings)
    assert "fewer training facts than the 50 asked for; 6 were used: P36." in said


@pytest.mark.parametrize("names", [(), ("space",), ("space/space", "[Y] of [X]/space")])
def test_separators_that_make_no_sense_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises((UsageError, TemplateError)):
        LkeSeparators(separators=names)


def test_options_are_scored() -> None:
    assert all(isinstance(p.want, Score) for p in LkeSeparators(seeds=1).ask(world()))


def test_it_passes_the_checks_on_nobel() -> None:
    data = sonde.dataset("nobel", limit=3)
    check_probe(LkeSeparators(separators=("space/space", "colon/comma"), n=2, seeds=2), data)
