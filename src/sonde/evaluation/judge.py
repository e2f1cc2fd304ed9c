"""Grade answers: scored options, filled masks and generated texts become rows, one per prompt.

Takes one batch of answers and the facts. A graded batch has the columns of its prompts, then
those of `tables.ROWS`: answer, correct, tied, rank, ranked, confidence, gold_logprob, options_id,
helped, compared, and for questions with several objects set_precision, set_recall, set_f1,
average_precision and set_whole (null for others). Knows no metrics.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray
from polars import col

from sonde.answers import Answers, Completions, MaskScores, OptionScores, Ragged, take
from sonde.core.fingerprints import fingerprint
from sonde.core.texts import folded
from sonde.evaluation.tables import FACT
from sonde.prompts import FillMask, Ints, Names, PromptBatch, Score

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Normalize = Literal["none", "tokens"]

SENT = ("prefix", "suffix", "options_id", "spans", "example_spans")
CELLS = 2**20  # compared at a time
NEVER = np.iinfo(np.int64).max
NOTHING = ("",)  # the option of a prompt none of whose options can be answered


def judge(answers: Answers, facts: pl.DataFrame, normalize: Normalize = "none") -> pl.DataFrame:
    """Grade scored options or filled masks; prompts about no fact are dropped."""
    if isinstance(answers.result, MaskScores):
        return judge_mask(answers, facts)
    return judge_options(answers, facts, normalize)


def gold_names(facts: pl.DataFrame, objects: str = "gold_names") -> pl.DataFrame:
    """Every correct name of every fact: fact_no, object_no, name, usual (the first of an object)."""
    names = facts.select("fact_no", name=objects).explode("name").drop_nulls("name")
    names = names.with_columns(
        object_no=pl.int_range(pl.len()).over("fact_no"), usual=col("name").list.first()
    )
    names = names.explode("name").drop_nulls("name").with_columns(usual=col("name") == col("usual"))
    return names.unique(maintain_order=True)


def logsumexp(values: pl.Expr) -> pl.Expr:
    """The log of the sum of the exponentials of a group; null if it is empty."""
    top = values.max()
    # equal to the top: also -inf, of which a difference is NaN
    rest = pl.when(values == top).then(0.0).otherwise(values - top)
    return top + rest.exp().sum().log()


def numbered(answers: Answers, facts: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The prompts about a fact, with their row (`prompt`) and fact_no, and these facts."""
    frame = answers.frame.with_row_index("prompt")
    here = facts.filter(col("relation").is_in(frame["relation"].unique().implode()))
    about = here.select(col("relation").cast(pl.String), "fact", "fact_no")
    prompts = frame.join(about, on=FACT, how="inner", maintain_order="left")
    return prompts, here.filter(col("fact_no").is_in(prompts["fact_no"].unique().implode()))


