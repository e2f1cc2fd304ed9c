"""What is read of facts asked in several languages, beside numbers worked out fact by fact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from random import Random

import pytest

import sonde
from sonde.analysis.readings import Asked, Reading, has_languages
from sonde.analysis.readings.languages import report as languages
from sonde.core.answers import Answered, Filled, Generated, Scored
from sonde.core.columns import in_blocks
from sonde.core.facts import Dataset, Fact, Relation
from sonde.core.prompts import Fill, Prompt, Score
from sonde.core.reports import Estimate, HeatMap
from sonde.metrics.ranking import consistency
from tests.rows import asked
from tests.worlds import dataset_of, entity, fact, relation

WORDS = {
    "en": "The capital of [X] is [Y].",
    "fr": "La capitale de [X] est [Y].",
    "ja": "[X]の[Y]。",
}
THINGS = tuple("abcdef")


def name(thing: str, language: str) -> str:
    """What a thing is called; no two languages share a name."""
    return f"{thing}-{language}"


def spoken(same: str, language: str, *more: str) -> Relation:
    made = relation(f"{same}.{language}", WORDS[language], *more)
    return replace(made, language=language, same=same)


def said(
    same: str, language: str, subject: str, right: str, wrong: Sequence[str] = (), again: str = ""
) -> Fact:
    return fact(
        f"{same}.{language}",
        entity(f"{subject} ({language})", id=subject),
        entity(name(right, language), id=right),
        id=f"{same}.{language}:{subject}{again}",
        wrong=[entity(name(other, language), id=other) for other in wrong],
    )


def tongues(own: bool = True, languages: Sequence[str] = tuple(WORDS)) -> Dataset:
    """Two relations, ten facts each; with options of their own, or all of the relation's."""
    draw, facts = Random(5), []
    for same in ("P1", "P2"):
        for number in range(10):
            right, *wrong = draw.sample(THINGS, 4)
            for language in languages:
                facts.append(said(same, language, f"s{number}", right, wrong if own else ()))
    return dataset_of(facts, *(spoken(s, code) for s in ("P1", "P2") for code in languages))


def answered(prompt: Prompt) -> Answered:
    """Scores that depend on the prompt and the option, the same each time."""

    def value(option: str) -> float:
        return Random(f"{prompt.prefix}:{prompt.key.subject}:{option}").uniform(-9.0, -1.0)

    if isinstance(prompt.want, Score):
        options = prompt.want.options
        answer: Scored | Filled = Scored(options=options, logps=tuple((value(o),) for o in options))
    else:
        assert isinstance(prompt.want, Fill)
        watched = prompt.want.watched
        logps = [None if o.startswith("f") else value(o) for o in watched]  # f is no token
        order = sorted(own for own in logps if own is not None)[::-1]
        best = sorted((o for o in watched if not o.startswith("f")), key=value)[::-1][:3]
        answer = Filled(
            top=tuple(best), top_logps=tuple(map(value, best)), watched=watched,
            watched_logps=tuple(logps), mass=1.0,
            watched_ranks=tuple(None if o is None else 1 + order.index(o) for o in logps),
        )  # fmt: skip
    return Answered(
        key=prompt.key, prefix=prompt.prefix, suffix=prompt.suffix, answer=answer, own=prompt.own
    )


def read(
    dataset: Dataset, probe: str = "lama", **settings: object
) -> tuple[Reading, list[Answered]]:
    settings = {"answer": "score"} | settings
    made = sonde.probe(probe, **settings)
    rows = [answered(prompt) for prompt in asked(made, dataset)]
    judged = made.read(dataset, in_blocks(rows)).judged
    found = languages.read(Asked(dataset=dataset, judged=judged, answers=lambda: in_blocks(rows)))
    assert found is not None
    return found, rows


def rankings(rows: Sequence[Answered]) -> dict[tuple[str, str, str], list[str]]:
    """Things as they are ranked, by relation, language and subject."""
    found = {}
    for row in rows:
        answer = row.answer
        assert isinstance(answer, Scored)
        same, _, language = row.key.relation.partition(".")
        order = sorted(zip(answer.options, answer.logps, strict=True), key=lambda o: -o[1][0])
        subject = row.key.subject.partition(" ")[0]
        found[same, language, subject] = [option.partition("-")[0] for option, _ in order]
    return found


