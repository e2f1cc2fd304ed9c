"""Real models with one thing wrong: an encoder in their way, or their answers changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from sonde.core.abilities import Identity, abilities
from sonde.core.answers import Filled, Generated, Scored
from sonde.core.columns import one_by_one
from sonde.core.examinations import Examination
from sonde.core.facts import Dataset
from sonde.core.prompts import Prompt
from sonde.doctor.diagnose import diagnose, more_facts, sample, wants
from sonde.doctor.findings import Diagnosis
from sonde.engine.encode import Branches, CausalEncoder, Span
from sonde.engine.masked_batch import MaskedEncoder
from sonde.models.load import examiner
from sonde.models.torch import reference
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.loading.weights import Loaded
from sonde.models.torch.masked.answers import token_name
from sonde.models.torch.masked.model import MaskedModel
from sonde.models.torch.seq2seq import Seq2SeqModel
from sonde.probes.lama import Lama

Torch = CausalModel | MaskedModel | Seq2SeqModel


def look(model: Any, data: Dataset, *, shows: Any = None, facts: int = 2) -> Diagnosis:
    """Examine a model as the verb does; `shows` may be another model that shows the truth."""
    can = abilities(model)
    prompts = wants(sample(Lama().suited(can), data, facts), data, can)
    more = more_facts(Lama().suited(can), data, can)
    return diagnose(model, examiner(shows or model), prompts, more)


def faults(found: Diagnosis) -> set[str]:
    return {finding.check for finding in found.faults}


def fault(found: Diagnosis, check: str) -> str:
    """What the doctor says about a check, which must be at fault."""
    said = {finding.check: f"{finding.found} {finding.advice}" for finding in found.faults}
    assert check in said, f"{check!r} is not at fault; {faults(found) or 'nothing'} is"
    return said[check]


def with_encoder(loaded: Loaded, wrap: Callable[[Any], Any]) -> Any:
    """A causal model with a faulty encoder."""
    model: Any = CausalModel(loaded)
    model.encoder = wrap(model.encoder)
    return model


class Recoded:
    """An encoder whose spans are changed, for the engine and for the naive path alike."""

    def __init__(self, encoder: CausalEncoder, change: Callable[[Span], Span]) -> None:
        self.inner = encoder
        self.change = change
        self.start = encoder.start
        self.tokenizer = encoder.tokenizer

    def encode(
        self, prefix: str, options: Sequence[str], suffix: str, *, whole: bool = False
    ) -> list[Span]:
        spans = self.inner.encode(prefix, options, suffix, whole=whole)
        return [self.change(span) for span in spans]

    def branch(
        self, prefix: str, options: Sequence[str], suffix: str, *, whole: bool = False
    ) -> Branches:
        return Branches(head=(), spans=tuple(self.encode(prefix, options, suffix)))

    def __getattr__(self, name: str) -> Any:
        """What is not about spans is the encoder's own."""
        return getattr(self.inner, name)


class Apart(Recoded):
    """Encodes prefix and option one by one, as harnesses have done."""

    def __init__(self, encoder: CausalEncoder) -> None:
        super().__init__(encoder, lambda span: span)

    def encode(
        self, prefix: str, options: Sequence[str], suffix: str, *, whole: bool = False
    ) -> list[Span]:
        def ids(text: str) -> tuple[int, ...]:
            return tuple(self.tokenizer.encode(text, add_special_tokens=False).ids)

        before = (*((self.start.id,) if self.start.always else ()), *ids(prefix))
        return [
            Span(
                ids=(*before, *ids(option)),
                start=len(before),
                stop=len(before) + len(ids(option)),
                end=len(before) + len(ids(option)),
            )
            for option in options
        ]


class Beside:
    """A masked encoder that points beside the hole."""

    def __init__(self, encoder: MaskedEncoder, by: int) -> None:
        self.inner = encoder
        self.by = by

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def masked(self, texts: Sequence[tuple[str, str]]) -> list[Span]:
        spans = self.inner.masked(texts)
        return [replace(s, start=s.start + self.by, stop=s.stop + self.by) for s in spans]


class Altered:
    """A model whose answers are changed on their way; what it shows of itself is true."""

    def __init__(
        self,
        model: Torch,
        scored: Callable[[Scored], Scored] = lambda answer: answer,
        filled: Callable[[Filled], Filled] = lambda answer: answer,
    ) -> None:
        self.model = model
        self.scored = scored
        self.filled = filled

    @property
    def identity(self) -> Identity:
        return self.model.identity

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        return ((i, self.scored(answer)) for i, answer in one_by_one(self.model.score(prompts)))

    def examine(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Examination]]:
        shows = examiner(self.model)
        assert shows is not None
        return shows.examine(prompts)


class AlteredMask(Altered):
    """The same for a model that fills a mask."""

    def fill(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Filled]]:
        assert isinstance(self.model, MaskedModel)
        return ((i, self.filled(answer)) for i, answer in one_by_one(self.model.fill(prompts)))


class ReadsBeside(AlteredMask):
    """A masked model that is read one place beside its hole."""

    def __init__(self, model: MaskedModel, by: int) -> None:
        super().__init__(model)
        self.encoder: Any = Beside(model.encoder, by)

    def fill(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Filled]]:
        loaded = self.model.loaded
        names = {id: token_name(loaded, id) for id in range(loaded.vocabulary)}
        return reference.fill_masked(loaded.model, self.encoder, prompts, names)


class AlteredWriter(Altered):
    """A model whose written texts are changed on their way."""

    def generate(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Generated]]:
        assert not isinstance(self.model, MaskedModel)
        for i, answer in self.model.generate(prompts):
            yield i, replace(answer, text=answer.text + "!")
