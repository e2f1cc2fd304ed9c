"""What prompts would cost an encoder-decoder model, without putting them to it.

Encodes as the model does, so a prompt that it would refuse is refused here. The counting itself is
`sonde.engine.counting_seq2seq`; the bytes of a batch are an estimate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sonde.core.abilities import WANTED
from sonde.core.costs import Cost, Memory, ShardCost
from sonde.core.errors import AbilityError
from sonde.core.prompts import Generate, Prompt, Sample, Score
from sonde.engine.batching import batches
from sonde.engine.counting import Ledger, Pass
from sonde.engine.counting_seq2seq import Heard, Reading, count_answers, count_opened
from sonde.engine.seq2seq_encode import Ids
from sonde.models.torch.costs import by_want, drawn, longest
from sonde.models.torch.loading.limits import naming
from sonde.models.torch.loading.weights import Loaded
from sonde.models.torch.seq2seq.decoder import crowd
from sonde.models.torch.seq2seq.model import Seq2SeqModel, Task, fed_rows, grouped
from sonde.models.torch.seq2seq.state import Reader


def seq2seq_bills(model: Seq2SeqModel, shards: Iterable[Sequence[Prompt]]) -> Iterator[ShardCost]:
    """The bill of each shard in turn; equal texts of a shard are read once while there is room."""
    token = keys_and_values(model)
    weights = sum(p.numel() * p.element_size() for p in model.model.parameters())
    for prompts in shards:
        ledger = Ledger([Cost(prompts=1)] * len(prompts))
        heard = Heard(model.reader.room, width(model.loaded) * int(model.model.dtype.itemsize))
        for kind, positions in by_want(prompts).items():
            if kind is Score:
                _count_scoring(model, ledger, prompts, positions, heard)
            elif kind in (Generate, Sample):
                _count_writing(model, ledger, prompts, positions, heard)
            else:
                raise AbilityError(f"an encoder-decoder model cannot {WANTED[kind]}")
        batch = max((pair_bytes(model.loaded, p, token) for p in ledger.passes), default=0)
        memory = Memory(weights=weights, stems=heard.held, batch=batch)
        yield ShardCost(costs=tuple(ledger.costs), memory=memory)


def _count_scoring(
    model: Seq2SeqModel,
    ledger: Ledger,
    prompts: Sequence[Prompt],
    positions: Sequence[int],
    heard: Heard,
) -> None:
    """Options that are scored: every source once, and rows for what answers have in common."""
    asked = [(i, model.asked(prompts[i])) for i in positions]
    for i, (source, targets) in asked:
        whole = [1 + len(source.ids) + len(source.opens) + len(target) for target in targets]
        ledger.charge(i, options=len(targets), texts=len(targets), naive=sum(whole))
    for group in grouped(asked):
        readings = [_reading(ledger, task) for task in group]
        opening = 1 + len(group[0].source.opens)
        count_answers(ledger, readings, opening, model.budget.tokens, model.enough, heard)


def _reading(ledger: Ledger, task: Task) -> Reading:
    """A source with the rows behind it; each is paid for by the first prompt that needs it."""
    first: dict[Ids, int] = {}
    for owner, targets in task.owners:
        for target in targets:
            first.setdefault(target, owner)
    for owner in first.values():
        ledger.charge(owner, distinct=1)
    fed, through = fed_rows([task])
    rows = zip(fed, through, strict=True)
    paid = tuple((min(first[target] for _, target in own), ids) for (_, ids), own in rows)
    return Reading(payer=task.owners[0][0], ids=task.source.ids, fed=paid)


def _count_writing(
    model: Seq2SeqModel,
    ledger: Ledger,
    prompts: Sequence[Prompt],
    positions: Sequence[int],
    heard: Heard,
) -> None:
    """Texts that are written: what is read exactly, what is written at most."""
    grower = model.grower()
    opening = len(grower.opening)
    shares: dict[Ids, list[int]] = {}
    for i in positions:
        draws, most = drawn(prompts[i]), longest(prompts[i])
        with naming(prompts[i]):
            ids = grower.ids(prompts[i], most)
        shares.setdefault(ids, []).append(i)
        grown = draws * (most - 1)  # a last token is never fed
        naive = draws * (len(ids) + opening + most - 1)
        new = int(len(shares[ids]) == 1)
        ledger.charge(i, texts=draws, distinct=new, naive=naive, computed=grown, grown=grown)
    roots = [(own[0], ids) for ids, own in shares.items()]
    counts = [[drawn(prompts[i]) for i in own] for own in shares.values()]
    lengths = [crowd(len(ids), own) for (_, ids), own in zip(roots, counts, strict=True)]
    for batch in batches(lengths, model.budget.tokens, padded=False):
        count_opened(ledger, [roots[i] for i in batch], opening, heard)
        behind, rows = max(len(roots[i][1]) for i in batch), sum(sum(counts[i]) for i in batch)
        ledger.passes.append(Pass(rows=rows, width=1, behind=behind, reads=rows))


def keys_and_values(model: Seq2SeqModel) -> int:
    """Bytes that the decoder keeps of one token that was read."""
    _, rows = Reader(model.model, 0).open([(0,)], (model.start,))
    layers: list[Any] = rows.cache.cross_attention_cache.layers
    return sum(t.numel() * t.element_size() for layer in layers for t in (layer.keys, layer.values))


def width(loaded: Loaded) -> int:
    """How many numbers the encoder gives for a token."""
    return int(loaded.model.config.hidden_size)


def pair_bytes(loaded: Loaded, batch: Pass, token: int) -> int:
    """About how many bytes a batch takes at its fullest: inside a layer, or at the logits.

    `token`: bytes of one token's keys and values in all layers, which every row has for itself.
    """
    config: Any = loaded.model.config
    each = int(loaded.model.dtype.itemsize)
    hidden = width(loaded)
    inner = next(
        (int(n) for name in ("d_ff", "encoder_ffn_dim") if (n := getattr(config, name, None))),
        4 * hidden,
    )
    tokens = batch.rows * batch.width
    heads = int(getattr(config, "num_attention_heads", 1))
    scores = tokens * (batch.behind + batch.width) * heads * each
    layer = tokens * (6 * hidden + 2 * inner) * each + scores
    logits = batch.reads * loaded.vocabulary * (each + 4)
    return batch.rows * batch.behind * token + max(layer, tokens * hidden * each + logits)
