"""Stored runs as analyses take them: opened, named by what sets them apart, and grouped."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sonde.core.columns import Answers, Kept
from sonde.core.errors import UsageError, nearest
from sonde.models.families import Described, describe, model_table, plain
from sonde.runs.certificates import doubt
from sonde.runs.forms import form_settings
from sonde.runs.run import Run, open_run, selection_of

if TYPE_CHECKING:
    from sonde.analysis.learning.facts import Learning
    from sonde.analysis.runs import Compared, Lineage, Made
    from sonde.core.facts import Dataset
    from sonde.core.reports import Report
    from sonde.metrics.distance import Monitored, Monitors
    from sonde.metrics.judged import Judged

WHO = ("model", "probe")
SPEAK = (*WHO, "style", "context", "answer", "frame")
"""What is understood without its key: zero-shot, not context=zero-shot."""

OF_MODELS = ("family", "stage", "architecture", "corpus")

Table = Mapping[str, Described]


def opened(
    given: Sequence[Run | str | Path], advice: str = "sonde.compare(RUN, RUN)"
) -> dict[str, Run]:
    """The runs by name, in the order given; a run that stands there twice is refused.

    NAME=FOLDER gives a run a name of its own. `advice`: how a comparison is called.
    """
    if len(given) < 2:
        raise UsageError(f"a comparison needs at least two runs; name their folders: {advice}")
    chosen = [_named(run) for run in given]
    folders = [run.path if isinstance(run, Run) else run for _, run in chosen]
    resolved = [folder.resolve() for folder in folders]
    for i, folder in enumerate(resolved):
        if folder in resolved[:i]:
            raise UsageError(f"{folders[i]} was given twice")
    runs = [run if isinstance(run, Run) else open_run(run) for _, run in chosen]
    for run in runs:
        run.judging()
    called = [name or by_itself for (name, _), by_itself in zip(chosen, names(runs), strict=True)]
    if len(set(called)) < len(called):
        raise UsageError(f"two runs have the same name: {', '.join(called)}")
    return dict(zip(called, runs, strict=True))


def _named(run: Run | str | Path) -> tuple[str, Run | Path]:
    """The name that a run is given, if any, and the run or its folder."""
    if isinstance(run, Run):
        return "", run
    name, equals, folder = str(run).partition("=")
    if not equals or Path(run).exists():
        return "", Path(run)
    if not name.strip() or not folder:
        raise UsageError(f"write NAME=FOLDER to name a run, not {str(run)!r}")
    return name.strip(), Path(folder)


def compared(
    runs: Mapping[str, Run], groups: str, models: str | Path | None = None
) -> list[Compared]:
    """The judged prompts of every run, with its group and what is known of its model.

    models: a table of models whose entries win over all others.
    """
    from sonde.analysis.differences.facts import facts_of_pairs
    from sonde.analysis.runs import Compared
    from sonde.metrics.distance import Monitors

    table = model_table(None if models is None else Path(models))
    grouped = group_names(list(runs.values()), groups, table)
    probes = [run.probe() for run in runs.values()]
    of_one = len({probe.name for probe in probes}) == 1  # else no reports to lay side by side
    reports = {name: run.report() for name, run in runs.items()} if of_one else {}
    datasets = _datasets(list(runs.values()))
    sources = _sources(datasets)
    # of no use unless all have it, and joined by the ids of facts
    monitored = all(isinstance(probe, Monitors) for probe in probes) and len(set(sources)) == 1
    contents = {dataset.fingerprint for dataset in datasets}
    forms = form_settings([run.manifest.model for run in runs.values()])
    found: list[Compared] = []
    for (name, run), group, form, dataset, source in zip(
        runs.items(), grouped, forms, datasets, sources, strict=True
    ):
        report = reports.get(name)
        judged = (report and report.judged) or run.judge(dataset=dataset)
        offered = _offered(judged, dataset) if len(contents) > 1 else {}
        found.append(
            Compared(
                name=name,
                group=group,
                judged=judged,
                dataset=_dataset(run),
                source=source,
                seconds=run.provenance()["run"]["seconds"],
                lineage=_lineage(run, table),
                setting=_setting(run, form),
                monitored=_monitored(run) if monitored else None,
                report=report,
                made=_made(run, offered, form),
                facts=facts_of_pairs(dataset, judged.pairs),
            )
        )
    return _with_reports(found, runs)


def _datasets(runs: Sequence[Run]) -> list[Dataset]:
    """The dataset of each run; facts of one content are read once."""
    opened: dict[str, Dataset] = {}
    datasets = []
    for run in runs:
        fingerprint = run.manifest.dataset["fingerprint"]
        if fingerprint not in opened:
            opened[fingerprint] = run.dataset()
        datasets.append(opened[fingerprint].select(selection_of(run.manifest)))
    return datasets


def _sources(datasets: Sequence[Dataset]) -> list[str]:
    """A name for the facts of each dataset, the same for those that differ in templates alone."""
    seen: dict[str, Dataset] = {}
    names = []
    for dataset in datasets:
        same = (name for name, other in seen.items() if _hold_same_facts(dataset, other))
        name = next(same, dataset.fingerprint)
        seen.setdefault(name, dataset)
        names.append(name)
    return names


def _hold_same_facts(one: Dataset, other: Dataset) -> bool:
    if one.fingerprint == other.fingerprint:
        return True
    ids = [relation.id for relation in one.relations]
    return ids == [relation.id for relation in other.relations] and all(
        one.frame(id).equals(other.frame(id)) for id in ids
    )


def _with_reports(found: Sequence[Compared], runs: Mapping[str, Run]) -> list[Compared]:
    """The runs with their reports on the facts that all of them were asked about; without them
    where there are no such facts, or no reports."""
    from sonde.analysis.joins import shared_facts

    facts = shared_facts(found)
    made = []
    for run, numbers in zip(found, facts, strict=True):
        grid, report = run.judged.grid, run.report
        gone = {
            (run.judged.relations[grid.relations[p]].id, run.judged.pairs[p])
            for p in np.unique(grid.pair)
            if numbers[p] < 0
        }
        if not (numbers >= 0).any():
            report = None
        elif gone and report is not None:
            report = _report_without(runs[run.name], gone)
        made.append(replace(run, report=report))
    return made


def _made(run: Run, offered: Mapping[str, frozenset[str]], form: Mapping[str, str]) -> Made:
    from sonde.analysis.runs import Made

    probe, model, took = run.manifest.probe, run.manifest.model, run.provenance()["run"]
    details = model.get("details", {})
    devices = dict.fromkeys(entry["model"].get("device", "") for entry in took["sessions"])
    return Made(
        probe=probe["name"],
        version=probe.get("sonde", ""),
        settings={
            k: _word(v) for k, v in {**probe["settings"], **probe["reading"], **form}.items()
        },
        tokenizer=model.get("tokenizer") or "",
        device=", ".join(filter(None, devices)) or details.get("device", ""),
        parameters=details.get("parameters", ""),
        dtype=model.get("dtype") or "",
        prompts=took["prompts"],
        seconds=took["seconds"],
        offered=offered,
        numerics=doubt(run.manifest),
        control=_is_control(run),
    )


def _offered(judged: Judged, dataset: Dataset) -> dict[str, frozenset[str]]:
    """What may be answered in each relation, where options are chosen from."""
    if judged.way != "scored":
        return {}
    return {r.id: frozenset(dataset.object_names(r.id)) for r in judged.relations}


def _report_without(run: Run, facts: Set[tuple[str, str]]) -> Report:
    """The report of a run as if some facts, by relation and id, had not been asked about.

    A prompt about several facts at once cannot be told apart, and stays.
    """
    from sonde.analysis.readings import looked_at, read_further

    left_out = dict.fromkeys(facts, 1)

    def others(block: Answers) -> Answers:
        if "facts" in block.asked.column_names:
            return block
        gone = block.numbers(("relation", "fact"), left_out, lambda _: 0)
        return block.rows(np.flatnonzero(gone == 0))

    def left() -> Iterator[Answers]:
        return (block for block in map(others, run.blocks()) if len(block))

    dataset = run.dataset()
    probe, kept = run.probe(), Kept(left, looked_at(dataset))
    report = cast(Any, probe).read(dataset, kept.once())
    return read_further(report, dataset, kept, getattr(probe, "normalise", "none"))


def load_learning(runs: Mapping[str, Run], easy: Sequence[str] = ()) -> Learning:
    """Runs of lama on the same facts, under whatever templates, with the training facts.

    `easy` names the runs whose right answers make a fact easy; without it, those of naive Bayes and
    of random models that were fine-tuned.
    """
    from sonde.analysis.learning.facts import Lesson, Method, learning, lessons_of, together

    lessons: dict[str, Lesson] = {}
    taught: Dataset | None = None
    methods = []
    for name, run in runs.items():
        if run.manifest.probe["name"] != "lama":
            raise UsageError(
                f"{run.path} is a run of {run.manifest.probe['name']!r}; what was learnt is read "
                "from runs of lama"
            )
        dataset = run.dataset()
        if taught is None or not _same_facts(taught, dataset):
            lessons, taught = together(lessons, lessons_of(dataset), name), dataset
        methods.append(
            Method(
                name=name,
                judged=run.judge(dataset=dataset),
                counting=run.manifest.model["name"].startswith("control:"),
                taught=_taught(run),
                uhn=run.manifest.probe["settings"].get("uhn", "string"),
            )
        )
    return learning(methods, lessons, easy)


def _same_facts(one: Dataset, other: Dataset) -> bool:
    """Whether two datasets ask and teach the same, under whatever templates."""
    asked = [relation.id for relation in one.asked_relations()]
    return (
        one.selection == other.selection
        and asked == [relation.id for relation in other.asked_relations()]
        and all(one.frame(id).equals(other.frame(id)) for id in asked)
    )


def _taught(run: Run) -> str:
    """Which of those that know the training facts alone a run's model is, if any."""
    from sonde.analysis.learning.facts import TAUGHT

    bayes, *random = TAUGHT
    model = run.manifest.model
    if model["name"] == "control:naive-bayes":
        return bayes
    if not model["name"].startswith("finetuned:"):
        return ""  # an untrained random model has learnt nothing, not even from training facts
    scheme = model["details"].get("base", "").partition(":")[0]
    return dict(zip(("random", "random-embeddings"), random, strict=True)).get(scheme, "")


