"""Studies: every probe of a list on every dataset with every model, from one mapping or TOML file.

A study is a table of cells, each a run with a folder of its own. Keys are the names of flags. All
problems of a study are stated at once, before anything is loaded; a cell that fails leaves the
others as they are, and the same study goes on with what is missing.
"""

import inspect
import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sonde import api
from sonde.core.components import build
from sonde.core.errors import AbilityError, SondeError, UsageError, nearest
from sonde.core.facts import Dataset
from sonde.data.tables.columns import parse_columns
from sonde.probes import PROBES
from sonde.runs.refusals import suited
from sonde.runs.run import Run, released, run

LISTS = ("model", "data", "probe")


def flags(function: Callable[..., Any]) -> list[str]:
    """The names of what a function takes as keywords."""
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind == p.KEYWORD_ONLY and p.name not in ("data", "on")]


class Cell(NamedTuple):
    """One run of a study: its values of flags, and where it is stored."""

    probe: str
    model: str
    data: str
    out: Path
    load: Mapping[str, Any]
    select: Mapping[str, Any]
    settings: Mapping[str, Any]

    def command(self) -> str:
        """The command that makes this run alone."""
        words = ["sonde", "run", self.probe, "-m", self.model, "-d", self.data, "-o", str(self.out)]
        for name, value in {**self.select, **self.load}.items():
            for one in value if isinstance(value, list) and name == "template" else [value]:
                text = ",".join(map(str, one)) if isinstance(one, (list, tuple)) else str(one)
                words += [f"--{name.replace('_', '-')}", text]
        for name, value in self.settings.items():
            words += ["--set", f"{name}={value}"]
        return shlex.join(words)


def read_study(config: Mapping[str, Any] | str | Path) -> list[Cell]:
    """The cells of a study; UsageError with all problems if it has any.

    Example:
        >>> [c.out.name for c in read_study({"model": ["smollm2"], "data": ["atlas"]})]
        ['profile-atlas-smollm2']
    """
    if not isinstance(config, Mapping):
        try:
            config = tomllib.loads(Path(config).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise UsageError(f"the config {config} cannot be read: {error}") from None
    load, select = flags(api.model), flags(api.dataset)
    known = (*LISTS, "out", "set", *load, *select)
    values = {key.replace("-", "_"): value for key, value in config.items()}
    problems = [f"unknown key {key!r}; {nearest(key, known)}" for key in values if key not in known]
    lists: dict[str, list[Any]] = {}
    for name in LISTS:
        value = values.get(name, ["profile"] if name == "probe" else [])
        lists[name] = value if isinstance(value, list) else [value]
        if not lists[name]:
            problems.append(f"no {name} is given")
        texts = [str(one) for one in lists[name]]
        problems += [f"{name} {n!r} is listed twice" for n, k in Counter(texts).items() if k > 1]
    sets = values.get("set", {})
    problems += [f"set.{p}: the study has no probe {p!r}" for p in sets if p not in lists["probe"]]
    settings: dict[str, Mapping[str, Any]] = {}
    for probe in lists["probe"]:
        settings[probe] = sets.get(probe, {}) if isinstance(sets, Mapping) else {}
        try:
            build(PROBES.find(probe), settings[probe])
        except (SondeError, TypeError) as error:
            problems.append(str(error))
    if problems:
        raise UsageError("; ".join(problems))
    common = {key: values[key] for key in values if key in select}
    out, cells = Path(values.get("out", "runs")), []
    for probe in lists["probe"]:
        for data in lists["data"]:
            here = {"data": data} if isinstance(data, str) else dict(data)
            name = here.pop("data", "")
            if not name or (wrong := [key for key in here if key not in select]):
                raise UsageError(
                    f"a dataset is a name, or a table with 'data' and {', '.join(select)}; "
                    f"not {data}" + (f": unknown {wrong[0]!r}" if name else "")
                )
            for model in lists["model"]:
                folder = out / "-".join(map(short, (probe, name, model)))
                how = {key: values[key] for key in values if key in load}
                cells.append(Cell(probe, model, name, folder, how, common | here, settings[probe]))
    if len(cells) == 1 and "out" in values:
        return [cells[0]._replace(out=out)]
    if again := [path for path, k in Counter(cell.out for cell in cells).items() if k > 1]:
        raise UsageError(f"two runs would be stored in {again[0]}; rename a model or a table")
    return cells


def short(reference: str) -> str:
    """A name for folders: the last part of a path, without its extension."""
    last = reference.rstrip("/").rpartition("/")[2] or reference
    return re.sub(r"[^\w.-]+", "-", last.rpartition(":")[2].removesuffix(".csv"))


def prepare(cell: Cell) -> tuple[Any, Any, Dataset]:
    """The probe, the model and the dataset of a cell.

    For the profile a model chats if it has a chat template, unless `chat` is given.
    """
    select, load = dict(cell.select), dict(cell.load)
    if isinstance(columns := select.get("columns"), str):
        select["columns"] = parse_columns(columns.split(","))
    data = api.dataset(cell.data, **select)
    automatic = cell.probe == "profile" and load.get("chat", "auto") == "auto"
    try:
        model = api.model(cell.model, data=data, **load | ({"chat": "always"} if automatic else {}))
    except AbilityError:
        if not automatic:
            raise
        model = api.model(cell.model, data=data, **load | {"chat": "never"})
    return suited(build(PROBES.find(cell.probe), cell.settings), model, data), model, data


def run_cell(cell: Cell, progress: Callable[[float, int], None] | None = None) -> Run:
    """Make one run of a study, or go on with it."""
    probe, model, data = prepare(cell)
    with released(model):
        return run(probe, model, data, cell.out, progress=progress)


def study(config: Mapping[str, Any] | str | Path) -> Iterator[tuple[Cell, Run | SondeError]]:
    """Make the runs of a study one after the other; a cell that fails comes with its error.

    Args:
        config: a mapping, or the path of a TOML file, such as

            model = ["smollm2", "hf:FOLDER"]
            data = ["atlas", {data = "facts.csv", template = "The capital of [X] is [Y]."}]
            probe = ["profile"]
            limit = 40
            out = "runs/study"

            [set.profile]
            shots = 5

    Example:
        >>> runs = [run for cell, run in sonde.study("study.toml")]
    """
    for cell in read_study(config):
        try:
            yield cell, run_cell(cell)
        except SondeError as error:
            yield cell, error
