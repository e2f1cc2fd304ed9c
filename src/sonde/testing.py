"""Conformance checks for probes, models and datasets, yours as well as ours.

Each check raises AssertionError with a sentence that says what is wrong. Every component that comes
with sonde passes them; call them from the tests of your own:

    from sonde.testing import check_probe
    check_probe(MyProbe(), sonde.dataset("atlas", limit=3))
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import isfinite, log
from random import Random
from typing import Any

import polars

from sonde.answers import Answers as ColumnAnswers
from sonde.bridge import as_answers, as_block
from sonde.core.abilities import ABILITIES, Ability, Model, Probe, abilities
from sonde.core.answers import Answer, Filled, Generated, Sampled, Scored, Traced
from sonde.core.columns import Answers, one_by_one
from sonde.core.components import settings_of
from sonde.core.errors import AbilityError
from sonde.core.facts import Dataset
from sonde.core.prompts import Block, Prompt, Prompts, blocks_of
from sonde.data.check import problems
from sonde.evaluation.estimate import Metric, estimate_results
from sonde.evaluation.tables import collect_results
from sonde.models.controls import majority
from sonde.models.scripted import Scripted
from sonde.prompts import PromptBatch
from sonde.runs.shards import answer
from sonde.store.rows import Answering, together
from sonde.store.shards import blocks_of as answers_of

TOLERANCE = 1e-4


def check_probe(probe: Probe, dataset: Dataset) -> None:
    """A probe asks the same twice, reads in any order, and believes an oracle."""
    for setting in settings_of(type(probe)):
        assert setting.help, f"setting {setting.name!r} has no help text"
    assert not _suits(probe, frozenset()), "the probe takes a model that can do nothing"
    for can in _suitable(probe):
        suited: Any = probe.suited(can)
        blocks = list(blocks_of(suited.ask(dataset)))
        _check_asking(suited, dataset, blocks)
        _check_results(suited, dataset, blocks, oracle_for(dataset))


def check_model(model: Model, prompts: Sequence[Prompt]) -> None:
    """A model answers every prompt once, and the same alone as among others."""
    assert abilities(model), "the model has none of the abilities: " + ", ".join(ABILITIES)
    assert model.identity == model.identity, "the model's identity changes when asked twice"
    together = _answers(model, prompts)
    assert sorted(together) == list(range(len(prompts))), "not every prompt has one answer"
    backwards = _answers(model, list(prompts)[::-1])
    for i, prompt in enumerate(prompts):
        alone = _answers(model, [prompt])[0]
        _check_shape(prompt, together[i])
        assert_same(together[i], alone, f"prompt {i} among others and alone")
        assert_same(together[i], backwards[len(prompts) - 1 - i], f"prompt {i} in another order")


def check_dataset(dataset: Dataset) -> None:
    """A dataset is sound and reads the same twice."""
    wrong = next(problems(dataset), None)
    assert wrong is None, wrong
    for relation in dataset.relations:
        first, again = list(dataset.facts(relation.id)), list(dataset.facts(relation.id))
        assert first == again, f"the facts of {relation.id} change when read twice"


def oracle_for(dataset: Dataset) -> Scripted:
    """A model that knows the first object of every fact."""
    facts = (fact for r in dataset.relations for fact in dataset.facts(r.id))
    return Scripted(answers={fact.id: fact.objects[0].name for fact in facts})


def answer_all(model: Model, blocks: Iterable[Block] | Iterable[Prompt]) -> list[Answers]:
    """Put prompts to a model in memory, without a run folder."""
    prompts = Prompts(blocks=tuple(blocks_of(blocks)))
    answers = Answering(prompts)
    for position, found in answer(model, prompts):
        answers.add(position, found)
    return list(answers_of(answers.table()))


def answer_batches(model: Model, batches: Iterable[PromptBatch]) -> Iterator[ColumnAnswers]:
    """Answer the prompts of a probe in memory, without a run folder."""
    return map(as_answers, answer_all(model, map(as_block, batches)))


def _answers(model: Model, prompts: Sequence[Prompt]) -> dict[int, Answer]:
    return dict(one_by_one(answer(model, prompts)))


def assert_same(one: Answer, other: Answer, where: str) -> None:
    """Two answers choose alike and agree in every log-probability to 1e-4."""
    assert type(one) is type(other), f"{where}: answers of two kinds"
    if isinstance(one, Traced) and isinstance(other, Traced):
        rows = [[len(row) for row in answer.logps] for answer in (one, other)]
        assert rows[0] == rows[1], f"{where}: other tokens in the spans"
    for a, b in zip(_numbers(one), _numbers(other), strict=True):
        assert (a is None) == (b is None), f"{where}: measured in one, not in the other"
        near = a is None or b is None or abs(a - b) <= TOLERANCE * max(1.0, abs(a))
        assert near, f"{where}: log-probabilities {a} and {b}"
    if isinstance(one, Generated | Sampled):
        texts = [
            getattr(answer, "text", None) or getattr(answer, "texts", "") for answer in (one, other)
        ]
        assert texts[0] == texts[1], f"{where}: other texts, {texts[0]!r} and {texts[1]!r}"
    if isinstance(one, Filled) and isinstance(other, Filled):
        gap = one.top_logps[0] - one.top_logps[1] if len(one.top_logps) > 1 else 1.0
        assert gap < TOLERANCE or one.top[0] == other.top[0], f"{where}: another first answer"


def _numbers(given: Answer) -> list[float | None]:
    if isinstance(given, Scored):
        return [logp for row in (*given.logps, *given.suffix_logps) for logp in row]
    if isinstance(given, Traced):
        return [logp for row in given.logps for logp in row]
    if isinstance(given, Generated):
        return [*given.logps, given.end_logp]
    if isinstance(given, Sampled):
        return [log(count / sum(given.counts)) for count in given.counts]
    return [*given.top_logps, *given.watched_logps, given.mass]


def _check_shape(prompt: Prompt, given: Answer) -> None:
    if isinstance(given, Scored):
        assert given.options == getattr(prompt.want, "options", None), "other options than asked"
        assert len(given.logps) == len(given.options), "not one row per option"
        assert all(row for row in given.logps), "an option without a token"
    elif isinstance(given, Traced):
        assert len(given.logps) == len(getattr(prompt.want, "spans", ())), "not one row per span"
        assert given.logps[0], "a first span without a token"
    elif isinstance(given, Sampled):
        assert sum(given.counts) == getattr(prompt.want, "count", None), "not the count asked for"
        assert len(set(given.texts)) == len(given.texts) == len(given.counts), "a text twice"
        assert sorted(given.counts, reverse=True) == list(given.counts), "texts not in order"
        thoughts = tuple(map(len, given.thoughts))
        assert thoughts in ((), given.counts), "not one thought for each draw"
    elif isinstance(given, Generated):
        assert len(given.logps) <= getattr(prompt.want, "most", 0), "more tokens than asked for"
    else:
        assert given.watched == getattr(prompt.want, "watched", None), "other names than watched"
        assert sorted(given.top_logps, reverse=True) == list(given.top_logps), "top not in order"
    logps = [x for x in _numbers(given) if x is not None]
    assert all(x <= TOLERANCE and isfinite(x) for x in logps), "log-probabilities above 0"


def _suitable(probe: Probe) -> list[frozenset[Ability]]:
    """Each ability that is enough by itself; where none is, all of them together."""
    enough = [alone for name in ABILITIES if _suits(probe, alone := frozenset({name}))]
    every = frozenset(ABILITIES)
    if not enough and _suits(probe, every):
        return [every]
    assert enough, "no model suits the probe"
    return enough


def _suits(probe: Probe, can: frozenset[Ability]) -> bool:
    try:
        probe.suited(can)
    except AbilityError:
        return False
    return True


def _check_asking(probe: Probe, dataset: Dataset, blocks: list[Block]) -> None:
    assert blocks, "the probe asks nothing"
    again = list(blocks_of(probe.ask(dataset)))
    same = len(blocks) == len(again) and all(
        one.want == two.want and one.frame.equals(two.frame)
        for one, two in zip(blocks, again, strict=True)
    )
    assert same, "asking twice gives other prompts"
    names = [name for name in blocks[0].frame.columns if name not in ("options", "spans")]
    frame = together(
        block.frame.select(*names, want=polars.lit(type(block.want).__name__)) for block in blocks
    )
    assert not frame.is_duplicated().any(), "two prompts have the same key"


def _check_results(probe: Any, dataset: Dataset, blocks: list[Block], oracle: Model) -> None:
    """A perfect model is best, the order of answers does not matter, and numbers are numbers."""
    estimates = _estimates(probe, dataset, answer_all(oracle, blocks))
    headline, over = probe.layout.headlines[0], probe.layout.over
    metrics = {metric.id: metric for metric in probe.metrics if isinstance(metric, Metric)}
    assert headline in metrics, f"the first headline, {headline!r}, is not a metric of the probe"
    rows = estimates.filter(of="value", over=over, metric=headline)
    value = rows.filter(polars.col("group_by").list.len() == 0)["value"][0]
    best = {"higher": 1.0, "lower": 0.0, "zero": 0.0}.get(metrics[headline].better)
    assert best is None or abs(value - best) < TOLERANCE, (
        f"an oracle has {value} in {headline!r}, the first headline, not {best:g}"
    )
    shuffled = [replace(block, frame=block.frame.reverse()) for block in blocks]
    Random("order").shuffle(shuffled)
    again = _estimates(probe, dataset, answer_all(oracle, shuffled))
    digits = polars.selectors.float().round(9)
    rounded = (table.with_columns(digits) for table in (estimates, again))
    one, two = (sorted(map(str, table.iter_rows())) for table in rounded)
    assert one == two, "the estimates depend on the order of the answers"
    for table in (estimates, _estimates(probe, dataset, answer_all(majority(dataset), blocks))):
        for row in table.drop_nulls("value").iter_rows(named=True):
            assert re.fullmatch(r"[\w.\-]+", row["metric"]), f"{row['metric']!r} is an odd id"
            numbers = [row[name] for name in ("low", "value", "high") if row[name] is not None]
            assert len(numbers) in (1, 3), f"half an interval: {row}"
            assert all(map(isfinite, numbers)), f"not finite: {row}"
            assert sorted(numbers) == numbers, f"outside of its interval: {row}"
            assert row["n"] > 0, f"an average of nothing: {row}"


def _estimates(probe: Any, dataset: Dataset, answers: list[Answers]) -> polars.DataFrame:
    return estimate_results(collect_results(probe, dataset, map(as_answers, answers)))
