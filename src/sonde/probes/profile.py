"""The profile: what a model knows of some facts, and how far that depends on the prompt.

Every instrument that the model is capable of asks about the same facts: statements to complete, a
list of other facts, both together, and greedy text after a question, a statement or a list. The
examples are the same for all facts of a relation and are not graded themselves, so that prefixes
are shared, and no fact is helped by its own object more than another one. Accuracy of each
instrument stands next to its chance, which is what its answers get if they are dealt to other
facts of the relation.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Self, cast

import numpy as np
import polars as pl
from polars import col, lit

from sonde.answers import Answers, Completions
from sonde.core.components import setting
from sonde.core.errors import DataError
from sonde.core.facts import SUBJECT_SLOT, Dataset, Relation, Source, Template
from sonde.evaluation import known, stats
from sonde.evaluation import metrics as m
from sonde.evaluation.estimate import Group, Metric, Special
from sonde.evaluation.judge import judge_options, judge_text
from sonde.evaluation.layout import Exhibit, Layout, Sentence
from sonde.evaluation.tables import Results, fact_table
from sonde.probes.base import Capability, Probe, choose_supported
from sonde.prompting.abstaining import ALL, build_abstention_test
from sonde.prompting.examples import (
    TRAIN,
    Draw,
    Pool,
    fill_question,
    random_keys,
    slot_values,
)
from sonde.prompting.languages import build_phrasing
from sonde.prompting.matching import answer_contains_name, clean_answer, comparison_language
from sonde.prompting.sequences import Line, list_layout
from sonde.prompting.templates import CLOSE_HELP, fill_templates, missing_full_stop, usual_names
from sonde.prompts import AnyRequest, Generate, PromptBatch, Score

HELD = "used as examples in the prompts"
FEW = f"the relation has fewer than {known.FEWEST} facts besides the examples"
ALIKE = "all facts of the relation have the same object"
PAIR = ("subject_id", "date")
LISTED = "in-context"  # the template of prompts without one
FORMS = {"statement": "statement", "list": "list", "statement+examples": "list"}
CLASSES = ("recalled", "recalled with examples", "recognized", "unknown")
FIRST = col("instrument_no") == 0


def answer_form(instrument: str) -> str:
    """Statement, list or generated: instruments of one form make similar mistakes."""
    return FORMS.get(instrument.partition(":")[0], "generated")


def class_share_metric(name: str, **changes: Any) -> Metric:
    """The share of facts of a class, next to the share that dealt answers get."""
    id = name.replace(" ", "_")
    metric = Metric(
        id,
        num=(col("class").cast(pl.String) == name).mean(),
        where=FIRST,
        baseline=col(f"dealt.{id}").mean(),
        baseline_label="dealt answers",
        label=name,
    )
    return replace(metric, **changes)


@dataclass(frozen=True, kw_only=True)
class Profile(Probe):
    """What a model knows, by every way to ask that it is capable of."""

    name = "profile"
    unit = "pair"
    requires = (frozenset({"score", "generate"}), frozenset({"score"}), frozenset({"generate"}))
    axes = ("instrument",)
    separate = ()
    length_setting = "shots"

    sentences: int = setting(3, "how many templates of each relation to use, the first ones", min=0)
    shots: int = setting(
        10, "examples of each relation: at most these, and a third of its facts", min=1
    )
    max_options: int = setting(
        100,
        "options of a relation: the objects of the facts that are graded, and others up to this "
        "number",
        min=2,
    )
    max_tokens: int = setting(16, "the most tokens of a generated answer", min=1)
    score: bool = setting(True, "score options, if the model can")
    generate: bool = setting(True, "generate answers, if the model can")
    bare_question: bool = setting(
        False, "ask the question without 'Q:' and 'A:'; models that chat get it as their turn"
    )
    close: bool = setting(True, CLOSE_HELP)

    groups = (
        "relation",
        Group("instrument", ("accuracy",)),
        Group(("relation", "instrument"), ("accuracy",), fine=True),
    )

    def resolve(self, capabilities: frozenset[Capability]) -> Self:
        wanted = {"score": self.score, "generate": self.generate}
        can = frozenset(c for c in capabilities if wanted.get(c))
        can = choose_supported(self.name, self.requires, can)
        return replace(
            self,
            score="score" in can,
            generate="generate" in can,
            bare_question=self.bare_question or "chat" in capabilities,
            close=self.close and "fill" in capabilities,
        )

    def templates(self, relation: Relation) -> tuple[Template, ...]:
        """The first sentences, the first question if answers are generated, and that of lists."""
        questions = [t for t in relation.templates if t.style == "question"]
        sentences = [t for t in relation.templates if t.style != "question"]
        text = list_layout("colon", "newline", relation.language).template
        listed = Template(id=LISTED, text=text, group=LISTED, source=cast(Source, LISTED))
        return (*sentences[: self.sentences], *questions[: int(self.generate)], listed)

    def prompts(self, data: Dataset) -> Iterator[PromptBatch]:
        """Relation by relation; instruments with the same prefix follow each other."""
        reasons = []
        for relation in data.asked_relations():
            examples, facts, reason = self._split_examples_and_graded(data, relation)
            reasons.append(reason)
            if reason is None:
                yield from self._prompts_of_instruments(data, relation, examples, facts)
        if None not in reasons:
            self.facts(data)  # raises, with the most common reason

    def _prompts_of_instruments(
        self, data: Dataset, relation: Relation, examples: pl.DataFrame, facts: pl.DataFrame
    ) -> Iterator[PromptBatch]:
        language, templates = relation.language, self.templates(relation)[:-1]
        options = [self._options_of_relation(data, relation, facts)]
        score, generate = Score(), Generate(max_tokens=self.max_tokens)
        shown = [(row, row["object_names"][0][0]) for row in examples.iter_rows(named=True)]

        def batch(
            instrument: str, request: AnyRequest, prefixes: Iterable[str], template: str = LISTED
        ) -> PromptBatch:
            raw = instrument != "question"
            frame = facts.select(
                relation=lit(relation.id),
                fact="fact",
                template=lit(template),
                subject="subject",
                instrument=lit(instrument),
                prefix=pl.Series(list(prefixes), dtype=pl.String),
                suffix=lit(""),
            )
            return PromptBatch(frame=frame, request=request, options=options, raw=raw)

        layout = list_layout("colon", "newline", language)
        lines = [Line(fact="", subject=row["subject"], object=object) for row, object in shown]
        head = layout.write(lines)[0]
        listed = [head + layout.text_before_object(name) for name in facts["subject"]]
        if shown and self.score:
            yield batch("list", score, listed)
        if shown and self.generate:
            yield batch("generated list", generate, listed)
        questions = [t for t in templates if t.style == "question"]
        for k, template in enumerate((t for t in templates if t not in questions), 1):
            mark = missing_full_stop(template, language) if self.close else ""
            texts = []
            for row, object in shown:
                before, after = template.filled({SUBJECT_SLOT: row["subject"], **slot_values(row)})
                texts.append(f"{before}{object}{after.rstrip()}{mark}\n")
            examples_before = lit("".join(texts))
            subjects = usual_names(facts)
            for part in fill_templates(
                relation, [template], subjects, score, options=options, close=self.close
            ):
                if self.score:
                    yield _with_instrument(part, f"statement:{k}")
                if self.generate and template.answer_last:
                    frame = part.frame.with_columns(suffix=lit(""))
                    yield _with_instrument(
                        PromptBatch(frame=frame, request=generate), f"continued:{k}"
                    )
                if self.score and shown:
                    frame = part.frame.with_columns(prefix=examples_before + col("prefix"))
                    plain = PromptBatch(frame=frame, request=score, options=options)
                    yield _with_instrument(plain, f"statement+examples:{k}")
        if self.generate:
            rows = facts.iter_rows(named=True)
            if questions:
                id = questions[0].id
                texts = [
                    fill_question(questions[0], r["subject"], "qa", slot_values(r)) for r in rows
                ]
            else:
                id, label = LISTED, relation.label or relation.id
                texts = [f"What is the {label} of {row['subject']}?" for row in rows]
            words = build_phrasing(language)
            if not self.bare_question:
                texts = [f"{words.question}{text}\n{words.answer}" for text in texts]
            yield batch("question", generate, texts, id)

    def _split_examples_and_graded(
        self, data: Dataset, relation: Relation
    ) -> tuple[pl.DataFrame, pl.DataFrame, str | None]:
        """Examples and graded facts of a relation, one for each subject; why none is graded."""
        selected = data.asked_frame(relation.id).unique(PAIR, keep="first", maintain_order=True)
        names = selected["subject"].implode()
        others = data.frame(relation.id).filter(
            ~col("subject_id").is_in(selected["subject_id"].implode())
            & ~col("subject").is_in(names)
        )
        n, pool = self.shots, selected.clear()
        for pool in (others.filter(split=TRAIN), others, selected):
            if pool is selected or len(pool) >= n:
                break
        n = min(n, len(selected) // 3) if pool is selected else n
        keys = random_keys(
            data.selection.seed, (f"profile:{relation.id}:{fact}" for fact in pool["fact"])
        )
        examples = pool[Draw(keys, Pool(pool)).take_rows(n)]
        facts = selected.filter(~col("subject").is_in(examples["subject"].implode()))
        reason = FEW if len(facts) < known.FEWEST else None
        objects = facts["object_names"].explode().list.first()
        return examples, facts, ALIKE if objects.n_unique() < 2 and not reason else reason

    def _options_of_relation(
        self, data: Dataset, relation: Relation, facts: pl.DataFrame
    ) -> tuple[str, ...]:
        """The objects of the facts, then others of the relation."""
        usual = facts["object_names"].explode().list.first().unique(maintain_order=True)
        names = dict.fromkeys([*usual, *data.object_names(relation.id)])
        return tuple(sorted([*names][: max(self.max_options, len(usual))]))

    def facts(self, data: Dataset) -> pl.DataFrame:
        facts = fact_table(data, self.unit)
        reasons = []
        for relation in data.asked_relations():
            _, graded, reason = self._split_examples_and_graded(data, relation)
            here = facts.filter(col("relation").cast(pl.String) == relation.id)
            held = ~here["fact"].is_in(graded["fact"].implode())
            reasons += [reason or (HELD if one else None) for one in held]
        if not facts.is_empty() and None not in reasons:
            worst = max(set(reasons), key=reasons.count)
            raise DataError(
                f"dataset {data.name!r} has no fact to grade, because {worst}; a relation needs "
                "at least four subjects and two objects: add facts, or name other relations"
            )
        return facts.with_columns(excluded=pl.Series(reasons, dtype=pl.String))

    def judge(self, answers: Answers, facts: pl.DataFrame) -> pl.DataFrame:
        if isinstance(answers.result, Completions):
            return judge_text(
                answers, facts, self.accepts, clean_answer, build_abstention_test((ALL,))
            )
        return judge_options(answers, facts)

    def accepts(self, answer: str, names: Sequence[str], language: str) -> bool:
        return answer_contains_name(answer, names, comparison_language("auto", language))

    def combine(self, rows: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
        """With chance, the class of each fact, what dealt answers get, and P(known)."""
        texts = rows.with_columns(col("answer", "instrument").cast(pl.String))
        instruments = texts["instrument"].unique(maintain_order=True).to_list()
        relations = texts.group_by("relation", maintain_order=True)
        table = pl.concat(
            self._classify_and_deal(part, facts, instruments) for _, part in relations
        )
        return _add_columns_of_facts(rows, table, instruments)

    def _classify_and_deal(
        self, rows: pl.DataFrame, facts: pl.DataFrame, instruments: Sequence[str]
    ) -> pl.DataFrame:
        """One row per fact and instrument of a relation: chance, class and dealt classes."""
        here = rows["fact_no"].unique().sort()
        about = facts[here.to_list()]
        flat = [tuple(dict.fromkeys(n for o in names for n in o)) for names in about["gold_names"]]
        sets = {names: number for number, names in enumerate(dict.fromkeys(flat))}
        gold = np.array([sets[names] for names in flat])
        language = about["language"][0] or ""
        place = {fact: row for row, fact in enumerate(here.to_list())}
        n = len(here)
        answers, fits, correct_ = [], [], np.full((n, len(instruments)), np.nan)
        for k, name in enumerate(instruments):
            part = rows.filter(instrument=name)
            at = np.array([place[fact] for fact in part["fact_no"]], dtype=np.int64)
            correct_[at, k] = part["correct"].cast(pl.Float64)
            void = pl.any_horizontal(
                col("answer").fill_null("") == "",
                *(col(c).fill_null(False) for c in ("tied", "abstained") if c in part.columns),
            )
            texts = part.select(pl.when(~void).then("answer")).to_series()
            words = {
                text: i for i, text in enumerate(texts.drop_nulls().unique(maintain_order=True))
            }
            answer = np.full(n, -2)
            answer[at] = [-1 if text is None else words[text] for text in texts]
            answers.append(answer)
            generated = answer_form(name) == "generated"
            fit = [
                [
                    self.accepts(text, names, language) if generated else text in names
                    for text in words
                ]
                for names in sets
            ]
            fits.append(np.array(fit, dtype=bool).reshape(len(sets), len(words)))
        relation = str(about["relation"][0])
        rng = stats.random_generator(0, f"profile:{relation}")
        dealt = known.deal_answers(answers, [gold] * len(answers), fits, rng)
        kinds = np.array([_class_if_correct(name) for name in instruments])
        class_no = _classify_facts(np.nan_to_num(correct_).astype(bool)[None], kinds)[0]
        classes = _classify_facts(dealt.hits, kinds)
        by_chance = [(classes == number).mean(axis=0) for number in range(len(CLASSES))]
        prompted = ~np.isnan(correct_)
        sums = (dealt.hits * prompted).sum(axis=2) / np.maximum(prompted.sum(axis=1), 1)
        return pl.DataFrame(
            {"fact_no": here}
            | {f"correct {k}": correct_[:, k] for k in range(len(instruments))}
            | {f"chance {k}": dealt.chance[:, k] for k in range(len(instruments))}
            | {"class_no": class_no}
            | {f"dealt.{c.replace(' ', '_')}": by_chance[i] for i, c in enumerate(CLASSES)}
            | {
                "dealt": pl.Series(
                    sums.T.astype(np.float32), dtype=pl.Array(pl.Float32, known.DEALS)
                )
            }
        )

    @property
    def metrics(self) -> Sequence[Metric | Special]:
        by = {"by": "instrument", "baseline": None, "counts": "facts", "centered": True}
        return (
            m.accuracy(
                label="accuracy over instruments", baseline_label="dealt answers",
                help="mean over the instruments",
            ),
            m.accuracy("lowest", stat=_lowest_value, label="lowest instrument", **by),
            m.accuracy("highest", stat=_highest_value, label="highest instrument", **by),
            *(
                class_share_metric(name, help=help)
                for name, help in zip(CLASSES, self._class_descriptions(), strict=True)
                if self._is_class_measured(name)
            ),
            Special((EVIDENCE, KNOWN), _estimate_known),
        )  # fmt: skip

    def _is_class_measured(self, name: str) -> bool:
        return self.score if name == "recognized" else self.generate or name == "unknown"

    def _class_descriptions(self) -> tuple[str, ...]:
        return (
            "share of facts whose object the model writes after a question or a statement",
            "share of further facts whose object it writes after a list of examples",
            "share of further facts whose object some instrument ranks first among the options",
            "share of facts that no instrument answers correctly",
        )

    @property
    def layout(self) -> Layout:
        return Layout(
            headlines=("accuracy", "recalled", "recalled_with_examples", "recognized", "unknown"),
            over="facts",
            browse=("relation", "subject", "gold", "class", "posterior", "answer", "correct"),
            notes=(
                "Chance of an instrument is the share of ordered pairs of facts of a relation in "
                "which the answer to one would be correct for the other. For classes, the "
                f"answers to a fact are dealt to another fact together, {known.DEALS} times.",
                "A fact is in the first class that fits. Classes that need generated text or "
                "options are not measured for models that cannot give them.",
                "The estimate of what is known is too low if instruments miss the same facts, and "
                "too high if they share a guess. See docs/results/profile.md for its errors on "
                "models whose knowledge is known.",
            ),
            extra=_profile_exhibits,
            compared=_transitions,
            lead=("by-instrument",),
            finding=_summary_sentences,
        )


EVIDENCE = Metric(
    "evidence_threshold",
    label="needed for evidence",
    better="",
    help="95th percentile of the mean accuracy of dealt answers; a model that does not exceed it "
    "shows no knowledge beyond chance",
)
KNOWN = Metric(
    "known",
    label="estimated as known",
    help="share of facts that the overlap of the instruments suggests is known",
)


def _with_instrument(batch: PromptBatch, instrument: str) -> PromptBatch:
    frame = batch.frame.with_columns(instrument=lit(instrument))
    order = [name for name in frame.columns if name not in ("instrument", "prefix", "suffix")]
    return replace(batch, frame=frame.select(*order, "instrument", "prefix", "suffix"), raw=True)


def _class_if_correct(instrument: str) -> int:
    """The class that a correct answer of an instrument puts a fact into."""
    name = instrument.partition(":")[0]
    return {"question": 0, "continued": 0, "generated list": 1}.get(name, 2)


def _classify_facts(hits: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """The first class with a correct instrument, else the last: [..., facts]."""
    result = np.full(hits.shape[:-1], len(CLASSES) - 1)
    for number in (2, 1, 0):
        result[hits[..., kinds == number].any(axis=-1)] = number
    return result


def _lowest_value(values: Any, labels: Any) -> Any:
    return values.min(axis=-1)


def _highest_value(values: Any, labels: Any) -> Any:
    return values.max(axis=-1)


def _add_columns_of_facts(
    rows: pl.DataFrame, table: pl.DataFrame, instruments: Sequence[str]
) -> pl.DataFrame:
    """Rows with the columns of their fact, and their instrument's chance."""
    k = range(len(instruments))
    answers, chance = (
        table.select(f"{name} {i}" for i in k).to_numpy() for name in ("correct", "chance")
    )
    posterior = np.full(len(table), np.nan)
    if can_estimate_share(answers, table["dealt"].to_numpy(), instruments):
        posterior = known.estimate_share_known(answers, chance).posterior
    numbers = {name: i for i, name in enumerate(instruments)}
    long = table.select(
        "fact_no",
        pl.Enum(CLASSES).categories.gather(table["class_no"]).cast(pl.Enum(CLASSES)).alias("class"),
        pl.selectors.starts_with("dealt"),
        posterior=pl.Series(posterior, dtype=pl.Float32).fill_nan(None),
        chances=pl.concat_list(f"chance {i}" for i in k),
    )
    rows = rows.join(long, on="fact_no", how="left", maintain_order="left")
    number = col("instrument").cast(pl.String).replace_strict(numbers, return_dtype=pl.UInt8)
    return rows.with_columns(
        instrument_no=number.rank("ordinal").over("fact_no") - 1,
        baseline=col("chances").list.get(number).cast(pl.Float32),
    ).drop("chances")


