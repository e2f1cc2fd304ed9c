"""AutoPrompt at work: the triggers of many relations searched side by side, and how they are kept.

Triggers are kept as ordinary text where every training fact is read as the same tokens under it;
where one is not, or a mask is left among them, as vectors of a soft prompt, which always are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from sonde.core.facts import ANSWER_SLOT, SUBJECT_SLOT
from sonde.core.texts import OPENS, marker
from sonde.engine.encode import literal
from sonde.models.torch.loading.device import onto
from sonde.models.torch.masked.answers import token_name
from sonde.models.torch.masked.model import MaskedModel
from sonde.models.torch.soft import SoftEmbedding
from sonde.optimise.losses import Judge, Losses
from sonde.optimise.making import Job, Made
from sonde.optimise.state import Keeper, groups
from sonde.optimise.texts import WORD, Draft, Trainable, rows_of, tokenised_otherwise
from sonde.optimise.training import (
    TOGETHER,
    Ended,
    Progress,
    Score,
    SoftPrompt,
    between,
    courses,
    embedded,
    side_by_side,
    with_soft_prompts,
)

if TYPE_CHECKING:
    from sonde.optimise.autoprompt import AutoPrompt

TOKENS = {"cpu": 4096, "cuda": 65536}
NEUTRAL = ("the", "a", "is", ",", ".")
"""What a causal model's triggers are at first: the first of these that is one token."""
NO_CANDIDATE = "no token of the model may be a trigger; try --form vectors"


def searched(method: AutoPrompt, job: Job) -> Iterator[Made]:
    """Search the triggers of every relation of a job, some at a time."""
    base: Any = job.model
    size = method.together or (len(job.tasks) if "cuda" in base.loaded.device else TOGETHER)
    allowed = candidates(base, text=method.form == "text")
    first = start_token(base, allowed)
    if first is None:
        for task in job.tasks:
            yield Made(relation=task.relation.id, counts=task.counts, problem=NO_CANDIDATE)
        return
    table = embedded(base.model, list(range(len(allowed))))
    vocabulary = Vocabulary(allowed, table, first)
    progress = Progress(total=len(job.tasks) * method.iterations, tell=job.tick)

    def search(
        model: Trainable, embedding: SoftEmbedding, drafts: Sequence[Draft]
    ) -> Iterator[Made]:
        triggers = Triggers(method, job, model, embedding, drafts, vocabulary)
        totals = [method.iterations] * len(drafts)
        keeper = Keeper(job.folder, triggers.state())
        for ended in side_by_side(triggers, totals, progress, batches=2, keeper=keeper):
            yield triggers.made(ended)

    for group in groups(job, size):
        vectors = np.repeat(table[[first]], method.triggers, 0)
        prompts = [
            SoftPrompt(task, between(task.relation.id, method.triggers), vectors) for task in group
        ]
        yield from with_soft_prompts(job, method.name, prompts, search)


class Vocabulary(NamedTuple):
    """Which tokens may be triggers, [vocabulary], their embeddings, and which one is at first."""

    allowed: np.ndarray
    table: np.ndarray
    first: int


def ranked(table: Any, grad: Any, allowed: Any, current: Any, count: int) -> Any:
    """The tokens that promise the smallest loss in a trigger's place, best first, [rows, count].

    `table` [vocabulary, width] are the embeddings, `grad` [rows, width] the gradient of the loss
    by the trigger's own, `allowed` [rows, vocabulary]; the token that is there is none of them,
    and stands where there are too few.
    """
    scores = (grad @ table.T).neg_().masked_fill_(~allowed, -torch.inf)
    scores.scatter_(1, current[:, None], -torch.inf)
    best = scores.topk(min(count, scores.shape[1]))
    return torch.where(best.values > -torch.inf, best.indices, current[:, None])


