"""Conditions: runs, or parts of one, brought to what all of them share.

A condition is a named slice of graded prompts. Conditions share prompts (fact, template, alias and
the probe's axes), or facts; facts of different datasets are equal if relation, subject, date and
correct objects are. Knows no metric and no report.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from polars import col

from sonde.core.errors import UsageError, nearest
from sonde.evaluation.tables import Results
from sonde.models.families import Described, describe, model_table, plain
from sonde.runs.certificates import doubt
from sonde.runs.forms import form_settings

if TYPE_CHECKING:
    from sonde.runs.run import Run

TASKS = {"fill": "mask filling", "score": "scored options", "generate": "generated text"}
OF_MODELS = ("family", "stage", "architecture", "corpus")
UNNAMED = ("model", "probe", "style", "context", "answer", "frame")  # understood without their key


@dataclass(frozen=True, kw_only=True, eq=False)
class Condition:
    """A slice of graded prompts with what is known of how they came about.

    Args:
        settings: of the probe and the prompt format, as texts.
        known: what the table of models has on its model.
    """

    name: str
    results: Results
    run: "Run"
    group: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    known: Described | None = None

    @cached_property
    def model(self) -> str:
        return plain(self.run.manifest.model["name"])

    @property
    def probe(self) -> str:
        return self.results.probe.name

    @property
    def dataset(self) -> str:
        return str(self.run.manifest.dataset["fingerprint"])

    @property
    def is_control(self) -> bool:
        return bool(self.run.manifest.model["name"].startswith("control:"))

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
        dropped: how many prompts of each condition are not compared.
    """

    conditions: Mapping[str, Condition]
    originals: Mapping[str, Condition]
    same_prompts: bool
    same_source: bool
    dropped: Mapping[str, int]

    @property
    def names(self) -> list[str]:
        return list(self.conditions)

    @property
    def facts(self) -> pl.DataFrame:
        return next(iter(self.conditions.values())).results.facts


def open_runs(
    given: Sequence["Run | str | Path"], advice: str = "sonde.compare(RUN, RUN)"
) -> dict[str, "Run"]:
    """The runs by name, in the order given; NAME=FOLDER names one. A folder may occur once."""
    from sonde.runs.run import Run, open_run

    if len(given) < 2:
        raise UsageError(f"a comparison needs at least two runs; name their folders: {advice}")
    labels: list[str] = []
    runs: list[Run | Path] = []
    for run in given:
        label, equals, folder = "", "", ""
        if not isinstance(run, Run) and not Path(run).exists():
            label, equals, folder = str(run).partition("=")
            if equals and not (label.strip() and folder):
                raise UsageError(f"write NAME=FOLDER to name a run, not {str(run)!r}")
        labels.append(label.strip() if equals else "")
        runs.append(run if isinstance(run, Run) else Path(folder if equals else run))
    folders = [run.path if isinstance(run, Run) else run for run in runs]
    resolved = [folder.resolve() for folder in folders]
    for i, path in enumerate(resolved):
        if path in resolved[:i]:
            raise UsageError(f"{folders[i]} was given twice; give each run once")
    opened = [run if isinstance(run, Run) else open_run(run) for run in runs]
    names = [label or name for label, name in zip(labels, run_names(opened), strict=True)]
    if len(set(names)) < len(names):
        raise UsageError(f"two runs have the same name: {', '.join(names)}; write NAME=FOLDER")
    return dict(zip(names, opened, strict=True))