def value(reading: Reading, metric: str, place: str, over: str = "mean_over_facts") -> Estimate:
    return reading.estimates[f"language.{metric}.{place}.{over}"]


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


@pytest.mark.parametrize("own", [True, False])
def test_every_number_is_what_is_worked_out_fact_by_fact(own: bool) -> None:
    dataset = tongues(own)
    reading, rows = read(dataset)
    ranked = rankings(rows)
    right = {
        (f.relation.partition(".")[0], f.relation.partition(".")[2], f.subject.id): f.objects[0].id
        for r in dataset.relations
        for f in dataset.facts(r.id)
    }
    facts = sorted({(same, subject) for same, _, subject in ranked})
    known = {key: ranked[key][0] == right[key] for key in ranked}
    for a in WORDS:
        own_known = [known[same, a, subject] for same, subject in facts]
        assert value(reading, "accuracy", a).value == pytest.approx(mean(own_known))
    for a, b in combinations(WORDS, 2):
        couples = [((same, a, subject), (same, b, subject)) for same, subject in facts]
        numbers: dict[str, Callable[..., float]] = {
            "rankc": lambda x, y: consistency(ranked[x], ranked[y]),
            "agreement": lambda x, y: ranked[x][0] == ranked[y][0],
            "known_only": lambda x, y: known[x] and not known[y],
            "difference": lambda x, y: known[x] - known[y],
        }
        for metric, of in numbers.items():
            found = value(reading, metric, f"{a}-{b}")
            assert found.value == pytest.approx(mean([of(x, y) for x, y in couples])), metric
            assert found.n == len(facts)
        turned = mean([known[y] and not known[x] for x, y in couples])
        assert value(reading, "known_only", f"{b}-{a}").value == pytest.approx(turned)
    assert reading.counts["facts_in_every_language"] == len(facts)


def test_facts_whose_own_candidates_differ_are_left_out_of_rankc_and_counted() -> None:
    facts = [
        said("P1", "en", "s1", "a", ["b", "c"]),
        said("P1", "fr", "s1", "a", ["b", "c"]),
        said("P1", "en", "s2", "a", ["b", "c"]),
        said("P1", "fr", "s2", "a", ["b", "d"]),
        said("P1", "en", "s3", "a", ["b"]),
        said("P1", "fr", "s3", "a", ["b", "c"]),
    ]
    reading, rows = read(dataset_of(facts, spoken("P1", "en"), spoken("P1", "fr")))
    ranked = rankings(rows)
    alone = consistency(ranked["P1", "en", "s1"], ranked["P1", "fr", "s1"])
    assert value(reading, "rankc", "en-fr").n == 1
    assert value(reading, "rankc", "en-fr").value == pytest.approx(alone)
    assert value(reading, "agreement", "en-fr").n == 3
    assert reading.counts["rankc_other_candidates"] == 2


def test_of_a_relations_answers_those_count_that_both_languages_have() -> None:
    facts = [said("P1", "en", f"s{i}", thing) for i, thing in enumerate("abcde")]
    facts += [said("P1", "fr", f"s{i}", thing) for i, thing in enumerate("abc")]
    reading, rows = read(dataset_of(facts, spoken("P1", "en"), spoken("P1", "fr")))
    ranked = rankings(rows)
    values = [
        consistency(
            [t for t in ranked["P1", "en", f"s{i}"] if t in "abc"], ranked["P1", "fr", f"s{i}"]
        )
        for i in range(3)
    ]
    assert value(reading, "rankc", "en-fr").value == pytest.approx(mean(values))
    assert value(reading, "accuracy", "en").n == 5
    assert reading.counts["facts_in_some_language"] == 5
    assert reading.counts["facts_in_every_language"] == 3


def test_several_facts_of_one_subject_are_joined_by_their_objects() -> None:
    facts = [
        said("P1", "en", "s", "a", ["c", "d"], ":1"),
        said("P1", "en", "s", "b", ["c", "d"], ":2"),
        said("P1", "fr", "s", "b", ["c", "d"], ":1"),
    ]
    reading, _ = read(dataset_of(facts, spoken("P1", "en"), spoken("P1", "fr")))
    assert reading.counts["facts_in_some_language"] == 2
    assert value(reading, "rankc", "en-fr").n == 1, "b is asked in both, with the same candidates"
    assert reading.counts["rankc_other_candidates"] == 0


