"""How often 95% intervals hold the truth, over samples from made-up populations of subjects.

Subjects have one to three facts, whose answers depend on the subject, the fact and the template.
The truth is the value over the whole population.
"""

from collections import defaultdict
from collections.abc import Iterator
from math import sqrt
from typing import Any, cast

import numpy as np
import polars as pl
from polars import col

from benchmarks.common import Result, parser, tell
from sonde.evaluation import metrics as m
from sonde.evaluation.estimate import Metric, estimate
from sonde.evaluation.tables import TEMPLATES, Results

NAME = "coverage"
POPULATION = 20_000  # subjects of each relation
RELATIONS = pl.Enum(["P1", "P2"])
SIZES = (25, 40, 120)  # subjects of each relation in a sample
EFFECTS = (0.9, 0.3, -0.3, -0.9)  # of templates, in logits
FIRST = col("template_no") == 1

METRICS = (
    m.accuracy(help="mean over four templates"),
    m.accuracy("one template", where=FIRST),
    m.consistency(),
    m.sd_between(m.accuracy(), "template_no", "SD between templates"),
    m.harmonic_mean(
        "harmonic mean", m.accuracy("every"), m.accuracy("some", where=FIRST & col("second"))
    ),
    Metric("ratio of sums", num=col("correct").sum(), den=col("weight").sum(), unit="number"),
)


def main() -> None:
    """Measure, print, and store where asked."""
    options = parser((__doc__ or "").splitlines()[0])
    options.add_argument("--samples", type=int, default=1000)
    arguments = options.parse_args()
    rng = np.random.default_rng(0)
    population = people(rng)
    truth = {key: value for key, value, *_ in numbers(population)}
    rows = []
    for size in SIZES:
        held: dict[tuple[str, str], list[float]] = defaultdict(list)
        contradictions = 0
        for _ in range(arguments.samples):
            for key, _, low, high, p in numbers(sample(population, size, rng)):
                held[key].append(low <= truth[key] <= high)
                contradictions += p is not None and (p < 0.05) == (low < 0 < high)
        for (id, of), hits in held.items():
            share, n = float(np.mean(hits)), len(hits)
            error = 1.96 * sqrt(share * (1 - share) / n)
            what = id + ("" if of == "value" else f", {of}")
            rows.append((what, str(size), f"{truth[id, of]:.3f}", f"{share:.1%}", f"± {error:.1%}"))
        rows.append(("interval contradicts its p", str(size), "", str(contradictions), ""))
    tell(
        Result(
            name=NAME,
            title=f"Coverage of 95% intervals in {arguments.samples:,} samples",
            columns=("estimate", "subjects of each relation", "truth", "covered", "error"),
            rows=tuple(rows),
            findings=("Means over two relations; facts of a subject depend on each other.",),
        ),
        write=arguments.write,
    )


def numbers(table: Results) -> Iterator[tuple[tuple[str, str], float, float, float, float | None]]:
    frame = estimate(table, METRICS, over=["relations"])
    columns = ("metric", "of", "value", "low", "high", "p")
    for id, of, *numbers in frame.select(columns).iter_rows():
        yield (id, of), *numbers


def people(rng: np.random.Generator) -> Results:
    """A population: two relations of different difficulty."""
    facts, rows, start = [], [], 0
    for number, level in enumerate((0.8, -0.7)):
        subject = np.repeat(np.arange(POPULATION), rng.integers(1, 4, POPULATION))
        n = len(subject)
        skill = level + 1.2 * rng.normal(size=POPULATION)[subject] + 0.7 * rng.normal(size=n)
        usual = rng.random(n) < 1 / (1 + np.exp(1 - 0.5 * skill))
        logits = skill[:, None] + np.array(EFFECTS)
        correct = rng.random(logits.shape) < 1 / (1 + np.exp(-logits))
        facts.append(pl.DataFrame({"relation": np.full(n, number), "cluster": subject}))
        shape = correct.shape
        rows.append(
            pl.DataFrame(
                {
                    "fact_no": np.repeat(np.arange(start, start + n), shape[1]),
                    "template_no": np.tile(np.arange(1, shape[1] + 1), n),
                    "correct": correct.ravel(),
                    "answer": np.where(correct, 0, rng.integers(1, 4, shape)).ravel(),
                    "baseline": np.repeat(usual, shape[1]),
                    "second": np.repeat(rng.random(n) < 0.6, shape[1]),
                    "weight": rng.uniform(0.5, 1.5, shape).ravel(),
                }
            )
        )
        start += n
    return as_results(pl.concat(facts), pl.concat(rows))


def sample(population: Results, size: int, rng: np.random.Generator) -> Results:
    """The facts of some subjects of each relation."""
    facts, rows = population.facts, population.rows
    chosen = [rng.choice(POPULATION, size, replace=False) for _ in RELATIONS.categories]
    keys = pl.DataFrame(
        {"relation": np.repeat(np.arange(len(chosen)), size), "cluster": np.concatenate(chosen)}
    )
    facts = facts.with_columns(col("relation").to_physical().cast(pl.Int64))
    some = facts.join(keys, on=("relation", "cluster"), how="semi", maintain_order="left")
    numbers = some.select("fact_no").with_row_index("number")
    rows = rows.join(numbers, on="fact_no", maintain_order="left").drop("fact_no", "relation")
    return as_results(some.select("relation", "cluster"), rows.rename({"number": "fact_no"}))


def as_results(facts: pl.DataFrame, rows: pl.DataFrame) -> Results:
    texts = RELATIONS.categories.cast(RELATIONS)
    facts = facts.select(
        fact_no=pl.int_range(pl.len(), dtype=pl.UInt32),
        relation=texts.gather(facts["relation"]),
        cluster=col("cluster").cast(pl.UInt32),
        excluded=pl.lit(None, pl.String),
    )
    rows = rows.with_columns(
        col("fact_no").cast(pl.UInt32), relation=facts["relation"].gather(rows["fact_no"])
    )
    templates = pl.DataFrame(schema={**TEMPLATES, "relation": RELATIONS})
    return Results(probe=cast(Any, None), facts=facts, templates=templates, rows=rows)


if __name__ == "__main__":
    main()
