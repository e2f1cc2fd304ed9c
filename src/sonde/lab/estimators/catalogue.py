"""Every estimator of what a model knows, by name: how it is asked, how its answers are read.

Answers come through the ordinary public probe and are judged by it. Knows no truth: what an
estimator says is compared with it elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from polars import DataFrame

from sonde.core.errors import UsageError, nearest
from sonde.lab.estimators.asking import (
    RANDOM,
    RANDOM_EMBEDDINGS,
    UNUSED,
    Ask,
    asking,
    counting,
    optimised,
)
from sonde.lab.estimators.reading import (
    AVERAGE,
    LIKELIEST,
    STAYS,
    read_anchor,
    read_distance,
    read_judged,
)
from sonde.lab.training.train import Kind
from sonde.runs.run import Run

Read = Callable[[Run], DataFrame]
"""What the answers of a run say of each fact; columns as `Verdicts` has them."""

BOTH: tuple[Kind, ...] = ("causal", "masked")
CAUSAL: tuple[Kind, ...] = ("causal",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimator:
    """A way to tell which facts a model knows.

    says: what its score and its decision are, in a line. kinds: the models it fits. ask: puts the
    questions, once whoever reads the answers; `folder` is where they are kept. learns: it is
    trained on other facts, or counts them. control: it is what estimators are held against.
    """

    name: str
    says: str
    kinds: tuple[Kind, ...]
    folder: str
    ask: Ask
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


LIKELY = "probability of the object among the answers allowed; known if it is the likeliest"
SHARE = "which is also what counts; known if over half"

FIRST = partial(read_judged, first=True)
AVERAGED = partial(read_judged, score=AVERAGE)
ORACLE = partial(read_judged, score=LIKELIEST, any=True)

PROBES: tuple[tuple[str, str, Read, tuple[Kind, ...], str], ...] = (
    ("lama", "lama", read_judged, BOTH, f"the first template: {LIKELY}"),
    ("lama-unused", UNUSED, read_judged, BOTH, f"a template that the text never uses: {LIKELY}"),
    ("belief-average", "belief", AVERAGED, BOTH, f"share of prompts answered right, {SHARE}"),
    ("belief-max", "belief", partial(read_judged, best=True), BOTH,
     "the template that answers most facts of the relation: probability of the object; known if "
     "it is the likeliest"),
    ("belief-oracle", "belief", ORACLE, BOTH,
     "highest probability of the object in any prompt; known if any prompt is answered right"),
    ("belief-icl", "belief-icl", AVERAGED, CAUSAL,
     f"share of prompts answered right in writing after examples, {SHARE}"),
    ("ic-lke", "ic-lke", FIRST, CAUSAL,
     "probability of the object among the options after a list of other facts; known if it is the "
     "likeliest"),
    ("eic-lke", "eic-lke", FIRST, CAUSAL,
     "probability of the object among the options inside a list of other facts; known if it is "
     "the likeliest"),
    ("monitor-anchor", "monitor", read_anchor, CAUSAL,
     "probability of the object after its own name; known if it is answered there"),
    ("monitor-distance", "monitor", read_distance, CAUSAL,
     "1 less how far the object's probability moves from its anchor, 0 without a valid one; known "
     f"if it moves at most {STAYS:g}"),
)  # fmt: skip
"""Name, probe, how it is read, for which models, and what it says."""

FREE = "optiprompt-free"
METHODS: Mapping[str, tuple[Callable[..., Ask], str]] = {
    "optiprompt": (partial(optimised, "optiprompt", "soft"), "vectors trained on other facts"),
    FREE: (
        partial(optimised, "optiprompt", "soft", variant=FREE),
        "vectors from a random start, trained fast on other facts",
    ),
    "autoprompt": (partial(optimised, "autoprompt"), "tokens searched on other facts"),
    "lpaqa": (
        partial(optimised, "lpaqa", "ensemble"),
        "templates averaged with weights tuned on other facts",
    ),
    "finetune": (partial(optimised, "finetune", "finetuned"), "tuned on other facts"),
}
"""What learns from other facts, and how."""

CONTROLS: Mapping[str, tuple[Ask, str]] = {
    "class-prior": (counting("class-prior"), "share of the object among other facts"),
    "naive-bayes": (counting("naive-bayes"), "words of the name among other facts"),
    **{
        f"{name}-{what}": (METHODS[name][0](of=reference), f"the same on random {weights}")
        for name, what, reference, weights in (
            ("optiprompt", "random", RANDOM, "weights"),
            ("optiprompt", "random-embeddings", RANDOM_EMBEDDINGS, "embeddings"),
            *((name, "random", RANDOM, "weights") for name in METHODS if name != "optiprompt"),
        )
    },
}
"""What they are held against."""


def _learner(name: str, ask: Ask, how: str) -> Estimator:
    return Estimator(
        name=name,
        says=f"{how}: {LIKELY}",
        kinds=BOTH,
        folder=name,
        ask=ask,
        read=read_judged,
        learns=True,
        control=name in CONTROLS,
    )


ALL = (
    *(
        Estimator(name=name, says=says, kinds=kinds, folder=probe, ask=asking(probe), read=read)
        for name, probe, read, kinds, says in PROBES
    ),
    *(_learner(name, method(), how) for name, (method, how) in METHODS.items()),
    *(_learner(name, *control) for name, control in CONTROLS.items()),
)
