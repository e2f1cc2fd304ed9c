"""A model that is asked through a transport: it scores options, reads texts, writes and draws them.

It has the methods that its server was found able to answer, and no others. All prompts of a call
are asked before one is answered. Knows nothing of requests, which are the dialect's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, cast

import numpy as np

from sonde.core.abilities import TEMPLATE, Ability, Identity, Named
from sonde.core.answers import Generated, Sampled
from sonde.core.certificates import Recheck
from sonde.core.columns import one_by_one
from sonde.core.costs import ShardCost
from sonde.core.errors import CertificateError, ServerError
from sonde.core.progress import advance, heard
from sonde.core.prompts import Block, Generate, Prompt, Sample, Score
from sonde.core.rated import RatedColumns
from sonde.engine.causal_texts import (
    check_writable,
    describe_start,
    option_texts,
    prepare_options,
    read_texts,
)
from sonde.engine.encode import Branches
from sonde.engine.limits import check_room, naming
from sonde.engine.sampling import prompt_name, uniforms
from sonde.models.served.asks import Ask, Draw, Floats, Kind, Result, Write, Written
from sonde.models.served.dialect import About, Dialect, Request
from sonde.models.served.reading import Reading, Text, cheapest
from sonde.models.served.tokens import LocalTokens, read_written
from sonde.models.served.transport import Returns, Transport, Untaken

UNLIMITED = 10**9
"""Tokens of a text, where nobody says how many a server takes."""

SEEDS = 2**31
"""Seeds that every server takes."""

UNTOLD = "this kind of server does not answer it"

NEEDS: Mapping[Ability, tuple[Kind, ...]] = {
    "score": ("rate", "next"),
    "trace": ("rate", "next"),
    "generate": ("write",),
    "sample": ("draw",),
}
"""Which asks, any of them, an ability needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was found out about a server: its name, what it says, and which asks it answers.

    `weights` tells its model from others as far as can be told, and is empty where it cannot.
    `why` not the other asks; `notes`: what else a manifest should tell of it. `architecture` and
    `dtype` are known where a library has the model in this process.
    """

    name: str
    about: About
    can: frozenset[Kind]
    weights: str = ""
    why: Mapping[Kind, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    architecture: str = ""
    dtype: str = ""

    @property
    def abilities(self) -> frozenset[Ability]:
        """What a model behind it can do."""
        return frozenset(name for name, kinds in NEEDS.items() if self.can & {*kinds})


class Served(Named):
    """What every served model has; `served_model` makes one with the methods of its abilities."""

    def __init__(
        self, found: Found, dialect: Dialect, transport: Transport, tokens: LocalTokens
    ) -> None:
        self.found, self.dialect, self.transport, self.tokens = found, dialect, transport, tokens
        self.encoder, self.chat = tokens.encoder, tokens.chat
        self.vocabulary = tokens.vocabulary
        lengths = (found.about.context, tokens.longest)
        self.context = min((n for n in lengths if n is not None), default=UNLIMITED)

    @property
    def identity(self) -> Identity:
        """What makes its answers its own: who serves which model, not where."""
        found, dialect = self.found, self.dialect
        version, chat = found.about.version, self.chat
        return Identity(
            name=found.name,
            architecture=found.architecture or f"server ({dialect.name})",
            weights=found.weights,
            tokenizer=self.tokens.fingerprint,
            dtype=found.dtype,
            bos=chat.opening if chat else describe_start(self.encoder.start, self.tokens.backend),
            chat=chat.identity if chat else {},
            details={
                "device": "server",
                "served model": dialect.setting.model,
                "dialect": dialect.name,
                "server version": version or "not told",
                "context": f"{self.context} tokens" if self.context < UNLIMITED else "not told",
                "tokenizer from": self.tokens.name,
                "asks": ", ".join(sorted(found.can - {"spell"})),
                **found.notes,
                **({TEMPLATE: named} if (named := self.tokens.template) else {}),
            },
        )

    def lacks(self) -> Mapping[Ability, str]:
        """Why it cannot do what its server was not found able to answer."""
        missing = [name for name in NEEDS if name not in self.found.abilities]
        reasons = ((name, map(self.found.why.get, NEEDS[name])) for name in missing)
        return {name: next(filter(None, why), UNTOLD) for name, why in reasons}

    def in_turns(self, block: Block) -> Iterator[Block]:
        """The prompts of a block as the model is to be given them."""
        return self.chat.in_turns(block) if self.chat else iter((block,))

    def estimate_costs(self, shards: Iterable[Sequence[Prompt]]) -> Iterator[ShardCost]:
        """What each shard would cost, in turn."""
        from sonde.models.served.costs import served_costs  # it knows this class

        return served_costs(self, shards)

    def branches(self, prompts: Sequence[Prompt]) -> list[Branches]:
        """The texts of the options of prompts, refused if the server cannot take one of them."""
        prepare_options(self.encoder, prompts)
        return [option_texts(self.encoder, prompt, self) for prompt in prompts]

    def reading(self, texts: Sequence[Text]) -> Reading:
        """How texts are read of which some tokens are wanted."""
        return cheapest(self.dialect, self.found.can, texts)

    def openings(self, prompts: Sequence[Prompt], kind: type) -> list[tuple[int, ...]]:
        """Prompts to write on from, refused if the server cannot."""
        tokens = self.encoder.to_open([prompt.prefix for prompt in prompts])
        found = []
        for prompt, own in zip(prompts, tokens, strict=True):
            check_writable(prompt, kind)
            with naming(prompt):
                ids = self.encoder.opened(prompt.prefix, own)
                check_room(ids, cast(Generate | Sample, prompt.want).most, self)
            found.append(ids)
        return found

    def asked_for(self, prompts: Sequence[Prompt]) -> Sequence[Prompt]:
        """The prompts, not ended by the server where thoughts may hold what ends a text.

        A chat model may think although nobody gave it room.
        """
        if not self.chat:
            return prompts
        wants = (cast(Generate | Sample, prompt.want) for prompt in prompts)
        return [replace(p, want=replace(w, until="")) for p, w in zip(prompts, wants, strict=True)]

    def ask(
        self, owners: Mapping[Ask, Sequence[int]], prompt: Callable[[int], Prompt]
    ) -> dict[Ask, Any]:
        """The results of asks, each asked once; `owners` are counted off as they are answered.

        `prompt` is the one that an owner belongs to.
        """
        found: dict[Ask, Result] = {}
        try:
            for answered in self.answers(owners):
                found.update(answered)
                advance(sum(len(owners[ask]) for ask, _ in answered))
        except Untaken as untaken:
            owner = owners[untaken.request.asks[0]][0]
            raise ServerError(f"{prompt(owner).told}: {untaken}") from None
        return found

    def answers(self, asks: Iterable[Ask]) -> Iterator[list[tuple[Ask, Any]]]:
        """Asks with their results, as many at a time as a request holds."""
        every = list(asks)
        requests = self.dialect.requests(every) if every else []
        for request, results in self.transport.send(requests, self.dialect.read, self.divided):
            yield list(zip(request.asks, results, strict=True))

    def divided(self, request: Request) -> list[Request]:
        """A request as two; none where it holds one ask."""
        asks = request.asks
        halves = (asks[: len(asks) // 2], asks[len(asks) // 2 :]) if len(asks) > 1 else ()
        return [part for half in halves for part in self.dialect.requests(half)]

    def read(self, texts: Sequence[Text], prompt: Callable[[int], Prompt]) -> list[Floats]:
        """The log-probabilities of what is read of each text."""
        reading = self.reading(texts)
        return reading.values(self.ask(reading.owners, prompt))


class Scoring(Served):
    """Scores options."""

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[np.ndarray, RatedColumns]]:
        """Yield (positions, log-probabilities of every option's tokens)."""
        branches = self.branches(prompts)
        spans = [span for texts in branches for span in texts.spans]
        owners = [i for i, texts in enumerate(branches) for _ in texts.spans]
        values = self.read(option_reads(branches), lambda number: prompts[owners[number]])
        options = [cast(Score, prompt.want).options for prompt in prompts]
        counts = np.array([span.stop - span.start for span in spans], dtype=np.int64)
        after = np.array([span.end - span.stop for span in spans], dtype=np.int64)
        yield np.arange(len(prompts)), RatedColumns.scored(options, _joined(values), counts, after)

    def recheck(self, known: Recheck | None) -> None:
        """Have a prompt asked again after every set of requests; None ends that."""
        if isinstance(self.transport, Returns):
            self.transport.vouch(None if known is None else partial(self._check_again, known))

    def _check_again(self, known: Recheck) -> None:
        with heard(None):
            ((_, answer),) = one_by_one(self.score([known.prompt]))
        if not known.same(answer.logps):
            raise CertificateError(
                f"{self.identity.name} gives other numbers than when it was certified: another "
                "model has come up, or it computes otherwise; what it answers does not belong to "
                "this run"
            )


class Tracing(Served):
    """Reads parts of texts."""

    def trace(self, prompts: Sequence[Prompt]) -> Iterator[tuple[np.ndarray, RatedColumns]]:
        """Yield (positions, log-probabilities of every span's tokens)."""
        texts = read_texts(self.encoder, prompts, self)
        values = self.read([Text(ids=t.ids, reads=t.reads) for t in texts], prompts.__getitem__)
        ranges = [text.ranges for text in texts]
        counts = [stop - start for own in ranges for start, stop in own]
        columns = RatedColumns.traced([len(own) for own in ranges], _joined(values), counts)
        yield np.arange(len(prompts)), columns


class Generating(Served):
    """Writes on from prompts."""

    def generate(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Generated]]:
        """Yield (position, answer) with the likeliest continuation of every prompt."""
        owners = write_asks(self.asked_for(prompts), self.openings(prompts, Generate))
        told = self.ask(owners, prompts.__getitem__)
        results = self._completed(told, lambda ask: prompts[owners[ask][0]])
        for ask, own in owners.items():
            for position in own:
                want = cast(Generate, prompts[position].want)
                yield position, self._generated(ask.ids, results[ask], want)

    def _completed(
        self, results: dict[Ask, Written], prompt: Callable[[Ask], Prompt]
    ) -> dict[Ask, Written]:
        """What was written, tokens read for which the server told no log-probability.

        A server that cannot read may leave out the tokens that ended a text, and no others.
        """
        short = [ask for ask, own in results.items() if len(own.logps) < len(own.ids)]
        if "trace" not in self.found.abilities:
            for ask in short:
                want = cast(Generate, prompt(ask).want)
                _, _, said, _ = read_written(self.tokens, ask.ids, results[ask], want)
                if len(results[ask].logps) < said:
                    text = results[ask].text
                    raise ServerError(f"the server does not tell how likely all of {text!r} is")
            return results
        texts = [unread(ask.ids, results[ask]) for ask in short]
        with heard(None):  # these prompts were counted
            read = self.read(texts, lambda number: prompt(short[number])) if short else []
        for ask, logps in zip(short, read, strict=True):
            results[ask] = replace(results[ask], logps=(*results[ask].logps, *logps.tolist()))
        return results

    def _generated(self, ids: tuple[int, ...], written: Written, want: Generate) -> Generated:
        """A text as an answer, with the log-probabilities of what it says and of its end."""
        end, first, said, taken = read_written(self.tokens, ids, written, want)
        whole = end.finished and len(written.logps) >= taken
        closing = written.logps[said:taken] if whole else ()
        return Generated(
            text=end.text,
            logps=written.logps[first:said],
            end_logp=sum(closing) if closing else None,
            finished=end.finished,
            thoughts=end.thoughts.strip(),
        )


