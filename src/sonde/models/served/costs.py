"""What prompts would cost a server: requests and tokens, counted on what would be sent.

A request is paid for by the first prompt that has an ask in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from sonde.core.abilities import group_by_ability
from sonde.core.costs import Memory, ShardCost
from sonde.core.errors import AbilityError
from sonde.core.prompts import Generate, Prompt, Sample, put
from sonde.engine.causal_texts import read_texts
from sonde.engine.dry_run import DryRun
from sonde.models.served.asks import Ask
from sonde.models.served.dialect import Divides
from sonde.models.served.model import Served, draw_asks, option_reads, write_asks
from sonde.models.served.reading import Text


def served_costs(model: Served, shards: Iterable[Sequence[Prompt]]) -> Iterator[ShardCost]:
    """The cost of each shard in turn."""
    for prompts in map(put, shards):
        dry = DryRun(len(prompts))
        for ability, numbers in group_by_ability(prompts, joins=False).items():
            places = prompts.places(numbers)
            _count(model, ability, [prompts[i] for i in places], places, dry)
        yield ShardCost(costs=dry.costs, memory=Memory())


def _count(
    model: Served, ability: str, asked: Sequence[Prompt], payers: Sequence[int], dry: DryRun
) -> None:
    if ability == "score":
        branches = model.branches(asked)
        owners = [payers[i] for i, texts in enumerate(branches) for _ in texts.spans]
        _read(model, option_reads(branches), owners, dry)
        for owner in owners:
            dry.charge(owner, options=1)
    elif ability == "trace":
        texts = read_texts(model.encoder, asked, model)
        _read(model, [Text(ids=text.ids, reads=text.reads) for text in texts], payers, dry)
    elif ability == "generate":
        _write(model, write_asks(asked, model.openings(asked, Generate)), payers, dry)
    elif ability == "sample":
        openings = model.openings(asked, Sample)
        _write(model, draw_asks(asked, openings, model.dialect.draws), payers, dry)
    else:
        raise AbilityError(f"{model.identity.name} cannot {ability}")


def _read(model: Served, texts: Sequence[Text], owners: Sequence[int], dry: DryRun) -> None:
    """Texts of which tokens are read."""
    seen: set[tuple[int, ...]] = set()
    for text, owner in zip(texts, owners, strict=True):
        dry.charge(owner, texts=1, distinct=int(text.ids not in seen), naive=len(text.ids))
        seen.add(text.ids)
    asks = model.reading(texts).owners
    _send(model, {ask: owners[own[0]] for ask, own in asks.items()}, dry)


def _write(
    model: Served, asks: Mapping[Ask, Sequence[int]], payers: Sequence[int], dry: DryRun
) -> None:
    """Texts that are written, each taken to be as long as it may be."""
    for ask, own in asks.items():
        tokens, count = model.dialect.computes([ask]), getattr(ask, "count", 1)
        grown = tokens - len(ask.ids)
        for position in own:
            naive = count * len(ask.ids) + grown
            dry.charge(payers[position], texts=count, naive=naive)
        dry.charge(payers[own[0]], distinct=count, grown=grown)
    _send(model, {ask: payers[own[0]] for ask, own in asks.items()}, dry)


def _send(model: Served, payers: Mapping[Ask, int], dry: DryRun) -> None:
    """What is sent; the tokens of a request are paid for by all who have an ask in it."""
    dialect, computes = model.dialect, model.dialect.computes
    requests = dialect.requests(list(payers)) if payers else []
    for request in requests:
        dry.charge(payers[request.asks[0]], requests=1)
    # such a server keeps the beginning of a text for the next request
    kept = isinstance(dialect, Divides)
    for asks in [list(payers)] if kept else [request.asks for request in requests]:
        alone = np.cumsum([0, *(computes([ask]) for ask in asks)])
        ends = computes(asks) * alone // max(alone[-1], 1)
        for ask, tokens in zip(asks, np.diff(ends).tolist(), strict=True):
            dry.charge(payers[ask], computed=tokens)
