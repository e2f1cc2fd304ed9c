"""Put an estimator's questions: through the ordinary probe, after the ordinary `optimise`; and how
much each may spend, quick or full.

Quick is for models of a few million parameters on two cores, seconds each; full leaves nothing out.
Knows probes and methods by name, nothing of how answers are read. Everything is kept in the folder
it is given, and goes on there after a kill.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

from sonde.core.abilities import Model, Probe, abilities
from sonde.core.components import build
from sonde.core.errors import DataError, ModelError
from sonde.core.facts import Dataset, Relation, Template
from sonde.core.fingerprints import fingerprint
from sonde.data import catalog
from sonde.models.load import load
from sonde.models.options import LoadOptions
from sonde.optimise.making import Method, Order, Tick, methods, optimise
from sonde.probes import PROBES
from sonde.runs.run import Run, run

UNUSED = "lama-unused"
"""Stands for LAMA with a template for each relation that the text never uses."""

VECTORS = "vectors.safetensors"
MODEL = "{model}"
RANDOM = "random:{model}"
RANDOM_EMBEDDINGS = "random-embeddings:{model}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """A model to be asked about a world: `reference` is how `model` is loaded again.

    `place` is the folder of the world's dataset, `dataset` the same with its selection; `used` are
    the ids of the templates that the text uses, by relation.
    """

    reference: str
    model: Model
    place: str
    dataset: Dataset
    used: Mapping[str, tuple[str, ...]]
    spending: Spending
    options: LoadOptions
    tick: Tick = lambda done, total, how: None

    def probe(self, name: str) -> Probe:
        """A probe with its settings, as it suits the model."""
        plain = cast(Probe, build(PROBES.find(name), dict(self.spending.probes[name])))
        return plain.suited(abilities(self.model))

    def run(self, probe: str, model: Model, dataset: Dataset, out: Path) -> Run:
        """Ask, or go on asking."""
        tick = self.tick
        return run(
            self.probe(probe),
            model,
            dataset,
            out,
            progress=lambda done, all: tick(int(done), all, ""),
        )


Ask = Callable[[Setup, Path], Run]
"""Ask everything that an estimator needs, keeping all of it in a folder."""


def ask_probe(setup: Setup, folder: Path, probe: str) -> Run:
    """The probe, the model and the world as they are; or LAMA, with unused templates."""
    if probe == UNUSED:
        dataset = unused_only(setup.dataset, setup.used)
        return setup.run("lama", setup.model, dataset, folder / "run")
    return setup.run(probe, setup.model, setup.dataset, folder / "run")


def ask_control(setup: Setup, folder: Path, control: str) -> Run:
    """LAMA of a control that counts training facts and reads no text."""
    model = load(f"control:{control}", setup.options, setup.dataset)
    return setup.run("lama", model, setup.dataset, folder / "run")


def ask_optimised(
    setup: Setup, folder: Path, method: str, scheme: str, of: str, variant: str
) -> Run:
    """LAMA with templates made out of training facts, for the model or for a random one.

    `scheme` opens what was made together with its model; where it is empty the templates are text.
    `of`: which weights. `variant` names other settings than the method's own.
    """
    reference, place = of.format(model=setup.reference), folder / "made"
    base = setup.model if of == MODEL else load(reference, setup.options, setup.dataset)
    order = Order(limit=setup.spending.learning, seed=setup.dataset.selection.seed)
    settings = setup.spending.methods[variant or method]
    maker = cast(Method, build(methods()[method], dict(settings)))
    results = optimise(
        maker, base, setup.dataset, place, reference=reference, order=order, tick=setup.tick
    )
    if not any(result.templates for result in results):
        why = next((r.problem for r in results if r.problem), "no template was made")
        raise ModelError(f"{method} made nothing: {why}")
    opened = scheme or ("soft" if (place / VECTORS).exists() else "")
    model = load(f"{opened}:{place}", setup.options, setup.dataset) if opened else base
    facts = catalog.load(setup.place, f"optimised:{place}")
    return setup.run("lama", model, facts.select(setup.dataset.selection), folder / "run")


def unused_only(dataset: Dataset, used: Mapping[str, tuple[str, ...]]) -> Dataset:
    """The dataset with one template for each relation: one that the text never uses.

    A statement that ends with its object comes first, as such a one is what LAMA asks with;
    relations whose templates are all used are left out.
    """
    kept = tuple(
        replace(relation, templates=(template,))
        for relation in dataset.asked_relations()
        if (template := _unused(relation, used.get(relation.id, ()))) is not None
    )
    if not kept:
        raise DataError("the text uses every template of every relation")
    told = [f"{r.id}:{r.templates[0].id}" for r in kept]
    card = replace(dataset.card, name=f"{dataset.name} under unused templates")
    return replace(
        dataset,
        card=card,
        relations=kept,
        fingerprint=fingerprint([dataset.fingerprint, "unused", *told]),
        selection=replace(dataset.selection, relations=()),
    )


def _unused(relation: Relation, used: tuple[str, ...]) -> Template | None:
    free = [template for template in relation.templates if template.id not in used]
    return min(free, key=lambda t: (t.style != "statement", not t.answer_last), default=None)


Effort = Literal["quick", "full"]

MANY = 10_000
"""More options than a relation has objects: all are offered, as LAMA does."""

IC_LISTS: Mapping[str, Any] = {
    "max_options": MANY,
    "pair_separator": "space",
    "example_separator": "space",
}
EIC_LISTS: Mapping[str, Any] = {
    "max_options": MANY,
    "pair_separator": "space",
    "example_separator": " ",
}
"""Lists in a world's text have spaces alone, as in the papers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Settings by the name of the probe or the method of `sonde optimise`, also in other variants.

    limit: the most facts asked about per relation; learning: the most facts that a method learns
    from, per relation and split. None is all.
    """

    probes: Mapping[str, Mapping[str, Any]]
    methods: Mapping[str, Mapping[str, Any]]
    limit: int | None = None
    learning: int | None = None


# a world's words have no lemmas; its lists have 5 to 40 lines and no comma, its questions 3 to 8
# examples; an answer is one word and a full stop. OptiPrompt and fine-tuning learn from few dozen
# facts: a start from random vectors, or a rate ten times higher, loses facts that LAMA finds
QUICK = Spending(
    probes={
        "lama": {},
        "belief": {"template_source": "manual", "aliases": "original", "bias": False},
        "belief-icl": {"aliases": "original", "samples": 0, "max_tokens": 3, "language": "none"},
        "ic-lke": {"shots": 20, **IC_LISTS},
        "eic-lke": {"examples": 20, "start": 10, "stride": 1, **EIC_LISTS},
        "monitor": {"frame": "qa", "shots": 4, "frames": 2, "negatives": 3, "max_tokens": 3},
    },
    methods={
        "optiprompt": {"start": "manual", "epochs": 30, "rate": 3e-3, "checks": 1},
        "optiprompt-free": {"epochs": 30, "rate": 3e-2, "checks": 1},
        "autoprompt": {"iterations": 30, "batch": 24, "candidates": 8},
        "lpaqa": {"choose": "weighted", "k": 3},
        "finetune": {"epochs": 8, "batch": 8, "rate": 1e-4},
    },
)

FULL = Spending(
    probes={
        "lama": {},
        "belief": {"bias": False},
        "belief-icl": {
            "template_source": "all",
            "aliases": "original",
            "samples": 0,
            "max_tokens": 3,
            "language": "none",
        },
        "ic-lke": {"shots": 40, **IC_LISTS},
        "eic-lke": {"examples": 40, "start": 20, "stride": 2, **EIC_LISTS},
        "monitor": {"frame": "qa", "shots": 4, "max_tokens": 3},
    },
    methods={
        "optiprompt": {"start": "manual", "epochs": 60, "rate": 3e-3, "checks": 1},
        "optiprompt-free": {"epochs": 60, "rate": 3e-2, "checks": 1},
        "autoprompt": {"iterations": 300, "batch": 56, "candidates": 20},
        "lpaqa": {"choose": "weighted"},
        "finetune": {"epochs": 20, "batch": 8, "rate": 1e-4},
    },
)

EFFORTS: Mapping[Effort, Spending] = {"quick": QUICK, "full": FULL}
