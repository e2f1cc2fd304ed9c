"""OptiPrompt at work: the vectors that prompts begin with, and their training side by side.

A prompt begins with a few random vectors between subject and answer, or with one for each token of
a sentence that people wrote, in its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from sonde.core.facts import ANSWER_SLOT, SUBJECT_SLOT
from sonde.core.texts import marker
from sonde.engine.encode import literal
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.masked.model import MaskedModel
from sonde.models.torch.soft import SoftEmbedding
from sonde.optimise.losses import Judge, Losses
from sonde.optimise.making import Job, Made, Task
from sonde.optimise.state import Keeper, groups
from sonde.optimise.texts import WORD, Draft, Trainable, rows_of
from sonde.optimise.training import (
    TOGETHER,
    Adam,
    Progress,
    Schedule,
    Score,
    SoftPrompt,
    between,
    courses,
    embedded,
    side_by_side,
    with_soft_prompts,
)

if TYPE_CHECKING:
    from sonde.optimise.optiprompt import OptiPrompt

TOKENS = {"cpu": 4096, "cuda": 32768}


def trained(method: OptiPrompt, job: Job) -> Iterator[Made]:
    """Train every relation of a job, some at a time."""
    base: Any = job.model
    cuda = base.loaded.device.startswith("cuda")
    size = method.together or (len(job.tasks) if cuda else TOGETHER)
    steps = (-(-len(task.train) // method.batch) * method.epochs for task in job.tasks)
    progress = Progress(total=sum(steps), tell=job.tick)

    def train(
        model: Trainable, embedding: SoftEmbedding, drafts: Sequence[Draft]
    ) -> Iterator[Made]:
        vectors = Vectors(method, job, model, embedding, drafts)
        totals = [course.each * method.epochs for course in vectors.courses]
        patience, keeper = method.patience, Keeper(job.folder, vectors.state())
        for ended in side_by_side(vectors, totals, progress, patience=patience, keeper=keeper):
            draft = drafts[ended.index]
            yield ended.made(draft, vectors=vectors.named(ended.index, draft))

    for group in groups(job, size):
        prompts = []
        for task in group:
            prompt = prompt_of(method, base, task, job.seed)
            if isinstance(prompt, str):
                yield Made(relation=task.relation.id, counts=task.counts, problem=prompt)
            else:
                prompts.append(prompt)
        yield from with_soft_prompts(job, method.name, prompts, train)


def prompt_of(method: OptiPrompt, base: Any, task: Task, seed: int) -> SoftPrompt | str:
    """How a relation's prompt begins, or why it cannot."""
    if method.start == "random":
        return random_form(base, task, method.vectors, seed)
    if not task.relation.templates:
        return "it has no template to begin with"
    prompt = manual_form(base, task)
    if not len(prompt.vectors):
        return "its template has no word that could become a vector (causal: before the answer)"
    return prompt


def random_form(model: Trainable, task: Task, count: int, seed: int) -> SoftPrompt:
    """`count` random vectors between subject and answer, drawn for this relation alone."""
    relation = task.relation.id
    draws = np.random.default_rng(Random(f"{seed}:{relation}").getrandbits(64))
    width = int(model.model.get_input_embeddings().weight.shape[1])
    vectors = draws.normal(0.0, spread(model.model), (count, width))
    return SoftPrompt(task, between(relation, count), vectors.astype(np.float32))


def spread(model: Any) -> float:
    """The standard deviation that a model's embeddings were initialised with."""
    config = model.config.get_text_config()
    for name in ("initializer_range", "init_std"):
        if isinstance(getattr(config, name, None), float):
            return float(getattr(config, name))
    return 0.02


def manual_form(model: Trainable, task: Task) -> SoftPrompt:
    """A vector for each token of the first template, in its place; slots stay where they are.

    A space before a slot belongs to what fills the slot. A causal model predicts what follows the
    answer, so there the sentence stays as it is.
    """
    text, regions, slots = laid_out(model, task.relation.templates[0].text)
    tokenizer = literal(model.loaded.backend)
    tokenizer.encode_special_tokens = False  # the mask is one token
    encoding = tokenizer.encode(text, add_special_tokens=False)
    words = [
        (a, b, id)
        for id, (a, b) in zip(encoding.ids, encoding.offsets, strict=True)
        if any(start <= a and b <= stop and a < stop for start, stop in regions)
    ]
    places = {(a, b): [id for x, y, id in words if (x, y) == (a, b)] for a, b, _ in words}
    written, ids, at = "", [], 0
    for (a, b), tokens in sorted(places.items()):
        written += _slotted(text, at, a, slots)
        for token in tokens:
            ids.append(token)
            written += marker(task.relation.id, len(ids))
        at = max(at, b)  # tokens may share a character
    written += _slotted(text, at, len(text), slots)
    return SoftPrompt(task, written, embedded(model.model, ids), ids)


