"""What prompts would cost a model of torch: a dry run of the passes that would answer them.

Texts are encoded and scheduled by the model itself, so a prompt that it would refuse is refused
here. What is written is not known before it is: it is taken to be as long as it may be. The bytes
of a pass are an estimate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sonde.core.abilities import group_by_ability
from sonde.core.costs import Memory, ShardCost
from sonde.core.errors import AbilityError
from sonde.core.prompts import Generate, Prompt, Prompts, Sample, put
from sonde.engine.dry_run import DryRun
from sonde.engine.masked_batch import Hiding, hidden_texts
from sonde.engine.prefixes import PrefixCache, SourceCache
from sonde.engine.schedule import Shape
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.causal.token_tree import kept_prefixes
from sonde.models.torch.decode.writer import Opening, Writer
from sonde.models.torch.loading.weights import Loaded
from sonde.models.torch.masked.model import MaskedModel
from sonde.models.torch.seq2seq import Reader, Seq2SeqModel, Task, fed_rows, grouped


def causal_costs(model: CausalModel, shards: Iterable[Sequence[Prompt]]) -> Iterator[ShardCost]:
    """The cost of each shard in turn; a prefix that is kept from one to the next is paid once."""
    token = kept_prefixes(model.model, 0).compute((0,))[1] if model.tree else 0
    prefixes: PrefixCache[None] = PrefixCache(
        lambda ids: (None, len(ids) * token), model.prefixes.budget
    )
    for prompts in map(put, shards):
        if model.rows:
            prefixes.clear()  # as `reset_cache` does
        dry = DryRun(len(prompts))
        for ability, numbers in group_by_ability(prompts, joins=True).items():
            positions = prompts.places(numbers)
            asked = [prompts[i] for i in positions]
            if ability == "sample":
                decoder = model.decoder("sample")
                openings = decoder.openings(asked, Sample)
                _count_writing(decoder, dry, openings, positions, prefixes=prefixes)
            elif ability == "trace":
                _count_tracing(model, dry, asked, positions, prefixes)
            else:
                _count_sharing(model, dry, asked, positions, prefixes)
        batch = (batch_bytes(model.loaded, s, token, narrow=model.tree) for s in dry.shapes)
        yield shard_cost(model.loaded, dry, prefixes.most, batch)


def _count_sharing(
    model: CausalModel,
    dry: DryRun,
    asked: Sequence[Prompt],
    payers: Sequence[int],
    prefixes: PrefixCache[None],
) -> None:
    """Options that are scored and texts that are written, after the same tokens or not."""
    shared = model.share(asked)
    texts, alone = shared.texts, shared.alone
    seen: set[tuple[int, ...]] = set()
    for i, branches in texts.items():
        count, before = len(branches.spans), len(seen)
        length = len(branches.head) * count + sum(len(span.ids) for span in branches.spans)
        seen.update(branches.head + span.ids for span in branches.spans)
        more = {"options": count, "texts": count, "distinct": len(seen) - before}
        dry.charge(payers[i], naive=length, **more)
    passes = model.score_passes([texts[i] for i in alone])
    dry.count(passes, [payers[i] for i in alone], prefixes=prefixes)
    guests = [
        [payers[j] for j in shared.guests.get(i, ()) for _ in texts[j].spans]
        for i in shared.openings
    ]
    owners = [payers[i] for i in shared.openings]
    openings = list(shared.openings.values())
    _count_writing(model.decoder(), dry, openings, owners, guests, prefixes=prefixes)


def _count_tracing(
    model: CausalModel,
    dry: DryRun,
    asked: Sequence[Prompt],
    payers: Sequence[int],
    prefixes: PrefixCache[None],
) -> None:
    """Texts that are read in parts."""
    texts = model.span_tokens(asked)
    seen: set[tuple[int, ...]] = set()
    for payer, text in zip(payers, texts, strict=True):
        dry.charge(payer, texts=1, distinct=int(text.fed not in seen), naive=len(text.ids))
        seen.add(text.fed)
    dry.count(model.trace_passes(texts), payers, prefixes=prefixes)


def _count_writing(
    decoder: Writer,
    dry: DryRun,
    openings: Sequence[Opening],
    payers: Sequence[int],
    guests: Sequence[Sequence[int]] = (),
    *,
    prefixes: PrefixCache[None] | None = None,
    sources: SourceCache[None] | None = None,
) -> None:
    """Texts that are written: what is read exactly, what follows at most.

    `guests[i]`: who pays for each option that is scored beside what opening i leads to.
    """
    for opening, payer in zip(openings, payers, strict=True):
        count, most, length = opening.count, opening.want.most, len(opening.ids)
        grown = count * (most - 1)  # a last token is never fed
        naive = count * (length + decoder.opened + most - 1)
        if decoder.rereads:  # every text is read anew for each of its tokens
            grown += count * (most - 1) * length + count * (most - 1) * (most - 2) // 2
        dry.charge(payer, texts=count, naive=naive, computed=grown, grown=grown)
    leaves = decoder.leaves(openings)
    first = [payers[next(iter(leaf.shares))] for leaf in leaves]
    for payer in first:
        dry.charge(payer, distinct=1)
    beside = {
        number: [guest for owner in leaf.shares for guest in guests[owner]]
        for number, leaf in enumerate(leaves)
        if guests
    }
    passes = decoder.passes(leaves)
    dry.count(passes, first, prefixes=prefixes, sources=sources, guests=beside)


def seq2seq_costs(model: Seq2SeqModel, shards: Iterable[Sequence[Prompt]]) -> Iterator[ShardCost]:
    """The cost of each shard in turn; equal texts of a shard are read once while there is room."""
    token = cross_bytes(model)
    cache = model.reader.cache
    for prompts in map(put, shards):
        dry = DryRun(len(prompts))
        sources: SourceCache[None] = SourceCache(cache.room, cache.token)
        for ability, numbers in group_by_ability(prompts, joins=False).items():
            positions = prompts.places(numbers)
            if ability == "score":
                _count_answers(model, dry, [(i, prompts[i]) for i in positions], sources)
            elif ability in ("generate", "sample"):
                decoder = model.decoder("sample" if ability == "sample" else "generate")
                kind = Sample if ability == "sample" else Generate
                openings = decoder.openings([prompts[i] for i in positions], kind)
                _count_writing(decoder, dry, openings, positions, sources=sources)
            else:
                raise AbilityError(f"an encoder-decoder model cannot {ability}")
        batch = (seq2seq_bytes(model.loaded, shape, token) for shape in dry.shapes)
        yield shard_cost(model.loaded, dry, sources.held, batch)


def _count_answers(
    model: Seq2SeqModel,
    dry: DryRun,
    prompts: Sequence[tuple[int, Prompt]],
    sources: SourceCache[None],
) -> None:
    """Options that are scored: every source once, and rows for what answers have in common."""
    asked = [(i, model.asked(prompt)) for i, prompt in prompts]
    for i, (source, targets) in asked:
        whole = [1 + len(source.ids) + len(source.opens) + len(target) for target in targets]
        dry.charge(i, options=len(targets), texts=len(targets), naive=sum(whole))
    for tasks in grouped(asked):
        for each in model.source_passes(tasks):
            dry.count([each], [task.owners[0][0] for task in tasks], sources=sources)
            chosen = [tasks[i] for i in each.members]
            first = [owner for task in chosen for owner in _first_owners(task)]
            for owner in first:
                dry.charge(owner, distinct=1)
            fed, through = fed_rows(chosen)
            payers = [min(first[number] for number in row) for row in through]
            dry.count(model.answer_passes(max(map(len, each.work)), fed), payers)


def _first_owners(task: Task) -> list[int]:
    """The first prompt that wants each answer."""
    first = {target: owner for owner, own in reversed(task.owners) for target in own}
    return [first[target] for target in task.targets]


def masked_costs(model: MaskedModel, shards: Iterable[Sequence[Prompt]]) -> Iterator[ShardCost]:
    """The cost of each shard in turn; identical inputs of a shard are paid once."""
    for prompts in map(put, shards):
        dry = DryRun(len(prompts))
        for ability, numbers in group_by_ability(prompts, joins=False).items():
            positions = prompts.places(numbers)
            if ability == "fill":
                blocks = tuple(prompts.blocks[number] for number in numbers)
                _count_filling(model, dry, Prompts(blocks=blocks), positions)
            elif ability == "score":
                _count_steps(model, dry, [(i, prompts[i]) for i in positions])
            else:
                raise AbilityError(f"a masked model cannot {ability}")
        batch = (batch_bytes(model.loaded, s, 0, narrow=model.ways.narrow) for s in dry.shapes)
        yield shard_cost(model.loaded, dry, 0, batch)


def _count_filling(
    model: MaskedModel, dry: DryRun, prompts: Prompts, payers: Sequence[int]
) -> None:
    """Texts with one masked position, in chunks; identical ones of a chunk once."""
    for chunk in model.chunks(prompts):
        for i, length in enumerate(chunk.texts.lengths.tolist(), chunk.start):
            dry.charge(payers[i], texts=1, naive=length)
        first = [payers[chunk.start + i] for i in chunk.distinct.first.tolist()]
        for payer in first:
            dry.charge(payer, distinct=1)
        dry.count(model.passes("fill", chunk.distinct.lengths), first)


def _count_steps(model: MaskedModel, dry: DryRun, prompts: Sequence[tuple[int, Prompt]]) -> None:
    """Options that are scored token by token; identical inputs once."""
    owners: list[int] = []
    every: list[Hiding] = []
    for i, prompt in prompts:
        options = model.hidings(prompt)
        texts = sum(len(option.places) for option in options)
        naive = sum(len(option.places) * len(option.ids) for option in options)
        dry.charge(i, options=len(options), texts=texts, naive=naive)
        owners += [i] * texts
        every += options
    distinct = hidden_texts(every, model.encoder.mask_id)[0].once()
    payers = [owners[text] for text in distinct.first.tolist()]
    for payer in payers:
        dry.charge(payer, distinct=1)
    dry.count(model.passes("score", distinct.lengths), payers)


def shard_cost(loaded: Loaded, dry: DryRun, kept: int, batches: Iterable[int]) -> ShardCost:
    """What was counted, with the bytes that are kept and those of every pass."""
    weights = sum(p.numel() * p.element_size() for p in loaded.model.parameters())
    if loaded.quantised:  # some methods keep them as buffers
        weights = loaded.model.get_memory_footprint()
    memory = Memory(weights=weights, stems=kept, batch=max(batches, default=0))
    return ShardCost(costs=dry.costs, memory=memory)


def batch_bytes(loaded: Loaded, shape: Shape, token: int, *, narrow: bool) -> int:
    """About how many bytes a pass takes at its fullest: inside a layer, or at the logits.

    `token`: bytes of one token's keys and values; `narrow`: logits only where they are read.
    """
    config: Any = loaded.model.config.get_text_config()
    each = int(loaded.model.dtype.itemsize)
    hidden = int(getattr(config, "hidden_size", 0))
    inner = int(getattr(config, "intermediate_size", None) or 4 * hidden)
    tokens = shape.rows * shape.width
    layer = tokens * (6 * hidden + 2 * inner) * each
    mask = tokens * (shape.behind + shape.width) * each
    keys = (tokens + shape.behind) * token if shape.behind else 0
    # the logits themselves, and what they are normalised to in float32
    places = shape.reads if narrow else tokens
    logits = places * loaded.vocabulary * (each + 4)
    return mask + keys + max(layer, tokens * hidden * each + logits)


def cross_bytes(model: Seq2SeqModel) -> int:
    """Bytes that the decoder keeps of one token that was read."""
    _, rows = Reader(model.model, 0).open([(0,)], (model.start,))
    layers: list[Any] = rows.cache.cross_attention_cache.layers
    return sum(t.numel() * t.element_size() for layer in layers for t in (layer.keys, layer.values))


def seq2seq_bytes(loaded: Loaded, shape: Shape, token: int) -> int:
    """The same for an encoder-decoder model.

    `token`: bytes of one token's keys and values in all layers, which every row has for itself.
    """
    config: Any = loaded.model.config
    each, hidden = int(loaded.model.dtype.itemsize), int(config.hidden_size)
    inner = next(
        (int(n) for name in ("d_ff", "encoder_ffn_dim") if (n := getattr(config, name, None))),
        4 * hidden,
    )
    tokens = shape.rows * shape.width
    heads = int(getattr(config, "num_attention_heads", 1))
    scores = tokens * (shape.behind + shape.width) * heads * each
    layer = tokens * (6 * hidden + 2 * inner) * each + scores
    logits = shape.reads * loaded.vocabulary * (each + 4)
    return shape.rows * shape.behind * token + max(layer, tokens * hidden * each + logits)