class Triggers:
    """The triggers of some relations, [relations, triggers], exchanged one at a time.

    `allowed` [relations, vocabulary] are the tokens that may be triggers: no right answer is.
    """

    def __init__(
        self,
        method: AutoPrompt,
        job: Job,
        model: Trainable,
        embedding: SoftEmbedding,
        drafts: Sequence[Draft],
        vocabulary: Vocabulary,
    ) -> None:
        self.method, self.seed, self.model, self.drafts = method, job.seed, model, drafts
        base: Any = job.model
        self.writer = Writer(base.loaded.backend)
        # the mask is no word: while it is there, the other triggers are looked at
        self.mask = vocabulary.first if isinstance(model, MaskedModel) else -1
        self.losses = Losses(model, embedding, Judge.of(model, drafts, whole=True), TOKENS)
        self.table = torch.from_numpy(vocabulary.table).to(model.model.device)
        self.train, self.dev = rows_of(drafts, "train"), rows_of(drafts, "dev")
        self.courses = courses(drafts, self.train, method.batch, job.seed)
        allowed = np.repeat(vocabulary.allowed[None], len(drafts), 0)
        for row, draft in zip(allowed, drafts, strict=True):
            row[[id for id in answer_tokens(draft) if id < len(row)]] = False
        self.allowed = torch.from_numpy(allowed).to(model.model.device)
        self.ids = np.full((len(drafts), method.triggers), vocabulary.first, dtype=np.int64)
        self.best = self.ids.copy()
        self.replaced = np.zeros(len(drafts), dtype=np.int64)
        self.broken = np.zeros(len(drafts), dtype=bool)

    def state(self) -> dict[str, Any]:
        """All that a step changes, in place."""
        parts = ("ids", "best", "replaced", "broken")
        return {name: torch.from_numpy(getattr(self, name)) for name in parts}

    def step(self, active: list[int], step: int) -> list[int]:
        """Try to replace one trigger of each relation; those where one was, or numbers broke."""
        batches = [self.courses[i].batch(2 * step) for i in active]
        grad = self.losses.gradient(self.train, batches, self.vectors().requires_grad_(True))
        places = [self._place(i, step) for i in active]
        rows, current = onto(grad.device, active), onto(grad.device, self.ids[active, places])
        slopes = grad[rows, onto(grad.device, places)]
        best = ranked(self.table, slopes, self.allowed[rows], current, self.method.candidates)
        tried = np.repeat(self.ids[active][:, None], 1 + best.shape[1], 1)
        tried[np.arange(len(active)), 1:, places] = best.cpu().numpy()
        losses = self._losses(tried, [self.courses[i].batch(2 * step + 1) for i in active])
        sound = torch.isfinite(slopes).all(1).cpu().numpy() & np.isfinite(losses[:, 0])
        self.broken[active] |= ~sound
        return [
            i for k, i in enumerate(active) if self.broken[i] or self._take(i, tried[k], losses[k])
        ]

    def _place(self, i: int, step: int) -> int:
        name = self.courses[i].name
        return Random(f"{self.seed}:{name}:{step}").randrange(self.ids.shape[1])

    def _take(self, i: int, tried: np.ndarray, losses: np.ndarray) -> bool:
        """Take the best of what was tried, if it is better than what is there, the first."""
        for k in np.argsort(losses, kind="stable"):
            if not losses[k] < losses[0]:
                return False
            if self._writable(tried[k].tolist()):
                self.ids[i] = tried[k]
                self.replaced[i] += 1
                return True
        return False

    def _writable(self, ids: list[int]) -> bool:
        if self.method.form == "vectors":
            return True
        return self.writer.text([id for id in ids if id != self.mask]) is not None

    def _losses(self, tried: np.ndarray, batches: list[np.ndarray]) -> np.ndarray:
        """The mean loss of each relation's batch under each of its tried triggers."""
        count = tried.shape[1]
        chosen = np.concatenate([np.tile(batch, count) for batch in batches])
        owner = np.concatenate(
            [np.repeat(k * count + np.arange(count), len(b)) for k, b in enumerate(batches)]
        )
        vectors = self.vectors(tried.reshape(-1, tried.shape[2]))
        losses = self.losses.measured(self.train, chosen, vectors, owner)[:, 0]
        sums = np.bincount(owner, losses, len(batches) * count).reshape(len(batches), count)
        return np.asarray(sums / np.array([[len(batch)] for batch in batches]))

    def vectors(self, ids: np.ndarray | None = None) -> Any:
        """The embeddings of triggers, those that are there unless others are given."""
        return self.table[onto(self.table.device, self.ids if ids is None else ids)]

    def scores(self, relations: list[int]) -> list[Score]:
        """What dev facts say of the triggers as they are."""
        return self.losses.scores(self.dev, relations, self.vectors(), self.broken)

    def keep(self, relation: int) -> None:
        """The triggers as they are."""
        self.best[relation] = self.ids[relation]

    def made(self, ended: Ended) -> Made:
        """What was made for a relation: a text, or else vectors."""
        draft, ids = self.drafts[ended.index], self.best[ended.index].tolist()
        text = self._text(draft, ids)
        template, vectors = draft.template, {}
        if text:
            template = replace(template, text=text)
        else:
            rows = self.vectors(self.best[ended.index]).cpu().numpy()
            relation = draft.task.relation.id
            vectors = {marker(relation, k + 1): row for k, row in enumerate(rows)}
        form = {"as_text": int(bool(text)), "as_vectors": int(not text)}
        counts = {**draft.counts, **form, "replaced": int(self.replaced[ended.index])}
        return ended.made(draft, templates=(template,), counts=counts, vectors=vectors)

    def _text(self, draft: Draft, ids: list[int]) -> str:
        """The template as text, nothing where some fact would be read as other tokens."""
        written = self.writer.text(ids)
        if self.method.form == "vectors" or self.mask in ids or written is None:
            return ""
        template = replace(draft.template, text=f"{SUBJECT_SLOT}{written} {ANSWER_SLOT} .")
        tokens = dict(zip(draft.ids, ids, strict=True))
        if tokenised_otherwise(self.model, draft.task, draft.template, tokens, template):
            return ""
        return template.text


