"""Options scored as rows of trees get what each gets as a text of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.prompts import Prompt
from sonde.engine.tree_rows import TreeRows
from sonde.models.torch.causal import model as causal_model
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.causal.rows import farthest, tree_row_logps, why_not_rows
from sonde.models.torch.causal.token_tree import prefill, prefill_rows
from sonde.models.torch.reference import score_causal
from sonde.runs.shards import answer as answered
from tests.parity.world import (
    BUDGETS,
    PREFIXES,
    PROMPTS,
    SENTENCES,
    answers,
    assert_same,
    made,
    with_budget,
)
from tests.tiny import CITIES, Load, recast, score

KINDS = ("llama", "gpt2", "neox", "qwen", "mistral", "gemma3")
EXAMPLES = "Paris is the capital of France, Oslo that of Norway, Vienna of Austria, and York "
"""Long enough for a prefix that several prompts share."""

PREFIXED = st.tuples(st.sampled_from(["", EXAMPLES]), PREFIXES).map("".join)
MIXED = st.lists(
    st.builds(
        score, PREFIXED, st.sampled_from([CITIES, CITIES[2:5], ("Paris is", "Par is", "of")])
    ),
    min_size=1,
    max_size=6,
)


def by_rows(tiny: Load, kind: str, budget: int = 4096, enough: int = 10**9) -> CausalModel:
    model = made(CausalModel, with_budget(tiny(kind), budget))
    model.rows, model.enough = True, enough
    return model


@pytest.mark.parametrize("kind", KINDS)
@given(
    prompts=st.one_of(PROMPTS, SENTENCES, MIXED),
    budget=st.sampled_from(BUDGETS),
    enough=st.sampled_from([1, 100, 10**9]),
)
def test_rows_and_the_tree_and_the_reference_agree(
    tiny: Load, kind: str, prompts: list[Prompt], budget: int, enough: int
) -> None:
    model = by_rows(tiny, kind, budget, enough)
    expected = dict(score_causal(model.model, model.encoder, prompts))
    found = answers(model, prompts)
    model.rows = False
    for i, (rows, tree) in enumerate(zip(found, answers(model, prompts), strict=True)):
        assert_same(rows, expected[i])
        assert_same(rows, tree)


@pytest.mark.parametrize("kind", KINDS[:4])
def test_families_without_a_window_take_rows(tiny: Load, kind: str) -> None:
    assert why_not_rows(tiny(kind).model) == ""


def works(model: CausalModel, prompts: list[Prompt]) -> list[type]:
    passes = model.score_passes([model.branches(prompt) for prompt in prompts])
    return [type(step.work) for step in passes]


def test_texts_that_reach_beyond_a_window_go_as_trees(tiny: Load) -> None:
    model = by_rows(tiny, "mistral")
    assert farthest(model.model) == 4
    short, far = score("", ("Paris", "Oslo")), score(EXAMPLES, CITIES)
    assert works(model, [short]) == [TreeRows]
    assert TreeRows not in works(model, [far])
    assert works(by_rows(tiny, "llama"), [short, far]) == [TreeRows]


def test_rows_may_be_wider_than_the_longest_text_of_a_model(tiny: Load) -> None:
    model = by_rows(tiny, "gpt2")
    long = "Paris is the capital of France (Oslo) " * 6
    many = tuple(f"{city} is {number}" for city in CITIES[:4] for number in ("18", "67"))
    prompts = [score(f"New {long}", many), score(f"York {long}", ("Oslo",))]
    (step,) = model.score_passes([model.branches(prompt) for prompt in prompts])
    assert isinstance(step.work, TreeRows) and step.work.ids.shape[1] > model.loaded.context
    expected = dict(score_causal(model.model, model.encoder, prompts))
    for i, answer in enumerate(answers(model, prompts)):
        assert_same(answer, expected[i])


@pytest.mark.parametrize("kind", KINDS)
def test_prefixes_computed_together_are_those_computed_alone(tiny: Load, kind: str) -> None:
    model = tiny(kind).model
    prefixes = [tuple(range(3, 3 + n)) for n in (16, 2, 9)]
    for ids, together in zip(prefixes, prefill_rows(model, prefixes), strict=True):
        for one, other in zip(prefill(model, ids), together, strict=True):
            for a, b in zip(one, other, strict=True):
                torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_a_dry_run_counts_the_rows_that_are_fed(tiny: Load) -> None:
    model = by_rows(tiny, "llama", 64)
    prompts = [score(EXAMPLES + f"{name} is ", CITIES) for name in CITIES]
    (cost,) = model.estimate_costs([prompts])
    fed: list[int] = []
    hook = model.model.get_input_embeddings().register_forward_pre_hook(
        lambda _, args: fed.append(args[0].numel())
    )
    answers(model, prompts)
    hook.remove()
    assert sum(fed) == sum(each.computed + each.padding for each in cost.costs)
    assert len(fed) >= 3


def test_where_memory_runs_out_smaller_passes_follow(
    tiny: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = by_rows(tiny, "llama")
    prompts = [score(EXAMPLES + f"{name} is ", CITIES) for name in CITIES]
    expected = answers(model, prompts)
    sizes: list[int] = []

    def scarce(net: object, rows: TreeRows, prefixes: object) -> object:
        sizes.append(rows.ids.size)
        if rows.ids.size > 40:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return tree_row_logps(net, rows, prefixes)  # type: ignore[arg-type]

    monkeypatch.setattr(causal_model, "tree_row_logps", scarce)
    for one, other in zip(answers(model, prompts), expected, strict=True):
        assert_same(one, other)
    assert max(sizes) > 40 >= min(sizes)
    assert model.budgets["score"].tokens <= 40


def test_rows_in_double_precision_are_the_tree_to_the_last_digits(tiny: Load) -> None:
    prompts = [score(EXAMPLES + f"{name} is ", CITIES) for name in CITIES[:3]]
    model = CausalModel(recast(tiny("llama"), torch.float64))
    tree = answers(model, prompts)
    model.rows = True
    for one, other in zip(answers(model, prompts), tree, strict=True):
        assert_same(one, other, 1e-7)


def test_a_shard_is_answered_alike_whatever_was_answered_before_it(tiny: Load) -> None:
    model = by_rows(tiny, "llama")
    other = EXAMPLES.replace("Paris", "Madrid").replace("France", "Spain")
    shards = [
        [score(f"{begin}{name} is", CITIES, fact=name) for begin in some for name in CITIES]
        for some in ([EXAMPLES], [EXAMPLES, other])
    ]
    together, computed = model.prefixes.together, list[int]()

    def noted(several: Sequence[tuple[int, ...]]) -> Any:
        computed.append(len(several))
        return together(several)

    model.prefixes.together = noted
    list(answered(model, shards[1]))
    alone = computed.copy()
    list(answered(model, shards[0]))
    computed.clear()
    list(answered(model, shards[1]))
    assert alone == computed == [2]  # what is computed together decides how it is rounded
