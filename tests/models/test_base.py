"""The contract of models: batches go to the method of their request; today's models fit in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

import sonde
from sonde.answers import Completions, OptionScores, Part, gather
from sonde.core.errors import AbilityError
from sonde.models.base import Identity, LanguageModel, adapt
from sonde.models.controls import majority
from sonde.prompts import Generate, PromptBatch, Sample, Score, Shard


class Coin(LanguageModel):
    """The example of the class."""

    identity = Identity(name="coin", details={"side": "head"})
    capabilities = frozenset({"score"})

    def score(self, batches: Sequence[PromptBatch]) -> Iterator[Part]:
        for number, batch in enumerate(batches):
            counts = [len(batch.options[i]) for i in batch.options_ids()]
            logprobs = np.full(sum(counts), -0.7, np.float32)
            scores = OptionScores.of(counts, np.ones(sum(counts), int), logprobs)
            yield number, np.arange(len(batch)), scores


def batch(request: Score | Generate | Sample) -> PromptBatch:
    key = {"relation": "P36", "template": "t", "subject": "Peru", "prefix": "Peru has"}
    options = {"options": ("Lima", "Oslo")} if isinstance(request, Score) else {}
    return PromptBatch.of([{"fact": f"f{i}", **key, **options} for i in range(2)], request)


def test_each_batch_goes_to_the_method_of_its_request() -> None:
    shard = Shard(number=0, batches=(batch(Score()), batch(Score(whole=True))))
    first, second = gather(shard.batches, Coin().answer(shard))
    assert first.row(1)["logprobs"] == [[pytest.approx(-0.7)]] * 2 and len(second) == 2
    with pytest.raises(AbilityError, match="coin cannot generate"):
        list(Coin().answer(Shard(number=0, batches=(batch(Generate()),))))


def test_runs_mix_if_only_details_or_the_name_of_hashed_weights_differ() -> None:
    assert Coin.identity.key() == Identity(name="coin")
    assert Identity(name="a", weights="1").key() == Identity(name="b", weights="1").key()
    assert Identity(name="a").key() != Identity(name="b").key()


def test_a_model_of_today_is_adapted() -> None:
    model = adapt(majority(sonde.dataset("atlas")))
    assert model.identity.name == "control:majority"
    assert {"score", "fill_mask", "generate", "sample", "token_logprobs"} == model.capabilities
    shard = Shard(number=0, batches=(batch(Generate()), batch(Score())))
    texts, scores = gather(shard.batches, model.answer(shard))
    assert isinstance(texts.result, Completions) and isinstance(scores.result, OptionScores)
    coin = Coin()
    assert adapt(coin) is coin