def _settings(runs: Sequence["Run"]) -> list[dict[str, str]]:
    """The settings of each run, with those of the prompt format if any run has one."""
    forms = form_settings([run.manifest.model for run in runs])
    probes = [run.manifest.probe for run in runs]
    return [
        {
            key: _word(value)
            for key, value in {**probe["settings"], **probe.get("vary", {}), **form}.items()
        }
        for probe, form in zip(probes, forms, strict=True)
    ]


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def run_names(runs: Sequence["Run"]) -> list[str]:
    """A short name for each run: model, probe and settings, as far as they differ.

    Settings are compared with those of runs of the same probe. If names are still equal, the
    folder's name is added.
    """
    models = [plain(run.manifest.model["name"]) for run in runs]
    probes = [str(run.manifest.probe["name"]) for run in runs]
    controls = [run.manifest.model["name"].startswith("control:") for run in runs]
    settings = _settings(runs)
    parts: list[list[str]] = [[] for _ in runs]
    keys = dict.fromkeys(key for values in settings for key in values)
    columns = {"model": models, "probe": probes}
    columns |= {key: [values.get(key, "") for values in settings] for key in keys}
    for key, values in columns.items():
        # how a control answers does not matter, and the answer decides if templates are closed
        kinds = list(
            zip(probes, controls, columns.get("answer", controls), strict=True)
            if key == "close"
            else zip(probes, controls if key == "answer" else probes, strict=True)
        )
        for i, value in enumerate(values):
            rivals = {
                v
                for v, kind in zip(values, kinds, strict=True)
                if key in ("model", "probe") or kind == kinds[i]
            }
            if len(rivals) > 1 and value:
                parts[i].append(value if key in UNNAMED else f"{key}={value}")
    names = [" ".join(words) or model for words, model in zip(parts, models, strict=True)]
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
    opened = list(runs.values())
    settings = _settings(opened)
    group_of = _groups(opened, groups, settings, table)
    made = {}
    for (name, run), group, texts in zip(runs.items(), group_of, settings, strict=True):
        results = run.results()
        if relations:
            ids = results.facts["relation"].unique(maintain_order=True).cast(pl.String).to_list()
            if unknown := [relation for relation in relations if relation not in ids]:
                raise UsageError(
                    f"{name} has no relation {unknown[0]!r}; {nearest(unknown[0], ids)}"
                )
            results = results.select(relations=relations)
            if results.rows.is_empty():
                raise UsageError(f"{name} has no graded prompts of {', '.join(relations)}")
        known = describe(plain(run.manifest.model["name"]), table)
        made[name] = Condition(
            name=name, results=results, run=run, group=group, settings=texts, known=known
        )
    return made


def _groups(
    runs: Sequence["Run"],
    groups: str,
    settings: Sequence[Mapping[str, str]],
    table: Mapping[str, Described],
) -> list[str]:
    """The group of each run, by a key or as named one by one."""
    if "," in groups:
        names = [name.strip() for name in groups.split(",")]
        if len(names) != len(runs) or not all(names):
            raise UsageError(f"groups names {len(names)} groups for {len(runs)} runs: {groups!r}")
        return names
    models = [plain(run.manifest.model["name"]) for run in runs]
    if groups in OF_MODELS:
        values = [str(getattr(describe(model, table), groups, "") or "") for model in models]
        # a model that the table lacks is a group of its own
        return [v or f"unknown ({model})" for v, model in zip(values, models, strict=True)]
    if groups in ("model", "probe"):
        return models if groups == "model" else [run.manifest.probe["name"] for run in runs]
    keys = dict.fromkeys(key for values in settings for key in values)
    if groups not in keys:
        hint = nearest(groups, [*OF_MODELS, "model", "probe", *keys])
        raise UsageError(f"runs cannot be grouped by {groups!r}; {hint}")
    return [values.get(groups, "") or "none" for values in settings]


