"""Join a probe, a model and a folder: ask, answer shard by shard, and read the answers back.

Knows nothing of how a model answers or what a probe means by its questions.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sonde import __version__
from sonde.core.abilities import Admits, Model, Probe
from sonde.core.answers import Answered
from sonde.core.certificates import Certificate
from sonde.core.columns import Answers as Block
from sonde.core.components import build, settings_of
from sonde.core.errors import DataError, StoreError, UsageError
from sonde.core.fact_frames import refuse_repeats
from sonde.core.facts import Dataset, Selection
from sonde.core.files import explain_os_errors
from sonde.core.progress import begin, told
from sonde.core.prompts import Block as Prompts
from sonde.core.threads import Behind, prefetch
from sonde.core.words import counted
from sonde.data.format import open_dataset, write_dataset
from sonde.models.load import load as load_model
from sonde.models.options import LoadOptions
from sonde.probes import PROBES
from sonde.runs import certificates
from sonde.runs.batches import Watch, computing, settled
from sonde.runs.masks import announce
from sonde.runs.overviews import described, overview
from sonde.runs.refusals import announce_unworded, fitting, refuse_unasked, suited
from sonde.runs.shards import (
    SHARD_WEIGHT,
    AnswersShards,
    Effort,
    Progress,
    amount,
    asked,
    fill_folder,
    shards,
    weights,
)
from sonde.store.manifest import Manifest, surroundings
from sonde.store.rows import friendly
from sonde.store.runs import RunFolder, Writer
from sonde.store.shards import prompt_count

if TYPE_CHECKING:
    import polars

    from sonde.answers import Answers
    from sonde.evaluation.tables import Results
    from sonde.probes.base import Probe as NewProbe
    from sonde.reports.model import Report

log = logging.getLogger(__name__)

KEPT = 2**27
"""Bytes of prompts that are kept from counting them; more are asked twice."""

AHEAD = 4
"""Shards that are read before they are used."""


OUTCOMES = ("answer", "correct", "rank", "confidence", "gold_logprob", "abstained")
"""Columns of prompts that are summed up by fact."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Run:
    """A finished run on disk. Everything is read from the folder; no model is needed.

    `asked` is the dataset itself, where the run was just made from it.
    """

    path: Path
    manifest: Manifest
    asked: Dataset | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        return f"<Run {str(self.path)!r}: {described(self.manifest)}>"

    def _repr_html_(self) -> str:
        from sonde.reports.notebook import exhibit_html

        return exhibit_html(overview(self.path, self.manifest))

    def answers(self) -> Iterator[Answers]:
        """The answered prompts in batches, as a probe grades them.

        The first shards are read from now on, others while those before them are used.
        """
        from sonde.bridge import as_answers

        return map(as_answers, self.blocks())

    def blocks(self) -> Iterator[Block]:
        """The answered prompts as they are stored."""
        folder = RunFolder(self.path)
        return self._told(prefetch(folder.shard_answers(), AHEAD), folder.finished().shards)

    def _told(self, read: Iterator[list[Block]], shards: int) -> Iterator[Block]:
        yield from chain.from_iterable(told(read, f"reading {self.path}", shards))
        begin("working out the numbers")

    def answered(self) -> Iterator[Answered]:
        """Every answered prompt, one after the other."""
        return RunFolder(self.path).answered()

    def dataset(self) -> Dataset:
        """The dataset as it was asked."""
        if self.asked is not None:
            return self.asked
        folder = RunFolder(self.path)
        try:
            dataset = open_dataset(folder.dataset)
        except DataError as error:
            raise folder.damaged_dataset() from error
        dataset = replace(dataset, notes=self.manifest.dataset["notes"])
        dataset = dataset.select(selection_of(self.manifest))
        refuse_repeats(dataset, dataset.asked_relations())
        return dataset

    def probe(self, **analysis: Any) -> Probe:
        """The probe with the run's settings, or with other analysis-only settings."""
        entry = self.manifest.probe
        kind = PROBES.find(entry["name"])
        stored = {**entry["settings"], **entry["reading"]}
        settings = {k: _from_json(v) for k, v in stored.items()}
        fixed = sorted(set(analysis) & set(entry["settings"]))
        if fixed:
            raise UsageError(
                f"setting {fixed[0]} decided the prompts; make another run to change it. "
                f"Settings that change the analysis alone: "
                f"{', '.join(sorted(entry['reading'])) or 'none'}"
            )
        try:
            build(kind, settings)
        except UsageError as error:
            raise StoreError(
                f"{self.path} was made by another version of probe {entry['name']!r} ({error})"
            ) from None
        probe = build(kind, {**settings, **analysis})
        if "vary" not in entry:
            return cast(Probe, probe)
        from sonde.probes.vary import Vary

        varied = {name: tuple(map(_from_json, values)) for name, values in entry["vary"].items()}
        return cast(Probe, Vary(probe=probe, vary=varied, repeats=entry["repeats"]))

    def results(self, **analysis: Any) -> Results:
        """The tables that every number is estimated from: facts, templates, graded prompts.

        Example:
            >>> sonde.open_run("runs/demo").results(k=5).counts()
        """
        from sonde.evaluation.tables import collect_results

        answers = self.answers()  # shards are read while facts are
        probe = cast("NewProbe", self.probe(**analysis))
        return collect_results(probe, self.dataset(), answers)

    def rows(self, **analysis: Any) -> polars.DataFrame:
        """Every graded prompt, a row each, with the columns of its fact and template."""
        return self.results(**analysis).table().collect()

    def estimates(self, **analysis: Any) -> polars.DataFrame:
        """Every number of the report with its interval."""
        import polars

        from sonde.reports.further import estimate_trends_years_and_languages
        from sonde.runs.controls import estimate_with_controls

        results = self.results(**analysis)
        estimates = estimate_with_controls(self, results, analysis)
        return polars.concat([estimates, estimate_trends_years_and_languages(results, self)[0]])

    def controls(self) -> dict[str, Run]:
        """The finished controls of this run, by name."""
        from sonde.runs.controls import control_runs

        found, faults = control_runs(self)
        for fault in faults:
            log.warning("%s", fault)
        return found

    def show(self, fact: str) -> Report:
        """One fact in depth, by its id or its subject: every prompt with its top answers."""
        from sonde.reports.depth import fact_report

        return fact_report(self.results(), self.answers(), fact)

    def report(self, **analysis: Any) -> Report:
        """Every number and table, computed from the stored answers.

        Analysis-only settings of the probe may have other values than in the run.
        """
        from sonde.reports.build import build as build_report
        from sonde.runs.controls import estimate_with_controls

        results = self.results(**analysis)
        estimates = estimate_with_controls(self, results, analysis)
        exhibits = certificates.exhibit(self.path, self.manifest)
        report = build_report(results, estimates, run=self, exhibits=exhibits)
        return replace(report, counts={**self.manifest.dataset["notes"], **report.counts})

    def facts(self, **analysis: Any) -> polars.DataFrame:
        """Every fact with the outcome of its prompts; a row for each task, cue or context."""
        results = self.results(**analysis)
        outcomes = [name for name in OUTCOMES if name in results.rows.columns]
        graded = results.browse(outcomes)
        return results.facts.join(graded, on="fact_no", how="left", maintain_order="left")

    def provenance(self) -> dict[str, Any]:
        """Where the numbers come from: the manifest, with what the run took."""
        folder = RunFolder(self.path)
        complete = folder.finished()
        certificate = certificates.of_run(self.path, self.manifest)
        left_out = {"shard_weight", "certificate"}
        return {
            "run": {
                "fingerprint": self.manifest.fingerprint,
                "shards": complete.shards,
                "prompts": complete.prompts,
                "seconds": round(folder.seconds(), 1),
                "sessions": folder.timings(),
            },
            **{k: v for k, v in asdict(self.manifest).items() if k not in left_out},
            **({} if certificate is None else {"certificate": certificate.provenance}),
        }

    def to_polars(self) -> polars.DataFrame:
        """All answers as one data frame, a row per prompt (columns: docs/formats.md)."""
        import polars

        frames = (polars.from_arrow(friendly(table)) for table in RunFolder(self.path).tables())
        return cast(polars.DataFrame, polars.concat(cast(Any, frames), how="diagonal_relaxed"))