def judge_options(
    answers: Answers,
    facts: pl.DataFrame,
    normalize: Normalize = "none",
    all_correct: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """The best option of each prompt, and the rank of the best correct one; ties count against it.

    Args:
        answers: to prompts with options.
        facts: as `tables.FACTS`.
        normalize: compare the sum of log-probabilities of an option, or their mean per token.
        all_correct: fact_no and name of all that is correct for `ranked`; by default the names of
            every object of the fact's question, whichever fact has it.
    """
    assert isinstance(answers.result, OptionScores)
    scores, (prompts, here) = answers.result, numbered(answers, facts)
    values = scores.sums() / (scores.counts() if normalize == "tokens" else 1)
    counts = scores.logprobs.counts
    shape = len(answers), int(counts.max(initial=1))
    there = np.arange(shape[1]) < counts[:, None]
    if there.all():
        dense = values.reshape(shape)
    else:
        dense = np.full(shape, -np.inf)
        dense[there] = values
    ids, index = np.unique(answers.batch.options_ids(), return_inverse=True)
    sets = [answers.batch.options[i] for i in ids.tolist()]
    options = pl.DataFrame(
        {"set": pl.Series(range(len(sets)), dtype=pl.Int64), "name": map(list, sets)}
    )
    options = options.explode("name").with_columns(place=pl.int_range(pl.len()).over("set"))
    about = prompts.select("prompt", "fact_no", set=pl.Series(index).gather(prompts["prompt"]))

    def places(names: pl.DataFrame) -> pl.DataFrame:
        """Where each fact's names are among the options of its prompts."""
        pairs = about.select("fact_no", "set").unique()  # a fact has many prompts
        named = pairs.join(names, on="fact_no").join(options, on=("set", "name"))
        return about.join(named, on=("fact_no", "set")).drop("set")

    def among(names: pl.DataFrame) -> Bools:
        """Which options of each prompt are one of its fact's names."""
        chosen, named = np.zeros(shape, dtype=bool), places(names.select("fact_no", "name"))
        chosen[named["prompt"].to_numpy(), named["place"].to_numpy()] = True
        return chosen

    top = dense.max(axis=1)
    best = (dense == top[:, None]) & there
    first = best.argmax(axis=1)
    total = _exp(dense, top[:, None], best).sum(axis=1)
    gold = gold_names(here)
    correct = among(gold)
    target = np.where(correct, dense, -np.inf).max(axis=1)
    # of the correct options alone, as exp of 2 million numbers takes as long as all the rest
    row, place = np.nonzero(correct)
    weights = _exp(dense[row, place], target[row], dense[row, place] == target[row])
    with np.errstate(divide="ignore"):
        gold_logprob = target - top + np.log(np.bincount(row, weights, shape[0]) / total)
    known = _all_correct(here, gold) if all_correct is None else all_correct
    known_correct = among(known)
    wrong = ~known_correct & there
    row, place = np.nonzero(known_correct)
    ahead = _ahead(dense, wrong, row, dense[row, place])
    n_wrong = wrong.sum(axis=1)
    with np.errstate(invalid="ignore"):
        in_order = np.bincount(row, n_wrong[row] - ahead, shape[0]) / (
            n_wrong * known_correct.sum(axis=1)
        )
    hashes = pl.Series([int(fingerprint(names)[:8], 16) for names in sets], dtype=pl.UInt32)
    starts = np.cumsum([0, *map(len, sets)])
    judged = pl.DataFrame({
        "prompt": np.arange(shape[0], dtype=np.uint32),
        "answer": options["name"].gather(starts[index] + first),
        "tied": best.sum(axis=1) > 1,
        "rank": 1 + ((dense >= target[:, None]) & ~correct & there).sum(axis=1),
        "ranked": in_order,
        "confidence": 1 / total,
        "gold_logprob": gold_logprob,
        "options_id": hashes.gather(index),
    }, nan_to_null=True)  # fmt: skip
    answerable = pl.Series(correct.any(axis=1))
    blank = (pl.when(answerable).then(name).alias(name) for name in ("rank", "gold_logprob"))
    judged = judged.with_columns(blank)
    several = _several(here)
    if len(several):
        # an option that names two objects is the first of them
        several = several.unique(("fact_no", "name"), keep="first", maintain_order=True)
        named = places(several)
        wrong = ~among(several) & there
        row, place = named["prompt"].to_numpy(), named["place"].to_numpy()
        score = dense[row, place]
        things = named.with_columns(order=-score, ahead=_ahead(dense, wrong, row, score))
        judged = judged.join(
            _set_scores(things, here), on="prompt", how="left", maintain_order="left"
        )
    return _rows(prompts, judged, "score")


def judge_mask(answers: Answers, facts: pl.DataFrame) -> pl.DataFrame:
    """The most likely token of each prompt, and the rank of the best correct name.

    Names of equal rank, value and folded spelling are one token, and so one answer.
    """
    assert isinstance(answers.result, MaskScores)
    request, scores = answers.batch.request, answers.result
    assert isinstance(request, FillMask)
    prompts, here = numbered(answers, facts)
    about = np.searchsorted(here["fact_no"].to_numpy(), prompts["fact_no"].to_numpy())
    targets = pl.DataFrame({"name": request.targets}, schema={"name": pl.String})
    targets = targets.with_row_index("target")

    def tokens(names: pl.DataFrame) -> dict[str, Any]:
        """Arrays with an entry for each name that can be answered, per prompt."""
        names = names.join(targets, on="name", maintain_order="left")
        spelling = pl.Series(map(folded, names["name"]), dtype=pl.String).rank("dense")
        names = names.with_columns(spelling=spelling)
        # only names of one spelling can be one token
        several = names.select(pl.struct("fact_no", "spelling").is_duplicated())
        ends = np.searchsorted(names["fact_no"].to_numpy(), here["fact_no"].to_numpy())
        lists = Ragged(np.append(ends, names.height), np.arange(names.height))
        chosen = take(lists, about)
        at, row = chosen.values, prompts["prompt"].to_numpy()[chosen.owners]
        target = names["target"].to_numpy()[at]
        ranks = scores.target_ranks[row, target]
        can = ranks > 0
        row, at, target = row[can], at[can], target[can]
        columns = {name: names[name].to_numpy()[at] for name in ("object_no", "usual", "spelling")}
        return columns | {
            "prompt": row,
            "rank": ranks[can].astype(np.int64),
            "logprob": scores.target_logprobs[row, target].astype(np.float64),
            "alike": several.to_series().to_numpy()[at],
        }

    gold, size = tokens(gold_names(here)), len(answers)
    row, logprob = gold["prompt"], gold["logprob"]
    rank = np.full(size, NEVER)
    np.minimum.at(rank, row, gold["rank"])
    best = np.full(size, -np.inf)
    np.maximum.at(best, row, logprob)
    weights = _exp(logprob, best[row], logprob == best[row]) * ~_repeated(gold, "prompt")
    # whether added names of an object are more likely than its usual one, if that can be answered
    group = np.cumsum(_changes(row, gold["object_no"])) - 1
    usual = np.full(len(group), np.nan)
    usual[group[gold["usual"]]] = logprob[gold["usual"]]
    added = ~np.isnan(usual[group]) & ~gold["usual"] & ~_repeated(gold, "prompt", "object_no")
    helped = np.bincount(row[added & (logprob > usual[group])], minlength=size)
    top, logprobs = scores.top, scores.top_logprobs.values
    counts, start = top.counts, top.offsets[:-1]
    first = pa.array(np.where(counts > 0, start, 0), mask=counts == 0)  # null: no allowed answer
    second = logprobs[np.minimum(start + 1, max(len(logprobs) - 1, 0))]
    with np.errstate(divide="ignore"):
        together = best + np.log(np.bincount(row, weights, size))
    judged = pl.DataFrame({
        "prompt": np.arange(size, dtype=np.uint32),
        "answer": pl.Series(top.values.take(first).cast(pa.string())).fill_null(""),
        "tied": (counts > 1) & (logprobs[np.where(counts > 0, start, 0)] == second),
        "rank": rank,
        "confidence": pl.Series(pa.array(logprobs).take(first)).cast(pl.Float64).exp(),
        "gold_logprob": together,
        "helped": helped,
        "compared": np.bincount(row[added], minlength=size),
    })  # fmt: skip
    answerable = pl.Series(rank < NEVER)
    judged = judged.with_columns(
        pl.when(answerable).then("rank").alias("rank"),
        pl.when(answerable).then("gold_logprob").cast(pl.Float32).alias("gold_logprob"),
        col("confidence").cast(pl.Float32),
    )
    several = _several(here)
    if len(several):
        named = pl.DataFrame(tokens(several)).join(prompts.select("prompt", "fact_no"), on="prompt")
        # wrong tokens of at least this probability: all of this rank, minus the correct ones
        correct = named.unique(("prompt", "rank", "spelling")).sort("prompt", "rank")
        until = correct.with_columns(until=col("rank").cum_count().over("prompt"))
        until = until.group_by("prompt", "rank").agg(col("until").max())
        things = named.join(until, on=("prompt", "rank"))
        things = things.with_columns(order="rank", ahead=col("rank") - col("until"))
        scored = _set_scores(things, here)
        judged = judged.join(scored, on="prompt", how="left", maintain_order="left")
    return _rows(prompts, judged, "fill")


def _changes(*columns: NDArray[Any]) -> Bools:
    """Where an entry differs from the one before it; the first one does."""
    changes = [np.append([True], column[1:] != column[:-1]) for column in columns]
    return np.logical_or.reduce(changes)[: len(columns[0])]


def _repeated(tokens: dict[str, Any], *keys: str) -> Bools:
    """The entries that are the same token as an earlier one of the same keys."""
    repeated, at = np.zeros(len(tokens["rank"]), dtype=bool), np.flatnonzero(tokens["alike"])
    columns = [tokens[name][at] for name in ("logprob", "rank", "spelling", *keys)]
    order = np.lexsort(columns)
    same = ~_changes(*(column[order] for column in columns))
    repeated[at[order[same]]] = True
    return repeated


def _rows(prompts: pl.DataFrame, judged: pl.DataFrame, answer_mode: str) -> pl.DataFrame:
    correct = col("rank").eq(1).fill_null(False)
    judged = judged.with_columns(correct=correct, answer_mode=pl.lit(answer_mode))
    rows = prompts.drop(*SENT, "fact_no", strict=False)
    return rows.join(judged, on="prompt", how="left", maintain_order="left").drop("prompt")


def _all_correct(facts: pl.DataFrame, gold: pl.DataFrame) -> pl.DataFrame:
    parts = [gold, _several(facts)]
    if "also_correct" in facts.columns:
        further = facts.select("fact_no", name="also_correct").explode("name")
        parts.append(further.drop_nulls("name"))
    return pl.concat([part.select("fact_no", "name") for part in parts])


def _several(facts: pl.DataFrame) -> pl.DataFrame:
    """The names of the objects of questions that have several."""
    if "question_names" not in facts.columns:
        return gold_names(facts.clear())
    return gold_names(facts.drop_nulls("question_names"), "question_names")


def _ahead(values: Floats, wrong: Bools, rows: Ints, scores: Floats) -> Ints:
    """The number of wrong options of a row that have at least a score."""
    counts = np.zeros(len(rows), dtype=np.int64)
    step = max(1, CELLS // values.shape[1])
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        reached = (values[rows[part]] >= scores[part, None]) & wrong[rows[part]]
        counts[part] = reached.sum(axis=1)
    return counts


def _set_scores(things: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
    """How the n most likely things of a prompt do, if n ≥ 2 of its correct objects can be answered.

    A thing is a wrong answer, or a correct object under its most likely name (lowest `order`).
    `ahead` counts wrong ones that are at least as likely: of equal ones, the wrong come first.
    """
    objects = facts.select("fact_no", objects=col("question_names").list.len())
    best = things.sort("prompt", "order").unique(
        ("prompt", "object_no"), keep="first", maintain_order=True
    )
    nth = pl.int_range(1, pl.len() + 1).over("prompt")
    best = best.join(objects, on="fact_no", how="left", maintain_order="left")
    best = best.with_columns(nth=nth, position=col("ahead") + nth)
    n, hits, size = pl.len(), (col("position") <= pl.len()).sum(), col("objects").first()
    return best.group_by("prompt").agg(
        set_precision=hits / n,
        set_recall=hits / size,
        set_f1=2 * hits / (n + size),
        average_precision=(col("nth") / col("position")).sum() / size,
        set_whole=(hits == size).cast(pl.Float64),
        n=n,
    ).filter(col("n") > 1).drop("n")  # fmt: skip


def choose(answers: Answers, options: Sequence[Sequence[str]] | pl.Series) -> Answers:
    """A filled mask as a choice between each prompt's own options.

    Options that are no target, or no allowed token, are dropped; if none is left, the only one is
    empty. Targets must contain the options.
    """
    assert isinstance(answers.result, MaskScores)
    request, scores = answers.batch.request, answers.result
    assert isinstance(request, FillMask)
    target = {name: n for n, name in enumerate(request.targets)}
    allowed = scores.target_ranks > 0
    numbers: dict[Names, int] = {}
    ids, logprobs = [], []
    for row, names in enumerate(options):
        chosen = tuple(n for n in names if n in target and allowed[row, target[n]]) or NOTHING
        ids.append(numbers.setdefault(chosen, len(numbers)))
        values = scores.target_logprobs[row]
        logprobs += [values[target[n]] if n in target else 0.0 for n in chosen]
    sets = tuple(numbers)
    frame = answers.frame.with_columns(options_id=pl.Series(ids, dtype=pl.UInt32))
    result = OptionScores.of(
        [len(sets[i]) for i in ids],
        np.ones(len(logprobs), np.int64),
        np.array(logprobs, np.float32),
    )
    return Answers(batch=PromptBatch(frame=frame, request=Score(), options=sets), result=result)


def judge_text(
    answers: Answers,
    facts: pl.DataFrame,
    accepts: Callable[[str, Sequence[str], str], bool],
    clean: Callable[[str], str],
    abstains: Callable[[str], bool] = lambda text: False,
) -> pl.DataFrame:
    """Grade generated texts; each text is judged once per fact.

    Args:
        answers: to a batch of Generate prompts.
        facts: as `tables.FACTS`.
        accepts: whether a cleaned answer states one of the names, in a language.
        clean: what is compared of a text.
        abstains: whether a text states that the model does not know.
    """
    assert isinstance(answers.result, Completions)
    result, (prompts, here) = answers.result, numbered(answers, facts)
    texts = pl.DataFrame({
        "prompt": np.arange(len(answers), dtype=np.uint32),
        "text": pl.Series(result.text.cast(pa.string())),
        "finished": result.finished,
        "n_tokens": result.token_logprobs.counts,
        "sequence_prob": np.exp(result.token_logprobs.sums()),
    })  # fmt: skip
    pairs = prompts.select("prompt", "fact_no").join(texts, on="prompt", maintain_order="left")
    pairs = pairs.select("fact_no", "text").unique(maintain_order=True)
    flat = col("gold_names").list.eval(pl.element().explode()).list.unique(maintain_order=True)
    names = here.select("fact_no", "language", names=flat)
    lines = []
    for fact, text, language, accepted in pairs.join(
        names, on="fact_no", maintain_order="left"
    ).iter_rows():
        answer = clean(text)
        correct = accepts(answer, accepted, language or "")
        lines.append((fact, text, answer, correct, not correct and abstains(text)))
    schema = {"fact_no": pl.UInt32, "text": pl.String, "answer": pl.String}
    verdicts = pl.DataFrame(
        lines, schema | {"correct": pl.Boolean, "abstained": pl.Boolean}, orient="row"
    )
    rows = prompts.join(texts, on="prompt", maintain_order="left")
    rows = rows.join(verdicts, on=("fact_no", "text"), how="left", maintain_order="left")
    rows = rows.with_columns(answer_mode=pl.lit("generate"))
    return rows.drop("prompt", "fact_no", "text", *SENT, strict=False)


def top_answers(
    answers: Answers, rows: Ints, k: int = 5, normalize: Normalize = "none"
) -> pl.DataFrame:
    """The k most likely answers of some prompts: prompt (its row), answer, probability.

    For options, the probability is the share among them.
    """
    chosen = answers.select(np.asarray(rows))
    result = chosen.result
    if isinstance(result, MaskScores):
        names = pl.Series(result.top.values.cast(pa.string()))
        owners, values = result.top.owners, np.exp(result.top_logprobs.values.astype(np.float64))
    else:
        assert isinstance(result, OptionScores)
        owners = result.logprobs.owners
        sets = (chosen.batch.options[i] for i in chosen.batch.options_ids().tolist())
        names = pl.Series([name for names in sets for name in names], dtype=pl.String)
        sums = result.sums() / (result.counts() if normalize == "tokens" else 1)
        top = np.maximum.reduceat(sums, result.logprobs.offsets[:-1])[owners]
        weights = _exp(sums, top, sums == top)
        values = weights / np.bincount(owners, weights)[owners]
    table = pl.DataFrame(
        {"prompt": np.asarray(rows)[owners], "answer": names, "probability": values}
    )
    order = np.lexsort((-values, owners))
    return table[order].group_by("prompt", maintain_order=True).head(k)


def _exp(values: Floats, top: Floats, best: Bools) -> Floats:
    """exp(values − top), 1 if they are equal, even if they are -inf."""
    with np.errstate(invalid="ignore"):
        return np.exp(np.where(best, 0.0, values - top))
