"""profile: which instruments are prompted, and every number worked out again from the answers."""

from random import Random
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars import col

from sonde.core.errors import AbilityError, DataError
from sonde.core.facts import Dataset, Relation
from sonde.evaluation import known, stats
from sonde.probes.profile import CLASSES, HELD, Profile, answer_form
from sonde.prompts import Generate, PromptBatch, Score
from tests.worlds import dataset_of, entity, fact, question, relation

from .shares import Model, Numbers, results

CAN: dict[str, frozenset[Any]] = {
    "causal": frozenset({"score", "generate", "sample", "trace"}),
    "masked": frozenset({"score", "fill"}),
    "generate-only": frozenset({"generate"}),
    "chat": frozenset({"score", "generate", "chat"}),
}
TOWNS = {f"town {n:02}": "ABCD"[n % 4] + "land" for n in range(16)}
CAPITAL = relation(
    "P36",
    "[X] is in [Y].",
    "[Y] is the country of [X].",
    "The country of [X] is [Y].",
    "[X], [Y]",
    question("P36-q", "Where is [X]?"),
    label="country",
)
BARE = Relation(id="P9", label="river")


def towns(*more: Relation, about: Relation = CAPITAL, **selection: Any) -> Dataset:
    relations = (about, *more)
    facts = [fact(r.id, town, country) for r in relations for town, country in TOWNS.items()]
    return dataset_of(facts, *relations, **selection)


def probe(kind: str = "causal", **settings: Any) -> Profile:
    return Profile(**settings).resolve(CAN[kind])


def batches(kind: str, data: Dataset, **settings: Any) -> dict[str, PromptBatch]:
    return {b.frame["instrument"][0]: b for b in probe(kind, **settings).prompts(data)}


SCORED = [
    "list",
    *(f"{name}:{k}" for k in (1, 2, 3) for name in ("statement", "statement+examples")),
]
WRITTEN = ["generated list", "continued:1", "continued:3", "question"]


@pytest.mark.parametrize(
    ("kind", "instruments"),
    [
        ("causal", [*SCORED, *WRITTEN]),
        ("masked", SCORED),
        ("generate-only", WRITTEN),
        ("chat", [*SCORED, *WRITTEN]),
    ],
)
def test_instruments_of_each_kind_of_model(kind: str, instruments: list[str]) -> None:
    assert sorted(batches(kind, towns())) == sorted(instruments)


def test_instruments_without_templates_and_questions() -> None:
    data = towns(about=BARE)
    assert set(batches("causal", data)) == {"list", "generated list", "question"}
    asked = batches("causal", data)["question"].frame["prefix"]
    assert asked[0].startswith("Q: What is the river of town ") or "river of town" in asked[0]
    assert set(batches("masked", data)) == {"list"}
    own = batches("causal", towns())["question"].frame["prefix"]
    assert all("Where is town " in text for text in own)


def test_settings_choose_instruments() -> None:
    assert set(batches("causal", towns(), generate=False)) == set(SCORED)
    assert set(batches("causal", towns(), score=False)) == set(WRITTEN)
    one = set(batches("causal", towns(), sentences=1))
    assert one == {
        "list", "generated list", "question", "statement:1", "statement+examples:1", "continued:1"
    }  # fmt: skip


def test_a_chat_model_is_asked_the_question_alone_as_a_turn() -> None:
    plain, chat = (batches(kind, towns())["question"] for kind in ("causal", "chat"))
    assert not chat.raw
    assert plain.frame["prefix"].str.ends_with("A:").all()
    assert set(chat.frame["prefix"].str.replace(r"\d+", "N")) == {"Where is town N?"}
    assert all(b.raw for name, b in batches("chat", towns()).items() if name != "question")


def test_examples_are_the_same_for_all_facts_of_a_relation_and_not_graded() -> None:
    data = towns(BARE)
    for chosen, n in ((probe(), 5), (probe(shots=2), 2)):
        facts = chosen.facts(data)
        held = facts.filter(excluded=HELD)
        assert held["relation"].value_counts(sort=True)["count"].to_list() == [n, n]
        graded = facts.filter(col("excluded").is_null())
        for batch in chosen.prompts(data):
            frame = batch.frame
            here = frame["relation"][0]
            names = held.filter(col("relation") == here)["subject"].to_list()
            assert set(frame["subject"]) == set(
                graded.filter(col("relation") == here)["subject"].to_list()
            )
            instrument = frame["instrument"][0]
            if "list" not in instrument and "examples" not in instrument:
                continue
            # what is before the subject is one text for all facts
            heads = {
                text.partition(subject)[0]
                for text, subject in frame.select("prefix", "subject").iter_rows()
            }
            assert len(heads) == 1
            lines = frame["prefix"][0].split("\n")[:-1]
            assert len(lines) == n
            assert all(any(name in x and TOWNS[name] in x for x in lines) for name in names)


