"""Integrated gradients of an answer's log-probability, by captum: the one file that knows it.

The prompt's embeddings go in a straight line from a token that says nothing to the prompt's own,
and each token is given what the score changes along the way because of it. The way is walked in
pieces, and a piece over which the parts do not add up to the change of the score is halved: what a
large model says changes in leaps, which evenly spread steps miss.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from captum.attr import IntegratedGradients

from sonde.core.errors import AbilityError, ModelError, PromptError
from sonde.core.examinations import Attribution, Token
from sonde.engine.control_tokens import shielded
from sonde.engine.limits import check_spans, check_text
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.loading.weights import Loaded, out_of_memory
from sonde.models.torch.seq2seq import Seq2SeqModel

NODES = 5
"""Gradients per piece of the way, at the places and with the weights of Gauss and Legendre."""

BATCH_TOKENS = {"cpu": 1024, "cuda": 16_384}
SMALLEST = 0.01  # nats that count as nothing, where there is little to share out
TOLERANCE = {"float64": 1e-3, "float32": 1e-3, "float16": 0.05, "bfloat16": 0.3}

Scorer = Callable[..., Any]
"""The answer's log-probability, [rows], of texts fed as `input_ids` or as `inputs_embeds`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A text as a model is fed it; the prompt's own tokens stand at `places`."""

    ids: tuple[int, ...]
    places: tuple[int, ...]
    tokens: tuple[Token, ...]
    score: Scorer


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of the way, and what each fed token is given there; `error`: what is missing."""

    start: float
    stop: float
    weights: Any
    error: float


def attributor(model: Any) -> Attributor:
    """What attributes a model's answers; refuses a kind that nothing here can take apart."""
    if isinstance(model, CausalModel | Seq2SeqModel):
        return Attributor(model)
    raise AbilityError(
        f"{model.identity.name} fills masks; answers are attributed for causal and encoder-decoder "
        "models only"
    )


class Attributor:
    """Shares out an answer's log-probability among the tokens of its prompt."""

    def __init__(self, model: CausalModel | Seq2SeqModel) -> None:
        self.loaded: Loaded = model.loaded
        self.model = model.model
        self.read = causal(model) if isinstance(model, CausalModel) else seq2seq(model)
        device = model.loaded.device.split(":")[0]
        self.batch_tokens = model.loaded.options.batch_tokens or BATCH_TOKENS[device]

    def attribute(
        self,
        prefix: str,
        answer: str,
        *,
        turns: Sequence[int] = (),
        steps: int = 50,
        most: int = 1000,
        tolerance: float = 0.05,
    ) -> Attribution:
        """Share it out in at least `steps` steps, and in more until the error is small."""
        reading = self.read(prefix, answer, turns)
        if not reading.places:
            raise PromptError("there is no token before the answer to attribute it to")
        with frozen(self.model):
            way = Way(self.model, self.loaded, reading, self.batch_tokens)
            score, baseline = way.check(), way.at(0.0)
            bound = max(tolerance * abs(score - baseline), SMALLEST)
            pieces, taken = way.walk(steps, most, bound)
        weights = sum(piece.weights for piece in pieces)
        return Attribution(
            answer=answer,
            tokens=reading.tokens,
            weights=tuple(float(weights[i]) for i in reading.places),
            score=score,
            baseline=baseline,
            error=sum(piece.error for piece in pieces),
            steps=taken,
        )