def asked_of(runs: Mapping[str, Run]) -> str:
    """The name of the dataset of the first run."""
    return str(next(iter(runs.values())).manifest.dataset["name"])


def names(runs: Sequence[Run]) -> list[str]:
    """A short name for each run: its model, probe and settings, as far as they differ.

    Settings are compared with those of the same probe. Runs of one name get that of their folder.
    """
    told = _facts(runs)
    controls = [_is_control(run) for run in runs]
    parts: list[list[str]] = [[] for _ in runs]
    for key, values in told.items():
        # how a control answers does not matter, and whether sentences are closed follows from it
        alike = {"answer": (controls,), "close": (controls, told.get("answer", controls))}
        kinds = list(zip(told["probe"], *alike.get(key, ()), strict=True))
        for i in _telling(key, values, kinds):
            parts[i].append(values[i] if key in SPEAK else f"{key}={values[i]}")
    made = [" ".join(part) or model for part, model in zip(parts, told["model"], strict=True)]
    if len(set(made)) == len(made):
        return made
    return [f"{name} {run.path.resolve().name}" for name, run in zip(made, runs, strict=True)]


def _telling(key: str, values: Sequence[str], kinds: Sequence[object]) -> Iterator[int]:
    """The runs that a key tells from another run; a setting, from one of the same kind."""
    for i, value in enumerate(values):
        rivals = [v for v, k in zip(values, kinds, strict=True) if key in WHO or k == kinds[i]]
        if len(set(rivals)) > 1 and value:
            yield i


