"""Grade answers: scored options, filled masks and generated texts become rows, one per prompt.

Takes one batch of answers and the facts. A graded batch has the columns of its prompts, then
those of `tables.ROWS`: answer, correct, tied, rank, ranked, confidence, gold_logprob, options_id,
helped and compared. Knows no metrics.
"""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
from typing import Any, Literal

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray
from polars import col

from sonde.answers import Answers, Completions, MaskScores, OptionScores
from sonde.core.fingerprints import fingerprint
from sonde.core.texts import folded
from sonde.evaluation.tables import FACT, LEFT
from sonde.prompts import FillMask, Ints

Floats = NDArray[np.float64]
Normalize = Literal["none", "tokens"]

SENT = ("prefix", "suffix", "options_id", "spans", "example_spans")


def judge(answers: Answers, facts: pl.DataFrame, normalize: Normalize = "none") -> pl.DataFrame:
    """Grade scored options or filled masks; prompts about no fact are dropped."""
    if isinstance(answers.result, MaskScores):
        return judge_mask(answers, facts)
    return judge_options(answers, facts, normalize)


def list_correct_names(facts: pl.DataFrame, objects: str = "gold_names") -> pl.DataFrame:
    """Every correct name of every fact: fact_no, object_no, name, usual (the object's first).

    With "question_names", those of all objects of a question that has several.
    """
    names = facts.select("fact_no", name=objects).explode("name").drop_nulls("name")
    object_no, usual = pl.int_range(pl.len()).over("fact_no"), col("name").list.first()
    names = names.with_columns(object_no=object_no, usual=usual).explode("name").drop_nulls("name")
    return names.with_columns(usual=col("name") == col("usual")).unique(maintain_order=True)


def option_scores(scores: OptionScores, normalize: Normalize) -> Floats:
    """What options are compared by."""
    return scores.sums() / (scores.counts() if normalize == "tokens" else 1)


