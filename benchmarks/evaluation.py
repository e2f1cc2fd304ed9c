"""Estimates of made-up graded prompts: seconds with groups and at a million, memory at 7.4 million.

No model and no files are needed. Each case runs in a separate process, on one thread.
"""

import argparse
import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np
import polars as pl

from benchmarks.common import Result, elsewhere, memory_now, memory_peak, parser, tell
from sonde.evaluation import metrics as m
from sonde.evaluation.estimate import Group, estimate
from sonde.evaluation.tables import TEMPLATES, Results

NAME = "evaluation"
ANSWERS = 1000
BELIEF = (
    m.accuracy("acc_at_1"),
    *m.TEMPLATE_ACCURACY,
    m.consistency(),
    m.OVERCONFIDENCE,
    m.ECE,
    *m.COVERAGE,
    *m.answer_driver_metrics(),
    *m.paraphrase_group_metrics(),
)
FEW = (m.accuracy("acc_at_1"), m.consistency(), m.OVERCONFIDENCE)
TWO = ("acc_at_1", "overconfidence")
TEMPLATE = Group("template_no", TWO)
CELL = Group(("relation", "template_no"), TWO, fine=True)

# relations, facts of each, prompts of each fact, metrics, groups, limit
CASES: dict[str, tuple[int, int, int, Sequence[m.Metric], Sequence[str | Group], str]] = {
    "BELIEF's metrics": (41, 60, 100, BELIEF, (), ""),
    "… by relation, two by template": (41, 60, 100, BELIEF, ("relation", TEMPLATE), "1.5 s"),
    "… by relation, two by both": (41, 60, 100, BELIEF, ("relation", CELL), "1.5 s"),
    "accuracy, consistency, overconfidence": (40, 750, 33, FEW, (), "2 s"),
    "BELIEF's metrics at full size": (41, 1805, 100, BELIEF, ("relation", CELL), "800 MiB"),
}


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Figures of another process; memory in bytes, `loaded` with the rows alone."""

    rows: int
    estimates: int
    seconds: float
    processor: float
    loaded: int
    peak: int


def main() -> None:
    """Measure, print, and store where asked."""
    options = parser((__doc__ or "").splitlines()[0])
    options.add_argument("--child", help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.child:
        print(json.dumps(asdict(child(*CASES[arguments.child][:5]))))
        return
    os.environ |= {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"}
    load, rows = os.getloadavg()[0], []
    for name, case in CASES.items():
        measured = elsewhere(NAME, Measured, name)
        times = (f"{measured.seconds:.2f}", f"{measured.processor:.2f}")
        memory = (f"{size / 2**20:,.0f}" for size in (measured.loaded, measured.peak))
        rows.append(
            (name, f"{measured.rows:,}", f"{measured.estimates:,}", *times, *memory, case[5])
        )
    tell(
        Result(
            name=NAME,
            title="Estimates of graded prompts, on one thread",
            columns=("what", "rows", "estimates", "seconds", "of the processor", "MiB of rows",
                     "peak MiB", "limit"),
            rows=tuple(rows),
            findings=(f"Load of the machine before: {load:.1f}.",),
        ),
        write=arguments.write,
    )  # fmt: skip


def child(
    relations: int,
    facts: int,
    prompts: int,
    metrics: Sequence[m.Metric],
    groups: Sequence[str | Group],
) -> Measured:
    table = world(relations, facts, prompts)
    estimate(world(2, 2, 2), metrics, groups=groups)  # imports
    loaded, began, before = memory_now(), time.perf_counter(), time.process_time()
    frame = estimate(table, metrics, groups=groups)
    return Measured(
        rows=table.rows.height,
        estimates=frame.height,
        seconds=time.perf_counter() - began,
        processor=time.process_time() - before,
        loaded=loaded,
        peak=memory_peak(),
    )


def world(relations: int, facts: int, templates: int) -> Results:
    """Facts of several skills, answers that are often the same wrong one."""
    rng = np.random.default_rng(0)
    names = pl.Enum([f"P{i}" for i in range(relations)])
    answers = pl.Enum([f"a{i}" for i in range(ANSWERS)])
    # as wide as they are kept, a relation at a time: 7.4 million rows have to fit
    parts = [_relation(number, facts, templates, rng) for number in range(relations)]
    rows = pl.concat(parts, rechunk=True)
    parts.clear()
    rows = rows.with_columns(
        relation=_texts(names).gather(rows["relation"]),
        answer=_texts(answers).gather(rows["answer"]),
    )
    n = relations * facts
    owners = np.repeat(np.arange(relations), facts)
    table = pl.DataFrame(
        {
            "fact_no": pl.Series(range(n), dtype=pl.UInt32),
            "relation": _texts(names).gather(owners),
            "fact": [f"f{i}" for i in range(n)],
            "cluster": pl.Series(range(n), dtype=pl.UInt32),
            "excluded": pl.Series([None] * n, dtype=pl.String),
        }
    )
    number = np.tile(np.arange(templates), relations)
    of_templates = pl.DataFrame(
        {
            "relation": _texts(names).gather(np.repeat(np.arange(relations), templates)),
            "template_no": pl.Series(number + 1, dtype=pl.UInt16),
            "group": [f"g{i // 20}" for i in number],
        }
    )
    others = {name: pl.lit(None, pl.String) for name in TEMPLATES if name not in of_templates}
    return Results(
        probe=cast(Any, None),
        facts=table,
        templates=of_templates.with_columns(**others),
        rows=rows,
    )


def _texts(dtype: pl.Enum) -> pl.Series:
    return dtype.categories.cast(dtype)


def _relation(number: int, facts: int, templates: int, rng: np.random.Generator) -> pl.DataFrame:
    fact = np.repeat(np.arange(facts, dtype=np.uint32), templates)
    skill, usual = rng.random(facts, dtype=np.float32), rng.integers(0, ANSWERS, facts, np.uint32)
    correct = rng.random(len(fact), dtype=np.float32) < skill[fact]
    wrong = rng.integers(0, ANSWERS, len(fact), np.uint32)
    return pl.DataFrame(
        {
            "fact_no": fact + np.uint32(number * facts),
            "relation": pl.repeat(number, len(fact), dtype=pl.UInt32, eager=True),
            "template_no": np.tile(np.arange(1, templates + 1, dtype=np.uint16), facts),
            "alias_no": np.zeros(len(fact), np.uint16),
            "answer": np.where(correct, usual[fact], wrong),
            "correct": correct,
            "baseline": (rng.random(facts) < 0.2)[fact],
            "confidence": rng.random(len(fact), dtype=np.float32),
        }
    )


if __name__ == "__main__":
    main()
