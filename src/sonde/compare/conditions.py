"""Conditions: runs, or parts of one, brought to what all of them share.

A condition is a named slice of graded prompts. Conditions share prompts (fact, template, alias and
the probe's axes), or facts; facts of different datasets are equal if relation, subject, date and
correct objects are. Knows no metric and no report.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from polars import col

from sonde.core.errors import UsageError, nearest
from sonde.evaluation.estimate import Metric
from sonde.evaluation.tables import Results
from sonde.models.families import Described, describe, model_table, plain
from sonde.runs.certificates import doubt
from sonde.runs.forms import form_settings

if TYPE_CHECKING:
    from sonde.runs.run import Run

TASKS = {"fill": "mask filling", "score": "scored options", "generate": "generated text"}
OF_MODELS = ("family", "stage", "architecture", "corpus")
UNNAMED = ("model", "probe", "style", "context", "answer", "frame")  # clear without their key


@dataclass(frozen=True, kw_only=True, eq=False)
class Condition:
    """A slice of graded prompts with what is known of how they came about.

    Args:
        settings: of the probe and the prompt format, as texts.
        known: what the table of models has on its model.
        metrics: besides those of the probe.
    """

    name: str
    results: Results
    run: "Run"
    group: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    known: Described | None = None
    metrics: Sequence[Metric] = ()

    @cached_property
    def model(self) -> str:
        return plain(self.run.manifest.model["name"])

    @property
    def probe(self) -> str:
        return self.results.probe.name

    @property
    def dataset(self) -> str:
        return str(self.run.manifest.dataset["fingerprint"])

    @cached_property
    def task(self) -> str:
        """How answers came about, such as "fill"; several joined by a plus."""
        return "+".join(sorted(map(str, self.results.rows["answer_mode"].unique())))

    @cached_property
    def prompted(self) -> pl.DataFrame:
        """The facts that have graded prompts."""
        numbers = self.results.rows["fact_no"].unique().implode()
        return self.results.facts.filter(col("fact_no").is_in(numbers))


@dataclass(frozen=True, kw_only=True, eq=False)
class Aligned:
    """Conditions on what all of them share, with one table of facts.

    Args:
        originals: the conditions as they were.
        same_prompts: the same prompts are compared, not only the same facts.
        same_source: the facts come from one dataset, whatever its templates and selection.
        numbers: of each condition, the original number of each shared fact.
    """

    conditions: Mapping[str, Condition]
    originals: Mapping[str, Condition]
    same_prompts: bool
    same_source: bool
    numbers: Mapping[str, Mapping[int, int]]

    @property
    def every(self) -> list[Condition]:
        return list(self.conditions.values())

    @property
    def names(self) -> list[str]:
        return list(self.conditions)

    @property
    def facts(self) -> pl.DataFrame:
        return self.every[0].results.facts


def open_runs(runs: Sequence["Run | str | Path"], least: int = 2) -> dict[str, "Run"]:
    """The runs by name, in this order; NAME=FOLDER names one. A folder may occur once."""
    from sonde.runs.run import Run, open_run

    if len(runs) < least:
        raise UsageError(
            "a comparison needs at least two runs; name their folders: sonde compare RUN RUN …"
        )
    labels: list[str] = []
    opened: list[Run] = []
    for run in runs:
        label, folder = "", Path(run.path if isinstance(run, Run) else run)
        if "=" in str(run) and not folder.exists():
            label, _, text = (part.strip() for part in str(run).partition("="))
            if not (label and text):
                raise UsageError(f"write NAME=FOLDER to name a run, not {str(run)!r}")
            folder = Path(text)
        if folder.resolve() in [other.path.resolve() for other in opened]:
            raise UsageError(f"{folder} is listed twice; name two different runs")
        labels.append(label)
        opened.append(run if isinstance(run, Run) else open_run(folder))
    names = [label or name for label, name in zip(labels, run_names(opened), strict=True)]
    if len(set(names)) < len(names):
        raise UsageError(f"two runs have the same name: {', '.join(names)}; write NAME=FOLDER")
    return dict(zip(names, opened, strict=True))


def _columns(runs: Sequence["Run"]) -> dict[str, list[str]]:
    """Model, probe, then each setting of probes and prompt formats; "" if a run has none."""

    def text(value: Any) -> str:
        if isinstance(value, bool):
            return "yes" if value else "no"
        return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)

    manifests = [run.manifest for run in runs]
    formats = form_settings([manifest.model for manifest in manifests])
    settings = [
        {**m.probe["settings"], **m.probe.get("vary", {}), **form}
        for m, form in zip(manifests, formats, strict=True)
    ]
    return {
        "model": [plain(m.model["name"]) for m in manifests],
        "probe": [str(m.probe["name"]) for m in manifests],
    } | {key: [text(s.get(key, "")) for s in settings] for key in dict.fromkeys(chain(*settings))}


def run_names(runs: Sequence["Run"]) -> list[str]:
    """A short name for each run: model, probe and settings, as far as they differ.

    Settings are compared with those of runs of the same probe. If names are still equal, the
    folder's name is added.
    """
    columns = _columns(runs)
    architectures = [run.manifest.model["architecture"] for run in runs]

    def kind(key: str, i: int) -> tuple[str, ...]:
        """Values of a setting are compared within a kind. The architecture decides how a model may
        answer and if templates are closed."""
        if key in ("model", "probe"):
            return ()
        return columns["probe"][i], architectures[i] * (key in ("answer", "close"))

    names = []
    for i in range(len(runs)):
        words = []
        for key, values in columns.items():
            rivals = {value for j, value in enumerate(values) if kind(key, j) == kind(key, i)}
            if len(rivals) > 1 and values[i]:
                words.append(values[i] if key in UNNAMED else f"{key}={values[i]}")
        names.append(" ".join(words) or columns["model"][i])
    if len(set(names)) == len(names):
        return names
    return [f"{name} {run.path.resolve().name}" for name, run in zip(names, runs, strict=True)]


def conditions(
    runs: Mapping[str, "Run"],
    *,
    groups: str = "family",
    models: str | Path | None = None,
    relations: Sequence[str] = (),
) -> dict[str, Condition]:
    """A condition per run. `relations` restricts them, by ids of relations."""
    table = model_table(None if models is None else Path(models))
    columns = _columns(list(runs.values()))
    entries = [describe(model, table) for model in columns["model"]]
    if "," in groups:
        members = [name.strip() for name in groups.split(",")]
        if len(members) != len(runs) or not all(members):
            raise UsageError(f"groups names {len(members)} groups for {len(runs)} runs: {groups!r}")
    elif groups in OF_MODELS:
        values = [str(getattr(entry, groups, "") or "") for entry in entries]
        # a model that the table lacks is a separate group
        members = [v or f"unknown ({m})" for v, m in zip(values, columns["model"], strict=True)]
    elif groups in columns:
        members = [value or "none" for value in columns[groups]]
    else:
        hint = nearest(groups, [*OF_MODELS, *columns])
        raise UsageError(f"runs cannot be grouped by {groups!r}; {hint}")
    by_name = {}
    for i, (name, run) in enumerate(runs.items()):
        results = run.results()
        if relations:
            ids = results.facts["relation"].unique().cast(pl.String).to_list()
            if unknown := [relation for relation in relations if relation not in ids]:
                raise UsageError(
                    f"{name} has no relation {unknown[0]!r}; {nearest(unknown[0], ids)}"
                )
            results = results.select(relations=relations)
        if results.rows.is_empty():
            raise UsageError(
                f"{name} has no graded prompts{' of ' * bool(relations)}{', '.join(relations)}; "
                f"'sonde report {run.path}' lists why facts are excluded"
            )
        settings = {k: v[i] for k, v in columns.items() if v[i] and k not in ("model", "probe")}
        by_name[name] = Condition(
            name=name, results=results, run=run, group=members[i], settings=settings,
            known=entries[i],
        )  # fmt: skip
    return by_name


def align(originals: Mapping[str, Condition], *, same_options: bool = False) -> Aligned:
    """The conditions on what they share.

    In a relation in which they share prompts, only these are compared; in others all prompts of
    the shared facts. With `same_options` facts also share the options to choose from, and all their
    prompts are compared. Raises UsageError if no fact is shared.
    """
    every = list(originals.values())
    # facts of one run that are equal in all that is compared count as one, unless ids are shared
    same = len({(c.dataset, c.probe) for c in every}) == 1
    keys = [_fact_keys(c, same, same_options) for c in every]
    shared = shared_rows(keys, ["key"])
    if shared.is_empty():
        names = " and ".join(dict.fromkeys(c.run.manifest.dataset["name"] for c in every))
        raise UsageError(
            f"the runs share no fact of {names}; compare runs about the same relations, subjects "
            "and correct objects (of one dataset: the same relations, limit, split and seed)"
        )
    order = keys[0].join(shared, on="key").sort("fact_no")
    facts = every[0].results.facts[order["fact_no"]]
    ids = facts["relation"].cast(pl.String)
    relation = ids.cast(pl.Enum(ids.unique(maintain_order=True)))
    facts = facts.with_columns(
        relation=relation,
        fact_no=pl.int_range(pl.len(), dtype=pl.UInt32),
        excluded=pl.lit(None, pl.String),
    )
    numbers = order.select("key", number=pl.int_range(pl.len(), dtype=pl.UInt32))
    parts, numbered = [], {}
    for condition, key in zip(every, keys, strict=True):
        results, texts = condition.results, col("relation").cast(pl.String)
        places = key.join(numbers, on="key").select("fact_no", "number")
        numbered[condition.name] = dict(places.select("number", "fact_no").iter_rows())
        rows = results.rows.join(places, on="fact_no", maintain_order="left")
        rows = rows.with_columns(fact_no="number", relation=relation.gather(rows["number"]))
        templates = results.templates.filter(texts.is_in(ids.unique().implode()))
        results = replace(
            results, facts=facts, rows=rows.drop("number").sort("fact_no", maintain_order=True),
            templates=templates.with_columns(texts.cast(relation.dtype)).sort(
                "relation", "template_no"
            ),
        )  # fmt: skip
        parts.append(replace(condition, results=results))
    prompts = [_prompt_keys(part, len({c.dataset for c in every}) > 1) for part in parts]
    common = [name for name in prompts[0].columns if all(name in p.columns for p in prompts)]
    both = shared_rows(prompts, common).unique()
    both = both.clear() if same_options else both
    covered = relation.gather(both["fact_no"]).unique().implode()
    marked, chosen = both.with_columns(both=True), []
    for part, prompt in zip(parts, prompts, strict=True):
        matches = prompt.join(marked, on=common, how="left", maintain_order="left")["both"]
        chosen.append(part.results.rows.filter(matches | ~col("relation").is_in(covered)))
    left = col("fact_no").is_in(shared_rows(chosen, ["fact_no"])["fact_no"].implode())
    return Aligned(
        conditions={
            part.name: replace(part, results=replace(part.results, rows=rows.filter(left)))
            for part, rows in zip(parts, chosen, strict=True)
        },
        originals=originals,
        same_prompts=facts.filter(~col("relation").is_in(covered)).is_empty(),
        same_source=same
        or shared_rows(keys, ["key", "fact"]).height == shared.height == min(map(len, keys)),
        numbers=numbered,
    )


def shared_rows(frames: Sequence[pl.DataFrame], on: Sequence[str]) -> pl.DataFrame:
    return reduce(lambda a, b: a.join(b, on=on, how="semi"), [f.select(on) for f in frames])


def _fact_keys(condition: Condition, by_id: bool, by_options: bool) -> pl.DataFrame:
    """fact_no, id and key of each prompted fact: what it states, or its id.

    The n-th of several facts that state the same is shared with the n-th of another run.
    """
    facts = condition.prompted
    parts = [col("relation").cast(pl.String), col("fact")]
    if not by_id:
        gold = col("gold_names").list.eval(pl.element().list.first()).list.unique().list.sort()
        date = col("date") if "date" in facts.columns else pl.lit("")
        parts[1:] = [col("subject"), date.fill_null(""), gold.list.join("\x1f")]
    if by_options:
        options = condition.results.rows["fact_no", "options_id"].drop_nulls()
        facts = facts.join(options.unique("fact_no"), on="fact_no", maintain_order="left")
        parts.append(col("options_id").cast(pl.String))
    frame = facts.select("fact_no", "fact", key=pl.concat_str(parts, separator="\x1e"))
    nth = pl.int_range(pl.len()).over("key").cast(pl.String)
    return frame.with_columns(key=pl.concat_str("key", nth, separator="\x1e"))


def _prompt_keys(condition: Condition, by_text: bool) -> pl.DataFrame:
    """fact_no, template, alias and axes of each prompt."""
    results = condition.results
    axes = [name for name in results.probe.axes if name in results.rows.columns]
    names = ["fact_no", "alias_no", "text" if by_text else "template", *axes]
    table = results.table([*names, "aliases"]).collect()
    alias = table["aliases"].list.get(table["alias_no"], null_on_oob=True)
    return table.drop("aliases", "alias_no").with_columns(
        alias=alias, **{name: table[name].cast(pl.String) for name in axes}
    )


def caveats(aligned: Aligned) -> Iterator[tuple[str, str]]:
    """What else differs than the models: a word for it, or none, and a sentence with the remedy."""
    every = list(aligned.originals.values())
    models = [c for c in every if not c.run.manifest.model["name"].startswith("control:")]
    some = models if len(models) > 1 else every
    checks = (
        ("probe", "Probes", {c.name: c.probe for c in some},
         "They count other answers as correct. Compare runs of one probe."),
        ("task", "Tasks", {c.name: TASKS.get(c.task, c.task) for c in models or every},
         "Scored, filled and generated answers are not comparable. Set --answer where it exists."),
        ("", "Vocabularies",
         {c.name: c.run.manifest.model.get("tokenizer") or "" for c in some if c.task == "fill"},
         "Each model may answer with words that another cannot. "
         "Use a common one: sonde data vocabulary, sonde data convert --vocabulary."),
        ("dataset", "Dataset contents",
         {c.name: f"{c.run.manifest.dataset['name']} {c.dataset[:12]}"
          for c in every if not aligned.same_source},
         "Only shared facts are compared, and their options to choose from may differ."),
        ("", "Versions of sonde", {c.name: c.run.manifest.probe.get("sonde", "") for c in some},
         "They may prompt or grade differently. Run again with one version."),
    )  # fmt: skip
    for word, heading, values, advice in checks:
        names: dict[str, list[str]] = {}
        for name, value in values.items():
            if value:
                names.setdefault(value, []).append(name)
        if len(names) > 1:
            listing = "; ".join(f"{', '.join(same)}: {value}" for value, same in names.items())
            yield word, f"{heading} differ ({listing}). {advice}"
    if len({c.probe for c in some}) == 1:
        keys = dict.fromkeys(key for c in some for key in c.settings)
        if len({c.run.manifest.model["architecture"] for c in some}) > 1:
            keys.pop("close", None)  # only masked models read closed templates
        values_of = {key: [c.settings.get(key, "–") for c in some] for key in keys}
        apart = {key: values for key, values in values_of.items() if len(set(values)) > 1}
        if not aligned.same_prompts:
            # templates may also come from the dataset
            word = "template" if not apart or any("template" in key for key in apart) else "prompts"
            yield word, "Prompts differ. Each run averages all its prompts of a fact."
        if apart:
            listing = ", ".join(f"{key} {' / '.join(values)}" for key, values in apart.items())
            yield "", f"Settings differ ({listing}). The difference may not be due to the models."
    for c in some:
        if reason := doubt(c.run.manifest):
            yield (
                "",
                (
                    f"The numbers of {c.name} may not be the model's own: {reason}. "
                    "See sonde doctor --against."
                ),
            )