def answer_tokens(draft: Draft) -> set[int]:
    """The tokens of every right answer."""
    texts = draft.train + draft.dev
    return {id for text in texts for right in text.golds[: text.answer] for id in right}


class Writer:
    """Writes tokens as words behind a subject, where they are read back as the same tokens."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = literal(tokenizer)
        self.before = self.tokenizer.encode(WORD, add_special_tokens=False).ids

    def text(self, ids: Sequence[int]) -> str | None:
        """The tokens as text, a space before each; None where that is read otherwise."""
        return self.texts([ids])[0]

    def texts(self, sequences: Sequence[Sequence[int]]) -> list[str | None]:
        """What `text` gives for each of many sequences."""
        written = ["".join(f" {self._word(id)}" for id in ids) for ids in sequences]
        encodings = self.tokenizer.encode_batch(
            [WORD + text for text in written], add_special_tokens=False
        )
        return [
            text if encoding.ids == [*self.before, *ids] and plain(text) else None
            for ids, text, encoding in zip(sequences, written, encodings, strict=True)
        ]

    def _word(self, id: int) -> str:
        return str(self.tokenizer.decode([id], skip_special_tokens=False)).strip()


def plain(text: str) -> bool:
    """Whether a text means nothing else in a template."""
    return not any(mark in text for mark in (SUBJECT_SLOT, ANSWER_SLOT, OPENS))


def candidates(model: Any, *, text: bool) -> np.ndarray:
    """Which tokens may be triggers, [vocabulary]: neither special nor capitalised.

    `text`: only those that are read back as they are when they are written as a word.
    """
    loaded = model.loaded
    rows = len(loaded.model.get_input_embeddings().weight)
    added = loaded.backend.get_added_tokens_decoder()
    special = {id for id, token in added.items() if token.special}
    special |= set(loaded.tokenizer.all_special_ids)
    ids = [
        id
        for id in loaded.answerable
        if id < rows and id not in special and not capitalised(token_name(loaded, id))
    ]
    if text:
        written = Writer(loaded.backend).texts([(id,) for id in ids])
        ids = [id for id, word in zip(ids, written, strict=True) if word is not None]
    allowed = np.zeros(rows, dtype=bool)
    allowed[ids] = True
    return allowed


def capitalised(token: str) -> bool:
    """Whether a token's first letter is a capital.

    >>> capitalised("Paris"), capitalised("##ing"), capitalised("(The")
    (True, False, True)
    """
    return next((c for c in token if c.isalpha()), "").isupper()


def start_token(model: Any, allowed: np.ndarray) -> int | None:
    """What every trigger is at first: the mask, or a word that says little; None if none is."""
    if isinstance(model, MaskedModel):
        return model.encoder.mask_id
    tokenizer = literal(model.loaded.backend)
    before = tokenizer.encode(WORD, add_special_tokens=False).ids
    for word in NEUTRAL:
        ids = tokenizer.encode(f"{WORD} {word}", add_special_tokens=False).ids[len(before) :]
        if len(ids) == 1 and allowed[ids[0]]:
            return int(ids[0])
    return int(allowed.argmax()) if allowed.any() else None