def test_facts_of_other_splits_are_shown_before_those_that_are_asked() -> None:
    train = [fact("P36", f"village {n}", "Aland", split="train") for n in range(12)]
    data = dataset_of([*train, *(fact("P36", t, c) for t, c in TOWNS.items())], CAPITAL)
    assert probe().facts(data)["excluded"].is_null().all()
    prefix = batches("causal", data)["list"].frame["prefix"][0]
    assert prefix.count("village") == 10
    assert prefix.count("town") == 1


def test_options_are_equal_for_all_facts_of_a_relation() -> None:
    data = towns(BARE)
    for kind in ("causal", "masked"):
        for batch in probe(kind).prompts(data):
            if isinstance(batch.request, Score):
                assert {tuple(batch.options[i]) for i in batch.options_ids()} == {
                    ("Aland", "Bland", "Cland", "Dland")
                }
    assert len(batches("causal", data, max_options=2)["list"].options[0]) == 4
    more = [fact("P36", f"far {n}", f"Far {n}", split="train") for n in range(20)]
    wide = dataset_of([*more, *(fact("P36", t, c) for t, c in TOWNS.items())], CAPITAL)
    for number, size in ((6, 6), (100, 24)):
        [options] = batches("causal", wide, max_options=number)["list"].options
        assert len(options) == size
        assert {"Aland", "Bland", "Cland", "Dland"} <= set(options)


def test_generated_texts_have_few_tokens() -> None:
    request = batches("causal", towns(), max_tokens=4)["continued:1"].request
    assert request == Generate(max_tokens=4)


def guesser(share: float, seed: int = 0) -> Model:
    """A model that knows some facts; each instrument misses some of them, and then guesses."""

    def model(prompt: dict[str, Any]) -> Any:
        subject, instrument = prompt["subject"], prompt["instrument"]
        is_known = Random(f"{seed} {prompt['relation']} {subject}").random() < share
        rng = Random(f"{seed} {prompt['relation']} {subject} {instrument}")
        answer = TOWNS[subject] if is_known and rng.random() < 0.75 else rng.choice(
            ["Aland", "Bland", "Cland", "Dland", "", "I do not know"]
        )  # fmt: skip
        if prompt["request"] == "Generate":
            return f" {answer}."
        # a tie of all options if the answer is none of them
        return {answer: 0.9} if answer.endswith("land") else {}

    return model


@pytest.fixture(scope="module")
def some() -> Numbers:
    return Numbers(probe(), towns(BARE), guesser(0.6))


def table(numbers: Numbers) -> pl.DataFrame:
    columns = ("fact_no", "relation", "subject", "instrument", "answer", "correct", "tied",
               "abstained", "baseline", "class", "posterior", "dealt", "instrument_no",
               *(f"dealt.{c.replace(' ', '_')}" for c in CLASSES))  # fmt: skip
    frame = numbers.results.table(columns).collect()
    return frame.with_columns(col("relation", "instrument", "answer", "class").cast(pl.String))


def test_what_is_correct_is_what_was_answered(some: Numbers) -> None:
    for row in table(some).iter_rows(named=True):
        gold, answer = TOWNS[row["subject"]], row["answer"] or ""
        expected = answer.strip(" .") == gold and not row["tied"]
        assert row["correct"] == expected, row


def test_chance_by_loops_over_pairs(some: Numbers) -> None:
    rows = table(some)
    for (_, name), part in rows.group_by("relation", "instrument"):
        here = part.select("subject", "answer", "tied", "baseline").rows()
        for subject, _, _, chance in here:
            others = [(a, tied) for s, a, tied, _ in here if s != subject]
            fits = [(a or "").strip(" .") == TOWNS[subject] and not tied for a, tied in others]
            assert chance == pytest.approx(np.mean(fits)), name