def can_estimate_share(
    answers: np.ndarray, dealt_accuracies: np.ndarray, instruments: Sequence[str]
) -> bool:
    """Whether the share known can be estimated: evidence, three instruments of two forms."""
    several = len(instruments) > 2 and len(set(map(answer_form, instruments))) > 1
    mean = np.nanmean(answers, axis=1).mean()
    return several and bool(mean > known.evidence_threshold(dealt_accuracies.mean(axis=0)))


def _estimate_known(results: Results, seed: int) -> Iterator[tuple[Any, ...]]:
    """The threshold of evidence and, if it is exceeded, the share known with its interval."""
    columns = ("fact_no", "relation", "cluster", "instrument", "correct", "baseline", "dealt")
    rows = results.table(columns).collect()
    wide = rows.with_columns(col("correct").cast(pl.Float64), col("instrument").cast(pl.String))
    instruments = wide["instrument"].unique(maintain_order=True).to_list()
    facts = wide.unique("fact_no", keep="first", maintain_order=True)
    answers, chance = (
        wide.pivot("instrument", index="fact_no", values=name)
        .select(instruments).to_numpy().astype(float)
        for name in ("correct", "baseline")
    )  # fmt: skip
    n, clusters = len(facts), facts.select("relation", "cluster").n_unique()
    dealt = facts["dealt"].to_numpy()
    needed = known.evidence_threshold(dealt.mean(axis=0))
    yield "evidence_threshold", (), (), needed, None, None, n, clusters
    if not can_estimate_share(answers, dealt, instruments):
        return
    relation = facts["relation"].to_physical().to_numpy()
    rng = stats.random_generator(seed, "known")
    ends = known.share_known_intervals(answers, chance, relation, facts["cluster"].to_numpy(), rng)
    estimate = known.estimate_share_known(answers, chance)
    yield "known", (), (), estimate.share, *ends[None], n, clusters
    for number, name in facts.select(col("relation").to_physical(), name=col("relation").cast(
        pl.String)).unique(maintain_order=True).iter_rows():  # fmt: skip
        here = relation == number
        value, size = float(estimate.posterior[here].mean()), int(here.sum())
        yield "known", ("relation",), (name,), value, *ends[number], size, size