@pytest.mark.parametrize("together", [True, False], ids=["one fact", "several facts"])
@pytest.mark.parametrize("probe", ["belief", "belief-icl"])
def test_two_right_answers_agree_only_where_they_name_the_same_object(
    probe: str, together: bool
) -> None:
    facts = []
    for code in ("en", "fr"):
        for number in range(4):
            one, other = (said("P1", code, f"s{number}", t, again=f":{t}") for t in "ab")
            both = [replace(one, objects=(*one.objects, *other.objects))]
            facts += both if together else [one, other]
    dataset = dataset_of(facts, spoken("P1", "en"), spoken("P1", "fr"))
    choosing = {"answer": "score", "bias": False}
    writing = {"context": "zero-shot", "samples": 0}
    made = sonde.probe(probe, **(choosing if probe == "belief" else writing))
    rows = []
    for prompt in asked(made, dataset):
        french, subject = prompt.key.relation.endswith("fr"), prompt.key.subject
        first = "b" if french and not subject.startswith("s0") else "a"
        rows.append(naming(prompt, name(first, "fr" if french else "en")))
    judged = made.read(dataset, in_blocks(rows)).judged
    found = languages.read(Asked(dataset=dataset, judged=judged, answers=lambda: in_blocks(rows)))
    assert found is not None
    assert value(found, "accuracy", "en").value == value(found, "accuracy", "fr").value == 1.0
    assert value(found, "agreement", "en-fr").value == 0.25, "of the first subject alone"


def naming(prompt: Prompt, answer: str) -> Answered:
    """The prompt answered with a name: the likeliest option, or written among other words."""
    if isinstance(prompt.want, Score):
        options = prompt.want.options
        logps = tuple((0.0 if option == answer else -5.0,) for option in options)
        given: Scored | Generated = Scored(options=options, logps=logps)
    else:
        given = Generated(text=f"so {answer}", logps=(-0.1,), end_logp=-0.1, finished=True)
    return Answered(
        key=prompt.key, prefix=prompt.prefix, suffix=prompt.suffix, answer=given, own=prompt.own
    )


def test_a_filled_mask_ranks_the_candidates_that_are_one_token() -> None:
    dataset = tongues(languages=("en", "fr"))
    reading, _ = read(dataset, answer="fill")
    ranked = rankings(read(dataset)[1])
    may = [
        (f.relation[:2], f.subject.id)
        for r in dataset.relations
        if r.language == "en"
        for f in dataset.facts(r.id)
        if f.objects[0].id != "f"  # that is no token
    ]
    values = [
        consistency(*([t for t in ranked[same, c, s] if t != "f"] for c in ("en", "fr")))
        for same, s in may
    ]
    assert len(values) < 20 and value(reading, "rankc", "en-fr").n == len(values)
    assert value(reading, "rankc", "en-fr").value == pytest.approx(mean(values))


def test_several_prompts_of_a_fact_are_one_ranking_by_their_mean() -> None:
    texts = {"en": "[Y], so the capital of [X].", "fr": "[Y], donc la capitale de [X]."}
    relations = [spoken("P1", code, text) for code, text in texts.items()]
    facts = [said("P1", code, f"s{i}", t) for code in texts for i, t in enumerate("abcd")]
    reading, rows = read(dataset_of(facts, *relations), "belief", bias=False, draws=50)
    scores: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        assert isinstance(row.answer, Scored)
        own = scores.setdefault((row.key.relation, row.key.subject.partition(" ")[0]), {})
        for option, logps in zip(row.answer.options, row.answer.logps, strict=True):
            own[option[0]] = own.get(option[0], 0.0) + logps[0]
    order = {key: sorted(own, key=lambda t: -own[t]) for key, own in scores.items()}
    values = [consistency(order["P1.en", f"s{i}"], order["P1.fr", f"s{i}"]) for i in range(4)]
    assert value(reading, "rankc", "en-fr").value == pytest.approx(mean(values))


