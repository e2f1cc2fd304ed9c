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


def _plain(probe: str) -> Asking:
    return Asking(name=probe, ask=plainly(probe))


LIKELY = "probability of the object among the answers allowed; known if it is the likeliest"
SHARE = "which is also what counts; known if over half"

ONE, CHOICE = _judged(read_one), _judged(read_one, first=True)
BELIEF, MONITOR = _plain("belief"), _plain("monitor")

PROBES: tuple[tuple[str, str, Asking, Read, tuple[Kind, ...], str], ...] = (
    ("lama", "LAMA", _plain("lama"), ONE, BOTH, f"the first template: {LIKELY}"),
    ("lama-unused", "LAMA, unused template", Asking(name="lama-unused", ask=unused), ONE, BOTH,
     f"a template that the text never uses: {LIKELY}"),
    ("belief-average", "BELIEF average", BELIEF, _judged(read_average), BOTH,
     f"share of prompts answered right, {SHARE}"),
    ("belief-max", "BELIEF maximum", BELIEF, _judged(read_best), BOTH,
     "the template that answers most facts of the relation: probability of the object; known if "
     "it is the likeliest"),
    ("belief-oracle", "BELIEF oracle", BELIEF, _judged(read_any), BOTH,
     "highest probability of the object in any prompt; known if any prompt is answered right"),
    ("belief-icl", "BELIEF-ICL", _plain("belief-icl"), _judged(read_average), CAUSAL,
     f"share of prompts answered right in writing after examples, {SHARE}"),
    ("ic-lke", "IC-LKE", _plain("ic-lke"), CHOICE, CAUSAL,
     "probability of the object among the options after a list of other facts; known if it is the "
     "likeliest"),
    ("eic-lke", "EIC-LKE", _plain("eic-lke"), CHOICE, CAUSAL,
     "probability of the object among the options inside a list of other facts; known if it is "
     "the likeliest"),
    ("monitor-anchor", "MONITOR anchor", MONITOR, _monitored(read_anchor), CAUSAL,
     "probability of the object after its own name; known if it is answered there"),
    ("monitor-distance", "MONITOR distance", MONITOR, _monitored(read_distance), CAUSAL,
     "1 less how far the object's probability moves from its anchor, 0 without a valid one; known "
     f"if it moves at most {STAYS:g}"),
)  # fmt: skip
"""Name, label, what is asked, how it is read, for which models, and what it says."""

FREE, WEIGHTS = "optiprompt-free", "the same on random weights"

LEARNT: tuple[tuple[str, str, Ask, str], ...] = (
    ("optiprompt", "OptiPrompt", optimised("optiprompt", "soft"), "vectors trained on other facts"),
    (FREE, "OptiPrompt, random start", optimised("optiprompt", "soft", variant=FREE),
     "vectors from a random start, trained fast on other facts"),
    ("autoprompt", "AutoPrompt", optimised("autoprompt"), "tokens searched on other facts"),
    ("lpaqa", "LPAQA ensemble", optimised("lpaqa", "ensemble"),
     "templates averaged with weights tuned on other facts"),
    ("finetune", "fine-tuning", optimised("finetune", "finetuned"), "tuned on other facts"),
)  # fmt: skip
CONTROLS: tuple[tuple[str, str, Ask, str], ...] = (
    ("class-prior", "class prior", counting("class-prior"),
     "share of the object among other facts"),
    ("naive-bayes", "naive Bayes", counting("naive-bayes"), "words of the name among other facts"),
    ("optiprompt-random", "OptiPrompt, random model", optimised("optiprompt", "soft", RANDOM),
     WEIGHTS),
    ("optiprompt-random-embeddings", "OptiPrompt, random embeddings",
     optimised("optiprompt", "soft", RANDOM_EMBEDDINGS), "the same on random embeddings"),
    ("optiprompt-free-random", "OptiPrompt, random start, random model",
     optimised("optiprompt", "soft", RANDOM, variant=FREE), WEIGHTS),
    ("autoprompt-random", "AutoPrompt, random model", optimised("autoprompt", of=RANDOM), WEIGHTS),
    ("lpaqa-random", "LPAQA ensemble, random model", optimised("lpaqa", "ensemble", RANDOM),
     WEIGHTS),
    ("finetune-random", "fine-tuning, random model", optimised("finetune", "finetuned", RANDOM),
     WEIGHTS),
)  # fmt: skip
"""What learns from other facts and what that is held against: name, label, what is asked, how."""


def _all() -> Iterator[Estimator]:
    for name, label, asking, read, kinds, says in PROBES:
        yield Estimator(name=name, label=label, says=says, kinds=kinds, asking=asking, read=read)
    for name, label, ask, how in (*LEARNT, *CONTROLS):
        yield Estimator(
            name=name,
            label=label,
            says=f"{how}: {LIKELY}",
            kinds=BOTH,
            asking=Asking(name=name, ask=ask),
            read=ONE,
            learns=True,
            control=name in [row[0] for row in CONTROLS],
        )


ALL = tuple(_all())