def _summary_sentences(
    results: Results, estimates: pl.DataFrame, model: str, dataset: str
) -> Iterator[Sentence]:
    """The range over instruments and what is recalled without help, each next to chance."""
    overall = estimates.filter(over="facts", group_by=[]).select("metric", "of", "value").rows()
    values = {(metric, of): value for metric, of, value in overall}
    shares = {m: (v, values.get((m, "baseline"))) for (m, of), v in values.items() if of == "value"}
    by = estimates.filter(metric="accuracy", over="facts", group_by=["instrument"])
    names, of, accuracy = by.select(col("group").list.first(), "of", "value")
    table = dict(zip(zip(names, of, strict=True), accuracy, strict=True))
    order = sorted((v, name) for (name, of), v in table.items() if of == "value")
    (low, lowest), (high, highest) = order[0], order[-1]
    n = results.rows["fact_no"].n_unique()
    mean, needed = values["accuracy", "value"], values["evidence_threshold", "value"]
    about = {"model": model, "n": n, "low": low, "high": high}
    if mean <= needed:
        yield "profile.title.none", about
    elif "recalled" in shares:
        yield "profile.title.recalled", about | {"recalled": shares["recalled"][0]}
    else:
        yield "profile.title", about
    lost = results.facts.filter(col("excluded").is_not_null())["excluded"]
    yield (
        "profile.prompted",
        about
        | {
            "n": results.facts.height,
            "relations": results.facts["relation"].n_unique(),
            "dataset": dataset,
            "k": len(order),
            "left": dict(lost.value_counts(sort=True).iter_rows()),
        },
    )
    yield (
        "profile.range",
        about
        | {
            "lowest": lowest,
            "highest": highest,
            "low_chance": table[lowest, "baseline"],
            "high_chance": table[highest, "baseline"],
        },
    )
    for id, name in (
        ("recalled", "recalled"),
        ("examples", "recalled_with_examples"),
        ("recognized", "recognized"),
    ):
        if name in shares:
            yield f"profile.{id}", {"share": shares[name][0], "by_chance": shares[name][1]}
    evidence = {"mean": mean, "needed": needed}
    yield ("profile.none" if mean <= needed else "profile.evidence"), evidence
    estimate = estimates.filter(metric="known", over="facts", group_by=[]).drop_nulls("value")
    models, mae, worst = ERRORS[any(":" in name for _, name in order)]
    for row in estimate.select("value", "low", "high").iter_rows(named=True):
        yield "profile.known", row | {"models": models, "mae": mae, "worst": worst}