def laid_out(
    model: Trainable, text: str
) -> tuple[str, list[tuple[int, int]], list[tuple[int, int, str]]]:
    """A sentence with words in its slots: its text, the ranges that may become vectors, the slots.

    Slots are (start, stop, name) in the text.
    """
    filler = {SUBJECT_SLOT: WORD, ANSWER_SLOT: WORD}
    if isinstance(model, MaskedModel):
        filler[ANSWER_SLOT] = model.encoder.mask
    laid, at, answered = "", 0, False
    regions: list[tuple[int, int]] = []
    slots: list[tuple[int, int, str]] = []
    for place, slot in sorted((text.index(slot), slot) for slot in filler):
        piece = text[at:place]
        if not answered:
            regions.append((len(laid), len(laid) + len(piece.rstrip())))
        laid += piece
        slots.append((len(laid), len(laid) + len(filler[slot]), slot))
        laid += filler[slot]
        at = place + len(slot)
        answered = answered or (slot == ANSWER_SLOT and isinstance(model, CausalModel))
    if not answered:
        regions.append((len(laid), len(laid) + len(text[at:])))
    return laid + text[at:], regions, slots


def _slotted(text: str, start: int, stop: int, slots: list[tuple[int, int, str]]) -> str:
    """A part of a laid-out text with its slots written as slots again."""
    written, at = "", start
    for a, b, slot in slots:
        if start <= a and b <= stop:
            written += text[at:a] + slot
            at = b
    return written + text[at:stop]


class Vectors:
    """The vectors of some relations, [relations, vectors, width], trained by Adam."""

    def __init__(
        self,
        method: OptiPrompt,
        job: Job,
        model: Trainable,
        embedding: SoftEmbedding,
        drafts: Sequence[Draft],
    ) -> None:
        self.schedule = Schedule(method.epochs, method.rate, method.warmup, method.checks)
        judge = Judge.of(model, drafts, whole=method.softmax == "model")
        self.losses = Losses(model, embedding, judge, TOKENS)
        self.train, self.dev = rows_of(drafts, "train"), rows_of(drafts, "dev")
        self.courses = courses(drafts, self.train, method.batch, job.seed)
        width = max(len(draft.ids) for draft in drafts)
        first = embedding.ids.start
        start = torch.zeros(len(drafts), width, embedding.vectors.shape[1])
        for i, draft in enumerate(drafts):
            rows = slice(draft.ids.start - first, draft.ids.stop - first)
            start[i, : len(draft.ids)] = embedding.vectors[rows]
        self.vectors = start.to(model.model.device).requires_grad_(True)
        self.best = self.vectors.detach().clone()
        self.adam = Adam([self.vectors])

    def state(self) -> dict[str, Any]:
        """All that a step changes, in place."""
        means, squares = self.adam.means[0], self.adam.squares[0]
        return {"vectors": self.vectors, "best": self.best, "means": means, "squares": squares}

    def step(self, active: list[int], step: int) -> list[int]:
        """One step of Adam for each relation, on a batch of its own facts."""
        batches = [self.courses[i].batch(step) for i in active]
        grad = self.losses.gradient(self.train, batches, self.vectors)
        rates = torch.zeros(len(self.courses))
        rates[active] = torch.tensor([self.schedule.rate_at(self.courses[i], step) for i in active])
        self.adam.step([self.vectors], [grad], rates.to(grad.device), step + 1)
        return [i for i in active if self.schedule.is_due(self.courses[i], step + 1)]

    def scores(self, relations: list[int]) -> list[Score]:
        """What dev facts say of the vectors as they are."""
        vectors = self.vectors.detach()
        broken = ~torch.isfinite(vectors).flatten(1).all(1).cpu().numpy()
        return self.losses.scores(self.dev, relations, vectors, broken)

    def keep(self, relation: int) -> None:
        """The vectors as they are."""
        self.best[relation] = self.vectors[relation].detach()

    def named(self, relation: int, draft: Draft) -> dict[str, np.ndarray]:
        """The best vectors of a relation by marker."""
        kept = self.best[relation].float().cpu().numpy()
        name = draft.task.relation.id
        return {marker(name, k + 1): kept[k] for k in range(len(draft.ids))}
