"""Put an estimator's questions: through the ordinary probe, after the ordinary `optimise`.

Knows probes and methods by name, nothing of how answers are read. Everything is kept in the folder
it is given, and goes on there after a kill.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from sonde.core.abilities import Model, Probe, abilities
from sonde.core.errors import DataError, ModelError
from sonde.core.facts import Dataset, Relation, Selection, Template
from sonde.core.fingerprints import fingerprint
from sonde.core.settings import build
from sonde.data import catalog
from sonde.lab.estimators.efforts import Spending
from sonde.models.load import load
from sonde.models.options import LoadOptions
from sonde.optimise.making import Method, Order, Tick, methods, optimise
from sonde.runs.run import Run, find_probe, run

VECTORS = "vectors.safetensors"
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
        found = cast(Probe, build(find_probe(name), dict(self.spending.probes[name])))
        return found.suited(abilities(self.model))

    def run(self, probe: str, model: Model, dataset: Dataset, out: Path) -> Run:
        """Ask, or go on asking."""
        tick = self.tick
        return run(
            self.probe(probe), model, dataset, out, progress=lambda done, all: tick(done, all, "")
        )


Ask = Callable[[Setup, Path], Run]
"""Ask everything that an estimator needs, keeping all of it in a folder."""


def plainly(probe: str) -> Ask:
    """The probe, the model and the world as they are."""

    def ask(setup: Setup, folder: Path) -> Run:
        return setup.run(probe, setup.model, setup.dataset, folder / "run")

    return ask


def unused(setup: Setup, folder: Path) -> Run:
    """LAMA, with a template for each relation that the text never uses."""
    return setup.run("lama", setup.model, unused_only(setup.dataset, setup.used), folder / "run")


def counting(control: str) -> Ask:
    """LAMA of a control that counts training facts and reads no text."""

    def ask(setup: Setup, folder: Path) -> Run:
        model = load(f"control:{control}", setup.options, setup.dataset)
        return setup.run("lama", model, setup.dataset, folder / "run")

    return ask


def optimised(method: str, scheme: str = "", of: str = "{model}", variant: str = "") -> Ask:
    """LAMA with templates made out of training facts, for the model or for a random one.

    `scheme` opens what was made together with its model; without one the templates are text.
    `variant` names other settings than the method's own.
    """

    def ask(setup: Setup, folder: Path) -> Run:
        reference = of.format(model=setup.reference)
        base = setup.model if of == "{model}" else load(reference, setup.options, setup.dataset)
        place = folder / "made"
        order = Order(limit=setup.spending.learning, seed=setup.dataset.selection.seed)
        settings = setup.spending.methods[variant or method]
        found = cast(Method, build(methods()[method], dict(settings)))
        results = optimise(
            found, base, setup.dataset, place, reference=reference, order=order, tick=setup.tick
        )
        if not any(result.templates for result in results):
            why = next((r.problem for r in results if r.problem), "no template was made")
            raise ModelError(f"{method} made nothing: {why}")
        opened = scheme or ("soft" if (place / VECTORS).exists() else "")
        model = load(f"{opened}:{place}", setup.options, setup.dataset) if opened else base
        dataset = reworded(setup.place, place, setup.dataset.selection)
        return setup.run("lama", model, dataset, folder / "run")

    return ask


def reworded(place: str, build: Path, selection: Selection) -> Dataset:
    """The world's facts under templates that were made for them."""
    return catalog.load(place, f"optimised:{build}").select(selection)


def unused_only(dataset: Dataset, used: Mapping[str, tuple[str, ...]]) -> Dataset:
    """The dataset with one template for each relation: one that the text never uses.

    A statement that ends with its object comes first, as such a one is what LAMA asks with;
    relations whose templates are all used are left out.
    """
    chosen = {r.id: _unused(r, used.get(r.id, ())) for r in dataset.asked_relations()}
    kept = tuple(
        replace(relation, templates=(template,))
        for relation in dataset.asked_relations()
        if (template := chosen[relation.id]) is not None
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
