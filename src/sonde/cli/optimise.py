"""`sonde optimise METHOD`: make templates out of training facts; a method's settings are flags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, asdict, dataclass
from pathlib import Path

from sonde.cli.console import print_json, print_table, progress, resumable, say, tell
from sonde.cli.options import (
    DATA,
    DEVICE_MAP,
    MAX_MEMORY,
    RELATIONS,
    REVISION,
    SEED,
    TRUST,
    AskOptions,
    ComputeOptions,
    listed,
    matching,
    option,
)
from sonde.cli.verbs import components
from sonde.core.errors import UsageError
from sonde.optimise.making import Made, Method, Order, methods, optimise


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnOptions(AskOptions):
    """Which model learns from which dataset."""

    data: str = option(DATA, MISSING, "--data", "-d")


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOptions(ComputeOptions):
    """How a model is loaded whose gradients are taken."""

    dtype: str = option(
        "Of the model: float32, float16 or bfloat16; vectors are float32.", "float32"
    )
    revision: str | None = option(REVISION, None)
    trust_remote_code: bool = option(TRUST, False, "--trust-remote-code")
    device_map: str = option(DEVICE_MAP, "")
    max_memory: str = option(MAX_MEMORY, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimiseOptions:
    """What a method learns from, and what is kept and shown."""

    ask: LearnOptions
    out: Path = option(
        "Folder for what is made; a killed command goes on there.", MISSING, "--out", "-o"
    )
    relations: str = option(RELATIONS, "")
    limit: int | None = option("Learn from at most this many facts per relation and split.", None)
    seed: int = option(SEED, 0)
    drop_leaked: bool = option(
        "Leave training facts out that are test facts too.", False, "--drop-leaked"
    )
    load: FitOptions
    as_json: bool = option("Print what was made as JSON.", False, "--json")


@resumable()
def run_method(method: Method, wanted: OptimiseOptions) -> None:
    """Run one method; what every method's command has in common."""
    if wanted.limit is not None and wanted.limit < 1:
        raise UsageError(f"--limit must be at least 1, not {wanted.limit}")
    ask, out = wanted.ask, wanted.out
    dataset = ask.facts.open(ask.data, wanted.load.device)
    model = wanted.load.load(ask.model, dataset)
    order = matching(Order, wanted, relations=listed(wanted.relations))
    with progress(f"{method.name} on {dataset.name}") as tick:
        made = optimise(method, model, dataset, out, reference=ask.model, order=order, tick=tick)
    show(method.name, made, out, as_json=wanted.as_json)


def show(method: str, made: Sequence[Made], out: Path, *, as_json: bool) -> None:
    """Print each relation's result, and what could not be made."""
    if as_json:
        rows = [{k: v for k, v in asdict(each).items() if k != "vectors"} for each in made]
        print_json({"method": method, "folder": str(out), "relations": rows})
        return
    print_summary(method, made)
    problems = [f"{each.relation}: {each.problem}" for each in made if each.problem]
    for line in (*problems, *notes(made)):
        tell(line)
    say(f"folder: {out}")


def print_summary(method: str, made: Sequence[Made]) -> None:
    """One row a relation, and their mean."""
    rows = []
    for each in made:
        counts = [f"{each.counts.get(key, 0):,}" for key in ("train", "dev")]
        shares = [_percent(each.before), _percent(each.after)]
        rows.append([each.relation, *counts, *shares, f"{each.epochs:.1f}"])
    both = [(m.before, m.after) for m in made if m.before is not None and m.after is not None]
    if len(made) > 1 and both:
        means = (sum(part) / len(both) for part in zip(*both, strict=True))
        rows.append([f"mean over {len(both)}", "", "", *map(_percent, means), ""])
    title = f"{method}: share of dev facts answered correctly"
    titles = ("relation", "train facts", "dev facts", "dev before", "dev after", "epochs")
    print_table(titles, rows, right=range(1, 6), title=title)


def notes(found: Sequence[Made]) -> list[str]:
    """What was left out, in sentences."""
    told = {
        "leaked": "training and dev facts were test facts too, and left out",
        "outside_vocabulary": "training and dev facts have no object that may be answered",
        "too_long": "training and dev facts are too long for the model",
        "held_out": "training facts were held out, for relations without dev facts",
        "tokenised_otherwise": "facts are tokenised otherwise around the vectors than in the text",
        "as_vectors": "relations have triggers that no text gives: vectors, for soft:FOLDER",
        "templates_unfit": "templates, left out, have a masked position that no answer fits",
    }
    totals = {key: sum(each.counts.get(key, 0) for each in found) for key in told}
    return [f"{totals[key]:,} {sentence}" for key, sentence in told.items() if totals[key]]


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"


app = components(
    "Make templates out of training facts, to ask with.\n\n"
    "Example: sonde optimise optiprompt -m hf:FOLDER -d lama:FOLDER --relations P36 --limit 50 "
    "-o prompts/opti\n\n"
    "Then: sonde run lama -m soft:prompts/opti -d lama:FOLDER --template optimised:prompts/opti "
    "--relations P36 --limit 50",
    run_method,
    methods(),
    "sonde optimise {name} -m hf:FOLDER -d lama:FOLDER --relations P36 --limit 50 "
    "-o prompts/{name}",
)