# Errors of the estimate without and with templates: number of models, mean, largest. From
# benchmarks/results/profile_lab.md, with a fact known that is recited in one of its texts.
ERRORS = {False: (17, 0.087, 0.137), True: (38, 0.049, 0.124)}


def _profile_exhibits(results: Results, estimates: pl.DataFrame) -> Iterator[Exhibit]:
    """Instruments on one axis, classes, agreement, and facts on which instruments disagree."""
    by = estimates.filter(metric="accuracy", over="facts", group_by=["instrument"])
    by = by.filter(col("of") != "difference").select(
        label=col("group").list.first(),
        color=pl.when(of="value").then(lit("accuracy")).otherwise(lit("chance")),
        x="value",
        low="low",
        high="high",
        n="n",
    )
    order = by.filter(color="accuracy").sort("x", descending=True)["label"]
    by = by.sort(col("label").cast(pl.Enum(order)), "color")
    units = {"x": "percent", "color": "control"}
    yield Exhibit(
        "by-instrument", "Accuracy of each instrument", by, units, "intervals", x_label="accuracy"
    )
    facts = results.table(("instrument_no", "label", "relation", "class")).filter(FIRST)
    yield from _class_share_exhibits(facts.collect())
    rows = results.rows.select("fact_no", "instrument", "answer", "correct")
    wide = rows.with_columns(col("correct").cast(pl.Float64)).pivot(
        "instrument", index="fact_no", values="correct"
    )
    instruments = wide.columns[1:]
    pairs = [
        (one, other, known.cohens_kappa(wide[one].to_numpy(), wide[other].to_numpy()))
        for one, other in combinations(instruments, 2)
    ]
    frame = pl.DataFrame(pairs, AGREEMENT, orient="row").fill_nan(None)
    if len(frame) > 1:
        title = "Agreement of instruments on which facts are correct (Cohen's κ)"
        yield Exhibit("agreement", title, frame, {"color": "number"}, "heat", limit=1.0)
    yield from _disagreement_exhibit(results, wide, instruments)


