"""The tables of an evaluation: facts, templates, graded prompts and estimates.

Each schema is written down once. Knows no probe and no statistics.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, Self, cast

import polars as pl
from polars import Boolean, Enum, Float32, Float64, List, String, UInt16, UInt32, col

from sonde.answers import Answers
from sonde.core.errors import DataError, UsageError, nearest
from sonde.core.fact_frames import DATES, entities, is_apart, united
from sonde.core.facts import Dataset, Relation, Template, commonest_objects

if TYPE_CHECKING:
    from sonde.probes.base import Probe

FACT = ("relation", "fact")
QUESTION = ("relation", "subject_id", "date")
LEFT: Any = {"how": "left", "maintain_order": "left"}

FACTS: Mapping[str, Any] = {
    "fact_no": UInt32,  # the row of the fact in this table
    "relation": Enum,
    "label": String,  # with the id if several relations have it
    "kind": String,  # 1-1, N-1 or N-M, null if unknown
    "language": String,
    "canonical_id": String,  # of the relation in every language
    "relation_tags": List(String),
    "fact": String,
    "subject_id": String,
    "subject": String,
    "aliases": List(String),  # the usual name first
    "gold": String,  # usual names of the correct objects
    "gold_names": List(List(String)),  # all names of each correct object, the usual first
    "question_names": List(List(String)),  # of the question's objects; null if only one
    "split": String,
    "tags": List(String),
    "majority": String,  # usual name of the most common object of the relation
    "majority_correct": Boolean,  # it is correct
    "guessable": Boolean,  # the subject's name contains the usual name of an object
    "cluster": UInt32,  # of relation and subject; facts of one are resampled together
    "date": String,
    "valid_from": String,
    "valid_to": String,
    "excluded": String,  # why the fact is not scored, null if it is
}
"""Further columns: `numbers.NAME` and `details.NAME`. Dates are absent if no fact has one."""

TEMPLATES: Mapping[str, Any] = {
    "relation": Enum,
    "template": String,
    "template_no": UInt16,  # from 1, among those that the probe uses
    "text": String,
    "source": String,
    "style": String,
    "group": String,
    "origin": String,
    "language": String,
}

ROWS: Mapping[str, Any] = {
    "fact_no": UInt32,
    "relation": Enum,
    "template_no": UInt16,  # 0: none of TEMPLATES
    "alias_no": UInt16,  # 0: the usual name of the subject, or none of its aliases
    "answer_mode": Enum,  # score, fill or generate
    "answer": Enum,
    "correct": Boolean,
    "baseline": Float32,  # or Boolean: what the control gets on this prompt
    "guessable": Boolean,
    "tied": Boolean,  # the two best answers are equally likely
    "rank": UInt32,  # of the best correct name, ties against it; null: none could be answered
    "ranked": Float32,  # share of (correct, wrong) pairs of options in order
    "confidence": Float32,  # probability of the answer, or its share among the options
    "gold_logprob": Float32,  # of all correct names together
    "finished": Boolean,
    "abstained": Boolean,
    "n_tokens": UInt16,
    "n_words": UInt16,
    "sequence_prob": Float32,
    "options_id": UInt32,  # a hash of the set of options
    "helped": UInt32,  # added names of objects that are more likely than the usual one
    "compared": UInt32,  # of these
}
"""Axis columns of the probe come after alias_no. A column that a probe lacks is absent. Floats stay
as wide as they were judged: what a masked model gave is float32, sums are float64."""

ESTIMATES: Mapping[str, Any] = {
    "metric": String,
    "of": String,  # value, baseline or difference
    "over": String,  # relations: each relation counts the same; facts: each fact does
    "run": String,
    "reference": String,  # what a difference is to, if not to the metric's baseline
    "group_by": List(String),  # columns; none for all rows
    "group": List(String),  # their values
    "value": Float64,
    "low": Float64,
    "high": Float64,
    "p": Float64,
    "p_adjusted": Float64,
    "n": UInt32,
    "n_clusters": UInt32,
}

KNOWN = {
    n: String if t == Enum else t for n, t in (*TEMPLATES.items(), *FACTS.items(), *ROWS.items())
}

CELLS = 2**20  # options that are judged together, at most
NO_TEMPLATE, ONE_OPTION = "the relation has no template", "there is only one option"


def fact_table(data: Dataset, unit: Literal["fact", "pair"] = "fact") -> pl.DataFrame:
    """The facts that the selection prompts, one row each.

    With unit "pair", the facts of one subject, relation and date are one row, known by the first
    of them, with the objects of all of them, whatever their split.
    """
    relations, parts = data.asked_relations(), []
    labels = [relation.label for relation in relations]
    for relation in relations:
        common = commonest_objects(data.split_frame(relation.id))
        about: dict[str, Any] = {
            # the same relation in several languages may have one label
            "label": f"{relation.label} ({relation.id})"
            if relation.label and labels.count(relation.label) > 1
            else relation.label,
            "kind": relation.kind,
            "language": relation.language,
            "canonical_id": relation.same,
            "relation_tags": list(relation.tags),
            "majority": common[0][0] if common else "",
        }
        values = (pl.lit(value, FACTS[name]).alias(name) for name, value in about.items())
        parts.append(data.asked_frame(relation.id).with_columns(values))
    rows = pl.concat(parts)
    pairs = unit == "pair"
    if pairs:
        rows = rows.unique(QUESTION, keep="first", maintain_order=True)
    every = pl.concat([data.frame(relation.id) for relation in relations])
    every = every.join(rows, on=QUESTION, how="semi", maintain_order="left")
    # facts for training only have objects without identifiers, which cannot be merged
    tested = every.filter(pairs | ~is_apart() | (col("split") == data.selection.split))
    merged = united(entities(tested.lazy(), *QUESTION), *QUESTION).collect()
    rows = rows.join(merged, on=QUESTION, suffix="_merged", **LEFT)
    several = col("object_names_merged").list.len() > 1
    if pairs:
        # the names of the fact that is prompted come first
        names = pl.concat(part.select(*QUESTION, "subject_names") for part in (rows, every))
        names = (
            names.explode("subject_names")
            .group_by(QUESTION)
            .agg(col("subject_names").unique(maintain_order=True))
        )
        rows = rows.drop("subject_names").join(names, on=QUESTION, **LEFT)
    rows = rows.with_columns(
        aliases="subject_names",
        gold_names=pl.coalesce("object_names_merged", "object_names") if pairs else "object_names",
        question_names=pl.when(several).then("object_names_merged"),
    )
    usual = col("gold_names").list.eval(pl.element().list.first())
    texts = rows.select(col("subject"), usual).iter_rows()
    contained = [any(n.casefold() in text.casefold() for n in names) for text, names in texts]
    rows = rows.with_row_index("fact_no").with_columns(
        gold=usual.list.join(", "),
        majority_correct=usual.list.contains(col("majority")).fill_null(False),
        guessable=pl.Series(contained, dtype=Boolean),
        cluster=pl.struct("relation", "subject_id").rank("dense"),
        relation=col("relation").cast(Enum([relation.id for relation in relations])),
        excluded=pl.lit(None, String),
        **{name: pl.when(col(name) != "").then(name) for name in DATES},
    )
    table = rows.select(*FACTS)
    for kind in ("numbers", "details"):
        named = rows.select("fact_no", kind).explode(kind).drop_nulls(kind).unnest(kind)
        named = named.with_columns(name=kind + "." + col("name"))
        wide = named.pivot("name", index="fact_no", values="value", aggregate_function="first")
        table = table.join(wide, on="fact_no", **LEFT)
    return table.drop(name for name in DATES if table[name].is_null().all())


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
    schema = {**TEMPLATES, "relation": Enum([relation.id for relation in relations])}
    return pl.DataFrame(rows, schema, orient="row")


def pack(
    frames: Iterable[pl.DataFrame],
    facts: pl.DataFrame,
    templates: pl.DataFrame,
    axes: Sequence[str] = (),
) -> pl.DataFrame:
    """All graded prompts as one frame, sorted by relation and fact, in few bytes each.

    Prompts about no fact are dropped. Of two answers to one prompt the later counts, except under
    templates that are none of the probe's.
    """
    about = facts.select(col("relation").cast(String), "fact", "fact_no")
    numbers = templates.select(col("relation").cast(String), "template", "template_no")
    names = facts.select("fact_no", subject="aliases").explode("subject")
    alias_no = pl.int_range(pl.len(), dtype=UInt16).over("fact_no")
    names = names.unique(maintain_order=True).with_columns(alias_no=alias_no)
    parts = []
    for frame in frames:
        here = about.filter(col("relation").is_in(frame["relation"].unique().implode()))
        part = frame.join(here, on=FACT, how="inner", maintain_order="left")
        part = part.join(numbers, on=("relation", "template"), **LEFT)
        part = part.join(names.filter(col("alias_no") > 0), on=("fact_no", "subject"), **LEFT)
        part = part.drop(*FACT, "template", "subject", "prefix", "suffix", strict=False)
        part = part.with_columns(col("template_no", "alias_no").fill_null(0))
        integers: Any = {n: t for n, t in ROWS.items() if n in part.columns and t.is_integer()}
        parts.append(part.cast({**integers, String: pl.Categorical, Enum: pl.Categorical}))
    if not parts:
        return facts.select("fact_no", "relation").clear()
    rows = pl.concat(parts, how="diagonal_relaxed", rechunk=True)
    parts.clear()
    order = col("fact_no").cast(pl.UInt64) * 2**32 + col("template_no").cast(UInt32) * 2**16
    rows = rows.with_columns(order=order + col("alias_no"))
    key = ["order", *(n for n in ("answer_mode", *axes) if n in rows and rows[n].n_unique() > 1)]
    if len(key) > 1 or not rows["order"].is_sorted():
        rows = rows.sort(key, maintain_order=True)
    again = pl.all_horizontal(col(name).eq_missing(col(name).shift(-1)) for name in key)
    if rows.select(again.any()).item():
        rows = rows.filter(~again | (col("template_no") == 0))
    rows = rows.drop("order").with_columns(facts["relation"].gather(rows["fact_no"]))
    for name in rows.select(col(pl.Categorical)).columns:
        texts = rows[name].unique(maintain_order=True).drop_nulls().cast(String)
        rows = rows.with_columns(col(name).cast(Enum(texts)))
    return rows


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Results:
    """The tables of a run, and the probe that declares what is estimated from them.

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
        relations = Enum(rows["relation"].unique(maintain_order=True))
        rows = rows.with_columns(col("relation").cast(relations)).sort("relation")
        rows = rows.with_row_index("fact_no").with_columns(template_no=pl.lit(0, UInt16))
        cluster, excluded = col("cluster").cast(UInt32), pl.lit(None, String)
        return cls(
            probe=cast(Any, None),
            facts=rows.select("fact_no", "relation", cluster, excluded=excluded),
            templates=pl.DataFrame(schema={**TEMPLATES, "relation": relations}),
            rows=rows.drop("cluster"),
        )

    def __repr__(self) -> str:
        facts, prompts = f"{self.facts.height:,} facts", f"{self.rows.height:,} prompts"
        return f"<Results: {self.probe.name}, {facts}, {prompts}>"

    def select(self, *, relations: Sequence[str] = (), where: pl.Expr | None = None) -> Self:
        """The same with some of the rows."""
        chosen = [] if where is None else [where]
        if relations:
            chosen.append(col("relation").cast(String).is_in(relations))
        if not chosen:
            return self
        keep = self.table().select(pl.all_horizontal(chosen)).collect().to_series()
        return replace(self, rows=self.rows.filter(keep))

    def table(self, columns: Iterable[str] = ()) -> pl.LazyFrame:
        """Rows with columns of their facts and templates: those named, else all.

        A row's column wins over one of the fact. A column that this probe lacks is null. What is
        not used is not computed.
        """
        rows, facts, templates = self.rows, self.facts, self.templates
        relation = facts["relation"].to_physical()
        first = pl.lit(templates["relation"].to_physical().search_sorted(relation))
        number = col("template_no")
        place = pl.when(number > 0).then(first.gather("fact_no") + number - 1)
        known = dict.fromkeys((*rows.columns, *facts.columns, *templates.columns, *KNOWN))

        def expression(name: str) -> pl.Expr:
            if name in rows.columns:
                return col(name)
            for table, row in ((facts, col("fact_no")), (templates, place)):
                if name in table.columns:
                    return pl.lit(table[name]).gather(row).alias(name)
            if name in KNOWN:
                return pl.lit(None, KNOWN[name]).alias(name)
            raise UsageError(f"the results have no column {name!r}; {nearest(name, known)}")

        return rows.lazy().select(map(expression, dict.fromkeys(columns) or known))

    def about_objects(self) -> Self:
        """The same without prompts whose correct answer is no object, such as True or False."""
        if "gold" not in self.rows:
            return self
        golds = self.facts["gold"].gather(self.rows["fact_no"])
        return replace(self, rows=self.rows.filter(self.rows["gold"].cast(String) == golds))

    def counts(self) -> dict[str, int]:
        """Numbers of facts and prompts, and of those excluded, tied, empty or unfinished."""
        reasons = self.facts["excluded"].drop_nulls().value_counts(sort=True)
        empty = (col("answer_mode").cast(String) == "generate") & (col("answer").cast(String) == "")
        counts = {"tied": col("tied"), "empty": empty, "unfinished": ~col("finished")}
        table = self.table().select(flag.sum().alias(name) for name, flag in counts.items())
        return {
            "facts": self.facts.height,
            "scored": self.rows["fact_no"].n_unique(),
            "prompts": self.rows.height,
            **{f"excluded.{reason}": n for reason, n in reasons.iter_rows()},
            **{name: n for name, n in table.collect().row(0, named=True).items() if n},
        }

    def browse(self, columns: Sequence[str]) -> pl.DataFrame:
        """Per fact its most frequent answer, share of correct prompts, median rank and so on.

        Values of columns that the probe never pools have separate rows.
        """
        key = ["fact_no", *self._separate()]

        def summary(name: str) -> pl.Expr:
            if name not in self.rows:
                return col(name).first()
            if self.rows[name].dtype == Enum:
                return col(name).cast(String).drop_nulls().mode().sort().first()
            return col(name).median() if name == "rank" else col(name).mean()

        names = [name for name in dict.fromkeys(columns) if name not in key]
        groups = self.table([*key, *names]).group_by(key, maintain_order=True)
        return groups.agg(pl.len().alias("prompts"), *map(summary, names)).collect()

    def answer_distribution(self) -> pl.DataFrame:
        """Per relation the number of prompts with each answer, of those correct, and with it gold.

        Names of one correct object count as its usual name. Values of columns that the probe never
        pools are counted apart.
        """
        key = ["relation", *self._separate()]
        rows = self.table([*key, "fact_no", "answer", "correct"]).drop_nulls("answer")
        rows = rows.with_columns(col("answer").cast(String))
        objects = self.facts.select("fact_no", "relation", name="gold_names").lazy().explode("name")
        objects = objects.drop_nulls("name").with_columns(usual=col("name").list.first())
        gold = rows.join(objects, on="fact_no").group_by(*key, answer="usual").agg(gold=pl.len())
        names = objects.explode("name").with_columns(col("name").str.to_lowercase())
        names = names.unique(("relation", "name"), keep="first", maintain_order=True)
        answers = rows.with_columns(name=col("answer").str.to_lowercase())
        answers = answers.join(names, on=("relation", "name"), how="left")
        groups = answers.group_by(*key, answer=pl.coalesce("usual", "answer"))
        counts = groups.agg(n=pl.len(), correct=col("correct").sum())
        counts = counts.join(gold, on=[*key, "answer"], how="full", coalesce=True).fill_null(0)
        descending = [*[False] * len(key), True, True, False]
        return counts.collect().sort(*key, "n", "gold", "answer", descending=descending)

    def _separate(self) -> list[str]:
        """The columns that are never pooled and have several values here."""
        columns = [name for name in self.probe.separate if name in self.rows]
        return [name for name in columns if self.rows[name].n_unique() > 1]


