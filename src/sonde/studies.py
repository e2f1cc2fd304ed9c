"""Studies: every probe of a list on every dataset with every model, from one mapping or TOML file.

A study is a table of cells, each a run with its own folder. Keys are the names of flags. All
problems of a study are stated at once, before anything is loaded; a cell that fails leaves the
others unchanged, and the same study resumes with the missing ones.
"""

import inspect
import json
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
from sonde.models.load import check
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
            flag = f"--{name.replace('_', '-')}"
            if isinstance(value, bool):
                words += [flag] * value
            else:
                several = name == "template" and not isinstance(value, str)
                for one in value if several else [value]:
                    words += [flag, _text(one)]
        for name, value in self.settings.items():
            words += ["--set", f"{name}={_text(value)}"]
        return shlex.join(words)

    def config(self) -> str:
        """The TOML file whose study is this run alone."""
        run = {"model": self.model, "data": self.data, "probe": self.probe, "out": str(self.out)}
        sets = {"set": {self.probe: self.settings}} if self.settings else {}
        values = {**run, **self.select, **self.load, **sets}
        return "".join(f"{name} = {_toml(value)}\n" for name, value in values.items())


def _text(value: Any) -> str:
    if isinstance(value, Mapping):  # columns
        pairs = ((k, [v] if isinstance(v, str) else v) for k, v in value.items())
        value = [f"{role}={column}" for role, columns in pairs for column in columns]
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_toml(str(k))} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    # strings, numbers, true and false are written as in JSON
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


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
    for model in lists["model"]:
        problems += _problem(check, str(model))
    sets = values.get("set", {})
    if not isinstance(sets, Mapping) or not all(isinstance(v, Mapping) for v in sets.values()):
        problems.append("settings belong in a table of their probe, such as [set.profile]")
        sets = {}
    problems += [f"set.{p}: the study has no probe {p!r}" for p in sets if p not in lists["probe"]]
    settings: dict[str, Mapping[str, Any]] = {}
    for probe in lists["probe"]:
        chosen = {n: tuple(v) if isinstance(v, list) else v for n, v in sets.get(probe, {}).items()}
        settings[probe] = chosen
        if unknown := _problem(PROBES.find, probe):
            problems += unknown
            continue
        # one by one, so that all of them are stated
        for name, value in chosen.items():
            problems += _problem(build, PROBES.find(probe), {name: value})
    common = {key: values[key] for key in values if key in select}
    out, cells = Path(values.get("out", "runs")), []
    for probe in lists["probe"]:
        for data in lists["data"]:
            here = dict(data) if isinstance(data, Mapping) else {"data": data}
            name = str(here.pop("data", ""))
            wrong = [f": unknown {key!r}" for key in here if key not in select]
            if (not name or wrong) and probe == lists["probe"][0]:
                problems.append(
                    f"a dataset is a name, or a table with 'data' and {', '.join(select)}; "
                    f"not {data}{''.join(wrong[:1])}"
                )
            for model in map(str, lists["model"]):
                folder = out / "-".join(map(short, (str(probe), name, model)))
                how = {key: values[key] for key in values if key in load}
                more = settings.get(probe, {})
                cells.append(Cell(str(probe), model, name, folder, how, common | here, more))
    if len(cells) == 1 and "out" in values:
        cells = [cells[0]._replace(out=out)]
    again = [path for path, k in Counter(cell.out for cell in cells).items() if k > 1]
    if again and not problems:
        problems.append(f"two runs would be stored in {again[0]}; rename a model or a table")
    if problems:
        raise UsageError("; ".join(problems))
    return cells


def _problem(check: Callable[..., Any], *values: Any) -> list[str]:
    try:
        check(*values)
    except (SondeError, TypeError) as error:
        return [str(error)]
    return []


def short(reference: str) -> str:
    """A name for folders: the last part of a path, without its extension."""
    last = reference.rstrip("/:").rpartition("/")[2] or reference
    return re.sub(r"[^\w.-]+", "-", last.rpartition(":")[2].removesuffix(".csv"))


def prepare(cell: Cell) -> tuple[Any, Any, Dataset]:
    """The probe, the model and the dataset of a cell.

    For the profile a model chats if it has a chat template, unless `chat` is given.
    """
    select, load = dict(cell.select), dict(cell.load)
    if isinstance(columns := select.get("columns"), str):
        select["columns"] = parse_columns([columns])
    for name in ("relations", "languages"):
        if isinstance(names := select.get(name), str):
            select[name] = tuple(part.strip() for part in names.split(","))
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
    """Make one run of a study, or resume it. Its folder gets the config that repeats it."""
    probe, model, data = prepare(cell)
    config = cell.out / "config.toml"

    def tick(done: float, total: int) -> None:
        if done and not config.exists():  # also of a run that is stopped
            config.write_text(cell.config(), encoding="utf-8")
        if progress is not None:
            progress(done, total)

    with released(model):
        result = run(probe, model, data, cell.out, progress=tick)
    config.write_text(cell.config(), encoding="utf-8")
    return result


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
