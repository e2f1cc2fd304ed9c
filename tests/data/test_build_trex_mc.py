"""Building multiple-choice facts: right options, one draw for any order, counts that add up."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import sonde
from sonde.core.errors import DataError, UsageError
from sonde.core.fact_frames import frame_of
from sonde.core.facts import Card, Dataset, Entity, Fact, Template
from sonde.data.builders import trex_mc
from sonde.data.builders.trex_mc import Built, Recipe
from sonde.data.builders.triples import Faults, Smallest, dataset_triples, triple_files
from sonde.data.check import problems
from sonde.data.fact_files import fact_lines
from sonde.data.wordings import relation_ids
from tests import worlds
from tests.worlds import dataset_of

SMALL = Recipe(least_facts=4, least_objects=3, train=1, test=4, options=2)
Row = dict[str, Any]


def row(head: str, relation: str, tail: str, **more: str) -> Row:
    return {"head": head, "relation": relation, "tail": tail, **more}


def written(folder: Path, rows: list[Row], name: str = "triples.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return path


def built(rows: list[Row], recipe: Recipe = SMALL, *others: Dataset, **more: Any) -> Built:
    with TemporaryDirectory() as folder:
        files = triple_files(written(Path(folder), rows))
        return trex_mc.build([files, *map(dataset_triples, others)], recipe, **more)


def all_facts(found: Built) -> list[Fact]:
    return [f for r in found.dataset.relations for f in found.dataset.facts(r.id)]


def as_rows(found: Built) -> list[Row]:
    return list(map(json.loads, fact_lines(frame_of(all_facts(found)))))


names = st.sampled_from(["a", "A", "b", "c", "d", " e ", "f  g", "ß", "SS", "h", "i"])
rows = st.builds(row, names, st.sampled_from(["r", "R s", "t"]), names)


@given(triples=st.lists(rows, max_size=60), order=st.randoms(), seed=st.integers(0, 3))
def test_no_option_is_correct_and_nothing_depends_on_the_order(
    triples: list[Row], order: Any, seed: int
) -> None:
    recipe = Recipe(least_facts=4, least_objects=3, train=1, test=4, options=2, seed=seed)
    try:
        found = built(triples, recipe)
    except DataError:
        return
    right: dict[tuple[str, str], set[str]] = {}
    for each in triples:
        subject = (each["relation"], " ".join(each["head"].split()).casefold())
        right.setdefault(subject, set()).add(" ".join(each["tail"].split()).casefold())
    labels = {r.id: r.label for r in found.dataset.relations}
    for fact in all_facts(found):
        correct = right[labels[fact.relation], fact.subject.name.casefold()]
        wrong = [entity.name.casefold() for entity in fact.wrong]
        assert {entity.name.casefold() for entity in fact.objects} == correct
        assert not correct & set(wrong)
        assert len(set(wrong)) == len(wrong)
    _counts_add_up(found, triples, recipe)
    order.shuffle(triples)
    assert as_rows(built([*triples, *triples[:3]], recipe)) == as_rows(found)


people = st.builds(
    lambda id, name, more: Entity(id=id or name, names=tuple(dict.fromkeys((name, *more)))),
    st.sampled_from(["", "Q1", "Q2", "Q3", "Q4"]),
    st.sampled_from(["a", "A", "b", "c", "d", "e"]),
    st.lists(st.sampled_from(["b", "x", "y"]), max_size=1),
)


@given(
    pairs=st.lists(st.tuples(people, people), max_size=30),
    triples=st.lists(st.builds(row, names, st.just("r"), names), max_size=15),
    order=st.randoms(),
)
@example(  # Q2 is called a and b, and no fact in which it is called a is drawn
    pairs=[
        *[(Entity(id="a", names=("a",)), Entity(id="a", names=("a",)))] * 4,
        (Entity(id="a", names=("a",)), Entity(id="d", names=("d",))),
        (Entity(id="Q2", names=("a",)), Entity(id="c", names=("c",))),
        (Entity(id="Q2", names=("b",)), Entity(id="e", names=("e",))),
    ],
    triples=[row("a", "r", "b"), row("b", "r", "a")],
    order=Random(0),
)
def test_identifiers_and_names_bar_an_option_in_any_order(
    pairs: list[tuple[Entity, Entity]], triples: list[Row], order: Any
) -> None:
    try:
        found = built(triples, SMALL, facts_about(pairs))
    except DataError:
        return
    for fact in all_facts(found):
        right: set[str] = set()
        for subject, object in pairs:
            if subject.id == fact.subject.id or subject.name.lower() == fact.subject.name.lower():
                right |= {object.id, *(name.lower() for name in object.names)}
        wrong = {mark for entity in fact.wrong for mark in (entity.id, entity.name.lower())}
        assert not right & wrong
    order.shuffle(pairs)
    order.shuffle(triples)
    assert as_rows(built(triples, SMALL, facts_about(pairs))) == as_rows(found)


def facts_about(pairs: list[tuple[Entity, Entity]]) -> Dataset:
    facts = [worlds.fact("r", *pair, id=f"{i}") for i, pair in enumerate(pairs)]
    made = dataset_of(facts, worlds.relation("r", template("r-1")))
    return replace(made, card=Card(name="ids", licence="CC0"))


def _counts_add_up(found: Built, triples: list[Row], recipe: Recipe) -> None:
    assert found.rows == len(triples)
    by_relation = Counter(each["relation"] for each in triples)
    assert {t.relation.label: t.survey.rows for t in (*found.kept, *found.failed)} == by_relation
    for tally in found.kept:
        facts = list(found.dataset.facts(tally.relation.id))
        splits = Counter(fact.split for fact in facts)
        assert (splits["train"], splits["test"]) == (tally.train, tally.test)
        assert tally.train == recipe.train
        assert tally.train + tally.test == min(len(tally.survey.facts), recipe.drawn)
        options = [len(fact.wrong) for fact in facts if fact.split == "test"]
        assert (min(options), sum(n < recipe.options for n in options)) == (
            tally.options,
            tally.short,
        )
    assert all(len(t.survey.facts) < 4 or len(t.survey.objects) < 3 for t in found.failed)


def many(relation: str, facts: int, objects: int) -> list[Row]:
    return [row(f"s{i}", relation, f"o{i % objects}") for i in range(facts)]


def test_relations_that_fail_are_named_with_their_counts() -> None:
    found = built([*many("good", 9, 5), *many("few facts", 3, 3), *many("few objects", 40, 2)])
    assert [t.relation.id for t in found.kept] == ["good"]
    sizes = {t.relation.id: (str(t.survey.facts), str(t.survey.objects)) for t in found.failed}
    assert sizes == {"few-objects": ("5+", "2"), "few-facts": ("3", "3")}
    assert {t.relation.id: t.lacks for t in found.failed} == {
        "few-objects": "objects",
        "few-facts": "facts",
    }


def test_another_seed_draws_other_facts_and_options() -> None:
    draws = [
        as_rows(built(many("r", 200, 50), Recipe(least_facts=4, least_objects=3, seed=seed)))
        for seed in (0, 0, 1)
    ]
    assert draws[0] == draws[1] != draws[2]


def test_another_seed_draws_other_options_for_the_same_facts() -> None:
    options = [
        {fact.id: fact.wrong for fact in all_facts(built(many("r", 40, 40), recipe))}
        for recipe in (
            Recipe(least_facts=4, train=0, options=5, seed=s, least_objects=3) for s in (0, 1)
        )
    ]
    assert options[0].keys() == options[1].keys()
    assert options[0] != options[1]


def test_where_there_are_fewer_wrong_objects_all_are_used_and_it_is_said() -> None:
    triples = [*many("r", 8, 4), *(row("s7", "r", f"o{i}") for i in range(3))]
    found = built(triples, Recipe(least_facts=4, least_objects=3, train=1, test=30, options=99))
    options = {f.subject.name: len(f.wrong) for f in all_facts(found) if f.split == "test"}
    assert options.get("s7", 0) == 0  # everything is correct for it
    assert max(options.values()) == 3
    assert found.kept[0].short == found.kept[0].test


def test_title_and_text_are_kept_and_those_of_a_repeated_row_do_not_depend_on_its_place() -> None:
    triples = many("r", 5, 4)
    triples += [row("s1", "r", "o1", title="B", text="two"), row("s1", "r", "o1", title="A")]
    triples += [row("s1", "r", "o1", title="C", text="two"), row("s1", "r", "o1", text="")]
    for order in (triples, triples[::-1]):
        fact = next(f for f in all_facts(built(order, SMALL)) if f.subject.name == "s1")
        assert fact.details == {"title": "B", "text": "two"}


def test_a_subject_of_the_same_identifier_shares_what_is_correct() -> None:
    """LAMA names a subject by identifier; the same one may go by another name elsewhere."""
    things = {name: Entity(id=f"Q{name}", names=(name,)) for name in "abcdef"}
    holland = [Entity(id="Q55", names=(name,)) for name in ("Holland", "Netherlands")]
    pairs = [(holland[0], things["a"]), (holland[1], things["b"])]
    pairs += [(things[s], things[o]) for s, o in ("cd", "de", "ef", "fc")]
    data = facts_about(pairs)
    recipe = Recipe(least_facts=4, least_objects=3, train=1, test=9, options=9)
    found = trex_mc.build([dataset_triples(data)], recipe, templates=[data])
    for fact in all_facts(found):
        if fact.subject.id == "Q55":
            assert {entity.name for entity in fact.objects} == {"a", "b"}
            assert not {"a", "b"} & {entity.name for entity in fact.wrong}
    assert [t.text for t in found.dataset.relations[0].templates] == ["[X] and [Y]."]
    assert found.dataset.card.licence == "ids: CC0"
    assert not list(problems(found.dataset))


def template(id: str) -> Template:
    return Template(id=id, text="[X] and [Y].", group=id)


def test_a_row_of_a_dataset_and_a_row_of_a_file_about_one_subject_meet_by_name() -> None:
    whole = sonde.dataset("atlas")
    atlas = replace(whole, relations=(whole.relation("P36"),))
    rows = [row("france", "P36", "Lyon")]
    recipe = Recipe(least_facts=10, least_objects=5, train=10, test=500, options=500)
    found = built(rows, recipe, atlas, templates=[atlas])
    france = [f for f in all_facts(found) if f.relation == "P36" and f.subject.id == "Q142"]
    assert {f.objects[0].name for f in france} == {"Paris", "Lyon"}
    for fact in france:
        assert {entity.name for entity in fact.objects} == {"Paris", "Lyon"}
        assert not {"Paris", "Lyon"} & {entity.name for entity in fact.wrong}
    relation = found.dataset.relation("P36")
    assert relation.label == "capital" and relation.templates == atlas.relation("P36").templates


def test_the_relation_of_training_rows_is_the_folder_they_lie_in(tmp_path: Path) -> None:
    for relation in ("P36", "P19"):
        (tmp_path / relation).mkdir()
        pairs = [{"sub": f"s{i}", "obj": f"o{i}"} for i in range(6)]
        written(tmp_path / relation, pairs, "train.jsonl")
    found = trex_mc.build([triple_files(tmp_path)], SMALL)
    assert {r.id: r.label for r in found.dataset.relations} == {
        "P19": "place of birth",
        "P36": "capital",
    }


def test_compressed_files_read_as_plain_ones_do(tmp_path: Path) -> None:
    lines = "".join(json.dumps(r) + "\n" for r in many("r", 9, 5))
    (tmp_path / "a.jsonl").write_text(lines)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    plain, packed = (
        trex_mc.build([triple_files(tmp_path / name)], SMALL) for name in ("a.jsonl", "b.jsonl.gz")
    )
    assert as_rows(plain) == as_rows(packed)
    assert trex_mc.build([triple_files(tmp_path)], SMALL).rows == 18


FAULTS = (
    ("{", "line 3: expected a JSON object"),
    ("[1]", "line 3: expected a JSON object"),
    ('{"head": "a", "tail": "b"}', "line 3: 'relation' must be a text"),
    ('{"head": "a", "relation": "r", "tail": " "}', "line 3: 'tail' must be a text"),
    ('{"head": 7, "relation": "r", "tail": "b"}', "line 3: 'head' must be a text"),
    ('{"subject": "a"}', "line 3: expected the columns 'head', 'relation' and 'tail'"),
    ('{"head": "\\ud800", "relation": "r", "tail": "b"}', "line 3: expected a JSON object"),
)


@pytest.mark.parametrize(("line", "complaint"), FAULTS)
def test_a_faulty_row_is_passed_over_or_refused_by_line(
    tmp_path: Path, line: str, complaint: str
) -> None:
    good = [json.dumps(r) for r in many("r", 9, 5)]
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join([*good[:2], line, "", *good[2:]]))
    found = trex_mc.build([triple_files(path)], SMALL, skip=1)
    assert (found.faults.count, found.rows) == (1, 9)
    assert complaint in found.faults.first[0]
    with pytest.raises(DataError, match=r"t\.jsonl, line 3.*--skip N"):
        trex_mc.build([triple_files(path)], SMALL)


def test_bytes_that_are_no_text_are_a_faulty_row(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"head": "\xff"}\n' + json.dumps(row("a", "r", "b")).encode())
    faults = Faults(limit=1)
    assert len(list(triple_files(path).read(faults, lambda _: None))) == 1
    assert "line 1: not UTF-8" in faults.first[0]


def test_a_broken_archive_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(b"".join(json.dumps(r).encode() + b"\n" for r in many("r", 99, 5)))
    for name, data in (("cut", whole[:-20]), ("no", b"plain text")):
        path = tmp_path / f"{name}.jsonl.gz"
        path.write_bytes(data)
        with pytest.raises(DataError, match=f"{name}.jsonl.gz cannot be unpacked"):
            trex_mc.build([triple_files(path)], SMALL)


def test_empty_input_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(DataError, match="no triple in empty"):
        trex_mc.build([triple_files(tmp_path / "empty.jsonl")], SMALL)
    with pytest.raises(DataError, match="does not exist"):
        triple_files(tmp_path / "nowhere")
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match="holds no triples"):
        triple_files(tmp_path / "folder")
    with pytest.raises(DataError, match=r"none of 1 relations .* r \(3 facts, 3 objects\)"):
        built(many("r", 3, 3))


@pytest.mark.parametrize(("name", "value"), [("test", 0), ("options", 0), ("train", -1)])
def test_a_recipe_that_draws_nothing_is_refused(name: str, value: int) -> None:
    with pytest.raises(UsageError, match=f"--{name} must be at least"):
        Recipe(**{name: value})


def test_relations_keep_different_identifiers() -> None:
    ids = relation_ids(["[A] is in [B]", "A is in B", "a IS in b", "P36", "!!", "part of"])
    assert len({id.casefold() for id in ids.values()}) == len(ids)
    assert ids["P36"] == "P36" and ids["part of"] == "part-of"


@given(st.lists(st.text(max_size=3)), st.randoms(), st.integers(0, 4))
def test_the_smallest_draws_stay_whatever_the_order(
    offered: list[str], order: Any, size: int
) -> None:
    first, second = Smallest(size, 0, ""), Smallest(size, 0, "")
    for name in offered:
        first.offer(name, name)
    order.shuffle(offered)
    for name in offered:
        second.offer(name, name)
    assert first.ordered() == second.ordered() and first.ids == second.ids
    assert len(first) == min(size, len(set(offered)))
    assert first.more == (len(set(offered)) > size)


@pytest.mark.shared
def test_lama_with_its_training_facts_gives_21_relations(shared: Path) -> None:
    lama = shared / "data" / "lama"
    files = [triple_files(path) for path in sorted((lama / "train").glob("*/train.jsonl"))]
    data = sonde.dataset(f"lama:{lama}")
    found = trex_mc.build([*files, dataset_triples(data)], Recipe(), templates=[data])
    assert len(found.kept) == 21
    assert all((t.train, t.test) == (100, 400) for t in found.kept)
    assert [t.relation.id for t in found.kept if t.short] == ["P530"]
    assert not list(problems(found.dataset))
