"""Grade answers: scored options, filled masks and generated texts become rows, one per prompt.

Takes one batch of answers and the facts. A graded batch has the columns of its prompts, then
those of `tables.ROWS`: answer, correct, tied, rank, ranked, confidence, gold_logprob, options_id,
helped, compared, and for questions with several objects set_precision, set_recall, set_f1,
average_precision and set_whole (null for others). Knows no metrics.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray
from polars import col

from sonde.answers import Answers, Completions, MaskScores, OptionScores, Ragged, take
from sonde.core.fingerprints import fingerprint
from sonde.core.texts import folded
from sonde.evaluation.tables import FACT, LEFT
from sonde.prompts import FillMask, Ints, Names, PromptBatch, Score

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Normalize = Literal["none", "tokens"]

SENT = ("prefix", "suffix", "options_id", "spans", "example_spans")
CELLS = 2**20  # compared at a time
NOTHING = ("",)  # the option of a prompt none of whose options can be answered


def judge(answers: Answers, facts: pl.DataFrame, normalize: Normalize = "none") -> pl.DataFrame:
    """Grade scored options or filled masks; prompts about no fact are dropped."""
    if isinstance(answers.result, MaskScores):
        return judge_mask(answers, facts)
    return judge_options(answers, facts, normalize)


def gold_names(facts: pl.DataFrame, objects: str = "gold_names") -> pl.DataFrame:
    """Every correct name of every fact: fact_no, object_no, name, usual (the object's first)."""
    names = facts.select("fact_no", name=objects).explode("name").drop_nulls("name")
    names = names.with_columns(
        object_no=pl.int_range(pl.len()).over("fact_no"), usual=col("name").list.first()
    )
    names = names.explode("name").drop_nulls("name").with_columns(usual=col("name") == col("usual"))
    return names.unique(maintain_order=True)


def question_names(facts: pl.DataFrame) -> pl.DataFrame:
    """The same of the objects of questions that have several, whichever fact has them."""
    if "question_names" not in facts.columns:
        return gold_names(facts.clear())
    return gold_names(facts.drop_nulls("question_names"), "question_names")


def compared(scores: OptionScores, normalize: Normalize) -> Floats:
    """What options are compared by."""
    return scores.sums() / (scores.counts() if normalize == "tokens" else 1)


def numbered(answers: Answers, facts: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The prompts about a fact, with their row (`prompt`) and fact_no, and these facts."""
    frame = answers.frame.with_row_index("prompt")
    here = facts.filter(col("relation").is_in(frame["relation"].unique().implode()))
    about = here.select(col("relation").cast(pl.String), "fact", "fact_no")
    prompts = frame.join(about, on=FACT, how="inner", maintain_order="left")
    return prompts, here.filter(col("fact_no").is_in(prompts["fact_no"].unique().implode()))


def judge_options(
    answers: Answers, facts: pl.DataFrame, normalize: Normalize = "none"
) -> pl.DataFrame:
    """The best option of each prompt, and the rank of the best correct one; ties count against it.

    For `ranked`, every object of the fact's question is correct, whichever fact has it. Options
    are compared by the sum of their log-probabilities, or by their mean per token.
    """
    scores, (prompts, here) = answers.result, numbered(answers, facts)
    assert isinstance(scores, OptionScores)
    values = compared(scores, normalize)
    counts = scores.logprobs.counts
    n, width = len(answers), int(counts.max(initial=1))
    there = np.arange(width) < counts[:, None]
    dense = np.full((n, width), -np.inf)
    dense[there] = values
    ids, index = np.unique(answers.batch.options_ids(), return_inverse=True)
    sets = [answers.batch.options[i] for i in ids.tolist()]
    lists = pl.Series(map(list, sets), dtype=pl.List(pl.String))
    options = pl.DataFrame({"set": np.arange(len(sets)), "name": lists}).explode("name")
    options = options.with_columns(column=pl.int_range(pl.len()).over("set"))
    about = prompts.select("prompt", "fact_no", set=pl.Series(index).gather(prompts["prompt"]))

    def find(names: pl.DataFrame) -> tuple[pl.DataFrame, tuple[Ints, Ints], Bools]:
        """Each fact's names among the options of its prompts: a row each, their place, a mask."""
        pairs = about.select("fact_no", "set").unique()  # a fact has many prompts
        pairs = pairs.join(names, on="fact_no").join(options, on=("set", "name"))
        table = about.join(pairs, on=("fact_no", "set"))
        places = table["prompt"].to_numpy(), table["column"].to_numpy()
        mask = np.zeros(dense.shape, dtype=bool)
        mask[places] = True
        return table, places, mask

    top = dense.max(axis=1)
    best = (dense == top[:, None]) & there
    total = _exp(dense, top[:, None]).sum(axis=1)
    gold = gold_names(here)
    correct = find(gold)[2]
    target = np.where(correct, dense, -np.inf).max(axis=1)
    # of the correct options alone, as exp of 2 million numbers takes as long as all the rest
    row, column = np.nonzero(correct)
    together = np.bincount(row, _exp(dense[row, column], target[row]), n)

    def ahead(wrong: Bools, row: Ints, score: Floats) -> Ints:
        """How many wrong options of a row have at least a score."""
        step = max(1, CELLS // width)
        parts = (slice(start, start + step) for start in range(0, len(row), step))
        reached = [((dense[row[p]] >= score[p, None]) & wrong[row[p]]).sum(axis=1) for p in parts]
        return np.concatenate([np.zeros(0, np.int64), *reached])

    question = question_names(here)
    every = [part.select("fact_no", "name") for part in (gold, question)]
    if "also_correct" in here.columns:
        further = here.select("fact_no", name="also_correct").explode("name")
        every.append(further.drop_nulls("name"))
    known = find(pl.concat(every))[2]
    wrong, n_wrong = ~known & there, (~known & there).sum(axis=1)
    row, column = np.nonzero(known)
    below = n_wrong[row] - ahead(wrong, row, dense[row, column])
    hashes = pl.Series([int(fingerprint(names)[:8], 16) for names in sets], dtype=pl.UInt32)
    starts = np.cumsum([0, *map(len, sets)])
    answerable = correct.any(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        judged = pl.DataFrame({
            "prompt": np.arange(n, dtype=np.uint32),
            "answer": options["name"].gather(starts[index] + best.argmax(axis=1)),
            "tied": best.sum(axis=1) > 1,
            "rank": 1 + ((dense >= target[:, None]) & ~correct & there).sum(axis=1),
            "ranked": np.bincount(row, below, n) / (n_wrong * known.sum(axis=1)),
            "confidence": 1 / total,
            "gold_logprob": target - top + np.log(together / total),
            "options_id": hashes.gather(index),
        }, nan_to_null=True)  # fmt: skip
    if len(question):
        # an option that names two objects is the first of them
        question = question.unique(("fact_no", "name"), keep="first", maintain_order=True)
        things, (row, column), known = find(question)
        score = dense[row, column]
        things = things.with_columns(order=-score, ahead=ahead(~known & there, row, score))
        judged = judged.join(_set_scores(things, here), on="prompt", **LEFT)
    null = (pl.when(pl.Series(answerable)).then(n).alias(n) for n in ("rank", "gold_logprob"))
    return _rows(prompts, judged.with_columns(null), "score")


def judge_mask(answers: Answers, facts: pl.DataFrame) -> pl.DataFrame:
    """The most likely token of each prompt, and the rank of the best correct name.

    Names of equal rank, value and folded spelling are one token, and so one answer.
    """
    request, scores = answers.batch.request, answers.result
    assert isinstance(request, FillMask) and isinstance(scores, MaskScores)
    prompts, here = numbered(answers, facts)
    about = np.searchsorted(here["fact_no"].to_numpy(), prompts["fact_no"].to_numpy())
    targets = pl.DataFrame({"name": request.targets}, schema={"name": pl.String})
    targets = targets.with_row_index("target")

    def find(names: pl.DataFrame) -> pl.DataFrame:
        """A row for each of its fact's names that can be answered, per prompt."""
        names = names.join(targets, on="name", maintain_order="left")
        spelling = pl.Series(map(folded, names["name"]), dtype=pl.String).rank("dense")
        names = names.drop("name").with_columns(spelling=spelling)
        # only names of one spelling can be one token
        alike = pl.struct("fact_no", "spelling").is_duplicated()
        ends = np.searchsorted(names["fact_no"].to_numpy(), here["fact_no"].to_numpy())
        lists = Ragged(np.append(ends, names.height), np.arange(names.height))
        chosen: Any = take(lists, about)
        table: pl.DataFrame = names.with_columns(alike=alike)[chosen.values]
        row, target = prompts["prompt"].to_numpy()[chosen.owners], table["target"].to_numpy()
        logprobs = scores.target_logprobs[row, target].astype(np.float64)
        return table.with_columns(
            prompt=pl.Series(row),
            rank=pl.Series(scores.target_ranks[row, target].astype(np.int64)),
            logprob=pl.Series(logprobs),
            probability=pl.Series(np.exp(logprobs)),
        ).filter(col("rank") > 0)

    def distinct(table: pl.DataFrame, *key: str) -> pl.DataFrame:
        """Each token of a key once."""
        if not table["alike"].any():
            return table
        names = (*key, "spelling", "rank", "logprob")
        once = table.filter("alike").unique(names, keep="first", maintain_order=True)
        return pl.concat([table.filter(~col("alike")), once])

    names = find(gold_names(here))
    # never below the largest, even if its exponential is 0
    together = pl.max_horizontal(col("probability").sum().log(), col("logprob").max())
    ranks = distinct(names, "prompt").group_by("prompt")
    best_ranks = ranks.agg(col("rank").min(), gold_logprob=together.cast(pl.Float32))
    # added names of an object against its usual one, if that can be answered
    usual = names.filter("usual").select("prompt", "object_no", usual_logprob="logprob")
    added = distinct(names, "prompt", "object_no").filter(~col("usual"))
    helps = (col("logprob") > col("usual_logprob")).sum()
    added = added.join(usual, on=("prompt", "object_no"))
    added = added.group_by("prompt").agg(helped=helps, compared=pl.len())
    top, logprobs = scores.top, pa.array(scores.top_logprobs.values)
    best = [pa.array(top.offsets[:-1] + n, mask=top.counts <= n) for n in (0, 1)]  # null: no answer
    first, second = (pl.Series(logprobs.take(rows)) for rows in best)
    judged = pl.DataFrame({
        "prompt": np.arange(len(answers), dtype=np.uint32),
        "answer": pl.Series(top.values.take(best[0]).cast(pa.string())).fill_null(""),
        "tied": (first == second).fill_null(False),
        "confidence": first.cast(pl.Float64).exp().cast(pl.Float32),
    })  # fmt: skip
    judged = judged.join(best_ranks, on="prompt", **LEFT).join(added, on="prompt", **LEFT)
    judged = judged.with_columns(col("helped", "compared").fill_null(0))
    question = question_names(here)
    if len(question):
        things = find(question)
        # wrong tokens of at least this probability: all of this rank, minus the correct ones
        correct = things.unique(("prompt", "rank", "spelling")).group_by("prompt", "rank")
        until = correct.agg(until=pl.len()).sort("prompt", "rank")
        until = until.with_columns(col("until").cum_sum().over("prompt"))
        things = things.join(until, on=("prompt", "rank"))
        things = things.with_columns(order="rank", ahead=col("rank") - col("until"))
        judged = judged.join(_set_scores(things, here), on="prompt", **LEFT)
    return _rows(prompts, judged, "fill")


def _rows(prompts: pl.DataFrame, judged: pl.DataFrame, answer_mode: str) -> pl.DataFrame:
    correct = col("rank").eq(1).fill_null(False)
    judged = judged.with_columns(correct=correct, answer_mode=pl.lit(answer_mode))
    rows = prompts.drop(*SENT, "fact_no", strict=False)
    return rows.join(judged, on="prompt", **LEFT).drop("prompt")


def _set_scores(things: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
    """How the n most likely things of a prompt do, if n ≥ 2 of its correct objects can be answered.

    A thing is a wrong answer, or a correct object under its most likely name (lowest `order`).
    `ahead` counts wrong ones that are at least as likely: of equal ones, the wrong come first.
    """
    objects = facts.select("fact_no", objects=col("question_names").list.len())
    best = things.sort("prompt", "order").join(objects, on="fact_no", **LEFT)
    best = best.unique(("prompt", "object_no"), keep="first", maintain_order=True)
    nth = pl.int_range(1, pl.len() + 1).over("prompt")
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
    request, scores = answers.batch.request, answers.result
    assert isinstance(request, FillMask) and isinstance(scores, MaskScores)
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
    result, (prompts, here) = answers.result, numbered(answers, facts)
    assert isinstance(result, Completions)
    flat = col("gold_names").list.eval(pl.element().explode()).list.unique(maintain_order=True)
    known = {fact: more for fact, *more in here.select("fact_no", flat, "language").iter_rows()}

    @cache
    def verdict(fact: int, text: str) -> tuple[str, bool, bool]:
        answer, (names, language) = clean(text), known[fact]
        correct = accepts(answer, names, language or "")
        return answer, correct, not correct and abstains(text)

    place, texts = prompts["prompt"].to_numpy(), result.text.cast(pa.string()).to_pylist()
    pairs = zip(prompts["fact_no"], place.tolist(), strict=True)
    schema = {"answer": pl.String, "correct": pl.Boolean, "abstained": pl.Boolean}
    verdicts = pl.DataFrame([verdict(fact, texts[i]) for fact, i in pairs], schema, orient="row")
    rows = prompts.drop("prompt", "fact_no", *SENT, strict=False).hstack(verdicts)
    return rows.with_columns(
        answer_mode=pl.lit("generate"),
        finished=pl.Series(result.finished[place]),
        n_tokens=pl.Series(result.token_logprobs.counts[place]),
        sequence_prob=pl.Series(np.exp(result.token_logprobs.sums()[place])),
    )


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
        sums = compared(result, normalize)
        weights = _exp(sums, np.maximum.reduceat(sums, result.logprobs.offsets[:-1])[owners])
        values = weights / np.bincount(owners, weights)[owners]
    table = pl.DataFrame(
        {"prompt": np.asarray(rows)[owners], "answer": names, "probability": values}
    )
    order = np.lexsort((-values, owners))
    return table[order].group_by("prompt", maintain_order=True).head(k)


def _exp(values: Floats, top: Floats) -> Floats:
    """exp(values − top), 1 if they are equal, even if they are -inf."""
    with np.errstate(invalid="ignore"):
        return np.exp(np.where(values == top, 0.0, values - top))