class Way:
    """The straight line from a prompt that says nothing to the prompt itself."""

    def __init__(self, model: Any, loaded: Loaded, reading: Reading, batch_tokens: int) -> None:
        self.reading = reading
        self.loaded = loaded
        self.device, self.dtype = model.device, model.dtype
        self.rows = max(1, batch_tokens // len(reading.ids))
        embed = model.get_input_embeddings()
        with torch.no_grad():
            ids = torch.tensor([reading.ids], device=self.device)
            self.end = embed(ids).float()
            ids[0, list(reading.places)] = silent_token(loaded)
            self.begin = embed(ids).float()
        self.seen: dict[float, float] = {}
        self.gradients = IntegratedGradients(self.score)

    def score(self, embeds: Any) -> Any:
        """The answer's log-probability at some places on the way, [rows]."""
        return self.reading.score(inputs_embeds=embeds.to(self.dtype))

    def at(self, share: float) -> float:
        """The score after so much of the way."""
        self.look([share])
        return self.seen[share]

    def check(self) -> float:
        """The score at the end; refuses a model that answers embeddings otherwise than tokens."""
        with torch.no_grad():
            ids = torch.tensor([self.reading.ids], device=self.device)
            plain = float(self.reading.score(input_ids=ids)[0])
        if not abs(plain - self.at(1.0)) <= TOLERANCE[self.loaded.dtype]:
            raise ModelError(
                f"{self.loaded.name} gives the answer {plain:.4f} nats for tokens and "
                f"{self.at(1.0):.4f} for their embeddings, so it cannot be attributed"
            )
        return plain

    def walk(self, steps: int, most: int, bound: float) -> tuple[list[Piece], int]:
        """Pieces whose errors sum to at most the bound, if `most` steps are enough for that."""
        count = max(1, round(steps / NODES))
        pieces = self.pieces(list(pairwise(i / count for i in range(count + 1))))
        taken = count * NODES
        while sum(piece.error for piece in pieces) > bound and taken < most:
            pieces.sort(key=lambda piece: -piece.error)
            bad = [p for p in pieces if p.error > bound / len(pieces)]
            bad = (bad or pieces)[: max(1, self.rows // (2 * NODES))]
            halves = [half for piece in bad for half in halved(piece)]
            pieces = [*pieces[len(bad) :], *self.pieces(halves)]
            taken += len(halves) * NODES
        return pieces, taken

    def pieces(self, bounds: Sequence[tuple[float, float]]) -> list[Piece]:
        """What the tokens are given over some parts of the way, many at once."""
        self.look([share for pair in bounds for share in pair])
        group = max(1, self.rows // NODES)
        found: list[Piece] = []
        while len(found) < len(bounds):
            some = bounds[len(found) : len(found) + group]
            try:
                found += self._pieces(some)
            except Exception as error:
                if not out_of_memory(error) or self.rows == 1:
                    raise
                self.rows //= 2
                group = max(1, self.rows // NODES)
        return found

    def _pieces(self, bounds: Sequence[tuple[float, float]]) -> list[Piece]:
        starts, stops = (self.points([pair[i] for pair in bounds]) for i in (0, 1))
        given = self.gradients.attribute(
            stops, starts, n_steps=NODES, internal_batch_size=max(self.rows, len(bounds))
        )
        weights = given.detach().sum(-1).double().cpu()
        return [
            Piece(
                start=a,
                stop=b,
                weights=row,
                error=abs(float(row.sum()) - (self.seen[b] - self.seen[a])),
            )
            for (a, b), row in zip(bounds, weights, strict=True)
        ]

    def points(self, shares: Sequence[float]) -> Any:
        """The embeddings after so much of the way each, [shares, fed, width]."""
        after = torch.tensor(shares, device=self.device, dtype=torch.float32)[:, None, None]
        return self.begin + after * (self.end - self.begin)

    @torch.no_grad()
    def look(self, shares: Sequence[float]) -> None:
        """Find the score after so much of the way each, where it is not known yet."""
        new = sorted({share for share in shares if share not in self.seen})
        for i in range(0, len(new), self.rows):
            some = new[i : i + self.rows]
            self.seen.update(zip(some, self.score(self.points(some)).tolist(), strict=True))


def halved(piece: Piece) -> Iterator[tuple[float, float]]:
    """Both halves of a part of the way."""
    middle = (piece.start + piece.stop) / 2
    yield piece.start, middle
    yield middle, piece.stop


def silent_token(loaded: Loaded) -> int:
    """The token that stands for nothing said: padding, or else the end of a text."""
    tokenizer = loaded.tokenizer
    for id in (tokenizer.pad_token_id, tokenizer.eos_token_id, tokenizer.unk_token_id):
        if id is not None and id < loaded.vocabulary:
            return int(id)
    raise ModelError(f"{loaded.name} has no token for padding or for the end of a text")


@contextmanager
def frozen(model: Any) -> Iterator[None]:
    """Keep torch from remembering what only gradients of parameters need."""
    wanted = [p for p in model.parameters() if p.requires_grad]
    for parameter in wanted:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in wanted:
            parameter.requires_grad_(True)


def causal(model: CausalModel) -> Callable[[str, str, Sequence[int]], Reading]:
    """How a left-to-right model reads prompt and answer: one text, its last token never fed."""

    def read(prefix: str, answer: str, turns: Sequence[int]) -> Reading:
        encoder, chat = model.encoder, model.chat
        text, stretches = chat.placed(prefix, turns) if chat else (prefix, [])
        (span,) = encoder.encode(text, [answer], "")
        ((ids, offsets),) = encoder.whole([text + shielded(answer, encoder.controls)])
        check_spans([span], model.loaded)
        opening = len(span.ids) - len(ids)
        targets = span.ids[span.start : span.stop]
        own = dict(enumerate(offsets[: span.start - opening], opening))
        own = within(own, stretches) if chat else own
        return Reading(
            ids=span.ids[: span.stop - 1],
            places=tuple(own),
            tokens=located(prefix, list(own.values())),
            score=scorer(model.model, targets, {}),
        )

    return read


def seq2seq(model: Seq2SeqModel) -> Callable[[str, str, Sequence[int]], Reading]:
    """How an encoder-decoder model does: it reads the prompt and is scored on the answer."""

    def read(prefix: str, answer: str, turns: Sequence[int]) -> Reading:
        encoder = model.encoder
        source, (target,) = encoder.source(prefix), encoder.targets([answer])
        check_text(max(len(source.ids), len(target) + 2), max(*source.ids, *target), model.loaded)
        offsets = encoder.tokenizer.encode(prefix.rstrip(" "), add_special_tokens=False).offsets
        opening = len(encoder.opens)
        written = (model.start, *source.opens, *target[:-1])
        fed = {"decoder_input_ids": torch.tensor([written], device=model.model.device)}
        return Reading(
            ids=source.ids,
            places=tuple(range(opening, opening + len(offsets))),
            tokens=located(prefix, offsets),
            score=scorer(model.model, target, fed),
        )

    return read


def within(
    offsets: dict[int, tuple[int, int]], stretches: Sequence[tuple[int, int, int]]
) -> dict[int, tuple[int, int]]:
    """The tokens that share a character with a stretch, and which characters of a text these are.

    >>> within({0: (0, 3), 1: (3, 6), 2: (6, 9)}, [(4, 10, 4)])
    {1: (10, 12), 2: (12, 14)}
    """
    return {
        place: (own + max(start - at, 0), own + min(stop - at, length))
        for place, (start, stop) in offsets.items()
        for at, own, length in stretches
        if start < at + length and stop > at
    }


def scorer(model: Any, targets: Sequence[int], more: dict[str, Any]) -> Scorer:
    """Sums the log-probabilities of the last so many tokens that a model is to predict."""
    wanted = torch.tensor([list(targets)], device=model.device)
    kept = len(targets)
    sparing = "logits_to_keep" in inspect.signature(model.forward).parameters
    keep = {"logits_to_keep": kept} if sparing else {}

    def score(**fed: Any) -> Any:
        rows = len(next(iter(fed.values())))
        beside = {name: tensor.expand(rows, -1) for name, tensor in more.items()}
        logits = model(**fed, **beside, **keep, use_cache=False).logits[:, -kept:].float()
        logps = logits.log_softmax(-1).gather(2, wanted.expand(rows, -1)[:, :, None])
        return logps.sum((1, 2))

    return score


def located(prefix: str, offsets: Sequence[tuple[int, int]]) -> tuple[Token, ...]:
    """Tokens with their characters; no character is in the text of two.

    >>> [token.text for token in located("aé b", [(0, 1), (1, 2), (1, 2), (2, 4)])]
    ['a', 'é', '', ' b']
    """
    found: list[Token] = []
    reached = 0
    for start, stop in offsets:
        found.append(Token(text=prefix[max(start, reached) : stop], start=start, stop=stop))
        reached = max(reached, stop)
    return tuple(found)