def test_candidates_are_ranked_by_the_scores_that_the_probe_compares() -> None:
    dataset = tongues(languages=("en", "fr"))
    made = sonde.probe("lama", answer="score", normalise="tokens")
    rows = []
    for row in (answered(prompt) for prompt in asked(made, dataset)):
        assert isinstance(row.answer, Scored)
        longer = [len(option) * (ord(option[0]) % 3 + 1) for option in row.answer.options]
        logps = [(own[0],) * n for own, n in zip(row.answer.logps, longer, strict=True)]
        rows.append(replace(row, answer=replace(row.answer, logps=tuple(logps))))
    judged = made.read(dataset, in_blocks(rows)).judged
    given = Asked(dataset=dataset, judged=judged, answers=lambda: in_blocks(rows))
    summed, by_token = (languages.read(replace(given, normalise=n)) for n in ("none", "tokens"))
    assert summed is not None and by_token is not None
    expected = value(read(dataset)[0], "rankc", "en-fr").value  # where each has one token
    assert value(by_token, "rankc", "en-fr").value == pytest.approx(expected)
    assert value(summed, "rankc", "en-fr").value != pytest.approx(expected)


def test_equal_scores_are_not_taken_for_equal_rankings() -> None:
    dataset = tongues(languages=("en", "fr"))
    made = sonde.probe("lama", answer="score")
    rows = [answered(prompt) for prompt in asked(made, dataset)]
    flat = [
        replace(row, answer=replace(row.answer, logps=tuple((-1.0,) for _ in row.answer.options)))
        for row in rows
        if isinstance(row.answer, Scored)
    ]
    judged = made.read(dataset, in_blocks(flat)).judged
    reading = languages.read(Asked(dataset=dataset, judged=judged, answers=lambda: in_blocks(flat)))
    assert reading is not None
    assert (value(reading, "rankc", "en-fr").value or 1.0) < 0.9
    assert value(reading, "accuracy", "en").value == 0.0, "ties are wrong"


def test_tables_and_heat_maps_have_a_place_for_every_language() -> None:
    reading, _ = read(tongues())
    alike, only = reading.figures
    assert isinstance(alike, HeatMap) and isinstance(only, HeatMap)
    assert alike.rows == alike.columns == ("en", "fr", "ja")
    assert [alike.values[i][i] for i in range(3)] == [1.0, 1.0, 1.0]
    assert alike.values[0][2] == alike.values[2][0] == value(reading, "rankc", "en-ja").value
    assert only.values[2][1] == value(reading, "known_only", "ja-fr").value
    tables = {table.id: table for table in reading.tables}
    assert [row[0] for row in tables["by-language"].rows] == ["en", "fr", "ja"]
    assert [row[0] for row in tables["by-two-languages"].rows] == ["en – fr", "en – ja", "fr – ja"]


def test_two_languages_are_told_of_in_sentences() -> None:
    reading, _ = read(tongues(languages=("en", "fr")))
    first, second, third = reading.findings
    assert first.startswith("RankC of en and fr is 0.") and first.endswith("over 20 facts.")
    assert second.startswith("First answers name the same thing for ")
    assert third == "No two languages are told apart by how many facts are right."


def test_what_is_clearly_better_known_is_said_of_every_two_languages_together() -> None:
    facts = [said("P1", c, f"s{i}", THINGS[i % 6]) for c in ("en", "fr") for i in range(40)]
    dataset = dataset_of(facts, spoken("P1", "en"), spoken("P1", "fr"))
    made = sonde.probe("lama", answer="score")
    rows = []
    for prompt in asked(made, dataset):
        row, number = answered(prompt), int(prompt.key.subject[1:].partition(" ")[0])
        assert isinstance(row.answer, Scored)
        right = name(THINGS[number % 6], "en")
        logps = tuple((0.0 if option == right else -5.0,) for option in row.answer.options)
        rows.append(replace(row, answer=replace(row.answer, logps=logps)))
    judged = made.read(dataset, in_blocks(rows)).judged
    found = languages.read(Asked(dataset=dataset, judged=judged, answers=lambda: in_blocks(rows)))
    assert found is not None
    assert found.findings[-1].startswith("Clearly more facts are right in en than in fr (+100.0")


def test_it_applies_only_where_a_relation_is_asked_in_two_languages() -> None:
    dataset = tongues()
    assert has_languages(dataset)
    assert not has_languages(dataset.in_languages(["fr"]))
    assert not has_languages(sonde.dataset("atlas", relations=("P36",)))