def test_classes_by_loops_over_instruments(some: Numbers) -> None:
    rows = table(some)
    for (_,), part in rows.group_by("fact_no"):
        correct = part.filter("correct")["instrument"].to_list()
        kinds = [name.partition(":")[0] for name in correct]
        if {"question", "continued"} & set(kinds):
            expected = "recalled"
        elif "generated list" in kinds:
            expected = "recalled with examples"
        else:
            expected = "recognized" if kinds else "unknown"
        assert set(part["class"]) == {expected}
    for name in CLASSES:
        share = rows.filter(instrument_no=0).select((col("class") == name).mean()).item()
        assert some(name.replace(" ", "_")) == pytest.approx(share)
        by_chance = rows.filter(instrument_no=0)[f"dealt.{name.replace(' ', '_')}"].mean()
        assert some(name.replace(" ", "_"), of="baseline") == pytest.approx(by_chance, abs=1e-6)
    assert sum(some(c.replace(" ", "_")) for c in CLASSES) == pytest.approx(1)
    assert sum(
        some(c.replace(" ", "_"), of="baseline") for c in CLASSES
    ) == pytest.approx(1, abs=1e-6)  # fmt: skip


def wide(rows: pl.DataFrame, value: str) -> Any:
    table = rows.with_columns(col(value).cast(pl.Float64))
    table = table.pivot("instrument", index="fact_no", values=value)
    return table.sort("fact_no").drop("fact_no").to_numpy()


def test_deals_gate_and_estimate_by_numpy(some: Numbers) -> None:
    rows = table(some)
    correct, chance = wide(rows, "correct"), wide(rows, "baseline")
    facts = rows.filter(instrument_no=0).sort("fact_no")
    means = facts["dealt"].to_numpy().mean(axis=0)
    assert means.mean() == pytest.approx(np.nanmean(chance), abs=0.03)
    assert some("evidence_threshold") == pytest.approx(np.quantile(means, 0.95), abs=1e-6)
    assert np.nanmean(correct) > some("evidence_threshold")
    estimate = known.estimate_share_known(correct, chance)
    assert some("known") == pytest.approx(estimate.share, abs=1e-4)
    assert facts["posterior"].to_numpy() == pytest.approx(estimate.posterior, abs=1e-3)
    for name in ("P36", "P9"):
        here = (facts["relation"] == name).to_numpy()
        mean = estimate.posterior[here].mean()
        assert some("known", name) == pytest.approx(mean, abs=1e-3)
    line = some.line("known")
    assert line["low"] <= line["value"] <= line["high"]


def test_the_deals_are_those_of_the_seed(some: Numbers) -> None:
    """Worked out again from the answers with the same random numbers."""
    rows = table(some).filter(relation="P36")
    n = rows["fact_no"].n_unique()
    gold = [TOWNS[s] for s in rows.filter(instrument_no=0).sort("fact_no")["subject"]]
    rng = stats.random_generator(0, "profile:P36")
    block = rng.permutation(n)
    orders: list[Any] = []
    while len(orders) < known.DEALS:
        order = rng.permutation(n)
        if (order != np.arange(n)).all():
            orders.append(order)
    hits = np.zeros((known.DEALS, n))
    for (_,), part in rows.sort("fact_no").group_by("instrument"):
        said = [
            None if tied else (answer or "").strip(" .")
            for answer, tied in part.sort("fact_no").select("answer", "tied").iter_rows()
        ]
        for deal, order in enumerate(orders):
            for to, donor in zip(block, block[order], strict=True):
                hits[deal, to] += said[donor] == gold[to]
    stored = rows.filter(instrument_no=0).sort("fact_no")["dealt"].to_numpy().T
    assert stored == pytest.approx(hits / rows["instrument"].n_unique(), abs=1e-6)


def test_range_and_agreement(some: Numbers) -> None:
    rows = table(some)
    means = rows.group_by("instrument").agg(col("correct").mean())["correct"]
    assert some("lowest") == pytest.approx(means.min())
    assert some("highest") == pytest.approx(means.max())
    for name, mean in rows.group_by("instrument").agg(col("correct").mean()).iter_rows():
        assert some("accuracy", name) == pytest.approx(mean)


@pytest.mark.parametrize(
    "kind", ["nothing known", "all answers wrong", "all equal", "ties", "one instrument"]
)
def test_no_estimate_without_evidence_or_with_one_instrument(kind: str) -> None:
    wrong = {"A": "Bland", "B": "Cland", "C": "Dland", "D": "Eland"}
    models: dict[str, Model] = {
        "nothing known": guesser(0.0),
        "all answers wrong": lambda p: _said(p, wrong[TOWNS[p["subject"]][0]]),
        "all equal": lambda p: _said(p, "Aland"),
        "ties": lambda p: "" if p["request"] == "Generate" else {},
        "one instrument": guesser(0.9),
    }
    one = kind == "one instrument"
    chosen = probe(generate=False, sentences=0) if one else probe()
    numbers = Numbers(chosen, towns(BARE), models[kind])
    assert numbers.frame.filter(col("metric") == "known")["value"].drop_nulls().is_empty()
    assert table(numbers)["posterior"].is_null().all()
    is_open = numbers("accuracy") > numbers("evidence_threshold")
    assert is_open == one
    if kind == "all equal":
        assert numbers("accuracy") == pytest.approx(numbers("accuracy", of="baseline"), abs=0.05)