def align(given: Mapping[str, Condition]) -> Aligned:
    """The conditions on what they share.

    In a relation in which they share prompts, only these are compared; in others all prompts of
    the shared facts. Raises UsageError if no fact is shared.
    """
    originals = list(given.values())
    # facts of one run that are equal in all that is compared count as one, unless ids are shared
    same = len({(c.dataset, c.probe) for c in originals}) == 1
    named = _relation_names(originals)
    exact, keys = (
        [_fact_keys(c, names, same, ids) for c, names in zip(originals, named, strict=True)]
        for ids in (True, False)
    )
    if _shared(exact).height == _shared(keys).height or same:
        keys = exact
    shared = _shared(keys)
    if shared.is_empty():
        raise UsageError(_nothing_shared(originals))
    first = originals[0]
    order = keys[0].join(shared, on="key").unique("key", keep="first").sort("fact_no")
    relation_ids = first.results.facts["relation"].gather(order["fact_no"]).cast(pl.String)
    relations = pl.Enum(relation_ids.unique(maintain_order=True))
    facts = first.results.facts[order["fact_no"]].with_columns(
        relation=relation_ids.cast(relations),
        fact_no=pl.int_range(pl.len(), dtype=pl.UInt32),
        excluded=pl.lit(None, pl.String),
    )
    numbers = order.select("key", number=pl.int_range(pl.len(), dtype=pl.UInt32))
    parts = []
    for condition, key in zip(originals, keys, strict=True):
        places = key.join(numbers, on="key").select("fact_no", "number")
        rows = condition.results.rows.join(places, on="fact_no", maintain_order="left")
        # prompts of relations in the first condition's ids, templates likewise
        renamed = dict(
            zip(
                condition.results.facts["relation"].gather(places["fact_no"]).cast(pl.String),
                facts["relation"].gather(places["number"]).cast(pl.String),
                strict=True,
            )
        )
        rows = rows.with_columns(
            fact_no="number", relation=facts["relation"].gather(rows["number"])
        ).drop("number")
        templates = condition.results.templates.with_columns(col("relation").cast(pl.String))
        templates = templates.filter(col("relation").is_in(list(renamed)))
        templates = templates.with_columns(
            col("relation").replace_strict(renamed, return_dtype=pl.String).cast(relations)
        ).sort("relation", "template_no")
        results = replace(
            condition.results, facts=facts, rows=rows.sort("fact_no", maintain_order=True),
            templates=templates,
        )  # fmt: skip
        parts.append(replace(condition, results=results))
    prompts = [_prompt_keys(part, len({c.dataset for c in originals}) > 1) for part in parts]
    common = [name for name in prompts[0].columns if all(name in p.columns for p in prompts)]
    both = reduce(
        lambda a, b: a.join(b, on=common, how="semi"), [p.select(common) for p in prompts]
    )
    covered = facts["relation"].gather(both["fact_no"]).unique().implode()
    aligned = {}
    for part, prompt in zip(parts, prompts, strict=True):
        places = prompt.select(common).with_row_index("row")
        keep = places.join(both, on=common, how="semi")["row"].implode()
        rows = part.results.rows.with_row_index("row")
        rows = rows.filter(col("row").is_in(keep) | ~col("relation").is_in(covered)).drop("row")
        aligned[part.name] = replace(part, results=replace(part.results, rows=rows))
    left = reduce(
        lambda a, b: a.join(b, on="fact_no", how="semi"),
        [c.results.rows.select("fact_no").unique() for c in aligned.values()],
    )["fact_no"].implode()
    for name, c in aligned.items():
        rows = c.results.rows.filter(col("fact_no").is_in(left))
        aligned[name] = replace(c, results=replace(c.results, rows=rows))
    return Aligned(
        conditions=aligned,
        originals=given,
        same_prompts=facts.filter(~col("relation").is_in(covered)).is_empty(),
        same_source=same
        or _shared(exact).height == shared.height == min(key["key"].n_unique() for key in exact),
        dropped={
            name: given[name].results.rows.height - c.results.rows.height
            for name, c in aligned.items()
        },
    )


def _shared(keys: Sequence[pl.DataFrame]) -> pl.DataFrame:
    frames = [key.select("key").unique() for key in keys]
    return reduce(lambda a, b: a.join(b, on="key", how="semi"), frames)


def _relation_names(originals: Sequence[Condition]) -> list[dict[str, str]]:
    """A common name for each relation, by id: its id, else its label.

    If each condition has one relation and they share neither, that one.
    """
    about = [
        c.prompted.select(col("relation").cast(pl.String), "label").unique() for c in originals
    ]
    ids = [frame["relation"].to_list() for frame in about]
    labels = [[label.casefold() for label in frame["label"]] for frame in about]
    for names in (ids, labels):
        unique = all(len(set(own)) == len(own) for own in names)
        if unique and set.intersection(*map(set, names)):
            break
    else:
        names = [[""] for _ in ids] if all(len(own) == 1 for own in ids) else ids
    return [dict(zip(own, name, strict=True)) for own, name in zip(ids, names, strict=True)]


def _fact_keys(
    condition: Condition, names: Mapping[str, str], by_id: bool, exact: bool
) -> pl.DataFrame:
    """fact_no and key of each prompted fact: its id, or what it states, or (`exact`) both."""
    facts, parts = condition.prompted, []
    relation = col("relation").cast(pl.String).replace_strict(names, return_dtype=pl.String)
    if not by_id:
        gold = col("gold_names").list.eval(pl.element().list.first()).list.unique().list.sort()
        date = col("date") if "date" in facts.columns else pl.lit("")
        parts = [relation, col("subject"), date.fill_null(""), gold.list.join("\x1f")]
    if by_id or exact:
        parts = [relation, *parts, col("fact")]
    return facts.select("fact_no", key=pl.concat_str(parts, separator="\x1e"))


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


def _nothing_shared(originals: Sequence[Condition]) -> str:
    datasets = list(dict.fromkeys(c.run.manifest.dataset["name"] for c in originals))
    where = f": they prompted about {' and '.join(datasets)}" if len(datasets) > 1 else ""
    golds = [dict(c.prompted.select("subject", "gold").iter_rows()) for c in originals]
    if subjects := set.intersection(*map(set, golds)):
        subject = min(subjects)
        objects = " / ".join(dict.fromkeys(gold[subject] for gold in golds))
        return (
            f"the runs share no fact{where}; {len(subjects):,} subjects are in all of them, but "
            f"with other relations or correct objects, such as {subject!r}: {objects}"
        )
    return (
        f"the runs share no fact{where}; compare runs about the same relations, subjects and "
        "correct objects (of one dataset: the same relations, limit, split and seed)"
    )


