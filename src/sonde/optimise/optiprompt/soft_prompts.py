"""Put the parts of OptiPrompt together: forms, texts, side-by-side training, and the results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from sonde.core.facts import Template
from sonde.core.markers import marker
from sonde.engine.batching import Budget
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.loading.weights import out_of_memory
from sonde.models.torch.masked.model import MaskedModel
from sonde.models.torch.wrappers.soft import SoftEmbedding, rebuilt, softened
from sonde.optimise.facts import Task
from sonde.optimise.making import Job, Made
from sonde.optimise.shared.drafts import TOGETHER, Draft, bias_of, nothing_left, prompt_ids
from sonde.optimise.shared.forms import Form, manual_form, random_form
from sonde.optimise.shared.losses import Losses, frozen
from sonde.optimise.shared.texts import rows_of, texts_of
from sonde.optimise.shared.training import Plan, SideBySide, Trained

if TYPE_CHECKING:
    from sonde.optimise.optiprompt.method import OptiPrompt

TOKENS = {"cpu": 4096, "cuda": 32768}


def trained(method: OptiPrompt, job: Job) -> Iterator[Made]:
    """Train every relation of a job, some at a time."""
    base: Any = job.model
    cuda = base.loaded.device.startswith("cuda")
    size = method.together or (len(job.tasks) if cuda else TOGETHER)
    clock = Clock(method, job)
    for i in range(0, len(job.tasks), size):
        yield from group_trained(method, job, job.tasks[i : i + size], clock)


class Clock:
    """Counts steps over all groups; relations that end early count as if they had gone on."""

    def __init__(self, method: OptiPrompt, job: Job) -> None:
        steps = [-(-len(task.train) // method.batch) * method.epochs for task in job.tasks]
        self.total = sum(steps)
        self.done = 0
        self.tell = job.tick

    def tick(self, steps: int, how: str) -> None:
        """So many relations went on by a step."""
        self.done = min(self.done + steps, self.total)
        self.tell(self.done, self.total, how)


def group_trained(
    method: OptiPrompt, job: Job, tasks: Sequence[Task], clock: Clock
) -> Iterator[Made]:
    """Train some relations side by side, on the model with their vectors in it."""
    base: Any = job.model
    forms = []
    for task in tasks:
        form = form_of(method, base, task, job.seed)
        if isinstance(form, str):
            yield Made(relation=task.relation.id, counts=task.counts, problem=form)
        else:
            forms.append((task, form))
    if not forms:
        return
    markers = [marker(t.relation.id, k + 1) for t, form in forms for k in range(len(form.vectors))]
    table = torch.from_numpy(np.concatenate([form.vectors for _, form in forms]))
    loaded, embedding = softened(base.loaded, markers, table, name="soft", weights="")
    try:
        model = rebuilt(base, loaded)
        drafts = list(drafted(method, job, model, forms))
        yield from (nothing_left(draft) for draft in drafts if not draft.train.texts)
        ready = [draft for draft in drafts if draft.train.texts]
        with frozen(model.model):
            for found in side_by_side(method, job, model, embedding, ready, clock).run():
                yield made_of(ready[found.index], found)
    finally:
        embedding.remove()


def form_of(method: OptiPrompt, base: Any, task: Task, seed: int) -> Form | str:
    """How a relation's prompt begins, or why it cannot."""
    relation = task.relation
    if method.start == "random":
        return random_form(base, relation.id, method.vectors, seed)
    if not relation.templates:
        return "it has no template to begin with"
    form = manual_form(base, relation.id, relation.templates[0])
    if not len(form.vectors):
        return "its template has no word that could become a vector (causal: before the answer)"
    return form


def drafted(
    method: OptiPrompt,
    job: Job,
    model: CausalModel | MaskedModel,
    forms: Sequence[tuple[Task, Form]],
) -> Iterator[Draft]:
    """Each relation's prompt with the texts of its facts."""
    ends = list(accumulate((len(form.vectors) for _, form in forms), initial=0))
    for (task, form), start, stop in zip(forms, ends, ends[1:], strict=False):
        id = f"{task.relation.id}-{method.name}"
        template = Template(id=id, text=form.text, source="optimised", group=id)
        first = model.loaded.vectors.start
        yield Draft(
            task=task,
            form=form,
            template=template,
            train=texts_of(model, template, task.train, job.vocabulary),
            dev=texts_of(model, template, task.dev, job.vocabulary),
            ids=range(first + start, first + stop),
            otherwise=otherwise(method, model, task, template, form, first + start),
        )


def otherwise(
    method: OptiPrompt,
    model: CausalModel | MaskedModel,
    task: Task,
    template: Template,
    form: Form,
    first: int,
) -> int:
    """How many facts are other tokens under the vectors than under the sentence they came from."""
    if method.start == "random":
        return 0
    initial = dict(zip(range(first, first + len(form.ids)), form.ids, strict=True))
    count = 0
    for fact in (*task.train, *task.dev):
        soft = prompt_ids(model, template, fact.subject.name)
        plain = prompt_ids(model, task.relation.templates[0], fact.subject.name)
        count += tuple(initial.get(id, id) for id in soft) != plain
    return count


def side_by_side(
    method: OptiPrompt,
    job: Job,
    model: CausalModel | MaskedModel,
    embedding: SoftEmbedding,
    drafts: Sequence[Draft],
    clock: Clock,
) -> SideBySide:
    """The training of some relations, ready to run."""
    device = model.model.device
    width = max((len(draft.ids) for draft in drafts), default=0)
    start = torch.zeros(len(drafts), width, embedding.vectors.shape[1])
    for i, draft in enumerate(drafts):
        start[i, : len(draft.ids)] = torch.from_numpy(draft.form.vectors)
    sets = list(dict.fromkeys(draft.train.allowed for draft in drafts))
    which = np.array([sets.index(draft.train.allowed) for draft in drafts])
    ids = [draft.ids for draft in drafts]
    tokens = model.loaded.options.batch_tokens or TOKENS[device.type]
    return SideBySide(
        Losses(
            model,
            embedding,
            bias_of(sets, model.loaded.rows, device),
            which,
            whole=method.softmax == "model",
        ),
        start.to(device),
        rows_of([draft.train.texts for draft in drafts], ids),
        rows_of([draft.dev.texts for draft in drafts], ids),
        [draft.task.relation.id for draft in drafts],
        Plan.of(method, job.seed),
        Budget(tokens, out_of_memory),
        clock.tick,
    )


def made_of(draft: Draft, found: Trained) -> Made:
    """What was made for a relation."""
    relation = draft.task.relation.id
    return Made(
        relation=relation,
        templates=(draft.template,),
        before=found.before,
        after=found.after,
        epochs=found.epochs,
        counts=draft.counts,
        problem=found.problem,
        vectors={marker(relation, k + 1): found.vectors[k] for k in range(len(draft.ids))},
    )