def _said(prompt: dict[str, Any], answer: str) -> Any:
    return f" {answer}" if prompt["request"] == "Generate" else {answer: 0.9}


def test_two_forms_of_at_least_three_instruments_are_needed() -> None:
    data = towns(about=BARE)
    one_form = Numbers(probe(score=False, sentences=0), data, guesser(0.9))
    assert one_form.frame.filter(col("metric") == "known")["value"].drop_nulls().is_empty()
    assert len(set(map(answer_form, ("list", "statement:1", "question")))) == 3
    assert answer_form("statement+examples:2") == answer_form("list")
    assert answer_form("generated list") == answer_form("continued:1") == "generated"
    three = Numbers(probe(), data, guesser(0.9))  # list, generated list and question
    assert 0 < three("known") <= 1


def test_facts_with_several_objects_and_names() -> None:
    lands = [entity("Aland", "Alandia"), entity("Bland"), entity("Cland")]
    facts = [
        fact("P36", town, lands[n % 3], *([lands[(n + 1) % 3]] if n % 2 else []))
        for n, town in enumerate(TOWNS)
    ]
    data = dataset_of(facts, CAPITAL)

    def model(prompt: dict[str, Any]) -> Any:
        return _said(prompt, "Alandia" if prompt["request"] == "Generate" else "Aland")

    numbers = Numbers(probe(), data, model)
    rows = table(numbers)
    fits = {town: n % 3 == 0 or (n % 2 == 1 and n % 3 == 2) for n, town in enumerate(TOWNS)}
    for subject, correct, chance in rows.select("subject", "correct", "baseline").iter_rows():
        assert correct == fits[subject]
        assert chance == float(fits[subject])  # all answers are the same


def test_the_same_results_whatever_the_order_of_answers() -> None:
    data, chosen = towns(BARE), probe()
    one = results(chosen, data, guesser(0.5))
    again = results(chosen, data, guesser(0.5))
    assert one.rows.equals(again.rows)


@pytest.mark.parametrize(
    ("facts", "parts"),
    [
        ({"town 1": "A", "town 2": "B"}, ("fewer than 3", "add facts")),
        ({"town 1": "A", "town 2": "B", "town 3": "C"}, ("fewer than 3", "at least four")),
        ({f"town {n}": "A" for n in range(9)}, ("the same object", "two objects", "add facts")),
    ],
    ids=["two facts", "three facts", "one object"],
)
def test_bad_datasets_have_a_sentence_with_the_fix(
    facts: dict[str, str], parts: tuple[str, ...]
) -> None:
    data = dataset_of([fact("P36", *pair) for pair in facts.items()], CAPITAL)
    with pytest.raises(DataError) as error:
        probe().facts(data)
    text = str(error.value)
    assert all(part in text for part in parts), text


def test_four_facts_are_enough() -> None:
    facts = [fact("P36", f"town {n}", "AB"[n % 2] + "land") for n in range(4)]
    data = dataset_of(facts, CAPITAL)
    table = probe().facts(data)
    assert table["excluded"].null_count() >= 3


def test_a_small_relation_is_dropped_with_its_reason_and_others_stay() -> None:
    small = [fact("P9", "Elbe", "sea"), fact("P9", "Oder", "lake")]
    data = dataset_of([*small, *(fact("P36", t, c) for t, c in TOWNS.items())], CAPITAL, BARE)
    facts = probe().facts(data)
    reasons = facts.filter(col("relation") == "P9")["excluded"]
    assert all("fewer than 3" in reason for reason in reasons)
    assert {b.frame["relation"][0] for b in probe().prompts(data)} == {"P36"}


@pytest.mark.parametrize(
    ("can", "settings"),
    [
        ({"fill"}, {}),
        (set(), {}),
        ({"generate"}, {"generate": False}),
        ({"score"}, {"score": False}),
    ],
)
def test_a_model_that_is_capable_of_no_instrument(can: set[Any], settings: dict[str, Any]) -> None:
    with pytest.raises(AbilityError, match=r"needs a model that can .*score"):
        Profile(**settings).resolve(frozenset(can))