def run(
    probe: Probe,
    model: Model | str,
    dataset: Dataset,
    out: str | Path | None = None,
    *,
    on: str = "",
    load: LoadOptions | None = None,
    progress: Progress | None = None,
    shard_weight: int = SHARD_WEIGHT,
    certificate: Certificate | str | Path | None = None,
) -> Run:
    """Put a probe's prompts to a model and keep the answers in a folder; resumes by itself.

    Without `out` the folder is runs/PROBE-DATASET-MODEL-FINGERPRINT. A model may be given by its
    name, and is then loaded as `load` says: here, or by each of the workers that `on` names, such
    as "local:2" (docs/scale-out.md). The model's `certificate`, or the file of it, is found by
    itself where 'sonde doctor --against' made one here.
    """
    with _loaded(model, on, load, dataset) as found:
        proven = certificates.find(found, certificate)
        return _run(probe, found, dataset, out, progress, shard_weight, proven)


@contextmanager
def _loaded(
    model: Model | str, on: str, options: LoadOptions | None, dataset: Dataset
) -> Iterator[Model]:
    """A model that is asked: the one that is given, or the one of that name, here or `on` workers.

    Workers that were started for it are ended.
    """
    if isinstance(model, str):
        with released(load_on(model, on, options, dataset)) as found:
            yield found
        return
    if on or options:
        raise UsageError(
            f"{model.identity.name} is loaded already, and workers load models of their own; "
            "give its name, such as 'hf:FOLDER', in the place of the model"
        )
    yield model


