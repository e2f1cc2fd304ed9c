"""Put the parts of AutoPrompt together: texts, candidates, the search, and how the result is kept.

Triggers are kept as ordinary text where every training fact is read as the same tokens under it;
where one is not, or a mask is left among them, as vectors of a soft prompt, which always are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

from sonde.core.facts import ANSWER_SLOT, SUBJECT_SLOT, Template
from sonde.core.markers import marker
from sonde.engine.batching import Budget
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.loading.weights import out_of_memory
from sonde.models.torch.masked.model import MaskedModel
from sonde.models.torch.wrappers.soft import SoftEmbedding, rebuilt, softened
from sonde.optimise.autoprompt.search import Found, Quest, Search
from sonde.optimise.autoprompt.triggers import Writer, candidates, start_token, without
from sonde.optimise.facts import Task
from sonde.optimise.making import Job, Made
from sonde.optimise.shared.drafts import TOGETHER, Draft, bias_of, nothing_left, prompt_ids
from sonde.optimise.shared.forms import Form, _embedded
from sonde.optimise.shared.losses import Losses, frozen
from sonde.optimise.shared.texts import Text, rows_of, texts_of

if TYPE_CHECKING:
    from sonde.optimise.autoprompt.method import AutoPrompt

TOKENS = {"cpu": 4096, "cuda": 65536}


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
    done, total = 0, len(job.tasks) * method.iterations

    def tick(steps: int, how: str) -> None:
        nonlocal done
        done += steps
        job.tick(done, total, how)

    for i in range(0, len(job.tasks), size):
        group = Group(method, job, job.tasks[i : i + size], allowed, first)
        yield from group.searched(tick)


NO_CANDIDATE = "no token of the model may be a trigger; try --form vectors"


class Group:
    """Some relations that are searched side by side, on the model with vectors in it."""

    def __init__(
        self,
        method: AutoPrompt,
        job: Job,
        tasks: Sequence[Task],
        allowed: np.ndarray,
        first: int,
    ) -> None:
        self.method, self.job, self.tasks = method, job, tasks
        self.base = cast(Any, job.model)
        self.allowed, self.first = allowed, first
        self.writer = Writer(self.base.loaded.backend)
        # the mask is no word: while it is there, the other triggers are looked at
        self.start = first if isinstance(self.base, MaskedModel) else -1

    def searched(self, tick: Any) -> Iterator[Made]:
        """Search, and give what was made."""
        count = self.method.triggers
        markers = [marker(t.relation.id, k + 1) for t in self.tasks for k in range(count)]
        table = torch.from_numpy(_embedded(self.base.model, list(range(len(self.allowed)))))
        vectors = table[self.first].expand(len(markers), -1)
        loaded, embedding = softened(self.base.loaded, markers, vectors, name="soft", weights="")
        try:
            model = rebuilt(self.base, loaded)
            drafts = [self._draft(model, i, task) for i, task in enumerate(self.tasks)]
            yield from (nothing_left(draft) for draft in drafts if not draft.train.texts)
            ready = [draft for draft in drafts if draft.train.texts]
            if not ready:
                return
            with frozen(model.model):
                for found in self._search(model, embedding, table, ready, tick).run():
                    yield self._made(model, ready[found.index], found, table)
        finally:
            embedding.remove()

    def _draft(self, model: CausalModel | MaskedModel, i: int, task: Task) -> Draft:
        """A relation's prompt with the texts of its facts."""
        count = self.method.triggers
        relation = task.relation.id
        id = f"{relation}-{self.method.name}"
        text = "".join(marker(relation, k + 1) for k in range(count))
        template = Template(
            id=id, text=f"{SUBJECT_SLOT}{text} {ANSWER_SLOT} .", source="optimised", group=id
        )
        first = model.loaded.vectors.start + i * count
        return Draft(
            task=task,
            form=Form(text=template.text, vectors=np.zeros((count, 0), dtype=np.float32)),
            template=template,
            train=texts_of(model, template, task.train, self.job.vocabulary),
            dev=texts_of(model, template, task.dev, self.job.vocabulary),
            ids=range(first, first + count),
            otherwise=0,
        )

    def _search(
        self,
        model: CausalModel | MaskedModel,
        embedding: SoftEmbedding,
        table: Any,
        drafts: Sequence[Draft],
        tick: Any,
    ) -> Search:
        method, device = self.method, model.model.device
        sets = list(dict.fromkeys(draft.train.allowed for draft in drafts))
        which = np.array([sets.index(draft.train.allowed) for draft in drafts])
        bias = bias_of(sets, model.loaded.rows, device)
        ids = [draft.ids for draft in drafts]
        allowed = [without(self.allowed, golds(d.train.texts + d.dev.texts)) for d in drafts]
        return Search(
            Losses(model, embedding, bias, which, whole=True),
            table.to(device),
            np.full((len(drafts), method.triggers), self.first, dtype=np.int64),
            rows_of([draft.train.texts for draft in drafts], ids),
            rows_of([draft.dev.texts for draft in drafts], ids),
            [draft.task.relation.id for draft in drafts],
            Quest(
                iterations=method.iterations,
                batch=method.batch,
                candidates=method.candidates,
                seed=self.job.seed,
            ),
            Budget(model.loaded.options.batch_tokens or TOKENS[device.type], out_of_memory),
            torch.from_numpy(np.stack(allowed)).to(device),
            self._fits,
            tick,
        )

    def _fits(self, ids: Sequence[int]) -> bool:
        if self.method.form == "vectors":
            return True
        return self.writer.text([id for id in ids if id != self.start]) is not None

    def _made(
        self, model: CausalModel | MaskedModel, draft: Draft, found: Found, table: Any
    ) -> Made:
        """What was made for a relation: a text, or else vectors."""
        text = self._text(model, draft, found.ids)
        template, vectors = draft.template, {}
        if text:
            template = replace(template, text=text)
        else:
            own = table[list(found.ids)].numpy()
            vectors = {marker(draft.task.relation.id, k + 1): own[k] for k in range(len(own))}
        form = {"as_text": int(bool(text)), "as_vectors": int(not text)}
        return Made(
            relation=draft.task.relation.id,
            templates=(template,),
            before=found.before,
            after=found.after,
            epochs=found.epochs,
            counts={**draft.counts, **form, "replaced": found.replaced},
            problem=found.problem,
            vectors=vectors,
        )

    def _text(self, model: CausalModel | MaskedModel, draft: Draft, ids: Sequence[int]) -> str:
        """The template as text, nothing where some fact would be read as other tokens."""
        written = self.writer.text(ids)
        if self.method.form == "vectors" or self.start in ids or written is None:
            return ""
        text = f"{SUBJECT_SLOT}{written} {ANSWER_SLOT} ."
        triggers = dict(zip(draft.ids, ids, strict=True))
        for fact in (*draft.task.train, *draft.task.dev):
            soft = prompt_ids(model, draft.template, fact.subject.name)
            read = prompt_ids(model, replace(draft.template, text=text), fact.subject.name)
            if tuple(triggers.get(id, id) for id in soft) != read:
                return ""
        return text


def golds(texts: Sequence[Text]) -> set[int]:
    """The tokens of every right answer."""
    return {id for text in texts for _, right in text.wanted[: text.answer] for id in right}
