"""Facts and templates that share an id are refused before anything is asked, and when read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from polars import read_parquet

import sonde
from sonde.core.errors import DataError
from sonde.core.fact_frames import refuse_repeats
from sonde.core.facts import Dataset, Fact, Selection
from sonde.data.catalog import load as load_dataset
from sonde.data.format import open_dataset, seal
from sonde.models.controls import majority
from sonde.optimise.lpaqa import Lpaqa
from sonde.optimise.making import optimise
from sonde.probes.lama import Lama
from sonde.runs.plan import plan
from sonde.runs.run import open_run
from tests import tiny
from tests.command import in_this_process
from tests.worlds import dataset_of, numbered, numbered_fact
from tests.written import fact as line
from tests.written import rows, two_relations

from .world import Listing, unseal

SPAIN = {**line("P36", "Spain", "Madrid"), "id": "P36:Italy"}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Line 2 of the capitals is Italy; Spain has its id, on line 5."""
    folder = two_relations(tmp_path / "data")
    with (folder / "facts" / "P36.jsonl").open("a") as file:
        file.write(rows([SPAIN]))
    return folder


def told(folder: Path) -> tuple[str, ...]:
    path = folder / "facts" / "P36.jsonl"
    return (f"{path}, line 5", f"{path}, line 2", "'P36:Italy'", "sonde data check")


def test_run_plan_doctor_and_optimise_refuse_with_file_and_line(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = in_this_process(capsys)
    out = tmp_path / "out"
    model = f"hf:{tiny.llama(tmp_path / 'm')}"
    control = ("-m", "control:majority", "-d", data)
    for words in (
        ("run", "lama", *control, "-o", out),
        ("run", "belief", *control, "-o", out),
        ("plan", "lama", *control, "-o", out),
        ("doctor", *control),
        ("optimise", "lpaqa", "-m", model, "-d", data, "-o", out),
    ):
        command(*words).refused(DataError.exit_code, *told(data))
        assert not out.exists()


def test_relations_that_are_not_asked_about_may_be_what_they_are(
    data: Path, tmp_path: Path
) -> None:
    asked = sonde.dataset(str(data), relations=("P37",))
    assert sonde.run(Lama(), majority(asked), asked, tmp_path / "out").report()


def test_one_message_lists_the_first_few_and_says_how_many(tmp_path: Path) -> None:
    same = [replace(numbered_fact("P1", number), id="same") for number in range(9)]
    with pytest.raises(DataError) as caught:
        sonde.run(Lama(), Listing(), dataset_of(same), tmp_path / "out")
    said = str(caught.value)
    assert "8 ids" in said
    assert "relation P1, fact 2: fact id 'same', as in relation P1, fact 1" in said
    assert said.count("'same'") == 5
    assert "and 3 more" in said


def test_facts_of_two_relations_need_ids_of_their_own(tmp_path: Path) -> None:
    facts = [
        replace(numbered_fact(id, number), id=f"f{number}") for id in "ab" for number in (0, 1)
    ]
    listing = Listing()
    with pytest.raises(
        DataError, match="relation b, fact 1: fact id 'f0', as in relation a, fact 1"
    ):
        sonde.run(Lama(answer="score"), listing, dataset_of(facts), tmp_path / "out")
    assert not listing.asked
    assert not (tmp_path / "out").exists()


def doubled_template(data: Dataset) -> Dataset:
    first = data.relations[0]
    return replace(data, relations=(replace(first, templates=first.templates * 2),))


def doubled_relation(data: Dataset) -> Dataset:
    return replace(data, relations=data.relations[:1] * 2)


@pytest.mark.parametrize("double", [doubled_template, doubled_relation])
def test_templates_and_relations_need_ids_of_their_own(
    tmp_path: Path, double: Callable[[Dataset], Dataset]
) -> None:
    data = double(numbered())
    with pytest.raises(DataError, match="P1"):
        sonde.run(Lama(answer="score"), Listing(), data, tmp_path / "out")
    with pytest.raises(DataError, match="P1"):
        plan(Lama(answer="score"), Listing(), data, tmp_path / "out")


def test_optimise_refuses_what_is_made_in_python_too(tmp_path: Path) -> None:
    facts = [numbered_fact("P1", number, split) for number in (0, 0) for split in ("train", "dev")]
    with pytest.raises(DataError, match="relation P1, fact 2"):
        optimise(Lpaqa(), majority(numbered()), dataset_of(facts), tmp_path / "out")


def test_what_a_check_only_remarks_on_is_asked(tmp_path: Path) -> None:
    """Pairs that stand in two splits, as 54 of LAMA's do, mix nothing up."""
    twice = [numbered_fact("P1", 0), replace(numbered_fact("P1", 0, "train"), id="P1:again")]
    assert sonde.run(Lama(), majority(numbered()), dataset_of(twice), tmp_path / "out")


def test_facts_are_read_once_to_be_checked_selected_and_asked(tmp_path: Path) -> None:
    data, read = numbered(), Counter[str]()

    def counted(relation: str) -> Iterator[Fact]:
        read[relation] += 1
        yield from data.facts(relation)

    once = replace(data, read=counted)
    refuse_repeats(once, data.relations)
    sonde.run(Lama(), majority(once), once.select(Selection(limit=2)), tmp_path / "out")
    assert list(once.facts("P1")) == list(data.facts("P1"))
    assert read == {"P1": 1, "P2": 1}


def test_a_run_that_was_made_of_such_facts_is_not_read(tmp_path: Path) -> None:
    out = tmp_path / "out"
    sonde.run(Lama(answer="score"), Listing(), numbered(), out)
    path = out / "dataset" / "facts" / "P1.parquet"
    facts = read_parquet(path)
    facts[[0, 0, *range(2, facts.height)]].write_parquet(path)
    seal(out / "dataset")
    unseal(out)
    with pytest.raises(DataError, match=r"P1.parquet, row 2: fact id 'P1:0'"):
        open_run(out).report()


def test_facts_say_on_which_line_they_stand(data: Path) -> None:
    frames: Any = open_dataset(data).read
    ids = [fact.id for fact in load_dataset(str(data)).facts("P36")]
    places = dict(enumerate(frames.places("P36")))
    assert len(places) == len(ids)
    assert (places[4], ids[4]) == (f"{data / 'facts' / 'P36.jsonl'}, line 5", "P36:Italy")
    assert json.loads((data / "facts" / "P36.jsonl").read_text().splitlines()[4])
