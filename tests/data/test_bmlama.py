"""BMLAMA: one relation a language, things by their English names, candidates as published."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import sonde
from sonde.core.errors import DataError
from sonde.data.catalog import load
from sonde.data.check import problems
from sonde.data.format import open_dataset, write_dataset
from tests.rows import asked

HEAD = "Prompt\tAns\tCandidate Ans\tSubject"
ENGLISH = (
    "The capital of Peru is <mask>.\tLima\tCairo, Athens, Lima\tPeru",
    "The capital of Egypt is <mask>.\tCairo\tLima, Athens, Cairo\tEgypt",
    "The capital of Greece is <mask>.\tAthens\tLima, Cairo, Athens\tGreece",
)
FRENCH = (
    "La capitale de Pérou est <mask>.\tLima\tLe Caire, Athènes, Lima\tPérou",
    "La capitale de Égypte est <mask>.\tLe Caire\tLima, Athènes, Le Caire\tÉgypte",
    "La capitale de Grèce est <mask>.\tAthènes\tLima, Rome, Athènes\tGrèce",
)


def written(folder: Path, **languages: tuple[str, ...]) -> Path:
    """A folder with the lines of each language, ended as the published ones are."""
    for language, lines in ({"en": ENGLISH, "fr": FRENCH} | languages).items():
        text = "".join(f"{line}\r\n" for line in (HEAD, *lines))
        (folder / f"{language}.tsv").write_text(text, encoding="utf-8", newline="")
    return folder


def test_there_is_one_relation_for_each_language(tmp_path: Path) -> None:
    dataset = load(str(written(tmp_path)))
    assert [(r.id, r.same, r.language, r.label) for r in dataset.relations] == [
        ("P36.en", "P36", "en", "capital"),
        ("P36.fr", "P36", "fr", "capital"),
    ]
    assert [r.templates[0].text for r in dataset.relations] == [
        "The capital of [X] is [Y].",
        "La capitale de [X] est [Y].",
    ]
    assert list(problems(dataset)) == []


def test_things_have_their_english_names_for_ids_in_every_language(tmp_path: Path) -> None:
    first, second, third = load(f"bmlama:{written(tmp_path)}").facts("P36.fr")
    assert (first.id, first.subject.id, first.subject.name) == ("P36.fr:2", "Peru", "Pérou")
    assert [(o.id, o.name) for o in second.objects] == [("Cairo", "Le Caire")]
    assert [(o.id, o.name) for o in first.wrong] == [("Cairo", "Le Caire"), ("Athens", "Athènes")]
    assert [o.id for o in third.wrong] == ["Lima", "Rome"], "no line has Rome for an answer"


def test_a_name_of_two_things_is_the_one_beside_it(tmp_path: Path) -> None:
    english = (
        *ENGLISH,
        "The capital of Ohio is <mask>.\tAthina\tLima, Athina\tOhio",
        "The capital of Asia is <mask>.\tLima\tAthina, Lima\tAsia",
        "The capital of Crete is <mask>.\tLima\tCairo, Lima\tCrete",
    )
    french = (
        *FRENCH,
        "La capitale de Ohio est <mask>.\tAthènes\tLima, Athènes\tOhio",
        "La capitale de Asie est <mask>.\tLima\tAthènes, Lima\tAsie",
        "La capitale de Crète est <mask>.\tLima\tAthènes, Lima\tCrète",
    )
    facts = list(load(f"bmlama:{written(tmp_path, en=english, fr=french)}").facts("P36.fr"))
    assert [fact.wrong[0].id for fact in facts[-2:]] == ["Athina", "Athens"]


def test_sentences_that_are_not_one_sentence_are_kept_as_they_are(tmp_path: Path) -> None:
    odd = (FRENCH[0], FRENCH[1].replace("de Égypte", "d'Égypte"), FRENCH[2])
    dataset = load(f"bmlama:{written(tmp_path, fr=odd)}")
    assert dataset.notes["relations_with_prompts_of_their_own"] == 1
    prompts = asked(sonde.probe("lama", answer="score"), dataset)
    said = [f"{p.prefix}<mask>{p.suffix}" for p in prompts if p.key.relation == "P36.fr"]
    assert said == [line.partition("\t")[0] for line in odd]


def test_four_relations_of_one_wording_are_told_by_their_order(tmp_path: Path) -> None:
    places = ["Asia", "Punjab", "India", "Delhi"]
    lines: list[str] = []
    for place in places:
        lines += [f"Agra is located in <mask>.\t{place}\tMars, {place}\tAgra", ENGLISH[0]]
    dataset = load(f"bmlama:{written(tmp_path, en=tuple(lines), fr=tuple(lines))}")
    found = {r.same: next(dataset.facts(r.id)).objects[0].name for r in dataset.relations}
    assert found == {
        "P30": "Asia",
        "P131": "Punjab",
        "P17": "India",
        "P276": "Delhi",
        "P36": "Lima",
    }


def test_a_wording_of_no_known_relation_is_called_after_its_words(tmp_path: Path) -> None:
    line = ("Peru drinks <mask>.\ttea\tmilk, tea\tPeru",)
    dataset = load(f"bmlama:{written(tmp_path, en=line, fr=line)}")
    assert [r.id for r in dataset.relations] == ["X-drinks-Y.en", "X-drinks-Y.fr"]


def test_a_limit_asks_about_the_same_facts_in_every_language(tmp_path: Path) -> None:
    whole = load(f"bmlama:{written(tmp_path)}")
    for seed in range(6):
        dataset = sonde.dataset(f"bmlama:{tmp_path}", limit=1, seed=seed)
        subjects = [next(dataset.asked(r.id)).subject.id for r in whole.relations]
        assert len(set(subjects)) == 1


def test_a_relation_is_chosen_in_all_its_languages_by_what_it_is(tmp_path: Path) -> None:
    dataset = sonde.dataset(f"bmlama:{written(tmp_path)}", relations=("P36",))
    assert [r.id for r in dataset.asked_relations()] == ["P36.en", "P36.fr"]
    only = sonde.dataset(f"bmlama:{tmp_path}", relations=("P36",), languages=("fr",))
    assert [r.id for r in only.asked_relations()] == ["P36.fr"]


def test_it_can_be_written_in_our_own_form_and_read_again(tmp_path: Path) -> None:
    dataset = load(f"bmlama:{written(tmp_path)}")
    write_dataset(dataset, tmp_path / "own")
    again = open_dataset(tmp_path / "own")
    assert again.relations == dataset.relations
    for relation in dataset.relations:
        assert list(again.facts(relation.id)) == list(dataset.facts(relation.id))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"fr": FRENCH[:2]}, "files differ in lines: en.tsv has 3, fr.tsv has 2"),
        ({"fr": (*FRENCH[:2], "three\ttexts\tonly")}, "fr.tsv, line 4: expected 4 texts"),
        ({"fr": (*FRENCH[:2], FRENCH[2].replace("<mask>", "Rome"))}, "must hold <mask> once"),
        ({"fr": (*FRENCH[:2], FRENCH[2].replace(", Athènes\t", "\t"))}, "must be 'Athènes'"),
    ],
)
def test_what_cannot_be_joined_is_refused_with_its_place(
    tmp_path: Path, changes: dict[str, tuple[str, ...]], told: str
) -> None:
    with pytest.raises(DataError) as refused:
        load(f"bmlama:{written(tmp_path, **changes)}")
    assert told in str(refused.value) and "\n" not in str(refused.value)


def test_without_english_lines_nothing_tells_the_relations(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "en.tsv").unlink()
    with pytest.raises(DataError, match=r"has no en\.tsv"):
        load(f"bmlama:{tmp_path}")
    (tmp_path / "en.tsv").write_text("question\tanswer\n", encoding="utf-8")
    with pytest.raises(DataError, match="must begin with the columns Prompt"):
        load(f"bmlama:{tmp_path}")


@pytest.mark.shared
def test_the_published_file_is_read_whole(shared: Path) -> None:
    dataset = load(f"bmlama:{shared / 'data' / 'bmlama17'}")
    assert dataset.languages() == ("en", "ar", "fr", "ja")
    assert dataset.notes["rows_read"] == 4 * 6792 and dataset.size == 4 * 6792
    sames = [r.same for r in dataset.relations if r.language == "en"]
    assert len(sames) == 41 and all(same.startswith("P") for same in sames)
    own = [r.id for r in dataset.relations if r.templates[0].fact_slots]
    assert own == ["P17.ar"], "one line there has no space before its subject"
    continents = {fact.objects[0].id for fact in dataset.facts("P30.ja")}
    assert continents == {"Europe", "Asia", "Africa", "Oceania", "Antarctica", "Americas"}
    sizes = Counter(
        1 + len(wrong) for r in dataset.relations for wrong in dataset.frame(r.id)["wrong_ids"]
    )
    assert sizes[10] == 4 * 6218 and min(sizes) == 2
