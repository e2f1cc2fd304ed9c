"""Every estimator of what a model knows, by name: how it is asked, how its answers are read.

Answers come through the ordinary public probe and are judged by it. Knows no truth: what an
estimator says is compared with it elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import exp
from typing import cast

import numpy as np

from sonde.core.answers import Filled
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
from sonde.metrics.distance import Monitors
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
    return {
        row.key.fact: exp(row.answer.mass)
        for row in run.answered()
        if isinstance(row.answer, Filled)
    }


def _among_allowed(prompts: Prompts, masses: Mapping[str, float]) -> Floats:
    """Probabilities renormalised over the answers that are allowed."""
    whole = np.array([masses[fact] for fact in prompts.facts])[prompts.fact]
    return np.asarray(np.minimum(prompts.likely / np.where(whole > 0, whole, 1.0), 1.0))


def _one(run: Run) -> Columns:
    return judged(run, read_one)


def _choice(run: Run) -> Columns:
    return judged(run, read_one, first=True)


def _average(run: Run) -> Columns:
    return judged(run, read_average)


def _best(run: Run) -> Columns:
    return judged(run, read_best)


def _any(run: Run) -> Columns:
    return judged(run, read_any)


def _anchor(run: Run) -> Columns:
    return read_anchor(cast(Monitors, run.probe()).monitored(run.dataset(), run.answers()))


def _distance(run: Run) -> Columns:
    return read_distance(cast(Monitors, run.probe()).monitored(run.dataset(), run.answers()))


BELIEF = Asking(name="belief", ask=plainly("belief"))
MONITOR = Asking(name="monitor", ask=plainly("monitor"))

LIKELY = "probability of the object among the answers allowed; known if it is the likeliest"


def _learnt(name: str, label: str, ask: Ask, how: str, *, control: bool = False) -> Estimator:
    return Estimator(
        name=name,
        label=label,
        says=f"{how}: {LIKELY}",
        kinds=BOTH,
        asking=Asking(name=name, ask=ask),
        read=_one,
        learns=True,
        control=control,
    )


ALL: tuple[Estimator, ...] = (
    Estimator(
        name="lama",
        label="LAMA",
        says=f"the first template: {LIKELY}",
        kinds=BOTH,
        asking=Asking(name="lama", ask=plainly("lama")),
        read=_one,
    ),
    Estimator(
        name="lama-unused",
        label="LAMA, unused template",
        says=f"a template that the text never uses: {LIKELY}",
        kinds=BOTH,
        asking=Asking(name="lama-unused", ask=unused),
        read=_one,
    ),
    Estimator(
        name="belief-average",
        label="BELIEF average",
        says="share of prompts answered right, which is also what counts; known if over half",
        kinds=BOTH,
        asking=BELIEF,
        read=_average,
    ),
    Estimator(
        name="belief-max",
        label="BELIEF maximum",
        says="the template that answers most facts of the relation: probability of the object; "
        "known if it is the likeliest",
        kinds=BOTH,
        asking=BELIEF,
        read=_best,
    ),
    Estimator(
        name="belief-oracle",
        label="BELIEF oracle",
        says="highest probability of the object in any prompt; known if any prompt is answered "
        "right",
        kinds=BOTH,
        asking=BELIEF,
        read=_any,
    ),
    Estimator(
        name="belief-icl",
        label="BELIEF-ICL",
        says="share of prompts answered right in writing after examples, which is also what "
        "counts; known if over half",
        kinds=CAUSAL,
        asking=Asking(name="belief-icl", ask=plainly("belief-icl")),
        read=_average,
    ),
    Estimator(
        name="ic-lke",
        label="IC-LKE",
        says="probability of the object among the options after a list of other facts; known if "
        "it is the likeliest",
        kinds=CAUSAL,
        asking=Asking(name="ic-lke", ask=plainly("ic-lke")),
        read=_choice,
    ),
    Estimator(
        name="eic-lke",
        label="EIC-LKE",
        says="probability of the object among the options inside a list of other facts; known if "
        "it is the likeliest",
        kinds=CAUSAL,
        asking=Asking(name="eic-lke", ask=plainly("eic-lke")),
        read=_choice,
    ),
    Estimator(
        name="monitor-anchor",
        label="MONITOR anchor",
        says="probability of the object after its own name; known if it is answered there",
        kinds=CAUSAL,
        asking=MONITOR,
        read=_anchor,
    ),
    Estimator(
        name="monitor-distance",
        label="MONITOR distance",
        says="1 less how far the object's probability moves from its anchor, 0 without a valid "
        f"one; known if it moves at most {STAYS:g}",
        kinds=CAUSAL,
        asking=MONITOR,
        read=_distance,
    ),
    _learnt(
        "optiprompt",
        "OptiPrompt",
        optimised("optiprompt", "soft"),
        "vectors trained on other facts",
    ),
    _learnt(
        "optiprompt-free",
        "OptiPrompt, random start",
        optimised("optiprompt", "soft", variant="optiprompt-free"),
        "vectors from a random start, trained fast on other facts",
    ),
    _learnt("autoprompt", "AutoPrompt", optimised("autoprompt"), "tokens searched on other facts"),
    _learnt(
        "lpaqa",
        "LPAQA ensemble",
        optimised("lpaqa", "ensemble"),
        "templates averaged with weights tuned on other facts",
    ),
    _learnt("finetune", "fine-tuning", optimised("finetune", "finetuned"), "tuned on other facts"),
    _learnt(
        "class-prior",
        "class prior",
        counting("class-prior"),
        "share of the object among other facts",
        control=True,
    ),
    _learnt(
        "naive-bayes",
        "naive Bayes",
        counting("naive-bayes"),
        "words of the name among other facts",
        control=True,
    ),
    _learnt(
        "optiprompt-random",
        "OptiPrompt, random model",
        optimised("optiprompt", "soft", RANDOM),
        "the same on random weights",
        control=True,
    ),
    _learnt(
        "optiprompt-random-embeddings",
        "OptiPrompt, random embeddings",
        optimised("optiprompt", "soft", RANDOM_EMBEDDINGS),
        "the same on random embeddings",
        control=True,
    ),
    _learnt(
        "optiprompt-free-random",
        "OptiPrompt, random start, random model",
        optimised("optiprompt", "soft", RANDOM, variant="optiprompt-free"),
        "the same on random weights",
        control=True,
    ),
    _learnt(
        "autoprompt-random",
        "AutoPrompt, random model",
        optimised("autoprompt", of=RANDOM),
        "the same on random weights",
        control=True,
    ),
    _learnt(
        "lpaqa-random",
        "LPAQA ensemble, random model",
        optimised("lpaqa", "ensemble", RANDOM),
        "the same on random weights",
        control=True,
    ),
    _learnt(
        "finetune-random",
        "fine-tuning, random model",
        optimised("finetune", "finetuned", RANDOM),
        "the same on random weights",
        control=True,
    ),
)
