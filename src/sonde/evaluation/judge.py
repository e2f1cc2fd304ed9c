"""Grade answers: scored options, filled masks and generated texts become rows, one per prompt.

Takes one batch of answers and the facts. A graded batch has the columns of its prompts, then
those of `tables.ROWS`: answer, correct, tied, rank, ranked, confidence, gold_logprob, options_id,
helped, compared, and for questions with several objects set_precision, set_recall, set_f1,
average_precision, set_whole (null for others). Knows no metrics.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray
from polars import col

from sonde.answers import Answers, Completions, MaskScores, OptionScores, Ragged
from sonde.core.fingerprints import fingerprint
from sonde.core.texts import folded
from sonde.evaluation.tables import FACT
from sonde.prompts import TEXTS, FillMask, Ints, Names, Score

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Normalize = Literal["none", "tokens"]

NOTHING = ("",)  # the only option if none of a prompt can be answered
TOKEN = ("rank", "spelling", "logprob")


def judge(answers: Answers, facts: pl.DataFrame, normalize: Normalize = "none") -> pl.DataFrame:
    """Grade scored options or filled masks; those about no fact are dropped."""
    if isinstance(answers.batch.request, FillMask):
        return judge_mask(answers, facts)
    if isinstance(answers.batch.request, Score):
        return judge_options(answers, facts, normalize)
    raise TypeError(f"{type(answers.batch.request).__name__} answers have no default judge")


def gold_names(facts: pl.DataFrame, column: str = "gold_names") -> pl.DataFrame:
    """Every correct name of every fact: relation, fact, object_no, name, usual (the first name)."""
    objects = facts.select(col("relation").cast(pl.String), "fact", name=column).explode("name")
    objects = objects.drop_nulls("name").with_columns(
        object_no=pl.int_range(pl.len()).over(FACT), first=col("name").list.first()
    )
    names = objects.explode("name").drop_nulls("name")
    return names.with_columns(usual=col("name") == col("first")).drop("first").unique(maintain_order=True)


def logsumexp(values: pl.Expr) -> pl.Expr:
    """The log of the sum of exponentials of a group; null for none."""
    top = values.max()
    return top + (values - top).exp().sum().log()


def judge_options(
    answers: Answers,
    facts: pl.DataFrame,
    normalize: Normalize = "none",
    all_correct: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """The best option of each prompt, and the rank of the best correct one; ties count against it.

    Args:
        answers: to a batch of Score prompts.
        facts: with gold_names, and question_names and also_correct if there are any.
        normalize: compare summed log-probabilities, or means per token.
        all_correct: relation, fact, name of everything that is correct for `ranked`; by default
            all objects of the fact's question, whichever fact says so.
    """