def load_on(reference: str, on: str, options: LoadOptions | None, dataset: Dataset | None) -> Model:
    """The model of a name: here, or what stands for the workers `on` which it is loaded."""
    if not on:
        return load_model(reference, options, dataset)
    from sonde.runs.workers.hiring import start_workers

    return start_workers(on, reference, options or LoadOptions(), dataset)


@contextmanager
def released(model: Model) -> Iterator[Model]:
    """A model whose workers, if it has any, are ended with what is done within."""
    try:
        yield model
    finally:
        if isinstance(model, AnswersShards):
            model.close()


def _run(
    probe: Probe,
    model: Model,
    dataset: Dataset,
    out: str | Path | None,
    progress: Progress | None,
    shard_weight: int,
    certificate: Certificate | None,
) -> Run:
    probe = suited(probe, model, dataset)
    # before a folder is made: it reads every line that is asked
    refuse_unasked(probe, dataset)
    announce_unworded(probe, dataset)
    announce(probe, model, dataset)
    effort, blocks, much = _count(probe, model, dataset)
    effort.told = progress or effort.told
    effort.tell()
    manifest = describe(probe, model, dataset, shard_weight)
    path = Path(out) if out is not None else default_folder(manifest)
    folder = RunFolder(path)
    with explain_os_errors(path):
        if not folder.shards():  # those that are there are told what they are first
            certificates.refuse_broken(certificate)
    with (
        folder.writing(manifest) as writer,
        certificates.attached(writer, model, certificate),
    ):
        batches = settled(writer, model, much)
        cut = shards(blocks or asked(probe, model, dataset), shard_weight * batches.shards)
        watch = Watch(writer=writer, model=model, batches=batches)
        try:
            with fitting(probe, model, dataset), computing(model, batches), Behind() as behind:
                behind.do(partial(_keep_dataset, dataset, folder), lambda _: None)
                fill_folder(watch, behind, cut, effort)
        except BaseException as stop:
            if not isinstance(stop, Exception):  # by a signal
                stop.add_note(_stored(writer, effort))
            raise
    whole = replace(folder.manifest(), probe=manifest.probe)
    return Run(path=path, manifest=whole, asked=dataset)


def open_run(path: str | Path) -> Run:
    """Open a finished run; one that is unfinished or damaged is refused, saying what to do."""
    folder = RunFolder(Path(path))
    manifest = folder.manifest()
    folder.finished()
    return Run(path=Path(path), manifest=manifest)


