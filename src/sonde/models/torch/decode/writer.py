"""Write on from many prompts, or draw texts after them, whatever way tokens go through a model.

Prompts of the same tokens are one leaf, which texts grow from; `tree_decoder` and `row_decoder` let
them grow. Knows prompts and answers, no tensors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sonde.core.answers import Generated, Sampled
from sonde.core.errors import NotFinite
from sonde.core.prompts import Generate, Prompt, Sample, called
from sonde.engine.causal_texts import check_writable
from sonde.engine.encode import Span
from sonde.engine.endings import End, Endings, Writing
from sonde.engine.limits import naming
from sonde.engine.sampling import prompt_name
from sonde.engine.schedule import Passes, Root
from sonde.models.torch.decode.steps import Leaf
from sonde.models.torch.loading.trials import HALVES
from sonde.models.torch.loading.weights import Loaded

SPREAD = 16
"""Distinct texts of a prompt that go on at a time, as a rule, however many are drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A prompt as token ids, what is to be written after it, and options to score there."""

    ids: tuple[int, ...]
    want: Writing
    options: tuple[Span, ...] = ()

    @property
    def count(self) -> int:
        """How many texts are wanted."""
        return self.want.count if isinstance(self.want, Sample) else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A text that has ended: for which prompt, by which tokens, and how many draws came there."""

    owner: int
    leaf: Leaf
    end: End
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """Prompts that texts are drawn for, and the name under which each draws.

    `steady`: so that rounding changes few draws, where there is much of it.
    """

    prompts: Sequence[Prompt]
    names: Sequence[bytes]
    steady: bool = False

    def part(self, positions: Sequence[int]) -> Draws:
        """Those of some of them."""
        return Draws(
            prompts=[self.prompts[i] for i in positions],
            names=[self.names[i] for i in positions],
            steady=self.steady,
        )

    def refused(self, owner: int) -> NotFinite:
        """Says for which prompt nothing can be drawn."""
        prompt = self.prompts[owner]
        where = called(prompt.key, prompt.prefix)
        return NotFinite(f"NaN or infinity where texts are drawn, for {where}")


Kind = type[Generate] | type[Sample]


class Writer(ABC):
    """Writes texts and draws samples, whatever way their tokens go through a model.

    `opened`: tokens that are fed before the first that is written, beside what is read. `rereads`:
    whether a text is read anew for each of its tokens.
    """

    loaded: Loaded

    def __init__(self, endings: Endings, *, opened: int = 0, rereads: bool = False) -> None:
        self.endings = endings
        self.opened = opened
        self.rereads = rereads

    @abstractmethod
    def tokenised(self, texts: Sequence[str]) -> list[Sequence[int]]:
        """Texts as token ids, without what opens or closes them."""

    @abstractmethod
    def ids(self, prompt: Prompt, tokens: Sequence[int], most: int) -> tuple[int, ...]:
        """What is read of a prompt of these tokens, refused if no text of `most` may follow."""

    @abstractmethod
    def tail(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """The tokens that stand before the first that is written."""

    @abstractmethod
    def passes(self, leaves: Sequence[Leaf]) -> Passes:
        """How what is read before the next token is written goes through the model."""

    @abstractmethod
    def grow(
        self, openings: Sequence[Opening], draws: Draws | None
    ) -> Iterator[tuple[int, list[Written]]]:
        """Yield (position, texts) for every prompt; the likeliest text where none are drawn."""

    def generate(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Generated]]:
        """The likeliest continuation of each prompt, token by token."""
        for owner, written in self.grow(self.openings(prompts, Generate), None):
            yield owner, self.generated(written[0])

    def sample(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Sampled]]:
        """Continuations of each prompt, drawn from the model."""
        openings = self.openings(prompts, Sample)
        names = [prompt_name(prompt) for prompt in prompts]
        draws = Draws(prompts=prompts, names=names, steady=self.loaded.model.dtype in HALVES)
        for owner, written in self.grow(openings, draws):
            yield (
                owner,
                Sampled.pooled((w.end.text, w.end.thoughts.strip(), w.count) for w in written),
            )

    def generate_beside(self, openings: Sequence[Opening]) -> Iterator[tuple[int, Generated, Any]]:
        """What `generate` gives, and the log-probabilities of the options of an opening's ids.

        Only a causal model that takes trees has the latter, laid end to end.
        """
        for owner, written in self.grow(openings, None):
            yield owner, self.generated(written[0]), written[0].leaf.option_logps

    def openings(self, prompts: Sequence[Prompt], kind: Kind) -> list[Opening]:
        """Prompts to write on from, tokenised together."""
        tokens = self.tokenised([prompt.prefix for prompt in prompts])
        return [self.open(*each, kind) for each in zip(prompts, tokens, strict=True)]

    def open(self, prompt: Prompt, tokens: Sequence[int], kind: Kind) -> Opening:
        """A prompt to write on from, refused if it wants another kind or cannot be."""
        check_writable(prompt, kind)
        assert isinstance(prompt.want, Generate | Sample)
        with naming(prompt):
            return Opening(ids=self.ids(prompt, tokens, prompt.want.most), want=prompt.want)

    def leaves(self, openings: Sequence[Opening]) -> list[Leaf]:
        """The distinct token ids that are written on from, each with those who want that."""
        owners: dict[tuple[int, ...], dict[int, int]] = {}
        for position, opening in enumerate(openings):
            owners.setdefault(opening.ids, {})[position] = opening.count
        leaves = []
        for ids, shares in owners.items():
            own = [openings[owner] for owner in shares]
            options = tuple(option for opening in own for option in opening.options)
            root = Root(
                ids=ids,
                room=max(_room(o.want) for o in own),
                options=options,
                most=max(o.want.most for o in own),
                texts=min(sum(o.count for o in own if o.count > 1) or 1, SPREAD),
            )
            leaves.append(Leaf(root=root, tail=self.tail(ids), shares=shares))
        return leaves

    def generated(self, written: Written) -> Generated:
        """A text as an answer, with the log-probabilities of what it says and of its end."""
        leaf = written.leaf
        return self.endings.generated(leaf.tail, leaf.path, leaf.logps, written.end)


def _room(want: Writing) -> int:
    """Tokens that a prompt may add: all of a text, or the widest step of its samples."""
    return want.count if isinstance(want, Sample) else want.most
