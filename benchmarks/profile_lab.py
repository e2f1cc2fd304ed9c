"""The profile's estimate against what lab models have stored, over worlds with known truth.

The worlds, seeds and trainings below were written down before the first estimate was made on them.
A first version, with the chance of a relation, was tried on some of these models; chance by fact
was then chosen on other worlds (seeds 301 to 303). Train the models (`--train`, some hours on two
cores, minutes on a GPU), then run the profile on each of them.
"""

import argparse
import pickle
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import polars as pl

import sonde
from benchmarks.common import RESULTS, Result, tell
from sonde.evaluation import known
from sonde.evaluation.stats import random_generator
from sonde.lab.evaluation.measures import auroc
from sonde.lab.training.stored import _said, lessons
from sonde.lab.training.train import TrainSettings, open_trained, train
from sonde.lab.worlds.folder import open_world, write_world
from sonde.lab.worlds.settings import WorldSettings
from sonde.lab.worlds.world import make_world
from sonde.probes.profile import Profile, answer_form

# world: its settings, and the sizes of the causal and the masked model
WORLDS = {
    "w201": (WorldSettings(seed=201, skew=1.0, cues=0.3), "tiny", "tiny"),
    "w202": (WorldSettings(seed=202), "tiny", "tiny"),
    "w203": (
        WorldSettings(seed=203, skew=0.5, unshown=0, ladder=(2, 5, 10, 20, 50)),
        "tiny",
        "tiny",
    ),
    "w204": (WorldSettings(seed=204, skew=1.0, ladder=(0, 1, 2, 5)), "tiny", "tiny"),
    "w205": (WorldSettings(seed=205, skew=1.0, cues=0.3, ladder=(0, 2, 10, 50)), "small", "tiny"),
    "w206": (
        WorldSettings(seed=206, cues=0.3, unshown=0, ladder=(1, 5, 20, 100)),
        "small",
        "small",
    ),
}
# Amounts of training. The second and fourth were added when the first, third and last turned out to
# store almost nothing or almost all, before an estimate was made on them.
EPOCHS = {"causal": (1, 4, 7, 10, 15), "masked": (3, 10, 16, 22, 30)}
TRAINING_SEED = 7
FACTS = 40  # of each relation
SHOTS = {"causal": 10, "masked": 6}  # a masked model reads 128 tokens
TEXTS = 8  # of a fact, in which it may be recited
SETS: dict[str, Callable[[list[str]], list[str]]] = {
    "all": lambda names: names,
    "without templates": lambda names: [n for n in names if ":" not in n],
    "scored only": lambda names: [n for n in names if answer_form(n) != "generated"],
    "generated only": lambda names: [n for n in names if answer_form(n) == "generated"],
}


def names() -> list[str]:
    """The models: world, kind and epochs."""
    return [f"{w}-{kind}-{n}" for w in WORLDS for kind, all_ in EPOCHS.items() for n in all_]


def train_models(folder: Path, chosen: list[str], device: str = "auto") -> None:
    """Train some of the models into FOLDER; finished ones are kept."""
    for name in chosen:
        world_name, kind, epochs = name.split("-")
        settings, causal, masked = WORLDS[world_name]
        path = folder / "worlds" / world_name
        if not path.exists():
            write_world(make_world(settings), path)
        size = causal if kind == "causal" else masked
        training = TrainSettings(
            kind=cast(Literal["causal", "masked"], kind),
            size=size,
            epochs=int(epochs),
            seed=TRAINING_SEED,
            device=device,
        )
        train(open_world(path), training, folder / "models" / name, world_path=path)


class Model(NamedTuple):
    """What the instruments gave and what is true of one lab model, by fact."""

    instruments: list[str]
    correct: known.Floats
    chance: known.Floats
    dealt: known.Floats
    relation: known.Ints
    cluster: known.Ints
    stored: dict[str, float]  # share of facts in one text, in half of them, beyond dealing
    recited: known.Bools  # in at least one text


def measure(folder: Path, name: str) -> Model:
    """Run the profile on a model, and let it recite the texts that it was trained on."""
    world_name, kind, _ = name.split("-")
    world_path, path = folder / "worlds" / world_name, folder / "models" / name
    model = sonde.model(f"hf:{path}")
    data = sonde.dataset(world_path, limit=FACTS)
    run = sonde.run(Profile(shots=SHOTS[kind]), model, data, folder / "runs" / name)
    results = run.results()
    columns = ("fact_no", "relation", "cluster", "instrument", "correct", "baseline", "dealt")
    rows = (
        results.table(columns)
        .collect()
        .with_columns(pl.col("correct").cast(pl.Float64), pl.col("instrument").cast(pl.String))
    )
    instruments = rows["instrument"].unique(maintain_order=True).to_list()
    facts = rows.unique("fact_no", keep="first", maintain_order=True)
    correct, chance = (
        rows.pivot("instrument", index="fact_no", values=value)
        .select(instruments).to_numpy().astype(float)
        for value in ("correct", "baseline")
    )  # fmt: skip
    about = results.facts[facts["fact_no"].to_list()]
    stored = folder / "truth" / f"{name}.pkl"
    if not stored.exists():
        stored.parent.mkdir(exist_ok=True)
        stored.write_bytes(pickle.dumps(recite(model, path, world_path, about["fact"].to_list())))
    said = pickle.loads(stored.read_bytes())
    relation = facts["relation"].to_physical().to_numpy()
    shares, recited = beyond_dealing(said, about, relation)
    return Model(
        instruments, correct, chance, facts["dealt"].to_numpy(), relation,
        facts["cluster"].to_numpy(), shares, recited,
    )  # fmt: skip