class Sampling(Served):
    """Draws texts after prompts; the server draws them, each by itself."""

    def sample(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Sampled]]:
        """Yield (position, answer) with continuations drawn from the model."""
        wanted, openings = self.asked_for(prompts), self.openings(prompts, Sample)
        owners = draw_asks(wanted, openings, self.dialect.draws)
        results = self.ask(owners, prompts.__getitem__)
        texts: dict[int, list[tuple[str, str, int]]] = {i: [] for i in range(len(prompts))}
        for ask, own in owners.items():
            for position in own:
                want = cast(Sample, prompts[position].want)
                drawn = (read_written(self.tokens, ask.ids, each, want) for each in results[ask])
                texts[position] += [(end.text, end.thoughts.strip(), 1) for end, *_ in drawn]
        yield from ((position, Sampled.pooled(each)) for position, each in texts.items())


PARTS: Mapping[Ability, type] = {
    "score": Scoring,
    "trace": Tracing,
    "generate": Generating,
    "sample": Sampling,
}


def served_model(
    found: Found, dialect: Dialect, transport: Transport, tokens: LocalTokens
) -> Served:
    """A model with the methods that its server was found able to answer."""
    return cast(Served, _kind(found.abilities)(found, dialect, transport, tokens))


@cache
def _kind(able: frozenset[Ability]) -> Any:
    return type("ServedModel", (*(PARTS[name] for name in sorted(able)), Served), {})


