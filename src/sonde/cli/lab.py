"""`sonde lab`: invent worlds, train models on them, and see which probes tell the truth."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import MISSING, asdict, dataclass, replace
from pathlib import Path

from sonde.cli.console import print_table, progress, resumable, say, waiting
from sonde.cli.options import DEVICE, FOLDER, FORCE, JSON, argument, listed, matching, option, verb
from sonde.cli.report import show_report, write_html
from sonde.cli.verbs import group
from sonde.core.errors import DataError, UsageError
from sonde.core.reports import Report, Table
from sonde.data.builders import check_place
from sonde.lab.estimators.asking import Effort
from sonde.lab.estimators.catalogue import estimators
from sonde.lab.evaluation.validating import Order, Validated, alone
from sonde.lab.evaluation.validating import validate as ask
from sonde.lab.report.report import lab_report
from sonde.lab.training.train import Trained, TrainSettings
from sonde.lab.training.train import train as fit
from sonde.lab.worlds.folder import open_world, write_world
from sonde.lab.worlds.settings import WorldSettings
from sonde.lab.worlds.text import length
from sonde.lab.worlds.world import World, make_world
from sonde.reports.legacy import table

SHIPPED = Path(__file__).parents[1] / "lab" / "shipped"
KINDS = ("causal", "masked")
OUT = Path("runs/lab")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldOptions:
    """Where a world is written."""

    out: Path = option(FOLDER, MISSING, "--out", "-o")
    force: bool = option(FORCE, False, "--force")


def world(settings: WorldSettings, place: WorldOptions) -> None:
    """Make a world and write it."""
    check_place(place.out, force=place.force)
    with waiting("inventing a world"):
        invented = make_world(settings)
    with progress("writing sentences") as tick:
        write_world(invented, place.out, force=place.force, tick=tick)
    show_world(invented, place.out)


def show_world(world: World, out: Path) -> None:
    """Print what the world holds."""
    titles = ("relations", "number", "facts", "taught", "statements", "guessed by name")
    rows = []
    for kind, shown, relations, facts, taught, mentions, *guessed in world.counts().iter_rows():
        numbers = (f"{number:,}" for number in (relations, facts, taught, mentions))
        shares = (f"{100 * part / facts:.1f} %" if part else "–" for part in guessed)
        rows.append((kind if shown else f"{kind}, unshown", *numbers, *shares))
    print_table((*titles, "as commonest"), rows, right=range(1, 7))
    text = length(world)
    say(
        f"text: {text.sentences:,} sentences, {text.words:,} words and marks; "
        f"{text.different:,} different ones in all"
    )
    say(f"world {world.fingerprint}, folder: {out}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainOptions:
    """Which world is learnt, and where the model is kept."""

    folder: Path = argument("Folder of the world.", metavar="WORLD")
    out: Path = option(
        "Folder for the model; a killed training goes on there.", MISSING, "--out", "-o"
    )


@resumable()
def train(settings: TrainSettings, wanted: TrainOptions) -> None:
    """Train a model and keep it."""
    with waiting(f"opening {wanted.folder}"):
        world = open_world(wanted.folder)
    with progress(f"training a {settings.size} {settings.kind} model") as tick:
        trained = fit(world, settings, wanted.out, world_path=wanted.folder, tick=tick)
    show_trained(trained)


def show_trained(found: Trained) -> None:
    """Print what was trained, and how to ask it."""
    say(
        f"{found.settings.size} {found.kind} model: {found.parameters:,} parameters, "
        f"{found.steps:,} steps, a text of {found.tokens:,} tokens in {found.settings.epochs} "
        f"readings, loss {found.loss:.3f} nats a token"
    )
    kept = [str(each.step) for each in found.checkpoints()]
    if kept:
        say(f"checkpoints after {', '.join(kept)} steps")
    say(f"model: hf:{found.path}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateOptions:
    """Which models are asked, by which estimators, and what is shown."""

    models: list[Path] | None = argument(
        "Folders that 'sonde lab train' made.", None, metavar="MODEL…"
    )
    out: Path = option(
        "Folder for everything asked; a killed command goes on there.", OUT, "--out", "-o"
    )
    shipped: bool = option("The two small models that come with sonde.", False, "--shipped")
    estimators: str = option("Only these, separated by commas; all that fit if none is named.", "")
    effort: Effort = option(
        "quick: seconds each on a small model; full: nothing left out.", "quick"
    )
    limit: int | None = option("Ask about at most this many facts per relation.", None)
    world: Path | None = option("Where the models' world is, if it was moved.", None)
    seed: int = option("Of which facts are asked, shown and learnt from.", 0)
    timeline: bool = option("Also ask the checkpoints, with a few estimators.", False, "--timeline")
    device: str = option(DEVICE, "auto")
    html: Path | None = option("Where the HTML report goes; OUT/report.html if not named.", None)
    figures: Path | None = option("Write every figure as SVG into this folder.", None)
    as_json: bool = option(JSON, False, "--json")


@verb
@resumable()
def validate(wanted: ValidateOptions) -> None:
    """Ask every estimator about models whose knowledge is known, and say how far it is right.

    Example: sonde lab validate --shipped --estimators lama -o runs/lab
    """
    models = [*(wanted.models or ()), *(shipped_models() if wanted.shipped else ())]
    if not models:
        raise UsageError("name the folder of a model that 'sonde lab train' made, or --shipped")
    order = matching(Order, wanted, names=listed(wanted.estimators))
    validated = ask(models, wanted.out, order, progress)
    with waiting("comparing with the truth"):
        report = reported(validated)
    made_of, page = provenance(models, order, validated), wanted.html or wanted.out / "report.html"
    with alone(wanted.out):
        write_html(report, made_of, page)
    lines = [f"folder: {wanted.out}", f"report: {page}"]
    show_report(report, made_of, lines, figures=wanted.figures, as_json=wanted.as_json)


def shipped_models(folder: Path = SHIPPED) -> list[Path]:
    """The models that come with sonde."""
    found = [folder / kind for kind in KINDS]
    for path in found:
        if not (path / "lab.json").is_file():
            raise DataError(
                f"the models that come with sonde are not in this installation ({path} is "
                "missing); install sonde anew, or train some with 'sonde lab train'"
            )
    return found


def reported(found: Validated) -> Report:
    """The report, with what had to be left out among its notes."""
    report = lab_report(found.trials, found.timeline)
    asked = {verdicts.estimator for trial in found.trials for verdicts in trial.verdicts}
    return replace(
        report,
        tables=(*report.tables, what_they_say(asked)),
        notes=(*report.notes, *(f"{left}." for left in found.left)),
    )


def what_they_say(names: Collection[str]) -> Table:
    """What the score and the decision of each estimator are."""
    says = "score; and when it is known"
    rows = [{"estimator": e.name, says: e.says} for e in estimators().values() if e.name in names]
    title = "What each estimator says of a fact"
    return table(rows, ["estimator", says], id="estimators", title=title)


def provenance(models: Sequence[Path], order: Order, found: Validated) -> dict[str, object]:
    """Where the numbers come from: models, worlds, settings and what was left out."""
    return {
        "settings": asdict(order) | {"world": order.world and str(order.world)},
        "folders": [str(folder) for folder in models],
        "models": [
            {
                "model": trial.model,
                "kind": trial.kind,
                "world": trial.world,
                "steps": trial.step,
                "facts": len(trial.facts),
                "estimators": [verdicts.estimator for verdicts in trial.verdicts],
            }
            for trial in found.trials
        ],
        "left_out": [asdict(left) for left in found.left],
    }


WORLD_HELP = (
    "The folder is a dataset for every probe, with truth.jsonl and text.txt beside it.\n\n"
    "Example: sonde lab world -o worlds/0 --seed 0 --skew 1 --cues 0.3 --ladder 0,1,10,50"
)
TRAIN_HELP = (
    "The folder is an ordinary transformers model: ask it as hf:FOLDER. The same command goes on "
    "with a training that was broken off.\n\n"
    "Example: sonde lab train worlds/0 --kind causal --size 64x2 --epochs 1 -o models/0-causal"
)


VERBS = {
    "world": verb(world, WorldSettings, WORLD_HELP),
    "train": verb(train, TrainSettings, TRAIN_HELP),
    "validate": validate,
}
app = group(
    "Do the probes tell the truth? Ask models taught invented facts.\n\n"
    "Example: sonde lab world -o worlds/0 --seed 0",
    VERBS,
    VERBS.__getitem__,
)