def _from_json(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _described(probe: Any) -> dict[str, Any]:
    varied = {}
    if hasattr(probe, "vary"):
        varied = {"vary": {k: list(v) for k, v in probe.vary.items()}, "repeats": probe.repeats}
        probe = probe.probe
    values = asdict(probe)
    reads = {s.name for s in settings_of(type(probe)) if s.analysis_only}
    return {
        "name": probe.name,
        "sonde": __version__,  # another version may ask or score otherwise
        "settings": {k: v for k, v in values.items() if k not in reads},
        "reading": {k: v for k, v in values.items() if k in reads},
        **varied,
    }


def describe(probe: Probe, model: Model, dataset: Dataset, shard_weight: int) -> Manifest:
    """The manifest of a run."""
    return Manifest(
        dataset={
            **asdict(dataset.card),
            "fingerprint": dataset.fingerprint,
            "notes": dict(dataset.notes),
        },
        selection=asdict(dataset.selection),
        probe=_described(probe),
        model=model.identity.described(),
        shard_weight=shard_weight,
        surroundings=surroundings(),
    )


def default_folder(manifest: Manifest) -> Path:
    """runs/PROBE-DATASET-MODEL-FINGERPRINT, so that different runs never meet."""
    model = manifest.model["name"].rstrip("/").replace(":", "/").split("/")[-1]
    parts = (manifest.probe["name"], manifest.dataset["name"], model, manifest.fingerprint[:8])
    return Path("runs") / re.sub(r"[^\w.-]+", "_", "-".join(parts))  # a name may hold a slash


def _count(probe: Probe, model: Model, dataset: Dataset) -> tuple[Effort, list[Prompts], int]:
    """What is asked, the prompts themselves or none where they are too many, and how much it is.

    Refuses ids that would mix their answers.
    """
    total, work, much, size = 0, 0, 0, 0.0
    kept: list[Prompts] = []
    for block in asked(probe, model, dataset):
        if isinstance(model, Admits):
            for prompt in block.prompts():
                model.admit(prompt)
        total, work = total + len(block), work + int(weights(block).sum())
        much += amount(block)
        size += block.frame.estimated_size()
        kept.append(block)
        if size > KEPT:
            kept.clear()
    refuse_repeats(dataset, dataset.asked_relations())
    if total == 0:
        raise UsageError(f"probe {probe.name!r} finds nothing to ask in dataset {dataset.name!r}")
    return Effort(prompts=total, work=work, told=lambda _done, _total: None), kept, much


def _stored(writer: Writer, effort: Effort) -> str:
    """What an interrupted run has stored, and what is lost."""
    stored = sum(map(prompt_count, writer.folder.shards()))
    lost = round(effort.received) - sum(map(prompt_count, writer.appended))
    text = f"{stored:,} of {effort.prompts:,} prompts are stored in {writer.folder.path}"
    if lost > 0:
        text += f", {counted(lost, 'unfinished answer is', 'unfinished answers are')} lost"
    return f"{text}; run the same command again to resume"


def _keep_dataset(dataset: Dataset, folder: RunFolder) -> None:
    """Keep a copy of the dataset in the run, written anew unless it is there as it was sealed."""
    try:
        open_dataset(folder.dataset)
        kept = folder.keeps_dataset()
    except DataError:
        kept = False
    if not kept:
        with explain_os_errors(folder.path):
            try:
                write_dataset(dataset, folder.dataset, columns=True)
            except DataError:
                write_dataset(_readable(dataset), folder.dataset, columns=True)


def _readable(dataset: Dataset) -> Dataset:
    """The dataset without the relations that are not selected and cannot be read."""
    kept = [relation.id for relation in dataset.asked_relations()]
    for relation in dataset.relations:
        if relation.id not in kept:
            with suppress(DataError):
                dataset.frame(relation.id)
                kept.append(relation.id)
    return replace(dataset, relations=tuple(r for r in dataset.relations if r.id in kept))


def selection_of(manifest: Manifest) -> Selection:
    """Which facts a run prompted about."""
    entry = manifest.selection
    return Selection(**{**entry, "relations": tuple(entry["relations"])})
