"""Write on from many prompts at once, each distinct text computed once.

The prompts of a batch are one tree behind their shared prefix. Its leaves get children step by
step: one each where the likeliest text is wanted, one per distinct drawn token where texts are
sampled. All new tokens of a step go through the model in one pass, each seeing the prefix, its
ancestors and itself. Options that are to be scored after the same prompts are fed with them, in the
first pass. Models that cannot be fed a tree read every text anew for each token ("flat").
`reference` is the naive twin.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sonde.core.answers import Generated, Sampled
from sonde.core.errors import AbilityError, NotFinite, PromptError
from sonde.core.progress import advance
from sonde.core.prompts import Generate, Prompt, Sample, called
from sonde.engine.batching import Budget
from sonde.engine.encode import CausalEncoder, Span
from sonde.engine.prefixes import PrefixCache
from sonde.engine.sampling import draw_name
from sonde.engine.schedule import Pass, Passes, Root, row_passes, write_passes
from sonde.models.torch.causal.token_tree import KeysAndValues
from sonde.models.torch.decode.steps import (
    DecodeState,
    End,
    Endings,
    Leaf,
    NoDistribution,
    Writing,
    compact,
    crowded,
    draws,
    end_tokens,
    feed,
    halves,
    likeliest,
    onward,
    prefill_tree,
    read_rows,
)
from sonde.models.torch.loading.limits import check_room, naming
from sonde.models.torch.loading.trials import HALVES
from sonde.models.torch.loading.weights import Loaded, out_of_memory

Choose = Callable[[Any, Sequence[Leaf]], list[list[Leaf]]]


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


Grown = tuple[list[Written], list[tuple[int, Leaf]]]
"""Texts that have ended, and leaves that go on, each with the row of its parent."""

Step = Callable[[Any, Sequence[Leaf]], Grown]


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
    def ids(self, prompt: Prompt, most: int) -> tuple[int, ...]:
        """A prompt as token ids, refused if the model cannot write so much after it."""

    @abstractmethod
    def tail(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """The tokens that stand before the first that is written."""

    @abstractmethod
    def passes(self, leaves: Sequence[Leaf]) -> Passes:
        """How what is read before the next token is written goes through the model."""

    @abstractmethod
    def texts(self, leaves: list[Leaf], step: Step) -> Iterator[tuple[list[Leaf], list[Written]]]:
        """Some leaves with all that was written after them, until none is left."""

    def generate(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Generated]]:
        """The likeliest continuation of each prompt, token by token."""
        openings = [self.open(prompt, Generate) for prompt in prompts]
        for owner, written in self._grow(openings, likeliest):
            yield owner, self._generated(written[0])

    def sample(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Sampled]]:
        """Continuations of each prompt, drawn from the model."""
        openings = [self.open(prompt, Sample) for prompt in prompts]
        names = [prompt_name(prompt) for prompt in prompts]
        choose = partial(drawn, prompts, names, steady=self.loaded.model.dtype in HALVES)
        for owner, written in self._grow(openings, choose):
            yield owner, pooled((w.end.text, w.count) for w in written)

    def open(self, prompt: Prompt, kind: type[Generate] | type[Sample]) -> Opening:
        """A prompt to write on from, refused if it wants another kind or cannot be."""
        if not isinstance(prompt.want, kind):
            verb = kind.__name__.lower()
            raise AbilityError(f"{verb}() takes prompts that want {kind.__name__}(…)")
        with naming(prompt):
            if prompt.suffix:
                raise PromptError(
                    f"text follows the answer ({prompt.suffix!r}) and this model only writes on; "
                    "use a template that ends with the answer"
                )
            return Opening(ids=self.ids(prompt, prompt.want.most), want=prompt.want)

    def _grow(
        self, openings: Sequence[Opening], choose: Choose
    ) -> Iterator[tuple[int, list[Written]]]:
        """Yield (position, texts) for every prompt; prompts of the same tokens share a leaf."""
        step = partial(self._step, openings, choose)
        for roots, written in self.texts(self.leaves(openings), step):
            texts: dict[int, list[Written]] = {i: [] for leaf in roots for i in leaf.shares}
            for text in written:
                texts[text.owner].append(text)
            yield from texts.items()

    def leaves(self, openings: Sequence[Opening]) -> list[Leaf]:
        """The distinct token ids that are written on from, each with those who want that."""
        owners: dict[tuple[int, ...], dict[int, int]] = {}
        for position, opening in enumerate(openings):
            owners.setdefault(opening.ids, {})[position] = opening.count
        leaves = []
        for ids, shares in owners.items():
            own = [openings[owner] for owner in shares]
            options = tuple(option for opening in own for option in opening.options)
            root = Root(ids=ids, room=max(_room(o.want) for o in own), options=options)
            leaves.append(Leaf(root=root, tail=self.tail(ids), shares=shares))
        return leaves

    def _step(
        self, openings: Sequence[Opening], choose: Choose, logits: Any, leaves: Sequence[Leaf]
    ) -> Grown:
        """Let every leaf go on: the texts that have ended, and the children that go on."""
        written: list[Written] = []
        children: list[tuple[int, Leaf]] = []
        for row, chosen in enumerate(choose(logits, leaves)):
            for leaf in chosen:
                ended, shares = self._settle(openings, leaf)
                written += ended
                if shares:
                    children.append((row, replace(leaf, shares=shares)))
        return written, children

    def _settle(
        self, openings: Sequence[Opening], leaf: Leaf
    ) -> tuple[list[Written], dict[int, int]]:
        """Which prompts' texts have ended at a leaf, and the shares of the others."""
        written, shares = [], {}
        for owner, count in leaf.shares.items():
            end = self.endings.end(leaf.tail, leaf.path, openings[owner].want)
            if end is None:
                shares[owner] = count
            else:
                written.append(Written(owner=owner, leaf=leaf, end=end, count=count))
        return written, shares

    def _generated(self, written: Written) -> Generated:
        leaf, end = written.leaf, written.end
        if not end.finished:
            return Generated(text=end.text, logps=leaf.logps, finished=False)
        said = self.endings.said(leaf.tail, leaf.path, end.text)
        # all tokens after the text, should its end be written with several
        closing = sum(leaf.logps[said:]) if said < len(leaf.logps) else None
        return Generated(text=end.text, logps=leaf.logps[:said], end_logp=closing)


