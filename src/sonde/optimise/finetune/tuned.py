"""Put the parts of fine-tuning together: texts, copies trained side by side, and what is kept."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from safetensors.torch import save

from sonde.core.markers import markers
from sonde.models.torch.loading.weights import DTYPES
from sonde.optimise.finetune.stacks import Stacked
from sonde.optimise.finetune.tuning import Tuned, Tuning
from sonde.optimise.making import Job, Made
from sonde.optimise.shared.drafts import Draft, bias_of, nothing_left
from sonde.optimise.shared.forms import Form
from sonde.optimise.shared.losses import Losses, frozen
from sonde.optimise.shared.texts import rows_of, texts_of
from sonde.optimise.shared.training import Plan
from sonde.store.files import write_whole

if TYPE_CHECKING:
    from sonde.optimise.finetune.method import FineTune

log = logging.getLogger("sonde")

WEIGHTS = "weights"
COPIES = 8  # of the weights that a relation takes while it is trained: moments, gradient, best …


def tuned(method: FineTune, job: Job) -> Iterator[Made]:
    """Fine-tune for every relation of a job, some at a time."""
    model: Any = job.model
    drafts = []
    for task in job.tasks:
        templates = task.relation.templates
        if not templates or markers(templates[0].text):
            yield Made(relation=task.relation.id, counts=task.counts, problem=NO_TEXT)
            continue
        draft = Draft(
            task=task,
            form=Form(text=templates[0].text, vectors=np.zeros((0, 0), dtype=np.float32)),
            template=templates[0],
            train=texts_of(model, templates[0], task.train, job.vocabulary),
            dev=texts_of(model, templates[0], task.dev, job.vocabulary),
            ids=range(0),
            otherwise=0,
        )
        if draft.train.texts:
            drafts.append(draft)
        else:
            yield nothing_left(draft)
    if drafts:
        yield from in_groups(method, job, drafts)


NO_TEXT = "it has no template of plain words to train with"


def in_groups(method: FineTune, job: Job, drafts: Sequence[Draft]) -> Iterator[Made]:
    """Train so many relations at once as the device holds."""
    model = cast(Any, job.model)
    steps = [-(-len(d.train.texts) // method.batch) * method.epochs for d in drafts]
    done = 0

    def tick(count: int, how: str) -> None:
        nonlocal done
        done = min(done + count, sum(steps))
        job.tick(done, sum(steps), how)

    with frozen(model.model):
        narrow = Losses(model, cast(Any, None), None, np.zeros(1), whole=True).narrow
        stacked = Stacked(model, narrow=narrow)
        size = group_size(method, stacked, len(drafts))
        tell_size(method, model.model, len(drafts))
        for i in range(0, len(drafts), size):
            group = drafts[i : i + size]
            for found in tuning(method, job, stacked, group, tick).run():
                yield made_of(method, job, group[found.index], found)


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


def tuning(
    method: FineTune, job: Job, stacked: Stacked, drafts: Sequence[Draft], tick: Any
) -> Tuning:
    """The training of some relations, ready to run."""
    model = cast(Any, job.model)
    sets = list(dict.fromkeys(draft.train.allowed for draft in drafts))
    which = np.array([sets.index(draft.train.allowed) for draft in drafts])
    bias = bias_of(sets, model.loaded.rows, stacked.device)
    none = [range(0)] * len(drafts)
    return Tuning(
        stacked,
        Losses(model, cast(Any, None), bias, which, whole=method.softmax == "model"),
        rows_of([draft.train.texts for draft in drafts], none),
        rows_of([draft.dev.texts for draft in drafts], none),
        [draft.task.relation.id for draft in drafts],
        Plan.of(method, job.seed),
        method.decay,
        tick,
    )


def made_of(method: FineTune, job: Job, draft: Draft, found: Tuned) -> Made:
    """What was made for a relation, its weights kept first."""
    relation = draft.task.relation.id
    size = 0
    if method.keep != "nothing":
        dtype = DTYPES[method.keep]
        kept = save({n: c.to(dtype).cpu().contiguous() for n, c in found.change.items()})
        (job.folder / WEIGHTS).mkdir(exist_ok=True)
        write_whole(job.folder / WEIGHTS / f"{relation}.safetensors", kept)
        size = len(kept)
    return Made(
        relation=relation,
        templates=(draft.template,),
        before=found.before,
        after=found.after,
        epochs=found.epochs,
        counts={**draft.counts, "weights_bytes": size},
        problem=found.problem,
    )
