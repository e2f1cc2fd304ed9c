"""eic-lke: its lists byte for byte, and that the options of a fact are gathered from them."""

from math import exp, log
from pathlib import Path
from typing import Any

import pytest

from sonde.core.errors import AbilityError, DataError
from sonde.core.facts import Dataset
from sonde.evaluation.estimate import estimate_results
from sonde.evaluation.tables import collect_results
from sonde.probes.eic_lke import EicLke
from tests.worlds import fact, facts, world

from .spans import Model, answer, results

PAPER: dict[str, Any] = {"pair_separator": "space", "example_separator": "comma"}
CAPITALS: dict[str, Any] = {"relations": ("P36",)}
GOLDEN = Path(__file__).parents[1] / "golden" / "lke" / "eic-lke.txt"
LAYOUTS: tuple[Any, ...] = ("facts", "options")


def prompts(probe: EicLke, data: Dataset) -> list[dict[str, Any]]:
    return [p for batch in probe.prompts(data) for p in batch.frame.iter_rows(named=True)]


def parts(prompt: dict[str, Any]) -> list[str]:
    """The texts whose probabilities are requested."""
    return [prompt["prefix"][start:stop] for start, stop in prompt["spans"]]


def shares(**probabilities: float) -> Model:
    return lambda prompt, number, text: probabilities.get(text, 0.001)


def test_lists_are_those_written_down() -> None:
    written = []
    for layout in LAYOUTS:
        probe = EicLke(
            examples=6, start=2, stride=2, max_options=4, sequence_layout=layout, **PAPER
        )
        for prompt in prompts(probe, world(**CAPITALS)):
            key = f"{layout} {prompt['option']}: {', '.join(dict.fromkeys(prompt['facts']))}"
            written.append(f"{key}\n{prompt['prefix']!r}\n{parts(prompt)!r}\n")
    assert "\n".join(written) == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_options_of_a_fact_are_gathered_from_its_lists(layout: Any) -> None:
    probe = EicLke(examples=6, start=2, stride=2, sequence_layout=layout)
    found = results(probe, world(**CAPITALS), shares(Vienna=0.2, Lima=0.1))
    rows = found.table(
        ("fact", "answer", "correct", "rank", "confidence", "gold_logprob")
    ).collect()
    assert rows.select("fact", "answer", "correct", "rank").rows() == [
        ("P36-Austria", "Vienna", True, 1),
        ("P36-Egypt", "Vienna", False, 8),
    ]
    total = 0.2 + 0.1 + 6 * 0.001
    assert rows["confidence"].to_list() == pytest.approx([0.2 / total] * 2, abs=1e-6)
    assert rows["gold_logprob"].to_list() == pytest.approx(
        [log(0.2 / total), log(0.001 / total)], abs=1e-5
    )


def test_metrics_are_those_of_ic_lke() -> None:
    estimates = estimate_results(results(EicLke(), world(), shares(Vienna=0.2, guitar=0.3)))
    [accuracy] = estimates.filter(metric="accuracy", of="value", over="relations", group=[])[
        "value"
    ]
    assert accuracy == 0.5
    assert not estimates.filter(metric="mass").is_empty()


def test_a_fact_is_excluded_if_not_all_its_options_were_answered() -> None:
    probe, data = EicLke(examples=6, start=2, stride=2), world()
    batches = list(probe.prompts(data))
    answers = [answer(batch, shares(guitar=0.3)) for batch in batches]
    answers[0] = answer(batches[0].select(slice(1, None)), shares())
    found = collect_results(probe, data, answers)
    assert found.facts["excluded"].to_list() == [probe.exclusion_reason] * 2 + [None] * 2
    assert set(found.table(("fact",)).collect()["fact"]) == {"P1303-Gus", "P1303-Hal"}


def test_a_hundred_examples_have_ten_spots() -> None:
    assert len(EicLke().tested_positions(100)) == 10


def test_each_list_tests_one_option_of_each_fact() -> None:
    lists = prompts(EicLke(examples=6, start=2, stride=2), world(**CAPITALS))
    assert len(lists) == 8
    for place in range(2):
        assert len({parts(prompt)[place] for prompt in lists}) == 8
    assert any(len({*parts(prompt)}) == 2 for prompt in lists), "facts have orders of their own"


def test_the_order_of_options_does_not_depend_on_which_is_correct() -> None:
    held = [fact("P36", f"s{i}", f"n{i % 10}") for i in range(400)]
    turns = []
    for prompt in prompts(EicLke(max_options=10), world(held)):
        golds = [f"n{int(name.removeprefix('P36-s')) % 10}" for name in prompt["facts"]]
        places = zip(parts(prompt), golds, strict=True)
        turns += [prompt["option"] for text, gold in places if text.strip() == gold]
    assert len(turns) == 400
    assert all(20 <= turns.count(turn) <= 65 for turn in range(10))


def test_a_fact_with_fewer_options_is_graded_by_the_first_reading_of_each() -> None:
    held = [*facts(), fact("P36", "Iraq", "Baghdad"), fact("P36", "Iraq", "Lima", split="other")]
    probe, data = EicLke(examples=6, start=1, stride=2), world(held, **CAPITALS)
    last = max(prompt["option"] for prompt in prompts(probe, data))

    def model(prompt: dict[str, Any], number: int, text: str) -> float:
        again = prompt["option"] == last and prompt["facts"][number] == ""
        return 0.9 if again else 0.5 if text == "Baghdad" else 0.001

    rows = results(probe, data, model).table(("fact", "answer", "confidence")).collect()
    iraq = rows.filter(fact="P36-Iraq").row(0, named=True)
    assert iraq["answer"] == "Baghdad"
    assert iraq["confidence"] == pytest.approx(0.5 / 0.507, abs=1e-5)


def test_a_subject_that_is_tested_is_not_among_the_examples() -> None:
    held = [*facts(), fact("P36", "Peru", "Lima", id="again")]
    for prompt in prompts(EicLke(examples=6, start=2, stride=2), world(held, **CAPITALS)):
        assert prompt["prefix"].count("Peru") == ("again" in prompt["facts"]) or (
            "again" not in prompt["facts"] and prompt["prefix"].count("Peru") <= 1
        )


def test_with_fewer_examples_tests_start_earlier() -> None:
    prompt = prompts(EicLke(**PAPER), world(**CAPITALS))[0]
    assert prompt["prefix"].count(",") == 4  # three examples, then the fact that is tested


def test_a_list_ends_with_the_last_fact_that_is_tested() -> None:
    for prompt in prompts(EicLke(examples=6, start=2, stride=2, **PAPER), world(**CAPITALS)):
        assert prompt["spans"][-1][1] == len(prompt["prefix"].rstrip(", "))


def test_a_fact_without_an_example_is_rejected() -> None:
    with pytest.raises(DataError, match="a relation needs two facts at least"):
        list(EicLke().prompts(world([fact("P36", "Egypt", "Cairo", wrong=["Giza"])])))


def test_a_model_without_token_probabilities_is_rejected() -> None:
    with pytest.raises(AbilityError, match="trace"):
        EicLke().resolve(frozenset({"score"}))


def test_probabilities_of_tokens_are_multiplied() -> None:
    probe = EicLke(examples=2, start=1, max_options=2)
    found = results(probe, world(**CAPITALS), shares())
    assert found.rows["gold_logprob"].to_list() == pytest.approx([log(0.5)] * 2, abs=1e-6)
    assert exp(found.rows["gold_logprob"][0]) == pytest.approx(0.5)
