"""What prompts would cost a model of torch, without putting them to it.

Encodes as the model does, so a prompt that it would refuse is refused here. The counting itself is
`sonde.engine.counting`; the bytes of a batch are an estimate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from sonde.core.abilities import WANTED, group_by_ability
from sonde.core.costs import Cost, Memory, ShardCost
from sonde.core.errors import AbilityError
from sonde.core.prompts import Fill, Generate, Prompt, Sample, Score
from sonde.engine.counting import (
    Kept,
    Ledger,
    Paid,
    Pass,
    Row,
    count_openings,
    count_readings,
    count_rows,
    count_trees,
    distinct_rows,
)
from sonde.engine.encode import Branches
from sonde.engine.prefixes import stems
from sonde.engine.spans import SpanTokens
from sonde.models.torch.causal.model import CausalModel, beginning, cut
from sonde.models.torch.causal.token_tree import prefill, size
from sonde.models.torch.causal.traces import behind
from sonde.models.torch.loading.limits import check_room, check_spans, naming
from sonde.models.torch.loading.weights import Loaded
from sonde.models.torch.masked.logits import ROW
from sonde.models.torch.masked.model import MaskedModel, chunk_starts, hole_steps

Texts = Sequence[tuple[int, Branches]]
"""Positions of prompts, each with the texts of its options."""

Openings = Sequence[tuple[int, tuple[int, ...]]]
"""Positions of prompts, each with the token ids that are written on from."""


def causal_bills(model: CausalModel, shards: Iterable[Sequence[Prompt]]) -> Iterator[ShardCost]:
    """The bill of each shard in turn; a stem that is kept from one to the next is paid once."""
    token = size(prefill(model.model, (0,))) if model.tree else 0
    kept = Kept(model.stems.budget, token)
    for prompts in shards:
        ledger = Ledger([Cost(prompts=1)] * len(prompts))
        for way, positions in group_by_ability(prompts, joins=True).items():
            if way == "sample":
                openings = [(i, _opening(model, prompts[i])) for i in positions]
                _count_writing(model, ledger, openings, prompts, kept)
            elif way == "trace":
                read = model.tracer().texts([prompts[i] for i in positions])
                _count_reading(model, ledger, list(zip(positions, read, strict=True)), kept)
            else:
                _count_both(model, ledger, positions, prompts, kept)
        yield _bill(model.loaded, ledger, stems=kept.most, token=token, narrow=model.tree)


def _count_both(
    model: CausalModel,
    ledger: Ledger,
    positions: Sequence[int],
    prompts: Sequence[Prompt],
    kept: Kept,
) -> None:
    """Options that are scored and texts that are written, after the same tokens or not."""
    writes = [i for i in positions if isinstance(prompts[i].want, Generate)]
    openings = {i: _opening(model, prompts[i]) for i in writes}
    texts = {i: model.branches(prompts[i]) for i in positions if i not in openings}
    room = {i: (ids, longest(prompts[i])) for i, ids in openings.items()}
    guests = model.guests(texts, room)
    hosted = {i for group in guests.values() for i in group}
    _hold_options(ledger, list(texts.items()))
    _count_options(model, ledger, [(i, b) for i, b in texts.items() if i not in hosted], kept)
    riding = {host: [(i, texts[i].spans) for i in group] for host, group in guests.items()}
    _count_writing(model, ledger, list(openings.items()), prompts, kept, riding)


def _hold_options(ledger: Ledger, texts: Texts) -> None:
    """What prompts with options hold, before anything is computed."""
    seen: set[tuple[int, ...]] = set()
    for i, branches in texts:
        count, before = len(branches.spans), len(seen)
        length = len(branches.head) * count + sum(len(span.ids) for span in branches.spans)
        seen.update(branches.head + span.ids for span in branches.spans)
        more = {"options": count, "texts": count, "distinct": len(seen) - before}
        ledger.charge(i, naive=length, **more)


def _count_options(model: CausalModel, ledger: Ledger, texts: Texts, kept: Kept) -> None:
    """Options by themselves: as trees behind stems, or each text as a row."""
    if not model.tree:
        rows = [(i, (span.ids, span.start)) for i, b in texts for span in cut(b, 0)]
        count_rows(ledger, rows, model.budget.tokens)
        return
    for stem in stems([beginning(branches) for _, branches in texts]):
        members = [texts[i] for i in stem.members]
        rest = [(i, cut(branches, len(stem.ids))) for i, branches in members]
        count_trees(ledger, stem.ids, rest, model.budget.tokens, kept)


def _count_reading(
    model: CausalModel, ledger: Ledger, texts: Sequence[tuple[int, SpanTokens]], kept: Kept
) -> None:
    """Texts that are read in parts: as trees behind stems, or each as a row."""
    seen: set[tuple[int, ...]] = set()
    for i, text in texts:
        new = text.fed not in seen
        seen.add(text.fed)
        ledger.charge(i, texts=1, distinct=int(new), naive=len(text.ids))
    if not model.tree:
        rows = [(i, (text.fed, 0)) for i, text in texts]
        count_rows(ledger, rows, model.budget.tokens)
        return
    for stem in stems([text.unread for _, text in texts]):
        members = [texts[i] for i in stem.members]
        rest = [(i, behind(text, len(stem.ids))) for i, text in members]
        count_readings(ledger, stem.ids, rest, model.budget.tokens, kept)


def _opening(model: CausalModel, prompt: Prompt) -> tuple[int, ...]:
    """The token ids that a prompt is written on from."""
    assert isinstance(prompt.want, Generate | Sample)
    with naming(prompt):
        ids = model.encoder.open(prompt.prefix)
        check_room(ids, prompt.want.most, model.loaded)
    return ids


def _count_writing(
    model: CausalModel,
    ledger: Ledger,
    openings: Openings,
    prompts: Sequence[Prompt],
    kept: Kept,
    guests: Mapping[int, Sequence[Paid]] = MappingProxyType({}),
) -> None:
    """Texts that are written: the prompts and options beside them exactly, what follows at most."""
    first: dict[tuple[int, ...], int] = {}
    for i, ids in openings:
        draws, most = drawn(prompts[i]), longest(prompts[i])
        new = ids not in first
        first.setdefault(ids, i)
        grown = draws * (most - 1)  # a last token is never fed
        if not model.tree:  # every text is read anew for each of its tokens
            grown += draws * (most - 1) * len(ids) + draws * (most - 1) * (most - 2) // 2
        ledger.charge(i, texts=draws, distinct=int(new), naive=draws * (len(ids) + most - 1))
        ledger.charge(i, computed=grown, grown=grown)
    roots = [(i, ids) for ids, i in first.items()]
    if not model.tree:
        count_rows(ledger, [(i, (ids, 0)) for i, ids in roots], model.budget.tokens)
        return
    for stem in stems([ids[:-1] for _, ids in roots]):
        members = [roots[i] for i in stem.members]
        room = [
            drawn(p) if isinstance(p.want, Sample) else longest(p)
            for p in (prompts[i] for i, _ in members)
        ]
        rest = [(i, ids[len(stem.ids) :]) for i, ids in members]
        count_openings(ledger, stem.ids, rest, room, model.budget.tokens, kept, guests)


def drawn(prompt: Prompt) -> int:
    """How many texts a prompt wants written."""
    return prompt.want.count if isinstance(prompt.want, Sample) else 1


def longest(prompt: Prompt) -> int:
    """How many tokens a written text has at most."""
    return prompt.want.most if isinstance(prompt.want, Generate | Sample) else 0


def masked_bills(model: MaskedModel, shards: Iterable[Sequence[Prompt]]) -> Iterator[ShardCost]:
    """The bill of each shard in turn; identical inputs of a shard are paid once."""
    for prompts in shards:
        inputs = masked_inputs(model, prompts)
        ledger = Ledger([masked_cost(p, rows) for p, rows in zip(prompts, inputs, strict=True)])
        for kind, positions in by_want(prompts).items():
            starts = chunk_starts(len(positions)) if kind is Fill else [0]
            for start, stop in pairwise((*starts, len(positions))):
                chunk = [(i, inputs[i]) for i in positions[start:stop]]
                _count_inputs(model, ledger, distinct_rows(chunk))
        yield _bill(model.loaded, ledger, stems=0, token=0, narrow=model.ways.narrow)


def _count_inputs(model: MaskedModel, ledger: Ledger, rows: Sequence[tuple[int, Row]]) -> None:
    """Distinct inputs, in batches of like length."""
    for payer, _ in rows:
        ledger.charge(payer, distinct=1)
    packed = ROW if model.ways.packs else 0
    count_rows(ledger, rows, model.budget.tokens, enough=model.enough, packed=packed)


def masked_inputs(model: MaskedModel, prompts: Sequence[Prompt]) -> list[list[Row]]:
    """The inputs that answer each prompt."""
    fills = [i for i, prompt in enumerate(prompts) if isinstance(prompt.want, Fill)]
    spans = model.encoder.holes([(prompts[i].prefix, prompts[i].suffix) for i in fills])
    holes = dict(zip(fills, spans, strict=True))
    found: list[list[Row]] = []
    for i, prompt in enumerate(prompts):
        with naming(prompt):
            if i in holes:
                check_spans([holes[i]], model.loaded)
                found.append([(holes[i].ids, holes[i].start)])
            else:
                found.append(_steps(model, prompt))
    return found


def _steps(model: MaskedModel, prompt: Prompt) -> list[Row]:
    if not isinstance(prompt.want, Score):
        raise AbilityError(f"a masked model cannot {WANTED[type(prompt.want)]}")
    texts = prompt.want.texts(prompt.prefix)
    spans = model.encoder.options(prompt.prefix, texts, prompt.suffix)
    check_spans(spans, model.loaded)
    return [hole for span in spans for hole, _ in hole_steps(span, model.encoder.mask_id)]


def masked_cost(prompt: Prompt, rows: Sequence[Row]) -> Cost:
    """What a prompt holds, before anything is computed."""
    return Cost(
        prompts=1,
        options=len(prompt.want.options) if isinstance(prompt.want, Score) else 0,
        texts=len(rows),
        naive=sum(len(ids) for ids, _ in rows),
    )


def by_want(prompts: Sequence[Prompt]) -> dict[type, list[int]]:
    """Positions of the prompts that go to the model together: those that want the same of it."""
    groups: dict[type, list[int]] = {}
    for i, prompt in enumerate(prompts):
        groups.setdefault(type(prompt.want), []).append(i)
    return groups


def _bill(loaded: Loaded, ledger: Ledger, *, stems: int, token: int, narrow: bool) -> ShardCost:
    batch = max((batch_bytes(loaded, p, token, narrow) for p in ledger.passes), default=0)
    weights = sum(p.numel() * p.element_size() for p in loaded.model.parameters())
    return ShardCost(
        costs=tuple(ledger.costs), memory=Memory(weights=weights, stems=stems, batch=batch)
    )


def batch_bytes(loaded: Loaded, batch: Pass, token: int, narrow: bool) -> int:
    """About how many bytes a batch takes at its fullest: inside a layer, or at the logits.

    `token`: bytes of one token's keys and values; `narrow`: logits only where they are read.
    """
    config: Any = loaded.model.config.get_text_config()
    each = int(loaded.model.dtype.itemsize)
    hidden = int(getattr(config, "hidden_size", 0))
    inner = int(getattr(config, "intermediate_size", None) or 4 * hidden)
    tokens = batch.rows * batch.width
    layer = tokens * (6 * hidden + 2 * inner) * each
    mask = tokens * (batch.behind + batch.width) * each
    keys = (tokens + batch.behind) * token if batch.behind else 0
    # the logits themselves, and what they are normalised to in float32
    places = batch.reads if narrow else tokens
    logits = places * loaded.vocabulary * (each + 4)
    return mask + keys + max(layer, tokens * hidden * each + logits)
