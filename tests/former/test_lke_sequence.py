"""lke-sequence: probabilities along a sequence, and what false facts do to their neighbours."""

from __future__ import annotations

from itertools import pairwise
from math import exp
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
import torch
import transformers

import sonde
from sonde.core.abilities import Model
from sonde.core.answers import Traced
from sonde.core.errors import DataError, PromptTooLong
from sonde.core.facts import Dataset
from sonde.core.prompts import Prompt, Trace
from sonde.core.reports import Curves
from sonde.former.lke.sequence import LkeSequence, groups
from sonde.runs.run import run
from sonde.testing import check_probe, oracle_for
from tests import tiny
from tests.rows import answer_all
from tests.worlds import fact, world

from .lke_world import trained


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.llama(tmp_path_factory.mktemp("model"), max_position_embeddings=512)


@pytest.fixture(scope="module")
def model(folder: Path) -> Model:
    return sonde.model(f"hf:{folder}", device="cpu")


@pytest.fixture(scope="module")
def atlas() -> Dataset:
    return sonde.dataset("atlas", relations=("P36",), limit=6)


def literal(prompt: Prompt, folder: Path) -> list[float]:
    """The log-probability of each object: one pass over the text, token by token, by offsets."""
    load: Any = transformers.AutoTokenizer
    encoded = load.from_pretrained(folder)(
        prompt.prefix, return_offsets_mapping=True, return_tensors="pt"
    )
    network: Any = transformers.AutoModelForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        logps = torch.log_softmax(network(encoded["input_ids"]).logits[0].double(), -1)
    ids, offsets = encoded["input_ids"][0], encoded["offset_mapping"][0].tolist()
    assert isinstance(prompt.want, Trace)
    return [
        sum(
            float(logps[i - 1, ids[i]])
            for i, (left, right) in enumerate(offsets)
            if right > start and left < stop and right > left
        )
        for start, stop in prompt.want.spans
    ]


@pytest.mark.parametrize("layout", ["spread", "block"])
def test_every_number_is_that_of_a_literal_reading(
    layout: Any, atlas: Dataset, model: Model, folder: Path
) -> None:
    probe = LkeSequence(length=12, replace="incorrect", replaced=3, layout=layout, seeds=2)
    prompts = list(probe.ask(atlas))
    assert len(prompts) == 4
    report = probe.read(atlas, answer_all(model, prompts))
    clean, changed = ([literal(p, folder) for p in prompts[k::2]] for k in (0, 1))
    told = list(probe.sequences(atlas))
    found: dict[str, list[tuple[float, float]]] = {}
    for one, before, after in zip(told, clean, changed, strict=True):
        for group, a, b in zip(groups(one.at, 12, 3), before, after, strict=True):
            found.setdefault(group, []).append((exp(a), exp(b)))
    assert {"replaced", "after_1"} <= set(found)
    for group, pairs in found.items():
        value = report.estimates[f"probability.changed.{group}"].value
        assert value == pytest.approx(mean(b for _, b in pairs), abs=1e-6)
        if group != "before":
            effect = report.estimates[f"effect.{group}"].value
            assert effect == pytest.approx(mean(b - a for a, b in pairs), abs=1e-6)
    every = mean(a for pairs in found.values() for a, _ in pairs)
    assert report.estimates["probability.clean"].value == pytest.approx(every, abs=1e-6)
    stayed = mean(b for group, pairs in found.items() if group != "replaced" for _, b in pairs)
    assert report.estimates["probability.changed"].value == pytest.approx(stayed, abs=1e-6)


def test_a_token_that_is_only_the_space_before_an_object_is_not_counted(
    model: Model, folder: Path
) -> None:
    data, probe = sonde.dataset("nobel", limit=3), LkeSequence(length=6, seeds=1)
    [prompt] = probe.ask(data)
    load: Any = transformers.AutoTokenizer
    tokens = load.from_pretrained(folder).tokenize(prompt.prefix)
    assert any(space == "Ġ" and year.isdecimal() for space, year in pairwise(tokens))
    [answered] = answer_all(model, [prompt])
    assert isinstance(answered.answer, Traced)
    digits = sum(any(map(str.isdecimal, token)) for token in tokens)
    assert sum(map(len, answered.answer.logps)) == digits


