"""Results made of random numbers, or of a few per prompt, without a probe."""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import polars as pl

from sonde.evaluation.tables import TEMPLATES, Results


def results(facts: Mapping[str, Any], rows: Mapping[str, Any]) -> Results:
    """A row of `facts` for each, with its relation and cluster; of `rows` for each prompt.

    Further columns are as they are. Templates are those of the rows, all from LAMA.
    """
    names = pl.Enum(list(dict.fromkeys(facts["relation"])))
    table = pl.DataFrame(dict(facts)).with_columns(pl.col("relation").cast(names))
    n = table.height
    table = table.with_columns(
        fact_no=pl.int_range(n, dtype=pl.UInt32),
        fact=pl.Series([f"f{i}" for i in range(n)]),
        cluster=pl.Series(facts.get("cluster", range(n)), dtype=pl.UInt32),
        excluded=pl.Series(facts.get("excluded", [None] * n), dtype=pl.String),
    )
    prompts = pl.DataFrame(dict(rows)).with_columns(pl.col("fact_no").cast(pl.UInt32))
    defaults = {"template_no": 1, "alias_no": 0}
    further = {k: pl.lit(v, pl.UInt16) for k, v in defaults.items() if k not in prompts}
    prompts = prompts.with_columns(
        pl.col("^(template|alias)_no$").cast(pl.UInt16),
        relation=table["relation"].gather(prompts["fact_no"]),
        **further,
    )
    numbers = pl.int_ranges(1, pl.col("template_no").max().cast(pl.Int64) + 1, dtype=pl.UInt16)
    templates = prompts.group_by("relation").agg(numbers.alias("template_no").first())
    templates = templates.explode("template_no").sort("relation", "template_no")
    number = pl.col("template_no").cast(pl.String)
    templates = templates.with_columns(
        template=pl.concat_str(pl.col("relation").cast(pl.String), number, separator="-"),
        group=pl.concat_str(pl.lit("g"), (pl.col("template_no") + 1) // 2),
        source=pl.when(pl.col("template_no") == 1)
        .then(pl.lit("manual"))
        .otherwise(pl.lit("mined")),
        origin=pl.lit("lama"),
        **{n: pl.lit(None, pl.String) for n in TEMPLATES if n in ("text", "style", "language")},
    )
    return Results(probe=cast(Any, None), facts=table, templates=templates, rows=prompts)


def random_results(
    n: int = 40, templates: int = 3, aliases: int = 1, relations: int = 2, seed: int = 0
) -> Results:
    """Facts of several skills, two to a subject."""
    rng = np.random.default_rng(seed)
    per = templates * aliases
    fact = np.repeat(np.arange(n), per)
    correct = rng.random(n * per) < rng.random(n)[fact]
    return results(
        {
            "relation": [f"P{i * relations // n}" for i in range(n)],
            "cluster": np.arange(n) // 2,
            "kind": ["1-1" if i % 3 else "N-M" for i in range(n)],
            "tags": [["all", "odd"] if i % 2 else ["all"] for i in range(n)],
        },
        {
            "fact_no": fact,
            "template_no": np.tile(np.repeat(np.arange(1, templates + 1), aliases), n),
            "alias_no": np.tile(np.arange(aliases), n * templates),
            "answer": np.where(correct, "gold", rng.choice(["a", "b", "c"], n * per)),
            "correct": correct,
            "baseline": (rng.random(n) < 0.3)[fact],
            "confidence": rng.random(n * per).round(1).astype(np.float32),
            "gold_logprob": rng.normal(size=n * per).round(1),
            "rank": np.where(correct, 1, rng.integers(2, 6, n * per)),
        },
    )