def merge_batches(answers: Iterable[Answers]) -> Iterator[Answers]:
    """Successive batches of one relation as one, because each costs milliseconds."""
    cells = 0

    def key(part: Answers) -> tuple[Any, ...]:
        nonlocal cells
        batch, frame = part.batch, part.frame
        width = max(len(getattr(batch.request, "targets", ())), *map(len, batch.options), 16)
        cells += len(frame) * width
        relations = frame["relation"].unique().to_list()
        return batch.request, batch.options, frame.columns, relations, cells // CELLS

    for _, group in groupby(answers, key):
        parts = [*group]
        batch = replace(parts[0].batch, frame=pl.concat(part.frame for part in parts))
        results = [part.result for part in parts]
        yield Answers(batch=batch, result=type(results[0]).concat(results))


def collect_results(probe: "Probe", data: Dataset, answers: Iterable[Answers]) -> Results:
    """The results of a probe from what was answered to its prompts.

    Raises:
        DataError: there is nothing to estimate from.
    """
    facts, templates = probe.facts(data), template_table(data, probe.templates)
    side: dict[str, list[pl.DataFrame]] = {}

    def judged() -> Iterator[pl.DataFrame]:
        for batch in merge_batches(answers):
            tables = probe.judge(batch, facts)
            tables = {"rows": tables} if isinstance(tables, pl.DataFrame) else dict(tables)
            if (rows := tables.pop("rows", None)) is not None:
                yield rows
            for name, table in tables.items():
                side.setdefault(name, []).append(table)

    rows = pack(judged(), facts, templates, probe.axes)
    prompted = rows["fact_no"].unique().implode()
    rows = rows if rows.is_empty() else probe.combine(rows, facts)
    if rows.is_empty():
        fix = "choose relations or a split that has facts"
        if templates.is_empty():
            fix = "give a template, such as --template 'The capital of [X] is [Y].'"
        raise DataError(f"probe {probe.name!r} has no prompt about a fact of {data.name!r}; {fix}")
    alone = rows["fact_no"].clear()
    if "only_option" in rows.columns:
        single = col("only_option").fill_null(False)
        alone = rows.filter(single & col("rank").is_not_null())["fact_no"].unique()
        rows = rows.filter(~single).drop("only_option")
    if probe.answerable_only:
        rows = rows.filter(col("rank").is_not_null())
    if rows.is_empty():
        reason, fix = probe.exclusion_reason, "score the objects as options with --answer score"
        if len(alone):
            reason, fix = ONE_OPTION, "add facts with other objects"
        raise DataError(f"0 of {facts.height} facts can be scored, because {reason}; {fix}")
    missing = ~col("fact_no").is_in(rows["fact_no"].unique().implode())
    has_template = col("relation").is_in(templates["relation"].unique().implode())
    lost = pl.when(col("fact_no").is_in(alone.implode())).then(pl.lit(ONE_OPTION))
    unanswered = lost.when(col("fact_no").is_in(prompted)).then(pl.lit(probe.exclusion_reason))
    unscored = pl.when(missing).then(unanswered.when(~has_template).then(pl.lit(NO_TEMPLATE)))
    facts = facts.with_columns(excluded=pl.coalesce("excluded", unscored))
    if "baseline" not in {*rows.columns, *facts.columns}:
        facts = facts.with_columns(baseline="majority_correct")
    tables = {name: pl.concat(parts, how="diagonal_relaxed") for name, parts in side.items()}
    return Results(probe=probe, facts=facts, templates=templates, rows=rows, side=tables)
