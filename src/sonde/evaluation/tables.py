"""The tables of an evaluation: facts, templates, graded prompts and estimates.

Each schema is written down once. Knows no probe and no statistics.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Self, cast

import numpy as np
import polars as pl
from polars import col

from sonde.answers import Answers, OptionScores
from sonde.core.errors import DataError, UsageError, nearest
from sonde.core.fact_frames import DATES, entities, is_apart, united
from sonde.core.facts import Dataset, Relation, Template, commonest_objects
from sonde.core.fingerprints import draw_key

if TYPE_CHECKING:
    from sonde.probes.base import Probe

FACT = ("relation", "fact")
QUESTION = ("relation", "subject_id", "date")

FACTS: Mapping[str, Any] = {
    "fact_no": pl.UInt32,  # the row of the fact in this table
    "relation": pl.Enum,
    "label": pl.String,
    "kind": pl.String,  # 1-1, N-1 or N-M, null if unknown
    "language": pl.String,
    "canonical_id": pl.String,  # of the relation in every language
    "relation_tags": pl.List(pl.String),
    "fact": pl.String,
    "subject_id": pl.String,
    "subject": pl.String,
    "aliases": pl.List(pl.String),  # the usual name first
    "gold": pl.String,  # usual names of the correct objects
    "gold_names": pl.List(pl.List(pl.String)),  # all names of each correct object, the usual first
    "question_names": pl.List(pl.List(pl.String)),  # of the question's objects; null if only one
    "also_correct": pl.List(pl.String),  # further names, by facts that are for training only
    "split": pl.String,
    "tags": pl.List(pl.String),
    "majority": pl.String,  # usual name of the most common object of the relation
    "majority_correct": pl.Boolean,  # it is correct
    "guessable": pl.Boolean,  # the subject's name contains the usual name of an object
    "cluster": pl.UInt32,  # of relation and subject; facts of one are resampled together
    "question": pl.UInt32,  # of relation, subject and date
    "date": pl.String,
    "valid_from": pl.String,
    "valid_to": pl.String,
    "excluded": pl.String,  # why the fact is not scored, null if it is
}
"""Further columns: `numbers.NAME` and `details.NAME`. Dates are absent if no fact has one."""

TEMPLATES: Mapping[str, Any] = {
    "relation": pl.Enum,
    "template": pl.String,
    "template_no": pl.UInt16,  # from 1, among those that the probe uses
    "text": pl.String,
    "source": pl.String,
    "style": pl.String,
    "group": pl.String,
    "origin": pl.String,
    "language": pl.String,
}

ROWS: Mapping[str, Any] = {
    "fact_no": pl.UInt32,
    "relation": pl.Enum,
    "template_no": pl.UInt16,  # 0: none of TEMPLATES
    "alias_no": pl.UInt16,  # 0: the usual name of the subject, or none of its aliases
    "answer_mode": pl.Enum,  # score, fill or generate
    "answer": pl.Enum,
    "correct": pl.Boolean,
    "baseline": pl.Float32,  # or Boolean: what the control gets on this prompt
    "guessable": pl.Boolean,
    "tied": pl.Boolean,  # the two best answers are equally likely
    "rank": pl.UInt32,  # of the best correct name, ties against it; null: none could be answered
    "ranked": pl.Float32,  # share of (correct, wrong) pairs of options in order
    "confidence": pl.Float32,  # probability of the answer, or its share among the options
    "gold_logprob": pl.Float32,  # of all correct names together
    "finished": pl.Boolean,
    "abstained": pl.Boolean,
    "n_tokens": pl.UInt16,
    "n_words": pl.UInt16,
    "sequence_prob": pl.Float32,
    "options_id": pl.UInt32,  # a hash of the set of options
    "helped": pl.UInt32,  # added names of objects that are more likely than the usual one
    "compared": pl.UInt32,  # of these
    "set_precision": pl.Float32,
    "set_recall": pl.Float32,
    "set_f1": pl.Float32,
    "average_precision": pl.Float32,
    "set_whole": pl.Float32,
}
"""Axis columns of the probe come after alias_no. A column that a probe lacks is absent. Floats stay
as wide as they were judged: what a masked model gave is float32, sums are float64."""

ESTIMATES: Mapping[str, Any] = {
    "metric": pl.String,
    "of": pl.String,  # value, baseline or difference
    "over": pl.String,  # relations: each relation counts the same; facts: each fact does
    "run": pl.String,
    "reference": pl.String,  # what a difference is to, if not to the metric's baseline
    "group_by": pl.List(pl.String),  # columns; none for all rows
    "group": pl.List(pl.String),  # their values
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "p": pl.Float64,
    "p_adjusted": pl.Float64,
    "n": pl.UInt32,
    "n_clusters": pl.UInt32,
}

MERGED = 2**21  # options of batches that are judged together
UNANSWERABLE = "no correct name can be answered"
NO_TEMPLATE = "the relation has no template"


def fact_table(data: Dataset, unit: Literal["fact", "pair"] = "fact") -> pl.DataFrame:
    """The facts that the selection prompts, one row each.

    With unit "pair", the facts of one subject, relation and date are one row, known by the first
    of them, with the objects of all of them, whatever their split.
    """
    relations = data.asked_relations()
    asked = pl.concat([data.asked_frame(relation.id) for relation in relations])
    if asked.select(FACT).is_duplicated().any():
        repeated = asked.filter(asked.select(FACT).is_duplicated())["fact"][0]
        raise DataError(f"two facts have the id {repeated!r}; give each fact an id of its own")
    merged = unit == "pair"
    rows = asked.unique(QUESTION, keep="first", maintain_order=True) if merged else asked
    every = pl.concat([data.frame(relation.id) for relation in relations])
    every = every.join(rows, on=QUESTION, how="semi", maintain_order="left")
    if merged:
        # the names of the fact that is prompted come first
        names = pl.concat([rows, every]).select(*QUESTION, aliases="subject_names")
        names = (
            names.explode("aliases")
            .group_by(QUESTION)
            .agg(col("aliases").unique(maintain_order=True))
        )
        objects = united(entities(every.lazy(), *QUESTION), *QUESTION).collect()
        objects = objects.select(*QUESTION, gold_names="object_names")
        rows = rows.join(names, on=QUESTION, how="left", maintain_order="left")
        rows = rows.join(objects, on=QUESTION, how="left", maintain_order="left")
        rows = rows.with_columns(
            col("gold_names").fill_null([]), subject=col("aliases").list.first()
        )
    else:
        rows = rows.rename({"subject_names": "aliases", "object_names": "gold_names"})
    rows = rows.join(_question_objects(every, data), on=QUESTION, how="left", maintain_order="left")
    common = {
        r.id: next(iter(commonest_objects(data.split_frame(r.id))), ("", 0))[0] for r in relations
    }
    about = pl.DataFrame(
        [
            (r.id, r.label, r.kind, r.language, r.same, list(r.tags), common[r.id])
            for r in relations
        ],
        {name: FACTS.get(name, pl.String) for name in ABOUT} | {"relation": pl.String},
        orient="row",
    )
    rows = rows.join(about, on="relation", how="left", maintain_order="left")
    usual = col("gold_names").list.eval(pl.element().list.first())
    texts = zip(rows["subject"], rows.select(usual).to_series(), strict=True)
    guessable = [any(n.casefold() in name.casefold() for n in objects) for name, objects in texts]
    rows = rows.with_row_index("fact_no").with_columns(
        gold=usual.list.join(", "),
        majority_correct=usual.list.contains(col("majority")).fill_null(False),
        guessable=pl.Series(guessable, dtype=pl.Boolean),
        cluster=pl.struct("relation", "subject_id").rank("dense"),
        question=pl.struct(QUESTION).rank("dense"),
        relation=col("relation").cast(pl.Enum([r.id for r in relations])),
        excluded=pl.lit(None, pl.String),
        **{name: pl.when(col(name) != "").then(name) for name in DATES},
    )
    optional = (*DATES, "also_correct")
    missing = [name for name in optional if rows[name].is_null().all()]
    table = rows.select(name for name in FACTS if name not in missing)
    table = table.cast({name: FACTS[name] for name in ("fact_no", "cluster", "question")})
    for kind in ("numbers", "details"):
        named = rows.select("fact_no", kind).explode(kind).drop_nulls(kind).unnest(kind)
        for name in named["name"].unique(maintain_order=True):
            values = named.filter(col("name") == name).unique("fact_no", keep="first")
            values = values.select("fact_no", col("value").alias(f"{kind}.{name}"))
            table = table.join(values, on="fact_no", how="left", maintain_order="left")
    return table


ABOUT = ("relation", "label", "kind", "language", "canonical_id", "relation_tags", "majority")


def _question_objects(every: pl.DataFrame, data: Dataset) -> pl.DataFrame:
    """Per question all objects that are correct by any fact, and names by facts for training only.

    Objects of facts for training have no identifiers, so they cannot be merged with the others.
    """
    counted = ~is_apart() | (col("split") == data.selection.split)
    objects = united(entities(every.lazy().filter(counted), *QUESTION), *QUESTION)
    several = col("object_ids").list.len() > 1
    objects = objects.select(*QUESTION, question_names=pl.when(several).then("object_names"))
    names = col("object_names").explode().explode().unique(maintain_order=True)
    training = every.lazy().filter(~counted).group_by(QUESTION).agg(also_correct=names)
    return objects.join(training, on=QUESTION, how="full", coalesce=True).collect()


def template_table(
    data: Dataset, templates: Callable[[Relation], Sequence[Template]]
) -> pl.DataFrame:
    """The templates that are used, in the order of the relations."""
    relations = data.asked_relations()
    rows = [
        (r.id, t.id, n, t.text, t.source, t.style, t.group, t.origin, r.language)
        for r in relations
        for n, t in enumerate(templates(r), 1)
    ]
    schema = {**TEMPLATES, "relation": pl.Enum([relation.id for relation in relations])}
    return pl.DataFrame(rows, schema, orient="row")


def pack(
    frames: Iterable[pl.DataFrame],
    facts: pl.DataFrame,
    templates: pl.DataFrame,
    axes: Sequence[str] = (),
) -> pl.DataFrame:
    """All graded prompts as one frame, sorted by relation and fact, texts as numbers.

    Prompts about no fact are dropped. Of two answers to one prompt the later counts, except under
    templates that are none of the probe's.
    """
    facts_by_id = facts.select(col("relation").cast(pl.String), "fact", "fact_no")
    names = facts.select("fact_no", subject="aliases").explode("subject").drop_nulls()
    names = names.unique(maintain_order=True)
    alias_no = pl.int_range(pl.len(), dtype=pl.UInt16).over("fact_no")
    names = names.with_columns(alias_no=alias_no).filter(col("alias_no") > 0)
    numbers = templates.select(col("relation").cast(pl.String), "template", "template_no")
    texts: dict[str, dict[str, int]] = {}
    parts = []
    for frame in frames:
        relations = frame["relation"].unique()
        about = facts_by_id.filter(col("relation").is_in(relations.implode()))
        part = frame.drop("prefix", "suffix", strict=False)
        part = part.join(about, on=FACT, how="inner", maintain_order="left")
        part = part.join(numbers, on=("relation", "template"), how="left", maintain_order="left")
        part = part.join(names, on=("fact_no", "subject"), how="left", maintain_order="left")
        part = part.drop("relation", "fact", "template", "subject")
        part = part.with_columns(col("template_no", "alias_no").fill_null(0))
        for name in part.select(pl.col(pl.String, pl.Enum, pl.Categorical)).columns:
            # numbers of texts, as the texts of all frames are known only at the end
            known = texts.setdefault(name, {})
            column = part[name].cast(pl.String)
            distinct = column.drop_nulls().unique(maintain_order=True)
            codes = pl.Series(
                [known.setdefault(text, len(known)) for text in distinct], dtype=pl.UInt32
            )
            part = part.with_columns(
                column.replace_strict(distinct, codes, default=None, return_dtype=pl.UInt32)
            )
        integers = {
            n: t for n, t in ROWS.items() if t != pl.Enum and t != pl.Float32 and n in part.columns
        }
        part = part.cast({n: t for n, t in integers.items() if n != "baseline"})
        parts.append(part)
    enum = facts["relation"].dtype
    if not parts:
        return pl.DataFrame(schema={"fact_no": pl.UInt32, "relation": enum})
    rows = pl.concat(parts, how="diagonal_relaxed", rechunk=True)
    parts.clear()
    key = rows["fact_no"].to_numpy().astype(np.int64)
    further = [name for name in ("answer_mode", *axes) if name in rows.columns]
    if further:
        cell = rows.select(pl.struct(further).rank("dense")).to_series()
        rows = rows.with_columns(cell=cell) if cell.n_unique() > 1 else rows
    for name in ("template_no", "alias_no", *(["cell"] if "cell" in rows.columns else [])):
        values = rows[name].to_numpy()
        key = key * (int(values.max()) + 1) + values
    if not (key[1:] > key[:-1]).all():
        order = np.argsort(key, kind="stable")
        last = np.append(np.diff(key[order]) != 0, True) | (
            rows["template_no"].to_numpy()[order] == 0
        )
        rows = rows[order[last]]
    for name, known in texts.items():
        words = pl.Series(list(known), dtype=pl.Enum(list(known)))
        rows = rows.with_columns(words.gather(rows[name]).alias(name))
    rows = rows.drop("cell", strict=False).with_columns(
        relation=facts["relation"].gather(rows["fact_no"])
    )
    first = (
        "fact_no",
        "relation",
        "template_no",
        "alias_no",
        *(a for a in axes if a in rows.columns),
    )
    return rows.select(*first, pl.exclude(first))


@dataclass(frozen=True, kw_only=True, eq=False)
class Results:
    """What a run comes to: its tables, and the probe that declares what is estimated from them.

    `side` has further tables that the probe handed over while judging. `facts` and `templates`
    are whole, whatever `rows` are selected.
    """

    probe: "Probe"
    facts: pl.DataFrame
    templates: pl.DataFrame
    rows: pl.DataFrame
    side: Mapping[str, pl.DataFrame] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: pl.DataFrame) -> Self:
        """Of values that come from no probe: a row per fact with `relation`, `cluster` (numbers)
        and the columns that metrics name."""
        relations = pl.Enum(rows["relation"].unique(maintain_order=True))
        rows = rows.with_columns(col("relation").cast(relations)).sort("relation")
        fact_no = pl.int_range(pl.len(), dtype=pl.UInt32)
        excluded = pl.lit(None, pl.String)
        rows = rows.with_columns(fact_no=fact_no, template_no=pl.lit(0, pl.UInt16))
        facts = rows.select(
            "fact_no", "relation", col("cluster").cast(pl.UInt32), excluded=excluded
        )
        return cls(
            probe=cast(Any, None),
            facts=facts,
            templates=pl.DataFrame(schema={**TEMPLATES, "relation": relations}),
            rows=rows.drop("cluster"),
        )

    def select(self, *, relations: Sequence[str] = (), where: pl.Expr | None = None) -> Self:
        """The same with some of the rows."""
        rows = self.rows
        if relations:
            rows = rows.filter(col("relation").cast(pl.String).is_in(relations))
        if where is not None:
            chosen = replace(self, rows=rows)
            rows = rows.filter(
                chosen.table(where.meta.root_names()).select(where).collect().to_series()
            )
        return replace(self, rows=rows)

    def table(self, columns: Iterable[str] = ()) -> pl.LazyFrame:
        """Rows with columns of their facts and templates: those named, else all.

        A row's column wins over one of the fact. A column that this probe lacks is null.
        """
        rows, place = self.rows, None
        every = (*rows.columns, *self.facts.columns, *self.templates.columns, *KNOWN)
        named = list(dict.fromkeys(columns)) or list(dict.fromkeys(every))
        further = []
        for name in named:
            if name in rows.columns:
                continue
            if name in self.facts.columns:
                further.append(self.facts[name].gather(rows["fact_no"]))
            elif name in self.templates.columns:
                place = self._template_places() if place is None else place
                further.append(self.templates[name].gather(place))
            elif name in KNOWN:
                further.append(pl.lit(None, KNOWN[name]).alias(name))
            else:
                known = [*KNOWN, *rows.columns, *self.facts.columns]
                raise UsageError(f"the results have no column {name!r}; {nearest(name, known)}")
        return rows.with_columns(further).select(named).lazy()

    def _template_places(self) -> pl.Series:
        """The row in `templates` of each row; null if it has none."""
        counts = self.templates["relation"].to_physical().to_numpy()
        first = np.searchsorted(counts, np.arange(int(counts.max(initial=0)) + 1))
        relation, number = self.rows["relation"].to_physical().to_numpy(), self.rows["template_no"]
        places = pl.Series(first[np.minimum(relation, len(first) - 1)] + number.to_numpy() - 1.0)
        return places.cast(pl.Int64).set(number == 0, None)

    def counts(self) -> dict[str, int]:
        """Numbers of facts and prompts, and of those excluded, tied, empty or unfinished."""
        rows, reasons = self.rows, self.facts["excluded"].drop_nulls().value_counts(sort=True)
        counts = {
            "facts": self.facts.height,
            "scored": rows["fact_no"].n_unique(),
            "prompts": rows.height,
            **{f"excluded.{reason}": n for reason, n in reasons.iter_rows()},
        }
        present = self.table(["answer", "answer_mode", "tied", "finished"]).select(
            tied=col("tied").sum(),
            empty=(col("answer").cast(pl.String) == "")
            .filter(col("answer_mode") == "generate")
            .sum(),
            unfinished=(~col("finished")).sum(),
        )
        return counts | {name: n for name, n in present.collect().row(0, named=True).items() if n}

    def browse(self, columns: Sequence[str], limit: int, seed: int = 0) -> pl.DataFrame:
        """Per fact its most frequent answer, share of correct prompts, median rank and so on.

        Above `limit`, facts are sampled by the seed. Values of columns that the probe never pools
        have rows of their own.
        """
        scored = self.rows["fact_no"].unique().sort()
        if len(scored) > limit:
            ids = self.facts["fact"].gather(scored)
            keys = np.array([draw_key(seed, id) for id in ids], dtype=np.uint64)
            scored = scored.gather(np.sort(np.argsort(keys, kind="stable")[:limit]))
        rows = self.rows.filter(col("fact_no").is_in(scored.implode()))
        key = ["fact_no", *self._separate()]
        chosen = replace(self, rows=rows).table([*key, *columns]).collect()
        lines = chosen.select(key).unique(maintain_order=True)
        lines = lines.join(
            rows.group_by(key).agg(prompts=pl.len()), on=key, how="left", maintain_order="left"
        )
        for name in dict.fromkeys(columns):
            if name in lines.columns:
                continue
            if name not in rows.columns:
                lines = lines.with_columns(
                    chosen.unique(key, keep="first", maintain_order=True)[name]
                )
                continue
            value = col(name)
            if chosen[name].dtype == pl.Enum:
                counts = (
                    chosen.select(*key, value.cast(pl.String))
                    .drop_nulls(name)
                    .group_by(*key, name)
                    .len()
                )
                counts = counts.sort("len", name, descending=[True, False])
                values = counts.unique(key, keep="first").drop("len")
            else:
                mean = value.median() if name == "rank" else value.mean()
                values = chosen.group_by(key).agg(mean)
            lines = lines.join(values, on=key, how="left", maintain_order="left", nulls_equal=True)
        return lines

    def answer_distribution(self) -> pl.DataFrame:
        """Per relation the number of prompts with each answer, of those correct, and with it gold.

        Names of one correct object count as its usual name. Values of columns that the probe never
        pools are counted apart.
        """
        key = ["relation", *self._separate()]
        rows = self.table([*key, "fact_no", "answer", "correct"]).filter(
            col("answer").is_not_null()
        )
        gold = self.facts.lazy().select("fact_no", "relation", names="gold_names").explode("names")
        gold = gold.drop_nulls("names").with_columns(usual=col("names").list.first())
        spelled = gold.explode("names").select(
            "relation", "usual", name=col("names").str.to_lowercase()
        )
        answers = rows.with_columns(name=col("answer").cast(pl.String).str.to_lowercase()).join(
            spelled.unique(("relation", "name"), keep="first", maintain_order=True),
            on=("relation", "name"),
            how="left",
        )
        answers = answers.with_columns(answer=pl.coalesce("usual", col("answer").cast(pl.String)))
        given = answers.group_by(*key, "answer").agg(n=pl.len(), correct=col("correct").sum())
        wanted = rows.join(gold.select("fact_no", answer="usual"), on="fact_no", how="inner")
        wanted = wanted.group_by(*key, col("answer_right").alias("answer")).agg(gold=pl.len())
        both = given.join(wanted, on=[*key, "answer"], how="full", coalesce=True)
        both = both.with_columns(col("n", "correct", "gold").fill_null(0))
        return both.sort(
            *key, "n", "gold", "answer", descending=[False] * len(key) + [True, True, False]
        ).collect()

    def _separate(self) -> list[str]:
        """The columns that are never pooled and have several values here."""
        columns = [name for name in self.probe.separate if name in self.rows.columns]
        return [name for name in columns if self.rows[name].n_unique() > 1]


KNOWN = {name: t if t != pl.Enum else pl.String for name, t in (TEMPLATES | FACTS | ROWS).items()}


def merge_batches(answers: Iterable[Answers]) -> Iterator[Answers]:
    """Successive batches of one relation and request as one, because each costs milliseconds."""

    def merge(parts: list[Answers]) -> Answers:
        if len(parts) == 1:
            return parts[0]
        numbers: dict[Names, int] = {}
        frames = []
        for part in parts:
            ids = [numbers.setdefault(names, len(numbers)) for names in part.batch.options]
            frame = part.frame
            if ids:
                ids_here = np.array(ids)[part.batch.options_ids()]
                frame = frame.with_columns(options_id=pl.Series(ids_here, dtype=pl.UInt32))
            frames.append(frame)
        batch = replace(parts[0].batch, frame=pl.concat(frames), options=tuple(numbers))
        result = type(parts[0].result).concat([part.result for part in parts])
        return Answers(batch=batch, result=result)

    parts: list[Answers] = []
    last: Any = None
    cells = 0
    for answered in answers:
        frame, request, result = answered.frame, answered.batch.request, answered.result
        key = request, frame.columns, frame["relation"].unique().to_list()
        size = len(frame) * max(16, len(getattr(request, "targets", ())))
        if isinstance(result, OptionScores):
            size = len(result.logprobs.values)
        if parts and (key != last or cells + size > MERGED):
            yield merge(parts)
            parts, cells = [], 0
        parts.append(answered)
        cells, last = cells + size, key
    if parts:
        yield merge(parts)


def collect_results(probe: "Probe", data: Dataset, answers: Iterable[Answers]) -> Results:
    """The results of a probe from what was answered to its prompts.

    Raises:
        UsageError: a metric uses a column that the results do not have.
        DataError: there is nothing to estimate from.
    """
    facts, templates = probe.facts(data), template_table(data, probe.templates)
    side: dict[str, list[pl.DataFrame]] = {}

    def judged() -> Iterable[pl.DataFrame]:
        for batch in merge_batches(answers):
            tables = probe.judge(batch, facts)
            if isinstance(tables, pl.DataFrame):
                tables = {"rows": tables}
            for name, table in tables.items():
                if name != "rows":
                    side.setdefault(name, []).append(table)
            if "rows" in tables:
                yield tables["rows"]

    rows = pack(judged(), facts, templates, probe.axes)
    prompted, why = rows["fact_no"].unique().implode(), probe.lost
    rows = rows if rows.is_empty() else probe.combine(rows, facts)
    if rows.is_empty():
        fix = "choose relations or a split that has facts"
        if templates.is_empty():
            fix = "give a template, such as --template 'The capital of [X] is [Y].'"
        raise DataError(f"probe {probe.name!r} has no prompt about a fact of {data.name!r}; {fix}")
    if probe.answerable_only:
        scored = rows.filter(col("rank").is_not_null())
        if scored.is_empty():
            raise DataError(
                f"0 of {facts.height} facts can be scored, because {UNANSWERABLE}; score the "
                "objects as options with --answer score"
            )
        rows, why = scored, UNANSWERABLE
    missing = ~col("fact_no").is_in(rows["fact_no"].unique().implode())
    worded = col("relation").is_in(templates["relation"].unique().implode())
    reason = pl.when(missing & col("fact_no").is_in(prompted)).then(pl.lit(why))
    reason = reason.when(missing & ~worded).then(pl.lit(NO_TEMPLATE))
    facts = facts.with_columns(excluded=pl.coalesce("excluded", reason))
    if "baseline" not in {*rows.columns, *facts.columns}:
        facts = facts.with_columns(baseline="majority_correct")
    tables = {name: pl.concat(parts, how="diagonal_relaxed") for name, parts in side.items()}
    results = Results(probe=probe, facts=facts, templates=templates, rows=rows, side=tables)
    for metric in probe.metrics:
        if getattr(metric, "view", True) is not None:
            continue  # a view makes columns of its own
        uses = (getattr(metric, name) for name in ("num", "den", "where", "baseline"))
        names = {name for use in uses if use is not None for name in use.meta.root_names()}
        try:
            results.select(where=pl.lit(False)).table(sorted(names | ({metric.by} - {""})))
        except UsageError as error:
            raise UsageError(f"metric {metric.id!r} of probe {probe.name!r}: {error}") from None
    return results
