"""How much templates differ, by hand-countable sentences."""

from __future__ import annotations

from collections import Counter
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonde.core.errors import MissingExtra
from sonde.data.statistics import lexical, parser, semantic, syntactic, tree_distance
from tests import worlds

EDGES = st.lists(st.sampled_from([("V", "s", "N"), ("V", "o", "N"), ("N", "d", "D")]), max_size=5)


relation = partial(worlds.relation, "P1")


def test_lexical_diversity_is_the_mean_distance_of_word_sets() -> None:
    # {x, is, in, y}, the same, {x, lies, in, y}: distances 0, 2/5, 2/5
    found = lexical([relation("[X] is in [Y].", "[Y] IS in [X]?", "[X] lies in [Y]")])
    assert found.estimate.value == pytest.approx(0.8 / 3)


def test_a_relation_with_one_template_is_not_measured() -> None:
    assert lexical([relation("[X] is [Y].")]).estimate.value is None


def test_words_of_scripts_without_spaces_have_no_lexical_diversity() -> None:
    japanese = relation("[X]は[Y]にあります。", "[X]の国は[Y]です。")
    found = lexical([japanese])
    assert found.estimate.value is None and "without spaces" in found.reason
    mixed = lexical([japanese, relation("[X] [Y]", "[X] a b [Y]")])
    assert (mixed.estimate.value, mixed.estimate.n) == (0.5, 1)
    assert lexical([relation("[X] is [Y].")]).reason == ""


def test_relations_count_the_same_however_many_templates_they_have() -> None:
    alike = relation("[X] is [Y].", "[X] is [Y]!", "[X] is [Y]?")
    found = lexical([alike, relation("[X] [Y]", "[X] a b [Y]")])
    assert (found.estimate.value, found.estimate.n) == (0.25, 2)


@settings(max_examples=50)
@given(EDGES, EDGES)
def test_tree_distance_is_symmetric_between_0_and_1_and_0_for_equal_trees(
    a: list[tuple[str, str, str]], b: list[tuple[str, str, str]]
) -> None:
    one, other = Counter(a), Counter(b)
    assert tree_distance(one, other) == tree_distance(other, one)
    assert 0 <= tree_distance(one, other) <= 1
    assert (tree_distance(one, other) == 0) == (one == other)


def test_an_encoder_and_a_parser_see_names_in_the_slots() -> None:
    seen: list[str] = []

    def embed(texts: object) -> np.ndarray:
        seen.extend(texts)  # type: ignore[arg-type]
        return np.array([[0.0, 3.0], [4.0, 0.0]])

    assert semantic([relation("[X] in [Y]", "[X] at [Y]")], embed).estimate.value == 5
    assert seen == ["Alpha in Beta", "Alpha at Beta"]


def test_a_real_parser_tells_a_passive_from_an_active() -> None:
    try:
        parse = parser()
    except MissingExtra as missing:
        pytest.skip(str(missing))
    same = relation("[X] wrote [Y].", "[X] made [Y].")
    turned = relation("[X] wrote [Y].", "[Y] was written by [X].")
    assert syntactic([same], parse).estimate.value == 0
    assert (syntactic([turned], parse).estimate.value or 0) > 0.3
