"""A model beside a reference: the verdict for each kind of difference, and what it rests on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.abilities import Identity, abilities
from sonde.core.answers import Generated, Scored
from sonde.core.certificates import Certificate, Gaps, in_words, size, tabulated
from sonde.core.columns import one_by_one
from sonde.core.errors import AbilityError, ModelError, PromptError
from sonde.core.facts import Dataset
from sonde.core.prompts import Generate, Prompt, Score
from sonde.data.catalog import load as atlas
from sonde.doctor.certify import (
    Parted,
    Replies,
    back,
    certificate_prompts,
    certify,
    explained,
    findings,
    gaps,
    judge,
    turned,
)
from sonde.models.load import examiner
from sonde.models.torch.causal.model import CausalModel
from sonde.probes.lama import Lama
from tests.docs.pages import DOCS
from tests.tiny import Load, recast


@dataclass
class Changed:
    """A model whose scored answers are changed on their way; `at`: where they were asked."""

    inner: Any
    change: Callable[[Scored, int, int], Scored]

    @property
    def identity(self) -> Identity:
        own: Identity = self.inner.identity
        return replace(own, name="changed", weights="changed")

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        for at, answer in one_by_one(self.inner.score(prompts)):
            yield at, self.change(answer, at, len(prompts))

    def generate(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Generated]]:
        yield from self.inner.generate(prompts)


def made(model: Any, reference: Any, data: Dataset) -> Certificate:
    prompts = certificate_prompts(Lama(), data, abilities(model))
    asked = Replies.of(model, prompts)
    return certify(asked, reference, examiner(reference), {"sonde": "0"})


def moved(by: Callable[[float], float]) -> Callable[[Scored, int, int], Scored]:
    """A change of every number of an answer."""

    def change(answer: Scored, _at: int, _count: int) -> Scored:
        rows = tuple(tuple(map(by, row)) for row in answer.logps)
        return replace(answer, logps=rows)

    return change


@pytest.fixture
def causal(tiny: Load) -> CausalModel:
    return CausalModel(tiny("llama"))


def test_a_model_is_equal_to_itself(causal: CausalModel, data: Dataset) -> None:
    found = made(causal, causal, data)
    assert (found.verdict, found.reasons, found.texts_differ) == ("equal", (), 0)
    assert found.against.largest == 0 and found.against.prompts == len(data.relations)
    assert max(found.backwards.largest, found.apart.largest) < 1e-4
    assert [f.verdict for f in findings(found)] == ["ok"] * 5
    assert in_words(found).startswith("Certificate: equal to hf:llama, every token to within 0")


def test_half_precision_is_other_numerics(tiny: Load, causal: CausalModel, data: Dataset) -> None:
    half = CausalModel(recast(tiny("llama"), torch.bfloat16))
    found = made(half, causal, data)
    assert found.verdict == "other numerics" and 1e-3 < found.against.largest < 0.6
    assert found.against.option >= found.against.largest > found.against.median > 0
    assert findings(found)[0].verdict == "warning"
    assert "other numerics than hf:llama, by up to" in in_words(found)


def test_another_model_is_broken(causal: CausalModel, tiny: Load, data: Dataset) -> None:
    loaded = tiny("llama")
    other = type(loaded.model)(loaded.model.config).eval()
    torch.manual_seed(5)
    for parameter in other.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.2)
    found = made(CausalModel(replace(loaded, model=other, weights="other")), causal, data)
    assert (
        found.verdict == "broken" and "nats from the reference's in the median" in found.reasons[0]
    )
    assert findings(found)[0].verdict == "fault"
    assert "do not trust these numbers" in in_words(found)


@pytest.mark.parametrize(
    ("by", "reason"),
    [
        (np.exp, "no log-probabilities in"),
        (lambda logp: float("nan"), "no log-probabilities in"),
        (lambda logp: -1.0, "median"),
    ],
    ids=["probabilities", "no numbers", "one row repeated"],
)
def test_numbers_that_are_none_are_broken(
    causal: CausalModel, data: Dataset, by: Callable[[float], float], reason: str
) -> None:
    found = made(Changed(causal, moved(by)), causal, data)
    assert found.verdict == "broken" and reason in " ".join(found.reasons)


def test_other_tokens_are_broken(causal: CausalModel, data: Dataset) -> None:
    def longer(answer: Scored, _at: int, _count: int) -> Scored:
        return replace(answer, logps=tuple((*row, -1.0) for row in answer.logps))

    found = made(Changed(causal, longer), causal, data)
    assert found.verdict == "broken" and found.against.prompts == 0
    assert "other tokens in 2 prompts of 2" in found.reasons[0]


def test_what_the_model_refuses_and_the_reference_answers_is_broken(
    causal: CausalModel, data: Dataset
) -> None:
    def refuse(answer: Scored, _at: int, _count: int) -> Scored:
        raise PromptError("too long")

    found = made(Changed(causal, refuse), causal, data)
    assert found.verdict == "broken" and "not answered in 2 prompts of 2" in found.reasons[0]


@pytest.mark.parametrize("how", ["refused", "no numbers"])
def test_what_is_answered_at_once_and_not_one_by_one_is_broken(
    causal: CausalModel, data: Dataset, how: str
) -> None:
    def alone(answer: Scored, _at: int, count: int) -> Scored:
        if count > 1:
            return answer
        if how == "refused":
            raise PromptError("too long")
        return replace(answer, logps=tuple((float("nan"),) * len(row) for row in answer.logps))

    found = made(Changed(causal, alone), causal, data)
    assert found.verdict == "broken"
    assert "asked one by one, it gives no such numbers in 2 prompts of 2" in found.reasons[0]


def test_numbers_that_depend_on_what_else_is_asked_are_told(
    causal: CausalModel, data: Dataset
) -> None:
    def loaded(size: float) -> Callable[[Scored, int, int], Scored]:
        def change(answer: Scored, at: int, count: int) -> Scored:
            rows = tuple(tuple(x - size * (at + count) for x in row) for row in answer.logps)
            return replace(answer, logps=rows)

        return change

    little, much = (made(Changed(causal, loaded(size)), causal, data) for size in (4e-3, 0.4))
    assert little.verdict == "other numerics" and "asked one by one" in " ".join(little.reasons)
    assert little.recheck is not None and little.recheck.tolerance > 4 * 3e-3
    assert much.verdict == "broken" and "asked one by one" in " ".join(much.reasons)


def scores(rows: Sequence[Sequence[float]]) -> list[Scored]:
    names = tuple(map(str, range(len(rows[0]))))
    return [Scored(options=names, logps=tuple((x,) for x in row)) for row in rows]


ROWS = st.lists(
    st.lists(st.floats(-20, -0.1), min_size=4, max_size=4, unique=True), min_size=8, max_size=20
)


@given(ROWS, st.sampled_from([0.5, 0.8, 0.95, 1.1, 1.5]))
def test_a_temperature_is_found_whatever_the_numbers(
    rows: list[list[float]], temperature: float
) -> None:
    logits = np.array(rows)
    scaled = logits / temperature - 0.3
    if np.abs(scaled).max() < 1e-9 or (scaled - logits).std(axis=1).max() < 1e-2:
        return
    said = list(explained(scores(np.minimum(scaled, -1e-3).tolist()), scores(rows)))
    clipped = (scaled > -1e-3).any()
    assert clipped or len(said) == 1
    if said and "scaled" in said[0]:
        assert float(said[0].rsplit(" ", 1)[1]) == pytest.approx(temperature, abs=0.006)


def test_shares_among_the_options_are_found() -> None:
    rows = np.random.default_rng(0).uniform(-12, -2, (8, 5))
    shares = rows - np.log(np.exp(rows).sum(axis=1, keepdims=True))
    (said,) = explained(scores(shares.tolist()), scores(rows.tolist()))
    assert "not of the whole vocabulary" in said


@given(st.integers(0, 99), st.sampled_from([0.01, 0.1, 0.5]))
def test_noise_is_not_taken_for_something_done_to_numbers(seed: int, noise: float) -> None:
    draw = np.random.default_rng(seed)
    rows = draw.uniform(-12, -2, (41, 6))
    other = rows + draw.normal(size=rows.shape) * noise + draw.normal(size=(41, 1)) * noise
    assert not list(explained(scores(other.tolist()), scores(rows.tolist())))


@given(ROWS)
def test_gaps_are_the_same_from_either_side_and_none_to_itself(rows: list[list[float]]) -> None:
    one, other = scores(rows), scores([row[::-1] for row in rows])
    here, there = gaps(one, other), gaps(other, one)
    assert (here.largest, here.median, here.option) == (there.largest, there.median, there.option)
    assert here.differ == there.differ
    assert gaps(one, one) == Gaps(prompts=len(rows), options=4 * len(rows), tokens=4 * len(rows))


def test_backwards_and_back_is_as_it_was(causal: CausalModel, data: Dataset) -> None:
    prompts = certificate_prompts(Lama(), data, abilities(causal))
    assert {type(p.want) for p in prompts} == {Score, Generate}
    for prompt in (p for p in prompts if isinstance(p.want, Score)):
        assert turned(turned(prompt)) == prompt
        (first,) = dict(one_by_one(causal.score([prompt]))).values()
        assert back(back(first)) == first and back(None) is None
        ((_, other),) = one_by_one(causal.score([turned(prompt)]))
        assert back(other).options == first.options  # type: ignore[union-attr]


NONE = Parted(count=0, differ=0, ties=0)


@pytest.mark.parametrize(
    ("largest", "middle", "verdict"),
    [
        (1.1e-4, 1e-5, "equal"),
        (2.4e-4, 1e-5, "equal"),
        (0.019, 0.002, "other numerics"),
        (1.65, 0.2, "other numerics"),
        (6.4, 0.55, "broken"),
    ],
    ids=["vLLM", "llama.cpp", "flash attention", "four bits", "another opening"],
)
def test_gaps_that_were_measured_get_their_verdict(
    largest: float, middle: float, verdict: str
) -> None:
    found = Gaps(prompts=41, options=275, tokens=900, largest=largest, median=middle)
    assert judge([], found, {}, NONE)[0] == verdict


def test_texts_decide_only_where_they_part_clearly() -> None:
    near = Gaps(prompts=41, largest=1e-4)
    tied, clear = (Parted(count=41, differ=2, ties=ties) for ties in (2, 1))
    assert judge([], near, {}, tied) == ("equal", [])
    assert judge([], near, {}, clear) == ("other numerics", ["1 of 41 texts differ"])


def test_sure_answers_that_change_are_broken_in_numbers_only() -> None:
    few, many = (Gaps(prompts=41, largest=2.0, median=0.3, differ=9, sure=n) for n in (2, 8))
    assert judge([], few, {}, NONE)[0] == "other numerics"
    assert judge([], many, {}, NONE)[0] == "broken"


def test_a_reference_must_score_and_give_numbers(causal: CausalModel, data: Dataset) -> None:
    class Writes:
        identity = Identity(name="writes", architecture="")

        def generate(self, prompts: Any) -> Any:
            yield from ()

    with pytest.raises(AbilityError, match="can only generate"):
        certificate_prompts(Lama(), data, abilities(Writes()))
    asked = Replies.of(causal, certificate_prompts(Lama(), data, abilities(causal)))
    with pytest.raises(AbilityError, match="writes cannot score"):
        certify(asked, Writes(), None, {})
    dead = Changed(causal, moved(lambda _: float("nan")))
    with pytest.raises(ModelError, match="gives no number"):
        certify(asked, dead, None, {})


def test_sizes_have_words() -> None:
    said = [size(gap) for gap in (0.01, 0.4, 3.0)]
    assert len(set(said)) == 3 and "bfloat16" in said[1]


def test_the_table_has_a_row_for_each_way_of_asking(causal: CausalModel, data: Dataset) -> None:
    table = tabulated(made(causal, causal, data))
    assert [row[0] for row in table.rows] == [
        "beside hf:llama",
        "asked backwards",
        "asked one by one",
    ]
    assert table.rows[0][1:] == ("0", "0", "0", "0 of 2")


def test_the_prompts_are_as_many_as_the_page_says() -> None:
    prompts = certificate_prompts(Lama(), atlas("atlas"), frozenset(["score", "generate"]))
    options = [len(p.want.options) for p in prompts if isinstance(p.want, Score)]
    assert (len(options), sum(options), len(prompts) - len(options)) == (41, 275, 41)
    page = (DOCS / "check-a-model.md").read_text()
    assert f"{len(options)} relations of `atlas`" in page and f"{sum(options)} in all" in page


def test_the_prompts_do_not_depend_on_when_they_are_made(
    causal: CausalModel, data: Dataset, tmp_path: Path
) -> None:
    assert made(causal, causal, data).prompts == made(causal, causal, data).prompts
