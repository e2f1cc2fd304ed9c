"""Prompts that want texts written or drawn, and tiny models to answer them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from hypothesis import strategies as st

from sonde.core.answers import Generated, Sampled
from sonde.core.prompts import Generate, Key, Prompt, Sample
from sonde.models.torch.causal.model import CausalModel
from tests.parity.world import PREFIXES, TOLERANCE, made, with_budget
from tests.tiny import Load

Way = bool | Literal["rows"]
"""Along a tree, text by text, or as rows behind shared prefixes."""

KINDS = ("llama", "gpt2", "mistral", "gemma3")
WAYS: list[tuple[str, Way]] = [(kind, way) for kind in KINDS for way in (True, False, "rows")]
WAYS += [("mamba", False)]

# letters, because tiny random models write no lines; no end at all; and one in several tokens
UNTILS = st.sampled_from(["\n", "", "a", "e", " ", "an", "rance of"])
LONG = "Paris is the capital of France, and Vienna that of Austria. " * 2
OPENINGS = st.one_of(PREFIXES, PREFIXES.map(lambda prefix: LONG + prefix))


def write(prefix: str, most: int = 6, until: str = "", fact: str = "f", suffix: str = "") -> Prompt:
    """A prompt that wants the likeliest text."""
    want = Generate(most=most, until=until)
    return Prompt(key=key(fact), prefix=prefix, suffix=suffix, want=want)


def draw(
    prefix: str, count: int = 20, most: int = 4, until: str = "", seed: int = 0, fact: str = "f"
) -> Prompt:
    """A prompt that wants texts drawn."""
    want = Sample(count=count, most=most, until=until, seed=seed)
    return Prompt(key=key(fact), prefix=prefix, want=want)


def key(fact: str) -> Key:
    return Key(fact=fact, relation="P36", template="t", subject="s")


def causal(tiny: Load, kind: str, tree: Way = True, budget: int = 4096) -> CausalModel:
    model = made(CausalModel, with_budget(tiny(kind), budget))
    assert model.tree or not tree
    model.tree, model.rows = bool(tree), tree == "rows"
    return model


def written(model: CausalModel, prompts: Sequence[Prompt]) -> list[Generated]:
    return in_order(list(model.generate(prompts)), len(prompts))


def drawn(model: CausalModel, prompts: Sequence[Prompt]) -> list[Sampled]:
    return in_order(list(model.sample(prompts)), len(prompts))


def in_order(found: list[tuple[int, Any]], count: int) -> list[Any]:
    """The answers in the order of the prompts; each prompt has one."""
    assert sorted(i for i, _ in found) == list(range(count))
    return [answer for _, answer in sorted(found, key=lambda pair: pair[0])]


def assert_same_text(one: Generated, other: Generated) -> None:
    assert (one.text, one.finished) == (other.text, other.finished)
    assert len(one.logps) == len(other.logps)
    assert (one.end_logp is None) == (other.end_logp is None)
    first = [*one.logps, one.end_logp or 0.0]
    second = [*other.logps, other.end_logp or 0.0]
    assert np.allclose(first, second, atol=TOLERANCE), (first, second)


class Fed:
    """Counts the token positions that a model is fed."""

    def __init__(self, model: Any) -> None:
        self.sizes: list[int] = []
        self.widths: list[int] = []
        self.hook = model.register_forward_pre_hook(self.add, with_kwargs=True)

    def __enter__(self) -> Fed:
        return self

    def __exit__(self, *_: object) -> None:
        self.hook.remove()

    def add(self, _model: Any, _args: Any, given: dict[str, Any]) -> None:
        self.sizes.append(given["input_ids"].numel())
        self.widths.append(given["input_ids"].shape[1])