AGREEMENT = {"y": pl.String, "x": pl.String, "color": pl.Float64}


def _class_share_exhibits(facts: pl.DataFrame) -> Iterator[Exhibit]:
    """The share of each class, in all relations and in each."""
    named = facts.select(
        "class",
        label=pl.coalesce(
            pl.when(col("label") != "").then("label"), col("relation").cast(pl.String)
        ),
    )
    parts = [named.with_columns(label=lit("All")), named]
    counts = pl.concat(parts[: 1 + (named["label"].n_unique() > 1)], how="vertical")
    shares = counts.group_by("label", "class", maintain_order=True).agg(n=pl.len())
    shares = shares.with_columns(x=col("n") / col("n").sum().over("label"))
    every = pl.DataFrame({"class": CLASSES}, {"class": pl.Enum(CLASSES)})
    labels = shares.select("label").unique(maintain_order=True)
    used = every.join(shares, on="class", how="semi")
    grid = labels.join(used, how="cross").join(shares, on=("label", "class"), how="left")
    grid = grid.with_columns(col("x").fill_null(0), color=col("class").cast(pl.String))
    unknown = grid.filter(color="unknown").select("label", unknown="x")
    grid = grid.join(unknown, on="label", how="left").sort(
        col("label") != "All", "unknown", "label", "class"
    )
    grid = grid.select("label", "color", "x")
    yield Exhibit("classes", "What is known, by class", grid, {"x": "percent"}, "shares")