def recite(model: Any, path: Path, world_path: Path, facts: list[str]) -> dict[str, list[Any]]:
    """For each fact what the model gives back in its texts, and what would be right there."""
    world, trained = open_world(world_path), open_trained(path)
    settings = trained.settings
    taught = lessons(world, settings.lists, settings.seed, facts=facts, most=TEXTS)
    asked = [(fact, lesson) for fact, texts in taught.items() for lesson in texts]
    said = defaultdict(list)
    for start in range(0, len(asked), 4096):
        part = asked[start : start + 4096]
        for (fact, lesson), text in zip(part, _said(model, part, world), strict=True):
            said[fact].append((text, lesson.objects))
    return dict(said)


def beyond_dealing(
    said: dict[str, list[Any]], facts: pl.DataFrame, relation: known.Ints
) -> tuple[dict[str, float], known.Bools]:
    """The shares of facts that are recited, less what texts of other facts would give."""
    ids = facts["fact"].to_list()
    names = [{name for o in objects for name in o} for objects in facts["gold_names"].to_list()]

    def shares(texts: list[Any], right: set[str] | None) -> tuple[bool, bool]:
        hits = [text in (objects if right is None else right) for text, objects in texts]
        return any(hits), bool(hits) and float(np.mean(hits)) >= 0.5

    own = np.array([shares(said.get(id, []), None) for id in ids])
    by_chance = np.zeros(own.shape)
    for i, number in enumerate(relation):
        others = [j for j in np.flatnonzero(relation == number) if j != i]
        by_chance[i] = np.mean([shares(said.get(ids[j], []), names[i]) for j in others], axis=0)
    s, c = own.mean(axis=0), by_chance.mean(axis=0)
    one, half = (s - c) / (1 - c)
    return {"one": float(one), "half": float(half)}, own[:, 0]


class Fit(NamedTuple):
    model: str
    set: str
    open: bool
    estimate: float
    low: float
    high: float
    one: float
    half: float
    singles: tuple[float, ...]
    any: float
    auroc: float


def fits(name: str, model: Model) -> Iterator[Fit]:
    """The estimate by every set of instruments that users get."""
    for label, choose in SETS.items():
        chosen = choose(model.instruments)
        if len(chosen) < 3 or (label == "scored only" and len(chosen) == len(model.instruments)):
            continue
        at = [model.instruments.index(n) for n in chosen]
        correct, chance = model.correct[:, at], model.chance[:, at]
        estimate = known.estimate_share_known(correct, chance)
        rng = random_generator(0, f"{name}:{label}")
        low, high = known.share_known_intervals(
            correct, chance, model.relation, model.cluster, rng
        )[None]
        mean = np.nanmean(model.correct, axis=1).mean()
        singles = tuple(np.nanmean(correct, axis=0).tolist())
        area = auroc(estimate.posterior, model.recited)
        yield Fit(
            name, label, bool(mean > known.evidence_threshold(model.dealt.mean(axis=0))),
            estimate.share,
            low, high, max(model.stored["one"], 0), max(model.stored["half"], 0), singles,
            float(np.nanmax(correct, axis=1).mean()), area[0] if area else float("nan"),
        )  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("folder", type=Path, help="with worlds/ and models/, runs go there too")
    options.add_argument("--train", action="store_true", help="train the models first")
    options.add_argument("--models", nargs="*", default=names())
    options.add_argument("--device", default="auto")
    options.add_argument("--write", action="store_true", help="store the pages of results")
    given = options.parse_args()
    if given.train:
        train_models(given.folder, given.models, given.device)
    models = {name: measure(given.folder, name) for name in given.models}
    every = [fit for name, model in models.items() for fit in fits(name, model)]
    tell_by_stored_share([fit for fit in every if fit.set == "all"], write=given.write)
    tell_by_posterior(models.values(), write=given.write)
    rows = []
    for label in SETS:
        part = [fit for fit in every if fit.set == label and fit.open]
        rows += [summary(label, part, truth) for truth in ("one", "half")]
    title = f"The share known as estimated, on {len(given.models)} lab models"
    columns = (
        "instruments", "truth: recited in", "models", "mean error", "mean absolute error",
        "largest", "in the interval", "best single: mean absolute error", "mean of singles", "any",
    )  # fmt: skip
    tell(
        Result(name="profile_lab", title=title, columns=columns, rows=tuple(rows)),
        write=given.write,
    )
    lines = [
        (f.model, f.set, "open" if f.open else "closed", f"{f.one:.3f}", f"{f.half:.3f}",
         f"{f.estimate:.3f}", f"{f.low:.3f} to {f.high:.3f}", f"{min(f.singles):.2f}",
         f"{max(f.singles):.2f}", f"{f.any:.2f}", f"{f.auroc:.2f}")
        for f in every
    ]  # fmt: skip
    heads = (
        "model", "instruments", "gate", "stored: one text", "half of them", "estimate", "95% CI",
        "lowest single", "highest single", "any", "AUROC",
    )  # fmt: skip
    result = Result(name="profile_lab_models", title="By model", columns=heads, rows=tuple(lines))
    tell(result, write=given.write)
    if given.write:
        print(RESULTS)