@pytest.mark.parametrize("kind", ["unknown", "incorrect"])
def test_what_stands_before_the_first_false_fact_cannot_move(
    kind: Any, atlas: Dataset, model: Model
) -> None:
    probe = LkeSequence(length=14, replace=kind, replaced=4, layout="block", seeds=1, after=2)
    answered = answer_all(model, list(probe.ask(atlas)))
    places = probe.places(atlas, answered)
    rows = list(places.iter_rows(named=True))
    assert [row["place"] for row in rows if row["group"] == "before"] == [1, 2, 3, 4, 5]
    assert [row["place"] for row in rows if row["group"] == "replaced"] == [6, 7, 8, 9]
    for row in rows:
        same = row["clean_log"] == pytest.approx(row["changed_log"], abs=1e-4)
        assert same == (row["group"] == "before"), row["place"]


def test_a_place_is_named_by_the_last_replaced_one_before_it() -> None:
    assert groups((1, 3), 8, 2) == [
        "before",
        "replaced",
        "after_1",
        "replaced",
        "after_1",
        "after_2",
        "other",
        "other",
    ]


def test_a_sequence_holds_each_object_where_its_span_says(atlas: Dataset) -> None:
    probe = LkeSequence(replace="unknown", seeds=1, inside=" : ", between="\\n")
    [one] = probe.sequences(atlas)
    for prompt, lines in zip(probe.ask(atlas), (one.clean, one.changed), strict=True):
        assert isinstance(prompt.want, Trace)
        read = [prompt.prefix[a:b] for a, b in prompt.want.spans]
        assert read == [line.object for line in lines]
        assert prompt.prefix == "\n".join(f"{x.subject} : {x.object}" for x in lines)
        assert prompt.facts == [line.fact for line in lines]


def test_the_clean_sequence_is_always_asked_and_the_same(atlas: Dataset) -> None:
    plain = list(LkeSequence(seeds=2).ask(atlas))
    for kind in ("unknown", "incorrect"):
        assert list(LkeSequence(seeds=2, replace=kind).ask(atlas))[::2] == plain


def test_false_facts_stand_at_the_same_places_in_every_sequence(atlas: Dataset) -> None:
    probe = LkeSequence(replace="incorrect", seeds=3)
    told = list(probe.sequences(atlas))
    assert len({one.at for one in told}) == 1
    assert len({one.clean for one in told}) == 3


def test_an_incorrect_fact_is_false_by_every_fact_of_the_dataset() -> None:
    data = sonde.dataset("atlas", relations=("P30", "P47"), limit=20)
    true = {
        (f.relation, f.subject.name, name)
        for r in ("P30", "P47")
        for f in data.facts(r)
        for entity in f.objects
        for name in entity.names
    }
    for one in LkeSequence(replace="incorrect", seeds=2).sequences(data):
        assert all((one.relation, x.subject, x.object) in true for x in one.clean)
        wrong = [one.changed[place] for place in one.at]
        assert not any((one.relation, x.subject, x.object) in true for x in wrong)


def test_an_unknown_subject_is_in_no_fact_of_the_dataset(atlas: Dataset) -> None:
    real = {n for r in atlas.relations for f in atlas.facts(r.id) for n in f.subject.names}
    for one in LkeSequence(replace="unknown").sequences(atlas):
        assert not {one.changed[place].subject for place in one.at} & real


def test_an_unknown_fact_has_another_year_too() -> None:
    data = sonde.dataset("nobel", limit=30)
    years = {int(f.objects[0].name) for f in data.facts("birth-year")}
    for one in LkeSequence(length=60, replace="unknown", seeds=2).sequences(data):
        for place, (clean, changed) in enumerate(zip(one.clean, one.changed, strict=True)):
            assert (changed.object != clean.object) == (place in one.at)
            assert min(years) <= int(changed.object) <= max(years)