def _disagreement_exhibit(
    results: Results, wide: pl.DataFrame, instruments: Sequence[str]
) -> Iterator[Exhibit]:
    """The facts on which instruments disagree most, with every answer."""
    share = pl.mean_horizontal(pl.exclude("fact_no"))
    split = wide.with_columns(gap=(share - 0.5).abs(), share=share)
    split = split.filter(col("share").is_between(0, 1, closed="none")).sort("gap", "fact_no")
    answers = results.rows.with_columns(
        text=pl.when("correct").then(lit("✓ ")).otherwise(lit("")) + col("answer").cast(pl.String)
    ).pivot("instrument", index="fact_no", values="text")
    facts = results.facts.select("fact_no", "subject", "gold")
    table = split.head(DISPUTED).select("fact_no").join(facts, on="fact_no", maintain_order="left")
    table = table.join(answers, on="fact_no", maintain_order="left").drop("fact_no")
    if len(table):
        note = f"{len(split):,} of {len(wide):,} facts are correct by some instruments only."
        yield Exhibit("disputed", "Facts on which instruments disagree", table, note=note)


DISPUTED = 20  # facts shown


def _transitions(runs: Mapping[str, Results]) -> Iterator[Exhibit]:
    """How facts move between classes from the first run to each other one, and which facts."""
    (first, *others), key = runs, ["relation", "subject", "gold"]
    if any("class" not in results.rows for results in runs.values()):
        return  # a run of another probe
    classes = {
        name: results.table((*key, "class", "instrument_no")).filter(FIRST).select(
            col("relation").cast(pl.String), *key[1:], col("class").cast(pl.String).alias(name)
        ).collect()
        for name, results in runs.items()
    }  # fmt: skip
    for other in others:
        both = classes[first].join(classes[other], on=key, maintain_order="left")
        counts = both.group_by(y=first, x=other).agg(color=pl.len())
        grid = pl.DataFrame({"y": CLASSES}).join(pl.DataFrame({"x": CLASSES}), how="cross")
        grid = grid.join(counts, on=("y", "x"), how="left", maintain_order="left")
        title = f"Classes of the facts: {first} (rows) and {other} (columns)"
        shown = grid.with_columns(col("color").fill_null(0))
        yield Exhibit(
            f"classes-{other}", title, shown, {"color": "count"}, "heat", "", other, first
        )
        moved = both.filter(col(first) != col(other)).sort(first, other, *key)
        if len(moved):
            note = f"{len(moved):,} of {len(both):,} facts are in another class."
            yield Exhibit(
                f"moved-{other}", f"Facts that {other} has in another class", moved, note=note
            )