def option_reads(branches: Sequence[Branches]) -> list[Text]:
    """What is read of the text of each option, and of what counts after it."""
    return [
        Text(
            ids=texts.head + span.ids[: span.end],
            reads=tuple(range(len(texts.head) + span.start, len(texts.head) + span.end)),
        )
        for texts in branches
        for span in texts.spans
    ]


def unread(ids: tuple[int, ...], written: Written) -> Text:
    """What was written after some tokens, to be read from where the server told nothing."""
    whole = ids + written.ids
    return Text(ids=whole, reads=tuple(range(len(ids) + len(written.logps), len(whole))))


def write_asks(
    prompts: Sequence[Prompt], openings: Sequence[tuple[int, ...]]
) -> dict[Ask, list[int]]:
    """What is to be written after prompts, and for which of them."""
    found: dict[Ask, list[int]] = {}
    for position, (prompt, ids) in enumerate(zip(prompts, openings, strict=True)):
        want = cast(Generate, prompt.want)
        found.setdefault(Write(ids, want.most, want.until), []).append(position)
    return found


def draw_asks(
    prompts: Sequence[Prompt], openings: Sequence[tuple[int, ...]], most: int
) -> dict[Ask, list[int]]:
    """What is to be drawn after prompts, `most` at a time, each part with a seed of its own."""
    found: dict[Ask, list[int]] = {}
    for position, (prompt, ids) in enumerate(zip(prompts, openings, strict=True)):
        want = cast(Sample, prompt.want)
        parts = range(0, want.count, most)
        seeds = uniforms(prompt_name(prompt), (), len(parts))
        for start, share in zip(parts, seeds.tolist(), strict=True):
            count, seed = min(most, want.count - start), int(share * SEEDS)
            found.setdefault(Draw(ids, count, want.most, want.until, seed), []).append(position)
    return found


def _joined(values: Sequence[Floats]) -> Floats:
    return np.concatenate([np.zeros(0), *values]).astype(np.float32)