def test_a_short_dataset_has_short_sequences_and_the_same_share_replaced() -> None:
    data = world(relations=("P36",))
    probe = LkeSequence(replace="incorrect", seeds=1)
    report = probe.read(data, answer_all(oracle_for(data), list(probe.ask(data))))
    length = report.counts["places"]
    assert f"Sequences of fewer than 200 facts, for want of more: P36 {length}." in report.findings
    assert report.counts["replaced"] == round(40 * length / 200)


def test_too_few_facts_are_refused() -> None:
    with pytest.raises(DataError, match="no relation with 3 facts"):
        list(LkeSequence().ask(world([*trained("A"), fact("P36", "B", "B City")])))


def test_a_relation_with_too_few_facts_is_left_out_and_counted() -> None:
    facts = [*trained("A", "B", "C"), fact("P36", "D", "A City"), fact("P1303", "E", "guitar")]
    data, probe = world(facts), LkeSequence(seeds=1)
    report = probe.read(data, answer_all(oracle_for(data), list(probe.ask(data))))
    assert report.counts["relations_with_too_few_facts"] == 1
    assert report.counts["sequences"] == 1


def test_more_replaced_than_there_are_leaves_two_as_they_are(atlas: Dataset) -> None:
    probe = LkeSequence(length=10, replace="unknown", replaced=500, seeds=1)
    [one] = probe.sequences(atlas)
    assert len(one.at) == 8


def test_one_fact_is_traced_with_its_neighbours(atlas: Dataset, model: Model) -> None:
    probe = LkeSequence(length=20, replace="incorrect", replaced=4, seeds=1)
    report = probe.read(atlas, answer_all(model, list(probe.ask(atlas))))
    [table] = [table for table in report.tables if table.id == "example"]
    numbers = [row[0] for row in table.rows]
    assert all(isinstance(n, int) for n in numbers)
    assert all(b == a + 1 for a, b in pairwise(numbers))  # type: ignore[operator]
    assert any(row[3] for row in table.rows), "a replaced fact stands beside it"


def test_the_figures_show_every_place(atlas: Dataset, model: Model) -> None:
    probe = LkeSequence(length=20, replace="unknown", replaced=4, seeds=2)
    report = probe.read(atlas, answer_all(model, list(probe.ask(atlas))))
    along, dots = report.figures
    assert isinstance(along, Curves) and isinstance(dots, Curves)
    assert [curve.name for curve in along.curves] == ["as it is", "changed"]
    assert all(len(curve.low) == len(curve.x) >= 9 for curve in along.curves)
    shown = sorted(x for curve in dots.curves for x in curve.x)
    assert shown == list(range(1, 21))
    assert not any(curve.joined for curve in dots.curves)


def test_a_sequence_that_is_too_long_names_the_length_that_fits(
    atlas: Dataset, tmp_path: Path
) -> None:
    small = tiny.llama(tmp_path / "model", max_position_embeddings=128)
    model = sonde.model(f"hf:{small}", device="cpu")
    with pytest.raises(PromptTooLong, match=r"--length \d+") as refused:
        run(LkeSequence(seeds=1), model, atlas, tmp_path / "run")
    fits = int(str(refused.value).rsplit(" ", 1)[1])
    run(LkeSequence(seeds=1, length=fits), model, atlas, tmp_path / "shorter")


@pytest.mark.parametrize("layout", ["spread", "block"])
@pytest.mark.parametrize("kind", ["none", "unknown", "incorrect"])
def test_it_passes_the_checks(kind: Any, layout: Any) -> None:
    data = sonde.dataset("nobel", limit=30)
    check_probe(LkeSequence(length=30, replace=kind, layout=layout, replaced=6, seeds=2), data)
