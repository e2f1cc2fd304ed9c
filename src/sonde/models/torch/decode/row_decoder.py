"""Write on from many prompts at once, each text a row behind a prefix that others share.

Thousands of rows, of many prompts and behind many prefixes, go through the model together, a token
each at a time. A text that ends leaves, one that parts becomes several rows, and what has not begun
joins where there is room. Options that are to be scored after the same prompts are fed with them,
in the first pass. `tree_decoder` is the way of CPUs and of models that take no rows; `reference` is
the naive twin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sonde.core.answers import CLOSED, OPENED
from sonde.core.prompts import Prompt
from sonde.engine.batching import Budget
from sonde.engine.endings import End, Endings
from sonde.engine.row_schedule import write_row_passes
from sonde.engine.schedule import Pass, Passes
from sonde.engine.token_texts import TokenTexts
from sonde.models.torch.causal.rows import RowCache, row_logits
from sonde.models.torch.causal.shared_prefix import SharedPrefixes
from sonde.models.torch.causal.step_graph import Recorder, StepGraph, next_logits
from sonde.models.torch.decode.growing import Growing, Shares, drawn_shares, likeliest_shares
from sonde.models.torch.decode.steps import Leaf, NoDistribution
from sonde.models.torch.decode.tree_decoder import TreeDecoder
from sonde.models.torch.decode.writer import Draws, Opening, Writer, Written
from sonde.models.torch.loading.device import token_logps
from sonde.models.torch.loading.weights import out_of_memory

WASTE, RECORDED, LAST = 1 / 8, 1 / 2, 3 / 4
"""Share of rows that may have ended before they are dropped: as a rule; where a recorded step goes
with them; and where it does, and nothing is to come for which they would make room."""


FEW = 1 / 8
"""Share of the budget up to which rows go on together whatever room that wastes."""


class RowDecoder(Writer):
    """Writes with a causal model that takes rows; what reaches too far for them goes along trees.

    `farthest`: how many tokens a row may have with its prefix, if not any. `enough`: tokens from
    which a pass takes only rows of like length.
    """

    def __init__(
        self,
        tree: TreeDecoder,
        budget: Budget,
        pieces: TokenTexts,
        recorder: Recorder,
        *,
        farthest: int | None,
        enough: int,
    ) -> None:
        whole = tree.endings
        super().__init__(Endings(whole.tokenizer, whole.ends, pieces, whole.thoughts))
        self.loaded = tree.loaded
        self.tree = tree
        self.pieces = pieces
        self.budget = budget
        self.farthest = farthest
        self.enough = enough
        self.recorder = recorder

    def tokenised(self, texts: Sequence[str]) -> list[Sequence[int]]:
        """Texts as they are written on from."""
        return self.tree.tokenised(texts)

    def ids(self, prompt: Prompt, tokens: Sequence[int], most: int) -> tuple[int, ...]:
        """The prompt's own tokens, which the model writes on from."""
        return self.tree.ids(prompt, tokens, most)

    def tail(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """The last tokens of the prompt."""
        return self.tree.tail(ids)

    def passes(self, leaves: Sequence[Leaf]) -> Passes:
        """What is read before anything is written, as rows behind prefixes."""
        return write_row_passes(self.budget, [leaf.root for leaf in leaves], enough=self.enough)

    def grow(
        self, openings: Sequence[Opening], draws: Draws | None
    ) -> Iterator[tuple[int, list[Written]]]:
        """Yield (position, texts) for every prompt, when all its texts have ended."""
        far = [i for i, opening in enumerate(openings) if self._too_far(opening)]
        near = [i for i, opening in enumerate(openings) if not self._too_far(opening)]
        for some, way in ((far, self.tree.grow), (near, self._rows)):
            own = [openings[i] for i in some]
            if not own:
                continue
            for owner, written in way(own, None if draws is None else draws.part(some)):
                yield some[owner], written

    def _too_far(self, opening: Opening) -> bool:
        longest = max((option.end for option in opening.options), default=0)
        length = len(opening.ids) + max(opening.want.most, longest)
        return self.farthest is not None and length > self.farthest

    def _rows(
        self, openings: Sequence[Opening], draws: Draws | None
    ) -> Iterator[tuple[int, list[Written]]]:
        """Texts as they end, put together by prompts."""
        missing = [opening.count for opening in openings]
        texts: list[list[Written]] = [[] for _ in openings]
        yield from ((owner, []) for owner, count in enumerate(missing) if count == 0)
        for written in Rows(self, openings, draws).written():
            for text in written:
                texts[text.owner].append(text)
                missing[text.owner] -= text.count
                if missing[text.owner] == 0:
                    yield text.owner, texts[text.owner]
                    texts[text.owner] = []


class Rows:
    """All that is written after some prompts, as rows that go on together while there is room."""

    def __init__(
        self, decoder: RowDecoder, openings: Sequence[Opening], draws: Draws | None
    ) -> None:
        self.decoder = decoder
        self.model = decoder.tree.model
        self.budget = decoder.budget
        self.openings = openings
        self.draws = draws
        self.leaves = decoder.leaves(openings)
        self.options: dict[int, np.ndarray] = {}
        self.graph: StepGraph | None = None
        self.before: RowCache | None = None
        self.coming: Pass | None = None
        pieces, ends = decoder.pieces, list(decoder.endings.ends)
        untils = {text: k for k, text in enumerate(dict.fromkeys(o.want.until for o in openings))}
        self.until = np.array([untils[opening.want.until] for opening in openings])
        self.closing = np.stack([pieces.closing(text) for text in untils])
        self.closing[:, ends] = True
        self.most = np.array([opening.want.most for opening in openings])
        self.thinking = np.array([opening.want.thinking for opening in openings])
        self.shutting = pieces.closing(CLOSED) if self.thinking.any() else None
        self.odd = np.array([not pieces.opens_whole(leaf.tail) for leaf in self.leaves])

    def written(self) -> Iterator[list[Written]]:
        """Texts, as they end."""
        passes = self.decoder.passes(self.leaves)
        self.coming = next(passes, None)
        waiting: list[Growing] = []
        while self.coming is not None or waiting:
            if self.coming is not None and self._admits(waiting, self.coming):
                begun = self._begun(self.coming, alone=not waiting)
                if begun is not None:
                    yield begun[0]
                    waiting += self._within(begun[1])
                if begun is not None or self.coming.divisible:
                    self.coming = _next(passes, failed=begun is None)
                continue
            now = self._together(waiting)
            grown = self._fed(now)
            if grown is None:
                waiting += now.halves()
                continue
            yield grown[0]
            waiting += self._within(grown[1])

    def _admits(self, waiting: Sequence[Growing], coming: Pass) -> bool:
        """Whether the budget holds what has not begun beside what has."""
        rows = sum(self.leaves[i].root.texts for i in coming.members)
        held = sum(len(each.leaves) * each.cache.room for each in waiting)
        return not waiting or held + rows * self._room(coming) <= self.budget.tokens

    def _room(self, coming: Pass) -> int:
        """Tokens that a row of what has not begun may have."""
        most = max(self.leaves[i].root.most for i in coming.members)
        return coming.shapes[0].width + most

    def _together(self, waiting: list[Growing]) -> Growing:
        """The last that wait, with others that go well with them; these wait no more."""
        now = waiting.pop()
        for k in reversed(range(len(waiting))):
            if not self._suit(now, waiting[k]):
                continue
            try:
                now = now.join(waiting[k])
            except Exception as error:
                if not out_of_memory(error):
                    raise
                break  # they go on apart
            waiting.pop(k)
        return now

    def _suit(self, one: Growing, other: Growing) -> bool:
        """Whether rows should go on together: all then have the room of the largest."""
        parts = [(len(each.leaves), each.cache.room) for each in (one, other)]
        joined = sum(rows for rows, _ in parts) * max(room for _, room in parts)
        held = sum(rows * room for rows, room in parts)
        few = joined <= FEW * self.budget.tokens
        return few or (joined <= self.budget.tokens and 2 * held >= joined)

    def _within(self, growing: Growing | None) -> list[Growing]:
        """Rows in parts that the budget holds; the last one goes on first."""
        if growing is None:
            return []
        rows = max(self.budget.tokens // growing.cache.room, 1)
        count = len(growing.leaves)
        if count <= rows:
            return [growing]
        parts = [growing.part(a, min(a + rows, count)) for a in range(0, count, rows)]
        return parts[::-1]

    def _begun(self, coming: Pass, *, alone: bool) -> tuple[list[Written], Growing | None] | None:
        """Read what is written on from; None where memory ran out, unless nothing is smaller."""
        try:
            logits, growing = self._read(coming)
            return self._step(logits, growing)
        except Exception as error:
            self.decoder.tree.prefixes.clear()  # if memory ran out, they are the first to go
            if not out_of_memory(error) or (alone and not coming.divisible):
                raise
        if not coming.divisible:
            self.budget.halve(self.budget.tokens)  # it waits until the others have ended
        return None

    def _read(self, coming: Pass) -> tuple[Any, Growing]:
        """Feed prompts and their options as rows; logits after each prompt."""
        work, members = coming.work, coming.members
        behind = self.decoder.tree.prefixes.get_all(work.prefixes, coming.size)
        prefixes = SharedPrefixes.of(behind, work.owners)
        count, width = work.ids.shape
        own = np.array(coming.new)
        cache = RowCache(count, self._room(coming))
        reads = np.concatenate([np.arange(count) * width + own - 1, work.reads])
        logits = row_logits(
            self.model, work.ids, work.depths, prefixes, reads=reads, seen=work.seen, cache=cache
        )
        cache.add(own)
        if len(work.tokens):
            logps = token_logps(logits[count:], work.which, work.tokens).cpu().numpy()
            sizes = [sum(s.end - s.start for s in self.leaves[i].root.options) for i in members]
            parts = np.split(logps, np.cumsum(sizes)[:-1])
            self.options.update(zip(members, parts, strict=True))
        return logits[:count], Growing.begun(self.leaves, members, cache, prefixes)

    def _fed(self, now: Growing) -> tuple[list[Written], Growing | None] | None:
        """Let every row go on by a token; None where memory ran out for several."""
        count, lengths = len(now.leaves), now.cache.lengths
        try:
            logits = self._logits(now)
            now.cache.add(now.alive.astype(np.int64))
            return self._step(logits, now)
        except Exception as error:
            if count == 1 or not out_of_memory(error):
                raise
        now.cache.lengths, self.graph, self.before = lengths, None, None
        self.decoder.tree.prefixes.clear()  # what rows stand behind, they hold themselves
        self.budget.halve(count * now.cache.room)
        return None

    def _logits(self, now: Growing) -> Any:
        """Logits after the last token of every row, recorded where rows stay as they are."""
        if self.graph is None or self.graph.cache is not now.cache:
            stays = self.draws is None or self.before is now.cache
            self.graph, self.before = None, now.cache
            if stays:
                self.graph = self.decoder.recorder.record(now.cache, now.prefixes, now.last)
        if self.graph is not None:
            return self.graph.step(now.last)
        return next_logits(self.model, now.last, now.cache, now.prefixes)

    def _step(self, logits: Any, now: Growing) -> tuple[list[Written], Growing | None]:
        """Let every row go on: the texts that have ended, and those that go on."""
        shares = self._chosen(logits, now)
        lengths = now.lengths[shares.rows] + 1
        due = self.closing[self.until[shares.owners], shares.tokens]
        due |= self._spent(now, shares, lengths) | self.odd[now.leaves[shares.rows]]
        ended, written = np.zeros(len(due), dtype=bool), []
        for k in np.flatnonzero(due).tolist():
            text = self._ended(now, shares, k)
            if text is not None:
                written.append(text)
                ended[k] = True
        if ended.all():
            return written, None
        waste = WASTE
        if self.graph is not None and self.graph.cache is now.cache:
            waste = LAST if self.coming is None else RECORDED
        return written, now.onward(shares.pick(~ended), waste)

    def _spent(self, now: Growing, shares: Shares, lengths: np.ndarray) -> np.ndarray:
        """Which texts may have all tokens that they may have: all that do, and some others."""
        most, thinking = self.most[shares.owners], self.thinking[shares.owners]
        whole = lengths >= most
        if self.shutting is None:
            return np.asarray(whole)
        written = np.arange(now.paths.shape[1]) < now.lengths[:, None]
        shut = self.shutting[now.paths] & written
        first = np.where(shut.any(1), shut.argmax(1), now.lengths)[shares.rows]  # or this token
        own = most - thinking
        limits = (np.minimum(own, thinking), np.maximum(own, thinking))
        # a text may begin as thoughts do, and turn out not to be
        near = [(lengths >= limit) & (lengths < limit + len(OPENED)) for limit in limits]
        return np.asarray(whole | near[0] | near[1] | (lengths - first >= own))

    def _chosen(self, logits: Any, now: Growing) -> Shares:
        if self.draws is None:
            return likeliest_shares(logits, now)
        try:
            return drawn_shares(logits, now, self.draws.names, steady=self.draws.steady)
        except NoDistribution as error:
            raise self.draws.refused(min(now.owners[now.rows == error.row])) from None

    def _ended(self, now: Growing, shares: Shares, k: int) -> Written | None:
        """The text of a share, if it has come to its end."""
        row, owner = int(shares.rows[k]), int(shares.owners[k])
        leaf, length = self.leaves[now.leaves[row]], now.lengths[row]
        path = (*now.paths[row, :length].tolist(), int(shares.tokens[k]))
        end: End | None = self.decoder.endings.end(leaf.tail, path, self.openings[owner].want)
        if end is None:
            return None
        logps = (*now.logps[row, :length].tolist(), float(shares.logps[k]))
        grown = Leaf(
            root=leaf.root,
            tail=leaf.tail,
            shares=leaf.shares,
            path=path,
            logps=logps,
            option_logps=self.options.get(int(now.leaves[row])),
        )
        return Written(owner=owner, leaf=grown, end=end, count=int(shares.counts[k]))


def _next(passes: Passes, *, failed: bool) -> Pass | None:
    try:
        return passes.send(failed)
    except StopIteration:
        return None