def describe_differences(aligned: Aligned) -> str:
    """How else than by their models conditions differ, in a few words; empty if they do not."""
    every = list(aligned.conditions.values())
    some = [c for c in every if not c.is_control] or every
    parts = []
    probes = list(dict.fromkeys(c.probe for c in some))
    if len(some) > 1:
        if len(probes) > 1:
            parts.append(f"different probe: {' and '.join(probes)}")
        tasks = list(dict.fromkeys(c.task for c in some))
        if len(tasks) > 1:
            parts.append(f"different task: {' and '.join(TASKS.get(t, t) for t in tasks)}")
        if len(probes) == 1 and not aligned.same_prompts:
            keys = dict.fromkeys(key for c in some for key in c.settings)
            apart = [key for key in keys if len({c.settings.get(key) for c in some}) > 1]
            # what is set here shows in the names of runs; templates may come from the dataset
            parts.append("different template" if not apart or any("template" in k for k in apart)
                         else f"different prompts: {', '.join(apart)}")  # fmt: skip
    files = not aligned.same_source
    if files:
        n = aligned.facts.height
        parts.append(f"different dataset files, {n:,} shared fact{'s' * (n != 1)}")
    if not parts:
        return ""
    same = ["model"] * (len({c.model for c in every}) == 1)
    same += ["facts"] * (not files and len(probes) > 1)
    return ", ".join([f"same {' and '.join(same)}"] * bool(same) + parts)


def warnings(aligned: Aligned) -> Iterator[str]:
    """What makes the comparison one of more than the models, with the command that helps."""
    every = list(aligned.originals.values())
    some = [c for c in every if not c.is_control]
    some = some if len(some) > 1 else every

    def by_value(values: Mapping[str, str]) -> str:
        names: dict[str, list[str]] = {}
        for name, value in values.items():
            if value:
                names.setdefault(value, []).append(name)
        texts = [f"{', '.join(members)}: {value}" for value, members in names.items()]
        return "; ".join(texts) if len(texts) > 1 else ""

    checks = (
        ("Probes differ", {c.name: c.probe for c in some},
         "They count other answers as correct. Compare runs of one probe."),
        ("Tasks differ", {c.name: TASKS.get(c.task, c.task) for c in some},
         "Scored, filled and generated answers are not comparable. Set --answer where it exists."),
        ("Vocabularies differ",
         {c.name: c.run.manifest.model.get("tokenizer") or "" for c in some if c.task == "fill"},
         "Each model may answer with words that another cannot. "
         "Use a common one: sonde data vocabulary, sonde data convert --vocabulary."),
        ("Dataset contents differ",
         {c.name: f"{c.run.manifest.dataset['name']} {c.dataset[:12]}"
          for c in every if not aligned.same_source},
         "Only shared facts are compared."),
        ("Versions of sonde differ", {c.name: c.run.manifest.probe.get("sonde", "") for c in some},
         "They may prompt or grade differently. Run again with one version."),
    )  # fmt: skip
    for what, values, advice in checks:
        if listing := by_value(values):
            yield f"{what} ({listing}). {advice}"
    if len({c.probe for c in some}) == 1:
        keys = dict.fromkeys(key for c in some for key in c.settings)
        if any(c.is_control for c in some):
            keys.pop("close", None)  # a control reads no template
        apart = {key: [c.settings.get(key, "–") for c in some] for key in keys}
        texts = [
            f"{key} {' / '.join(values)}" for key, values in apart.items() if len(set(values)) > 1
        ]
        if texts:
            listing = ", ".join(texts)
            yield f"Settings differ ({listing}). The difference may not be due to the models."
    sets = [
        c.results.rows.group_by("fact_no").agg(col("options_id").sort().first().alias(c.name))
        for c in aligned.conditions.values()
        if "options_id" in c.results.rows.columns
    ]
    if len(sets) > 1:
        joined = reduce(lambda a, b: a.join(b, on="fact_no"), sets).drop_nulls()
        names = joined.columns[1:]
        differ = joined.filter(pl.any_horizontal(col(names[0]) != col(n) for n in names[1:])).height
        if differ:
            yield (
                f"The options to choose from differ for {differ:,} of {joined.height:,} facts. "
                "One set may be easier."
            )
    for c in some:
        if reason := doubt(c.run.manifest):
            yield (
                f"The numbers of {c.name} may not be the model's own: {reason}. "
                "See sonde doctor --against."
            )