def match_prompts_to_facts(
    answers: Answers, facts: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The prompts about a fact, with their row (`prompt`) and fact_no, and these facts."""
    frame = answers.frame.with_row_index("prompt")
    about = facts.select(col("relation").cast(pl.String), "fact", "fact_no")
    about = about.filter(col("relation").is_in(frame["relation"].unique().implode()))
    prompts = frame.join(about, on=FACT, how="inner", maintain_order="left")
    return prompts, facts[prompts["fact_no"].unique().sort()]


def judge_options(
    answers: Answers, facts: pl.DataFrame, normalize: Normalize = "none"
) -> pl.DataFrame:
    """The best option of each prompt, and the rank of the best correct one; ties count against it.

    For `ranked`, every object of the fact's question is correct, whichever fact has it. Options
    are compared by the sum of their log-probabilities, or by their mean per token.
    """
    scores, (prompts, here) = answers.result, match_prompts_to_facts(answers, facts)
    assert isinstance(scores, OptionScores)
    counts = scores.logprobs.counts
    n, width = len(answers), int(counts.max(initial=1))
    there = np.arange(width) < counts[:, None]
    dense = np.full((n, width), -np.inf)
    dense[there] = option_scores(scores, normalize)
    ids, index = np.unique(answers.batch.options_ids(), return_inverse=True)
    sets = [answers.batch.options[i] for i in ids.tolist()]
    lists = pl.Series(map(list, sets), dtype=pl.List(pl.String))
    options = pl.DataFrame({"set": np.arange(len(sets)), "name": lists}).explode("name")
    options = options.with_columns(column=pl.int_range(pl.len()).over("set"))
    about = prompts.select("prompt", "fact_no", set=pl.Series(index).gather(prompts["prompt"]))

    def find(names: pl.DataFrame) -> Any:
        """Where each fact's names are among the options of its prompts."""
        pairs = about.select("fact_no", "set").unique()  # a fact has many prompts
        pairs = pairs.join(names, on="fact_no").join(options, on=("set", "name"))
        table = about.join(pairs, on=("fact_no", "set"))
        return table["prompt"].to_numpy(), table["column"].to_numpy()

    correct, known = np.zeros((2, *dense.shape), dtype=bool)
    correct[find(list_correct_names(here))] = True
    known[find(list_correct_names(here, "question_names"))] = True
    known |= correct
    top, target = (np.where(where, dense, -np.inf).max(axis=1) for where in (there, correct))
    best = (dense == top[:, None]) & there
    wrong = there & ~known
    # wrong options that score at least as high as a correct one
    row, column = np.nonzero(known)
    ahead = ((dense[row] >= dense[row, column][:, None]) & wrong[row]).sum(axis=1)
    pairs = known.sum(axis=1) * wrong.sum(axis=1)
    hashes = pl.Series([int(fingerprint(names)[:8], 16) for names in sets], dtype=pl.UInt32)
    starts = np.cumsum([0, *map(len, sets)])
    with np.errstate(invalid="ignore", divide="ignore"):
        # options as likely as the best weigh 1, even if they are -inf
        weights = np.exp(np.where(dense == top[:, None], 0.0, dense - top[:, None]))
        # never below the best correct option, even if its exponential is 0
        together = np.maximum(np.log((weights * correct).sum(axis=1)), target - top)
        judged = pl.DataFrame({
            "prompt": np.arange(n, dtype=np.uint32),
            "answer": options["name"].gather(starts[index] + best.argmax(axis=1)),
            "tied": best.sum(axis=1) > 1,
            "rank": 1 + ((dense >= target[:, None]) & there & ~correct).sum(axis=1),
            "ranked": (pairs - np.bincount(row, ahead, n)) / pairs,
            "confidence": 1 / weights.sum(axis=1),
            "gold_logprob": together - np.log(weights.sum(axis=1)),
            "options_id": hashes.gather(index),
            "only_option": counts == 1,
        }, nan_to_null=True)  # fmt: skip
    answerable = pl.when(pl.Series(correct.any(axis=1)))
    judged = judged.with_columns(answerable.then(name) for name in ("rank", "gold_logprob"))
    return _rows(prompts, judged, "score")


def judge_mask(answers: Answers, facts: pl.DataFrame) -> pl.DataFrame:
    """The most likely token of each prompt, and the rank of the best correct name.

    Names of equal rank, value and folded spelling are one token, and so one answer.
    """
    request, scores = answers.batch.request, answers.result
    assert isinstance(request, FillMask) and isinstance(scores, MaskScores)
    prompts, here = match_prompts_to_facts(answers, facts)
    about = prompts.select("prompt", "fact_no")
    targets = pl.DataFrame({"name": request.targets}, {"name": pl.String}).with_row_index("target")
    spelling = pl.Series(map(folded, targets["name"]), dtype=pl.String).rank("dense")
    targets = targets.with_columns(spelling=spelling)

    names = list_correct_names(here).join(targets, on="name", maintain_order="left")
    # only names of one spelling can be one token
    alike = pl.struct("fact_no", "spelling").is_duplicated()
    names = about.join(names.with_columns(alike=alike), on="fact_no")
    place = names["prompt"].to_numpy(), names["target"].to_numpy()
    names = names.with_columns(
        rank=pl.Series(scores.target_ranks[place], dtype=pl.Int64),
        logprob=pl.Series(scores.target_logprobs[place], dtype=pl.Float64),
    ).filter(col("rank") > 0)

    def distinct(table: pl.DataFrame, *key: str) -> pl.DataFrame:
        """Each token of a key once."""
        if not table["alike"].any():
            return table
        return table.unique((*key, "spelling", "rank"), keep="first", maintain_order=True)

    # never below the largest, even if its exponential is 0
    together = pl.max_horizontal(col("logprob").exp().sum().log(), col("logprob").max())
    tokens = distinct(names, "prompt").group_by("prompt")
    ranks = tokens.agg(col("rank").min(), gold_logprob=together.cast(pl.Float32))
    # added names of an object against its usual one, if that can be answered
    usual = col("logprob").filter("usual").first().over("prompt", "object_no")
    added = names.filter(pl.len().over("prompt", "object_no") > 1)
    added = distinct(added, "prompt", "object_no").with_columns(usual_logprob=usual)
    helps, both = (col("logprob") > col("usual_logprob")).sum(), col("usual_logprob").count()
    added = added.filter(~col("usual")).group_by("prompt").agg(helped=helps, compared=both)
    top, logprobs = scores.top, pa.array(scores.top_logprobs.values)
    best = [pa.array(top.offsets[:-1] + n, mask=top.counts <= n) for n in (0, 1)]  # null: no answer
    first, second = (pl.Series(logprobs.take(rows)) for rows in best)
    judged = pl.DataFrame({
        "prompt": np.arange(len(answers), dtype=np.uint32),
        "answer": pl.Series(top.values.take(best[0]).cast(pa.string())).fill_null(""),
        "tied": (first == second).fill_null(False),
        "confidence": first.cast(pl.Float64).exp().cast(pl.Float32),
    })  # fmt: skip
    judged = judged.join(ranks, on="prompt", **LEFT).join(added, on="prompt", **LEFT)
    judged = judged.with_columns(col("helped", "compared").fill_null(0))
    return _rows(prompts, judged, "fill")


def _rows(prompts: pl.DataFrame, judged: pl.DataFrame, answer_mode: str) -> pl.DataFrame:
    correct = col("rank").eq(1).fill_null(False)
    judged = judged.with_columns(correct=correct, answer_mode=pl.lit(answer_mode))
    rows = prompts.drop(*SENT, "fact_no", strict=False)
    return rows.join(judged, on="prompt", **LEFT).drop("prompt")


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
    result, (prompts, here) = answers.result, match_prompts_to_facts(answers, facts)
    assert isinstance(result, Completions)
    flat = col("gold_names").list.eval(pl.element().explode()).list.unique(maintain_order=True)
    known = {fact: more for fact, *more in here.select("fact_no", flat, "language").iter_rows()}

    @cache
    def verdict(fact: int, text: str) -> tuple[str, bool, bool]:
        answer, (names, language) = clean(text), known[fact]
        correct = accepts(answer, names, language or "")
        return answer, correct, not correct and abstains(text)

    place, texts = prompts["prompt"].to_numpy(), result.text.cast(pa.string())
    pairs = zip(prompts["fact_no"], texts.take(pa.array(place)).to_pylist(), strict=True)
    schema = {"answer": pl.String, "correct": pl.Boolean, "abstained": pl.Boolean}
    verdicts = pl.DataFrame([verdict(*pair) for pair in pairs], schema, orient="row")
    return prompts.drop("prompt", "fact_no", *SENT, strict=False).with_columns(
        *verdicts,
        answer_mode=pl.lit("generate"),
        finished=result.finished[place],
        n_tokens=result.token_logprobs.counts[place],
        sequence_prob=np.exp(result.token_logprobs.sums()[place]),
    )


def top_answers(
    answers: Answers, rows: Ints, k: int = 5, normalize: Normalize = "none"
) -> pl.DataFrame:
    """The k most likely answers of some prompts, in order: prompt (its row), answer, probability.

    For options, the probability is the share among them.
    """
    chosen = answers.select(rows)
    result, value = chosen.result, col("probability")
    if isinstance(result, MaskScores):
        names, values = result.top.values.cast(pa.string()), result.top_logprobs.values
        owners, shares = result.top.owners, value.exp()
    else:
        assert isinstance(result, OptionScores)
        sets = (chosen.batch.options[i] for i in chosen.batch.options_ids().tolist())
        names, values = list(chain.from_iterable(sets)), option_scores(result, normalize)
        weights = (value - value.max().over("prompt")).exp()
        owners, shares = result.logprobs.owners, weights / weights.sum().over("prompt")
    columns = {"prompt": rows[owners], "answer": names, "probability": values}
    table = pl.DataFrame(columns).with_columns(shares.cast(pl.Float64))
    table = table.sort("prompt", -value, maintain_order=True)
    return table.group_by("prompt", maintain_order=True).head(k)
