"""The same facts in several languages, next to numbers computed fact by fact."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from math import exp
from random import Random
from typing import Any

import polars as pl
import pytest

from sonde.core.facts import Dataset, Fact, Relation
from sonde.evaluation.languages import compare_languages
from sonde.evaluation.tables import collect_results
from sonde.probes.base import Probe
from sonde.probes.belief import Belief
from sonde.probes.belief_icl import BeliefIcl
from sonde.probes.lama import Lama
from tests.probes.shares import Model, answer
from tests.worlds import dataset_of, entity, fact, relation

WORDS = {
    "en": "The capital of [X] is [Y].",
    "fr": "La capitale de [X] est [Y].",
    "ja": "[X]の[Y]。",
}
THINGS = tuple("abcdef")
Ranked = dict[tuple[str, str, str], list[str]]
"""Things as they are ranked, by relation, language and subject."""


def name(thing: str, language: str) -> str:
    """The name of a thing; no two languages share one."""
    return f"{thing}-{language}"


def spoken(same: str, language: str, *more: str) -> Relation:
    made = relation(f"{same}.{language}", WORDS[language], *more)
    return replace(made, language=language, same=same)


def stated(
    same: str, language: str, subject: str, correct: str, wrong: Sequence[str] = (), again: str = ""
) -> Fact:
    return fact(
        f"{same}.{language}",
        entity(f"{subject} ({language})", id=subject),
        entity(name(correct, language), id=correct),
        id=f"{same}.{language}:{subject}{again}",
        wrong=[entity(name(other, language), id=other) for other in wrong],
    )


def three(own: bool) -> Dataset:
    """Two relations of ten facts in three languages, with own options or all of the relation."""
    draw, facts = Random(5), []
    for same in ("P1", "P2"):
        for number in range(10):
            correct, *wrong = draw.sample(THINGS, 4)
            for code in WORDS:
                facts.append(stated(same, code, f"s{number}", correct, wrong if own else ()))
    return dataset_of(facts, *(spoken(s, code) for s in ("P1", "P2") for code in WORDS))


def drawn(prompt: dict[str, Any]) -> dict[str, float]:
    """Shares that depend on the prompt and the thing, the same each time."""
    things = [name(thing, code) for thing in "abcdefg" for code in WORDS]
    key = f"{prompt['prefix']}:{prompt['subject']}"
    return {thing: exp(Random(f"{key}:{thing}").uniform(-9.0, -1.0)) for thing in things}


def read(
    data: Dataset, model: Model = drawn, probe: Probe | None = None
) -> tuple[pl.DataFrame, Ranked]:
    """Estimates, and how options are ranked in each prompt."""
    probe = probe or Lama(answer="score")
    answers = [answer(batch, model) for batch in probe.prompts(data)]
    frame, _ = compare_languages(collect_results(probe, data, answers), data, answers)
    ranked: Ranked = {}
    for batch in answers:
        for i, row in enumerate(batch.frame.iter_rows(named=True)):
            if batch.batch.options:
                names = batch.batch.options[batch.batch.options_ids()[i]]
                shares = drawn(row)
                order = sorted(names, key=lambda n: -shares[n])
                same, _, code = row["relation"].partition(".")
                subject = row["subject"].partition(" ")[0]
                ranked[same, code, subject] = [n.partition("-")[0] for n in order]
    return frame, ranked


def line(frame: pl.DataFrame, metric: str, group: str, of: str = "value") -> dict[str, Any]:
    chosen = frame.filter(metric=f"language.{metric}", of=of, over="facts")
    return chosen.filter(pl.col("group") == group.split("-")).row(0, named=True)


def rankc(one: Sequence[str], other: Sequence[str]) -> float:
    """As it is defined."""
    n = len(one)
    weights = [exp(n - j) for j in range(1, n + 1)]
    shares = [len({*one[:j]} & {*other[:j]}) / j for j in range(1, n + 1)]
    return sum(w * s for w, s in zip(weights, shares, strict=True)) / sum(weights)


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


@pytest.mark.parametrize("own", [True, False])
def test_every_number_is_what_is_computed_fact_by_fact(own: bool) -> None:
    data = three(own)
    frame, ranked = read(data)
    correct = {
        (*f.relation.split("."), f.subject.id): f.objects[0].id
        for r in data.relations
        for f in data.facts(r.id)
    }
    facts = sorted({(same, subject) for same, _, subject in ranked})
    known = {key: ranked[key][0] == correct[key] for key in ranked}
    for a in WORDS:
        values = [known[same, a, subject] for same, subject in facts]
        assert line(frame, "accuracy", a)["value"] == pytest.approx(mean(values))
    for a, b in combinations(WORDS, 2):
        pairs = [((same, a, subject), (same, b, subject)) for same, subject in facts]
        numbers: dict[str, Callable[..., float]] = {
            "rankc": lambda x, y: rankc(ranked[x], ranked[y]),
            "known_only": lambda x, y: known[x] and not known[y],
            "difference": lambda x, y: known[x] - known[y],
        }
        for metric, of in numbers.items():
            kind = "difference" if metric == "difference" else "value"
            found = line(frame, metric, f"{a}-{b}", kind)
            assert found["value"] == pytest.approx(mean([of(x, y) for x, y in pairs])), metric
            assert found["n"] == len(facts)
        other_way = mean([known[y] and not known[x] for x, y in pairs])
        assert line(frame, "known_only", f"{b}-{a}")["value"] == pytest.approx(other_way)


def test_facts_with_different_candidates_have_no_rankc() -> None:
    facts = [
        stated("P1", "en", "s1", "a", ["b", "c"]),
        stated("P1", "fr", "s1", "a", ["b", "c"]),
        stated("P1", "en", "s2", "a", ["b", "c"]),
        stated("P1", "fr", "s2", "a", ["b", "d"]),
        stated("P1", "en", "s3", "a", ["b"]),
        stated("P1", "fr", "s3", "a", ["b", "c"]),
    ]
    frame, ranked = read(dataset_of(facts, spoken("P1", "en"), spoken("P1", "fr")))
    found = line(frame, "rankc", "en-fr")
    assert found["n"] == 1
    assert found["value"] == pytest.approx(
        rankc(ranked["P1", "en", "s1"], ranked["P1", "fr", "s1"])
    )
    assert line(frame, "difference", "en-fr", "difference")["n"] == 3


def test_of_a_relations_objects_those_count_that_both_languages_have() -> None:
    facts = [stated("P1", "en", f"s{i}", thing) for i, thing in enumerate("abcde")]
    facts += [stated("P1", "fr", f"s{i}", thing) for i, thing in enumerate("abc")]
    frame, ranked = read(dataset_of(facts, spoken("P1", "en"), spoken("P1", "fr")))
    values = [
        rankc([t for t in ranked["P1", "en", f"s{i}"] if t in "abc"], ranked["P1", "fr", f"s{i}"])
        for i in range(3)
    ]
    assert line(frame, "rankc", "en-fr")["value"] == pytest.approx(mean(values))
    assert line(frame, "accuracy", "en")["n"] == 5


def test_several_facts_of_one_subject_are_joined_by_their_objects() -> None:
    facts = [
        stated("P1", "en", "s", "a", ["c", "d"], ":1"),
        stated("P1", "en", "s", "b", ["c", "d"], ":2"),
        stated("P1", "fr", "s", "b", ["c", "d"], ":1"),
    ]
    frame, _ = read(dataset_of(facts, spoken("P1", "en"), spoken("P1", "fr")))
    assert line(frame, "rankc", "en-fr")["n"] == 1, "b, with the same candidates in both"
    assert line(frame, "accuracy", "en")["n"] == 2


def test_several_prompts_of_a_fact_are_one_ranking_by_their_mean() -> None:
    facts = [stated("P1", code, f"s{t}", t) for code in ("en", "fr") for t in "abc"]
    more = {"en": "In [X]: [Y].", "fr": "À [X]: [Y]."}
    shares = {
        "The": (0.6, 0.3, 0.1),
        "In": (0.01, 0.3, 0.6),
        "La": (0.2, 0.5, 0.1),
        "À": (0.2, 0.5, 0.1),
    }

    def model(prompt: dict[str, Any]) -> dict[str, float]:
        values = shares[prompt["prefix"].split()[0]]
        return {name(t, prompt["relation"][-2:]): v for t, v in zip("abc", values, strict=True)}

    relations = [spoken("P1", code, more[code]) for code in ("en", "fr")]
    frame, _ = read(dataset_of(facts, *relations), model, Belief(answer="score", bias=False))
    # mean log-probabilities in English put b first, then c
    assert line(frame, "rankc", "en-fr")["value"] == pytest.approx(rankc("bca", "bac"))


def test_equal_scores_are_not_taken_for_equal_rankings() -> None:
    facts = [stated("P1", code, f"s{n}", "a", "bcdef") for code in ("en", "fr") for n in range(3)]
    data = dataset_of(facts, spoken("P1", "en"), spoken("P1", "fr"))
    frame, _ = read(data, lambda prompt: {})
    assert line(frame, "rankc", "en-fr")["value"] < 0.99


def test_generated_answers_have_an_accuracy_in_each_language_and_no_rankc() -> None:
    facts = []
    for code in ("en", "fr"):
        for number in range(4):
            one, other = (stated("P1", code, f"s{number}", thing) for thing in "ab")
            facts.append(replace(one, objects=(*one.objects, *other.objects)))

    def model(prompt: dict[str, Any]) -> str:
        french, first = prompt["relation"].endswith("fr"), prompt["subject"].startswith("s0")
        return f"the {name('b' if french and not first else 'a', prompt['relation'][-2:])}"

    data = dataset_of(facts, spoken("P1", "en"), spoken("P1", "fr"))
    frame, _ = read(data, model, BeliefIcl(context="zero-shot", samples=0))
    assert line(frame, "accuracy", "fr")["value"] == 1.0
    assert line(frame, "known_only", "en-fr")["value"] == 0.0
    assert frame.filter(metric="language.rankc").is_empty(), "nothing was scored"


def test_data_in_one_language_have_no_such_numbers() -> None:
    data = dataset_of([stated("P1", "en", "s", "a", ["b"])], spoken("P1", "en"))
    probe = Lama(answer="score")
    answers = [answer(batch, drawn) for batch in probe.prompts(data)]
    frame, exhibits = compare_languages(collect_results(probe, data, answers), data, answers)
    assert frame.is_empty() and exhibits == []
