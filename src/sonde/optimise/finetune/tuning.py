"""Fine-tuning at work: a copy of the model for each of some relations, trained side by side.

The model itself is left as it is, and in evaluation mode: nothing is dropped out. A weight of R
copies is one tensor with R rows; several copies go through the model together where that gives what
each gives alone, which is tried and not assumed. How each weight changed at best is kept in a file
a relation.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import save
from torch.func import functional_call, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from sonde.core.files import write_whole
from sonde.core.texts import markers
from sonde.models.torch.loading.device import onto, steady_attention
from sonde.models.torch.loading.weights import DTYPES, out_of_memory
from sonde.models.torch.masked.logits import kept_logits
from sonde.models.torch.masked.model import MaskedModel
from sonde.models.torch.recorded import Recorded
from sonde.optimise.losses import Judge, frozen, mean_score, narrows, pads, uncached
from sonde.optimise.making import Job, Made
from sonde.optimise.texts import Draft, Rows, Trainable, draft, rows_of
from sonde.optimise.training import Adam, Progress, Schedule, Score, courses, side_by_side

if TYPE_CHECKING:
    from sonde.optimise.finetune import FineTune

log = logging.getLogger("sonde")

WEIGHTS = "weights"
COPIES = 8  # of the weights that a relation takes while it is trained: moments, gradient, best …
STRIDE = 8  # tokens by which texts that are trained on side by side may grow: few shapes to record
LOOK = 64  # dev facts of a relation in one pass
NO_TEXT = "it has no template of plain words to train with"

Weights = dict[str, Any]
"""Weights by name, [copies, …] each, in float32."""


def tuned(method: FineTune, job: Job) -> Iterator[Made]:
    """Fine-tune for every relation of a job, some at a time."""
    drafts = []
    for task in job.tasks:
        templates = task.relation.templates
        if not templates or markers(templates[0].text):
            yield Made(relation=task.relation.id, counts=task.counts, problem=NO_TEXT)
            continue
        written = draft(job.model, task, templates[0], job.vocabulary)
        if written.train:
            drafts.append(written)
        else:
            yield written.nothing_left()
    if drafts:
        yield from in_groups(method, job, drafts)


def in_groups(method: FineTune, job: Job, drafts: Sequence[Draft]) -> Iterator[Made]:
    """Train so many relations at once as the device holds; half of them where memory runs out."""
    model: Any = job.model
    steps = (-(-len(draft.train) // method.batch) * method.epochs for draft in drafts)
    progress = Progress(total=sum(steps), tell=job.tick)
    waiting = dict(enumerate(drafts))
    with frozen(model.model):
        stacked = Stacked(model, narrow=narrows(model))
        size = group_size(method, stacked, len(drafts))
        tell_size(method, model.model, len(drafts))
        while waiting:
            group = list(waiting)[:size]
            try:
                drafted = [waiting[i] for i in group]
                for index, made in in_one(method, job, stacked, drafted, progress, size > 1):
                    del waiting[group[index]]
                    yield made
            except Exception as error:
                if size == 1 or not out_of_memory(error):
                    raise
                size = max(sum(i in waiting for i in group) // 2, 1)
                log.warning("memory ran out; %d at once of the relations that are left", size)


def in_one(
    method: FineTune,
    job: Job,
    stacked: Stacked,
    drafts: Sequence[Draft],
    progress: Progress,
    together: bool,
) -> Iterator[tuple[int, Made]]:
    """Train a group: each relation's place and what was made, as soon as it is."""
    copies = Copies(method, job, stacked, drafts, together)
    totals = [course.each * method.epochs for course in copies.courses]
    for ended in side_by_side(copies, totals, progress, patience=method.patience):
        tuned = drafts[ended.index]
        bytes = keep_weights(method, job, tuned, copies.change(ended.index))
        yield ended.index, ended.made(tuned, counts={**tuned.counts, "weights_bytes": bytes})


def group_size(method: FineTune, stacked: Stacked, count: int) -> int:
    """How many relations are trained at once."""
    wanted = method.together or (count if stacked.device.type == "cuda" else 1)
    if wanted > 1 and not stacked.stacks():
        log.info("this model takes one set of weights at a time; relations train one by one")
        return 1
    if stacked.device.type == "cuda" and not method.together:
        free, _ = torch.cuda.mem_get_info(stacked.device)
        each = COPIES * sum(4 * p.numel() for p in stacked.model.parameters())
        wanted = min(wanted, int(0.7 * free / each))
    return max(wanted, 1)


