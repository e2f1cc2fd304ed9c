"""Every estimator of what a model knows, by name: how it is asked, how its answers are read.

Answers come through the ordinary public probe and are judged by it. Knows no truth: what an
estimator says is compared with it elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import exp
from typing import cast

import numpy as np

from sonde.core.columns import FilledColumns
from sonde.core.errors import UsageError, nearest
from sonde.core.facts import Dataset, Fact
from sonde.lab.estimators.asking import (
    RANDOM,
    RANDOM_EMBEDDINGS,
    Ask,
    counting,
    optimised,
    plainly,
    unused,
)
from sonde.lab.estimators.reading import (
    STAYS,
    Columns,
    Prompts,
    prompts_of,
    read_anchor,
    read_any,
    read_average,
    read_best,
    read_distance,
    read_one,
)
from sonde.lab.worlds.truth import Floats, Kind
from sonde.metrics.distance import Monitored, Monitors
from sonde.prompting.matching import PLAIN, normal, within
from sonde.runs.run import Run

Read = Callable[[Run], Columns]

BOTH: tuple[Kind, ...] = ("causal", "masked")
CAUSAL: tuple[Kind, ...] = ("causal",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Questions that are put once, whoever reads the answers; `name` is that of their folder."""

    name: str
    ask: Ask


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimator:
    """A way to tell which facts a model knows.

    says: what its score and its decision are, in a line. kinds: the models it fits. learns: it is
    trained on other facts, or counts them. control: it is what estimators are held against.
    """

    name: str
    label: str
    says: str
    kinds: tuple[Kind, ...]
    asking: Asking
    read: Read
    learns: bool = False
    control: bool = False


def estimators() -> dict[str, Estimator]:
    """Every estimator by name, in the order they are shown."""
    return {each.name: each for each in ALL}


def chosen(names: Iterable[str]) -> tuple[Estimator, ...]:
    """The estimators of these names, all of them if there are none; refuses an unknown one."""
    known, wanted = estimators(), dict.fromkeys(names)
    for name in wanted:
        if name not in known:
            raise UsageError(f"no estimator called {name!r}; {nearest(name, known)}")
    return tuple(each for each in ALL if not wanted or each.name in wanted)


def judged(run: Run, read: Callable[[Prompts], Columns], *, first: bool = False) -> Columns:
    """What the probe's own judgements come to; `first`: a fact's first object alone is right."""
    dataset = run.dataset()
    found = run.judge(dataset=dataset)
    names = _names(dataset, first=first)
    if found.way == "written":
        return read(prompts_of(found, names.__getitem__, _written))
    prompts = prompts_of(found, names.__getitem__)
    if found.way == "filled":
        prompts = replace(prompts, likely=_among_allowed(prompts, _masses(run)))
    return read(prompts)


def _names(dataset: Dataset, *, first: bool) -> dict[str, tuple[str, ...]]:
    """What is right for each fact that is asked about."""
    return {
        fact.id: (fact.objects[0].name,) if first else _all_names(fact)
        for relation in dataset.asked_relations()
        for fact in dataset.asked(relation.id)
    }


def _all_names(fact: Fact) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for entity in fact.objects for name in entity.names))


def _written(answer: str, names: tuple[str, ...]) -> bool:
    """Whether a written answer, in lower case as the probe keeps it, holds one of the names."""
    return any(within(normal(name, PLAIN), answer) for name in names)


def _masses(run: Run) -> dict[str, float]:
    """The probability of all allowed answers together, by fact; where many prompts ask, the last's.

    Only LAMA allows fewer answers than there are tokens, and it asks once.
    """
    masses: dict[str, float] = {}
    for block in run.answers():
        if isinstance(block.columns, FilledColumns):
            numbers, facts = block.codes("fact")
            asked = (facts[number] for number in numbers.tolist())
            masses |= zip(asked, map(exp, block.columns.mass.tolist()), strict=True)
    return masses


def _among_allowed(prompts: Prompts, masses: Mapping[str, float]) -> Floats:
    """Probabilities renormalised over the answers that are allowed."""
    whole = np.array([masses[fact] for fact in prompts.facts])[prompts.fact]
    return np.asarray(np.minimum(prompts.likely / np.where(whole > 0, whole, 1.0), 1.0))


def _judged(read: Callable[[Prompts], Columns], *, first: bool = False) -> Read:
    return lambda run: judged(run, read, first=first)


def _monitored(read: Callable[[Monitored], Columns]) -> Read:
    return lambda run: read(cast(Monitors, run.probe()).monitored(run.dataset(), run.answers()))


LIKELY = "probability of the object among the answers allowed; known if it is the likeliest"
SHARE = "which is also what counts; known if over half"