def tell_by_stored_share(every: list[Fit], *, write: bool) -> None:
    """Errors by stored share, of models with evidence, and of those that know nothing."""
    rows = []
    for low, high in ((0.0, 0.1), (0.1, 0.3), (0.3, 0.6), (0.6, 1.01)):
        part = [f for f in every if f.open and low <= f.one < high]
        true = np.array([f.one for f in part])
        numbers = (
            [f.estimate for f in part],
            [max(f.singles) for f in part],
            [float(np.mean(f.singles)) for f in part],
            [f.any for f in part],
        )
        errors = [np.array(values) - true for values in numbers]
        means = [f"{error.mean():+.3f}" for error in errors]
        absolute = f"{np.abs(errors[0]).mean():.3f}"
        area = f"{np.nanmean([f.auroc for f in part]):.2f}"
        rows.append(
            (f"{low:.1f} to {high:.1f}", str(len(part)), means[0], absolute, *means[1:], area)
        )
    nothing = [f for f in every if f.one < 0.02]
    opened = [f"{f.estimate:.3f}" for f in nothing if f.open]
    findings = (
        f"{len(nothing)} models store less than 2% of the facts; {len(opened)} show evidence "
        f"(estimates {', '.join(opened)}). Without the test for evidence the largest estimate is "
        f"{max(f.estimate for f in nothing):.3f}.",
    )
    columns = (
        "stored in one text", "models", "mean error", "mean absolute error", "best single: error",
        "mean of singles: error", "any: error", "AUROC",
    )  # fmt: skip
    title = "Errors by the share that is stored, all instruments"
    result = Result(
        name="profile_lab_stored", title=title, columns=columns, rows=tuple(rows), findings=findings
    )
    tell(result, write=write)


def tell_by_posterior(models: Iterable[Model], *, write: bool) -> None:
    """How many facts with which P(known) are recited, of models with evidence."""
    posterior, recited = [], []
    for model in models:
        mean = np.nanmean(model.correct, axis=1).mean()
        if mean > known.evidence_threshold(model.dealt.mean(axis=0)):
            fit = known.estimate_share_known(model.correct, model.chance)
            posterior.append(fit.posterior)
            recited.append(model.recited)
    p, r = np.concatenate(posterior), np.concatenate(recited)
    rows = []
    for low, high in ((0.0, 0.05), (0.05, 0.5), (0.5, 0.95), (0.95, 1.01)):
        here = (p >= low) & (p < high)
        rows.append(
            (
                f"{low:.2f} to {high:.2f}",
                str(here.sum()),
                f"{p[here].mean():.3f}",
                f"{r[here].mean():.3f}",
            )
        )
    columns = ("P(known)", "facts", "mean", "recited in one text")
    result = Result(
        name="profile_lab_posterior",
        title="Calibration of P(known)",
        columns=columns,
        rows=tuple(rows),
    )
    tell(result, write=write)


def summary(label: str, part: list[Fit], truth: str) -> tuple[str, ...]:
    """Errors of the estimate where the gate is open, and of simpler numbers."""
    true = np.array([getattr(f, truth) for f in part])

    def error(values: list[float]) -> str:
        return f"{np.abs(np.array(values) - true).mean():.3f}"

    errors = np.array([f.estimate for f in part]) - true
    inside = sum(f.low <= t <= f.high for f, t in zip(part, true, strict=True))
    return (
        label,
        "one text" if truth == "one" else "half of its texts",
        str(len(part)),
        f"{errors.mean():+.3f}",
        f"{np.abs(errors).mean():.3f}",
        f"{np.abs(errors).max():.3f}",
        f"{inside} of {len(part)}",
        error([max(f.singles) for f in part]),
        error([float(np.mean(f.singles)) for f in part]),
        error([f.any for f in part]),
    )


if __name__ == "__main__":
    main()