def group_names(runs: Sequence[Run], groups: str, table: Table | None = None) -> list[str]:
    """The group of each run, by a key or as named one by one.

    A model that the table does not have, or says nothing of, is a group of its own.
    """
    if "," in groups:
        given = [name.strip() for name in groups.split(",")]
        if len(given) != len(runs) or not all(given):
            raise UsageError(f"groups names {len(given)} groups for {len(runs)} runs: {groups!r}")
        return given
    told = _facts(runs)
    if groups in OF_MODELS:
        known = [describe(model, table) for model in told["model"]]
        values = [str(getattr(described, groups, "")) for described in known]
        return [v or f"unknown ({model})" for v, model in zip(values, told["model"], strict=True)]
    if groups in told:
        return [value or "none" for value in told[groups]]
    hint = nearest(groups, [*OF_MODELS, *told])
    raise UsageError(f"runs cannot be grouped by {groups!r}; {hint}")


def _lineage(run: Run, table: Table) -> Lineage:
    from sonde.analysis.runs import Lineage

    name = plain(run.manifest.model["name"])
    known = describe(name, table)
    if known is None:
        return Lineage(model=name)
    return Lineage(
        model=name,
        family=known.family,
        size=known.size,
        stage=known.stage,
        base=plain(known.base) if known.base else "",
    )


def _setting(run: Run, form: Mapping[str, str]) -> str:
    """How the run asked: its probe with the settings that decide it, and the form of prompts."""
    entry = run.manifest.probe
    return json.dumps([entry["name"], {**entry["settings"], **form}], sort_keys=True)


def _is_control(run: Run) -> bool:
    return bool(run.manifest.model["name"].startswith("control:"))


def _facts(runs: Sequence[Run]) -> dict[str, list[str]]:
    """What is known of each run, by key: its model, its probe, then its settings; "" is nothing."""
    forms = form_settings([run.manifest.model for run in runs])
    settings = [{**run.manifest.probe["settings"], **f} for run, f in zip(runs, forms, strict=True)]
    keys = dict.fromkeys(key for own in settings for key in own)
    return {
        "model": [plain(run.manifest.model["name"]) for run in runs],
        "probe": [run.manifest.probe["name"] for run in runs],
        **{key: [_word(own[key]) if key in own else "" for own in settings] for key in keys},
    }


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _dataset(run: Run) -> str:
    entry = run.manifest.dataset
    return f"{entry['name']} (content {entry['fingerprint'][:12]})"


def _monitored(run: Run) -> Monitored:
    """What MONITOR of a run is computed from."""
    return cast("Monitors", run.probe()).monitored(run.dataset(), run.blocks())