def _asking(
    name: str,
    label: str,
    says: str,
    ask: Ask,
    read: Read,
    *,
    kinds: tuple[Kind, ...] = BOTH,
    shared: str = "",
) -> Estimator:
    """An estimator that learns nothing; those of one probe share its questions."""
    asking = Asking(name=shared or name, ask=ask)
    return Estimator(name=name, label=label, says=says, kinds=kinds, asking=asking, read=read)


def _probes() -> Iterator[Estimator]:
    """The probes as they are, each read in one or in several ways."""
    one, choice = _judged(read_one), _judged(read_one, first=True)
    yield _asking("lama", "LAMA", f"the first template: {LIKELY}", plainly("lama"), one)
    says = f"a template that the text never uses: {LIKELY}"
    yield _asking("lama-unused", "LAMA, unused template", says, unused, one)
    for name, label, says, read in (
        ("average", "average", f"share of prompts answered right, {SHARE}", read_average),
        ("max", "maximum", "the template that answers most facts of the relation: probability of "
         "the object; known if it is the likeliest", read_best),
        ("oracle", "oracle", "highest probability of the object in any prompt; known if any prompt "
         "is answered right", read_any),
    ):  # fmt: skip
        ask, read_all = plainly("belief"), _judged(read)
        yield _asking(f"belief-{name}", f"BELIEF {label}", says, ask, read_all, shared="belief")
    after = f"share of prompts answered right in writing after examples, {SHARE}"
    among = "probability of the object among the options {} a list of other facts; known if it is "
    for name, label, says, read_it in (
        ("belief-icl", "BELIEF-ICL", after, _judged(read_average)),
        ("ic-lke", "IC-LKE", f"{among.format('after')}the likeliest", choice),
        ("eic-lke", "EIC-LKE", f"{among.format('inside')}the likeliest", choice),
    ):
        yield _asking(name, label, says, plainly(name), read_it, kinds=CAUSAL)
    for name, says, read_monitor in (
        ("anchor", "probability of the object after its own name; known if it is answered there",
         read_anchor),
        ("distance", "1 less how far the object's probability moves from its anchor, 0 without a "
         f"valid one; known if it moves at most {STAYS:g}", read_distance),
    ):  # fmt: skip
        ask, read_it = plainly("monitor"), _monitored(read_monitor)
        full = f"monitor-{name}"
        yield _asking(full, f"MONITOR {name}", says, ask, read_it, kinds=CAUSAL, shared="monitor")


METHODS: Mapping[str, tuple[str, str, str, str]] = {
    "optiprompt": ("optiprompt", "soft", "OptiPrompt", "vectors trained on other facts"),
    "optiprompt-free": ("optiprompt", "soft", "OptiPrompt, random start",
                        "vectors from a random start, trained fast on other facts"),
    "autoprompt": ("autoprompt", "", "AutoPrompt", "tokens searched on other facts"),
    "lpaqa": ("lpaqa", "ensemble", "LPAQA ensemble",
              "templates averaged with weights tuned on other facts"),
    "finetune": ("finetune", "finetuned", "fine-tuning", "tuned on other facts"),
}  # fmt: skip
"""What learns from other facts: the method of `sonde optimise`, the scheme that opens what it made,
a label, and how it learns."""


def _learnt(
    name: str, label: str, ask: Ask, how: str, read: Read, *, control: bool = False
) -> Estimator:
    plain = _asking(name, label, f"{how}: {LIKELY}", ask, read)
    return replace(plain, learns=True, control=control)


def _learners() -> Iterator[Estimator]:
    """Methods that learn, controls that count, and the methods on random weights."""
    one = _judged(read_one)

    def made(name: str, of: str = "{model}") -> Ask:
        method, scheme, _, _ = METHODS[name]
        return optimised(method, scheme, of, variant=name)

    for name, (_, _, label, how) in METHODS.items():
        yield _learnt(name, label, made(name), how, one)
    for name, how in (
        ("class-prior", "share of the object among other facts"),
        ("naive-bayes", "words of the name among other facts"),
    ):
        label = name.replace("-", " ").replace("bayes", "Bayes")
        yield _learnt(name, label, counting(name), how, one, control=True)
    for name, (_, _, label, _) in METHODS.items():
        for what, of in (("model", RANDOM), ("embeddings", RANDOM_EMBEDDINGS)):
            if what == "embeddings" and name != "optiprompt":
                continue
            full = f"{name}-random" if what == "model" else f"{name}-random-{what}"
            how = f"the same on random {'weights' if what == 'model' else what}"
            yield _learnt(full, f"{label}, random {what}", made(name, of), how, one, control=True)


ALL: tuple[Estimator, ...] = (*_probes(), *_learners())