class TreeDecoder(Writer):
    """Writes with a causal model, along a tree where it can be fed one."""

    def __init__(
        self,
        loaded: Loaded,
        encoder: CausalEncoder,
        budget: Budget,
        prefixes: PrefixCache[KeysAndValues],
        *,
        tree: bool,
    ) -> None:
        super().__init__(Endings(loaded.backend, end_tokens(loaded)), rereads=not tree)
        self.loaded = loaded
        self.model = loaded.model
        self.encoder = encoder
        self.budget = budget
        self.prefixes = prefixes
        self.tree = tree

    def ids(self, prompt: Prompt, most: int) -> tuple[int, ...]:
        """The prompt's own tokens, which the model writes on from."""
        ids = self.encoder.open(prompt.prefix)
        check_room(ids, most, self.loaded)
        return ids

    def tail(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """The last tokens of the prompt."""
        return self.endings.tail(ids)

    def generate_beside(self, openings: Sequence[Opening]) -> Iterator[tuple[int, Generated, Any]]:
        """What `generate` gives, and the log-probabilities of the options of an opening's ids.

        Only a model that takes trees has the latter, laid end to end.
        """
        for owner, written in self._grow(openings, likeliest):
            yield owner, self._generated(written[0]), written[0].leaf.option_logps

    def passes(self, leaves: Sequence[Leaf]) -> Passes:
        """Along trees, or text by text."""
        if self.tree:
            return write_passes(self.budget, [leaf.root for leaf in leaves])
        return row_passes(self.budget, [len(leaf.root.ids + leaf.path) for leaf in leaves])

    def texts(self, leaves: list[Leaf], step: Step) -> Iterator[tuple[list[Leaf], list[Written]]]:
        """Along trees, or text by text."""
        if not self.tree:
            yield leaves, self._flat(leaves, step)
            return
        grow = partial(self._tree, leaves, step)
        for each, written in self.budget.execute(self.passes(leaves), grow):
            yield [leaves[i] for i in each.members], written

    def _tree(self, leaves: list[Leaf], step: Step, batch: Pass) -> list[Written]:
        """Grow the texts of some prompts to their ends."""
        try:
            prefix = self.prefixes.get(batch.prefix)
            chosen = [leaves[i] for i in batch.members]
            logits, state = prefill_tree(self.model, chosen, batch.work, prefix)
            written, children = step(logits, state.leaves)
            del logits
            return written + self._on(onward(state, children), step)
        except Exception:
            self.prefixes.clear()  # if memory ran out, they are the first to go
            raise

    def _on(self, state: DecodeState, step: Step) -> list[Written]:
        """Go on from a state that is yet to be fed; in parts, where it outgrows the budget."""
        found: list[Written] = []
        pending = [state]
        while pending:
            if not pending[-1].leaves:
                pending.pop()
                continue
            state = compact(pending.pop())
            if crowded(state, self.budget.tokens):
                pending += halves(state)
            elif (fed := self._feed(state)) is None:
                pending.append(state)  # now over the budget, which has been halved
            else:
                written, children = step(fed[0], state.leaves)
                found += written
                pending.append(onward(fed[1], children))
        return found

    def _feed(self, state: DecodeState) -> tuple[Any, DecodeState] | None:
        """Logits after every leaf; None if memory ran out for several leaves together."""
        try:
            return feed(self.model, state)
        except Exception as error:
            if len(state.leaves) == 1 or not out_of_memory(error):
                raise
        self.budget.halve(len(state.leaves))
        return None

    def _flat(self, leaves: list[Leaf], step: Step) -> list[Written]:
        """All texts a token further at a time, each read anew as a row of its own."""
        ended: list[Written] = []
        while leaves:
            run = self.budget.execute(self.passes(leaves), partial(self._rows, leaves, step))
            grown = [result for _, result in run]
            ended += [text for written, _ in grown for text in written]
            advance(sum(1 / max(leaf.root.room, 1) for leaf in leaves))
            leaves = [leaf for _, children in grown for _, leaf in children]
        return ended

    def _rows(self, leaves: list[Leaf], step: Step, batch: Pass) -> Grown:
        chosen = [leaves[i] for i in batch.members]
        return step(read_rows(self.model, chosen), chosen)


def pooled(texts: Iterable[tuple[str, int]]) -> Sampled:
    """Distinct texts with their counts, the commonest first; the same text may come by two paths.

    >>> pooled([(" b", 1), (" a", 1), (" b", 2)])
    Sampled(texts=(' b', ' a'), counts=(3, 1))
    """
    counts: Counter[str] = Counter()
    for text, count in texts:
        counts[text] += count
    order = sorted(counts, key=lambda text: (-counts[text], text))
    return Sampled(texts=tuple(order), counts=tuple(counts[text] for text in order))


def drawn(
    prompts: Sequence[Prompt],
    names: Sequence[bytes],
    logits: Any,
    leaves: Sequence[Leaf],
    *,
    steady: bool,
) -> list[list[Leaf]]:
    """Each leaf with the tokens drawn there; says for which prompt nothing can be drawn."""
    try:
        return draws(names, logits, leaves, steady=steady)
    except NoDistribution as error:
        prompt = prompts[min(leaves[error.row].shares)]
        where = called(prompt.key, prompt.prefix)
        raise NotFinite(f"NaN or infinity where texts are drawn, for {where}") from None


def prompt_name(prompt: Prompt) -> bytes:
    """The name under which a prompt draws: its seed, what it is about, and its text."""
    assert isinstance(prompt.want, Sample)
    key = prompt.key
    about = (key.fact, key.relation, key.template, key.subject, "samples")
    return draw_name(prompt.want.seed, *about, *map(str, prompt.own.values()), prompt.prefix)


def _room(want: Writing) -> int:
    """Tokens that a prompt may add: all of a text, or the widest step of its samples."""
    return want.count if isinstance(want, Sample) else want.most