def tell_size(method: FineTune, model: Any, count: int) -> None:
    """Say how much room the weights will take."""
    if method.keep != "nothing":
        bytes = DTYPES[method.keep].itemsize * sum(p.numel() for p in model.parameters())
        log.info(
            "weights take %.1f MB a relation, %.2f GB in all", bytes / 1e6, count * bytes / 1e9
        )


def keep_weights(method: FineTune, job: Job, draft: Draft, change: Weights) -> int:
    """Write how each weight changed, and say how many bytes that took."""
    if method.keep == "nothing":
        return 0
    dtype = DTYPES[method.keep]
    content = save({name: part.to(dtype).cpu().contiguous() for name, part in change.items()})
    (job.folder / WEIGHTS).mkdir(exist_ok=True)
    write_whole(job.folder / WEIGHTS / f"{draft.task.relation.id}.safetensors", content)
    return len(content)


class Copies:
    """A copy of a model's weights for each of some relations; `active` are those still trained.

    `together`: copies go through the model in one pass, and a GPU records the whole step.
    """

    def __init__(
        self, method: FineTune, job: Job, stacked: Stacked, drafts: Sequence[Draft], together: bool
    ) -> None:
        model: Any = job.model
        self.stacked, self.together = stacked, together
        self.schedule = Schedule(method.epochs, method.rate, method.warmup, method.checks)
        self.judge = Judge.of(model, drafts, whole=method.softmax == "model")
        self.train, self.dev = rows_of(drafts, "train"), rows_of(drafts, "dev")
        self.texts = Texts.of(self.train, self.judge, stacked.device)
        self.courses = courses(drafts, self.train, method.batch, job.seed)
        self.active = list(range(len(drafts)))
        self.weights = stacked.copies(len(drafts))
        self.best = {name: weight.clone() for name, weight in self.weights.items()}
        self.adam = Adam(list(self.weights.values()), method.decay)
        self.broken = torch.zeros(len(drafts), dtype=torch.bool, device=stacked.device)
        self.moved = Recorded(stacked.device)

    def step(self, active: list[int], step: int) -> list[int]:
        """One step of AdamW for each relation, on a batch of its own facts."""
        self._go_on_with(active)
        chosen, shares = filled_up([self.courses[i].batch(step) for i in active])
        rates = [self.schedule.rate_at(self.courses[i], step) for i in active]
        device = self.stacked.device
        parts, paces = (onto(device, np.array(v, dtype=np.float32)) for v in (shares, rates))
        if self.together:
            width = -(-int(self.train.lengths[chosen].max()) // STRIDE) * STRIDE
            count = torch.full((), step + 1.0, device=device)
            texts = self.texts.take(onto(device, chosen), width)
            self.moved(self._move, self._state, *texts, parts, paces, count)
        else:
            grads = self._grads(lambda: self._judged(self.weights, self.train, chosen)[0], parts)
            self.adam.step(list(self.weights.values()), grads, paces, step + 1)
        return [i for i in active if self.schedule.is_due(self.courses[i], step + 1)]

    def _move(self, *given: Any) -> None:
        """The step of all copies: their texts and what each weighs, rates, and which step it is."""
        *texts, shares, rates, count = given
        losses = partial(self.stacked.losses, self.weights, Texts(*texts), self.judge)
        grads = self._grads(losses, shares)
        self.adam.fused(list(self.weights.values()), grads, rates, count)

    def _state(self) -> Sequence[Sequence[Any]]:
        """All that a step changes."""
        adam = self.adam
        return list(self.weights.values()), adam.means, adam.squares, [self.broken]

    def _grads(self, losses: Callable[[], Any], shares: Any) -> Sequence[Any]:
        """The gradient of each copy's loss, its texts weighed by `shares`, by each weight."""
        weights = list(self.weights.values())
        for weight in weights:
            weight.requires_grad_(True)
        each = (losses() * shares).sum(1)
        grads = torch.autograd.grad(each.sum(), weights, allow_unused=True, materialize_grads=True)
        for weight in weights:
            weight.requires_grad_(False)
        self.broken |= ~torch.isfinite(each)
        return grads

    def _judged(self, weights: Weights, rows: Rows, chosen: np.ndarray) -> tuple[Any, Any]:
        """Loss and hit of each text chosen[copy, i], [copies, texts] both."""
        texts = chosen.reshape(-1)
        text, place = np.nonzero(rows.places[texts] >= 0)
        logits = self.stacked.logits(weights, rows, chosen).flatten(0, 1)
        read = logits[onto(logits.device, text), onto(logits.device, place)]
        loss, hit = self.judge.texts(read, rows, texts, (text, place))
        return loss.reshape(chosen.shape), hit.reshape(chosen.shape)

    @torch.no_grad()
    def scores(self, relations: list[int]) -> list[Score]:
        """What dev facts say of the weights as they are."""
        rows = {i: np.flatnonzero(self.dev.relation == i) for i in relations}
        values = {i: [np.zeros((0, 2))] for i in relations}
        for start in range(0, max(map(len, rows.values())), LOOK):
            parts = {i: own[start : start + LOOK] for i, own in rows.items() if len(own) > start}
            chosen, _ = filled_up(list(parts.values()))
            loss, hit = self._judged(self._weights_of(list(parts)), self.dev, chosen)
            both = torch.stack((loss, hit), 2).cpu().numpy().astype(np.float64)
            for (i, part), found in zip(parts.items(), both, strict=True):
                values[i].append(found[: len(part)])
        broken = dict(zip(self.active, self.broken.tolist(), strict=True))
        return [mean_score(np.concatenate(values[i]), broken[i]) for i in relations]

    def _weights_of(self, relations: list[int]) -> Weights:
        if relations == self.active:
            return self.weights
        rows = [self.active.index(i) for i in relations]
        return {name: weight[rows] for name, weight in self.weights.items()}

    def keep(self, relation: int) -> None:
        """The weights as they are."""
        row = self.active.index(relation)
        for name, weight in self.weights.items():
            self.best[name][row] = weight[row]

    def change(self, relation: int) -> Weights:
        """How each weight of a relation changed at best."""
        row = self.active.index(relation)
        start = dict(self.stacked.model.named_parameters())
        return {n: weight[row] - start[n].detach().float() for n, weight in self.best.items()}

    def _go_on_with(self, active: list[int]) -> None:
        """Free the copies of relations that have ended."""
        if active == self.active:
            return
        rows = [self.active.index(i) for i in active]
        self.weights = {name: weight[rows] for name, weight in self.weights.items()}
        self.best = {name: weight[rows] for name, weight in self.best.items()}
        self.adam.keep(rows)
        self.broken, self.active = self.broken[rows], active
        self.moved.forget()


class Texts(NamedTuple):
    """Texts as tensors on a device, as `Rows` has them; `sets` say which answers are allowed."""

    ids: Any
    lengths: Any
    places: Any
    golds: Any
    sets: Any

    @classmethod
    def of(cls, rows: Rows, judge: Judge, device: Any) -> Texts:
        """Every row; a place that is not there has some token as its answer."""
        ids = np.pad(rows.ids, ((0, 0), (0, -rows.ids.shape[1] % STRIDE)))
        golds = np.where(rows.places[..., None] < 0, 0, rows.golds)
        arrays = (ids, rows.lengths, rows.places, golds, judge.sets[rows.relation])
        return cls(*(onto(device, array) for array in arrays))

    def take(self, chosen: Any, width: int) -> Texts:
        """Texts chosen[…], cut to so many tokens."""
        ids, *others = (part[chosen] for part in self)
        return Texts(ids[..., :width], *others)


class Stacked:
    """Runs copies of a model. `narrow`: the head may be applied where logits are read alone."""

    def __init__(self, model: Trainable, *, narrow: bool) -> None:
        self.model = model.model
        self.device = model.model.device
        self.narrow = narrow
        self.causal = not isinstance(model, MaskedModel)
        self.pads, self.uncached = pads(model), uncached(model)

    def copies(self, count: int) -> Weights:
        """So many copies of the model's own weights."""
        return {
            name: parameter.detach().float().expand(count, *parameter.shape).clone()
            for name, parameter in self.model.named_parameters()
        }

    def logits(self, weights: Mapping[str, Any], rows: Rows, chosen: np.ndarray) -> Any:
        """Logits of texts chosen[copy, i] at the places that are read, [copies, texts, places, …].

        Places that a text does not have hold numbers without meaning.
        """
        lengths = rows.lengths[chosen]
        width = int(lengths.max())
        ids = onto(self.device, rows.ids[chosen][..., :width])
        places = onto(self.device, np.maximum(rows.places[chosen], 0))
        kept = np.arange(width) < lengths[..., None]
        if len(chosen) > 1:
            return self._together(weights, ids, onto(self.device, kept), places)
        single = {name: weight[0] for name, weight in weights.items()}
        if self.pads or lengths.min() == width:
            return self._alone(single, ids[0], kept[0], places[0])[None]
        parts = [
            self._alone(single, ids[0, i : i + 1, :n], kept[0, i : i + 1, :n], places[0, i : i + 1])
            for i, n in enumerate(lengths[0].tolist())
        ]
        return torch.cat(parts)[None]

    def losses(self, weights: Mapping[str, Any], texts: Texts, judge: Judge) -> Any:
        """The loss of each text, [copies, texts], with all copies in one pass."""
        kept = torch.arange(texts.ids.shape[-1], device=self.device) < texts.lengths[..., None]
        logits = self._together(weights, texts.ids, kept, texts.places.clamp(min=0))
        sets = texts.sets[..., None].expand_as(texts.places)
        loss, _ = judge.places(logits.flatten(0, 2), texts.golds.flatten(0, 2), sets.flatten())
        return loss.view(texts.places.shape).masked_fill(texts.places < 0, 0.0).sum(-1)

    def _alone(self, weights: Weights, ids: Any, kept: np.ndarray, places: Any) -> Any:
        inputs: dict[str, Any] = {"input_ids": ids}
        if not kept.all():
            inputs["attention_mask"] = onto(self.device, kept.astype(np.int64))
        with steady_attention(self.model):
            return self._run(weights, inputs, places)

    def _together(self, weights: Mapping[str, Any], ids: Any, kept: Any, places: Any) -> Any:
        seen = kept[..., None, :]
        if self.causal:
            width = kept.shape[-1]
            seen = seen & torch.ones(width, width, dtype=torch.bool, device=self.device).tril()
        mask = torch.zeros(seen.shape, device=self.device)
        mask = mask.masked_fill_(~seen, torch.finfo(torch.float32).min)[:, :, None]

        def run(weights: Weights, ids: Any, mask: Any, places: Any) -> Any:
            return self._run(weights, {"input_ids": ids, "attention_mask": mask}, places)

        with sdpa_kernel([SDPBackend.MATH]):  # the others would take the copies one by one
            return vmap(run)(dict(weights), ids, mask, places)

    def _run(self, weights: Weights, inputs: dict[str, Any], places: Any) -> Any:
        rows = torch.arange(len(inputs["input_ids"]), device=self.device)[:, None]

        def run(**inputs: Any) -> Any:
            return functional_call(self.model, weights, (), inputs)

        inputs = {**inputs, **self.uncached}
        keep = itemgetter((rows, places))
        return kept_logits(self.model, inputs, keep, narrow=self.narrow, run=run)

    @torch.no_grad()
    def stacks(self) -> bool:
        """Whether copies may go through the model together; tried, not assumed."""
        if not self.pads:
            return False
        rows = trial(int(self.model.config.get_text_config().vocab_size))
        chosen = np.array([[0, 1], [1, 0]])
        weights = self.copies(2)
        try:
            together = self.logits(weights, rows, chosen)
        except Exception:  # architectures refuse in their own ways
            log.debug("copies do not go through the model together", exc_info=True)
            return False
        single = {name: weight[:1] for name, weight in weights.items()}
        alone = torch.cat([self.logits(single, rows, chosen[i : i + 1]) for i in (0, 1)])
        return bool((together - alone).abs().max() < 1e-3 * max(1.0, float(alone.abs().max())))


def trial(size: int) -> Rows:
    """Two short texts of unequal length."""
    return Rows(
        ids=np.array([[5, 6, 7, 8], [9, 5, 0, 0]]) % size,
        lengths=np.array([4, 2]),
        vectors=np.zeros((2, 0), dtype=np.int64),
        places=np.array([[2], [1]]),
        golds=np.zeros((2, 1, 1), dtype=np.int64),
        answer=np.ones(2, dtype=np.int64),
        relation=np.zeros(2, dtype=np.int64),
    )


def filled_up(batches: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Batches as rows of equal length, and what each text weighs: those that fill up nothing.

    >>> filled_up([np.array([4, 5]), np.array([7])])[1].tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    width = max(map(len, batches))
    chosen = np.array([[*batch, *[batch[0]] * (width - len(batch))] for batch in batches])
    shares = np.array([[1 / len(b)] * len(b) + [0.0] * (width - len(b)) for b in batches])
    return chosen, shares
