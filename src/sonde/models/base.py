"""The contract of language models. Knows no probe and no files.

Today's models follow the protocols of `core.abilities`; `adapt` puts one behind this contract.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec
import numpy as np

from sonde.answers import Part
from sonde.bridge import as_answers, as_block
from sonde.core.abilities import Model, abilities
from sonde.core.errors import AbilityError
from sonde.prompts import (
    FillMask,
    Generate,
    PromptBatch,
    Request,
    Sample,
    Score,
    Shard,
    TokenLogprobs,
)

Capability = Literal["score", "fill_mask", "generate", "sample", "token_logprobs"]

METHODS: Mapping[type[Request], Capability] = {
    Score: "score",
    FillMask: "fill_mask",
    Generate: "generate",
    Sample: "sample",
    TokenLogprobs: "token_logprobs",
}


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What decides a model's answers. Two runs share a folder only if their keys are equal."""

    name: str
    architecture: str = ""
    weights: str = ""
    tokenizer: str = ""
    dtype: str = ""
    bos: str = ""
    chat: dict[str, str] = {}
    details: dict[str, str] = {}

    def key(self) -> "Identity":
        """The identity without what may differ: details, and the name of weights with a hash."""
        name = "" if self.weights else self.name
        return msgspec.structs.replace(self, name=name, details={})


class LanguageModel:
    """Base of everything that answers prompts.

    A model implements one method for each of its capabilities, or `answer` if it profits from
    seeing the requests of a shard together.

    Example:
        >>> class Coin(LanguageModel):
        ...     identity, capabilities = Identity(name="coin"), frozenset({"score"})
        ...     def score(self, batches):
        ...         for number, batch in enumerate(batches):
        ...             counts = [len(batch.options[i]) for i in batch.options_ids()]
        ...             tokens = np.ones(sum(counts), int)
        ...             scores = OptionScores.of(counts, tokens, np.full(sum(counts), -0.7))
        ...             yield number, np.arange(len(batch)), scores
    """

    identity: Identity
    capabilities: frozenset[Capability] = frozenset()

    def answer(self, shard: Shard) -> Iterator[Part]:
        """Every prompt of the shard once, in any order. Depends on the shard alone."""
        groups: dict[Capability, list[int]] = {}
        for number, batch in enumerate(shard.batches):
            groups.setdefault(METHODS[type(batch.request)], []).append(number)
        for capability, numbers in groups.items():
            if capability not in self.capabilities:
                raise AbilityError(f"{self.identity.name} cannot {capability}")
            batches = [shard.batches[number] for number in numbers]
            for number, rows, result in getattr(self, capability)(batches):
                yield numbers[number], np.asarray(rows), result

    def score(self, batches: Sequence[PromptBatch]) -> Iterator[Part]:
        """Answer batches that all request Score, numbered by their place among these.

        The other capabilities are methods of the same form.
        """
        raise NotImplementedError

    fill_mask = generate = sample = token_logprobs = score

    def validate(self, batch: PromptBatch) -> None:
        """Raise PromptError if a prompt cannot be answered. Called for all before the first."""

    def close(self) -> None:
        """Free what the model holds."""


class Adapted(LanguageModel):
    """A model of today's protocols behind this contract."""

    def __init__(self, model: Model) -> None:
        names: dict[str, Any] = {"fill": "fill_mask", "trace": "token_logprobs"}
        known = model.identity
        fields = {name: getattr(known, name) for name in Identity.__struct_fields__}
        self.model = model
        self.identity = Identity(**fields)
        self.capabilities = frozenset(names.get(name, name) for name in abilities(model))

    def answer(self, shard: Shard) -> Iterator[Part]:
        from sonde.testing import answer_all

        blocks = answer_all(self.model, map(as_block, shard.batches))
        for number, block in enumerate(blocks):
            yield number, np.arange(len(block)), as_answers(block).result


def adapt(model: Model | LanguageModel) -> LanguageModel:
    """Today's model as a LanguageModel."""
    return model if isinstance(model, LanguageModel) else Adapted(model)
