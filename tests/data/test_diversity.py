"""How much templates differ, by hand-countable sentences."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sonde
from sonde.core.errors import MissingExtra, UsageError
from sonde.core.prompts import blocks_of
from sonde.data.statistics import (
    lexical,
    named_counts,
    parser,
    relation_counts,
    semantic,
    spoken,
    syntactic,
    totals,
    tree_distance,
    words,
)
from sonde.models.load import encoder
from tests import worlds

EDGES = st.lists(st.sampled_from([("V", "s", "N"), ("V", "o", "N"), ("N", "d", "D")]), max_size=5)


relation = partial(worlds.relation, "P1")


def test_what_is_counted_is_what_belief_asks_also_of_facts_with_dates() -> None:
    ann, more = worlds.entity("Ann", id="a"), worlds.entity("Ann", "A. Roe", id="a")
    told = [("1", ann, "Reds", "2010"), ("2", ann, "Blues", "2011"), ("3", more, "Reds", "2011")]
    own = [replace(worlds.fact("P1", of, club, id=id), date=date) for id, of, club, date in told]
    own += [worlds.fact("P1", worlds.entity("Bob", "Bo"), "Reds"), worlds.fact("P1", "Cy", "Reds")]
    data = worlds.dataset_of(own, relation("[X] plays for [Y].", "[X] is of [Y]."))
    counted = totals(relation_counts(data))
    blocks = list(blocks_of(sonde.probe("belief", answer="score", bias=False).ask(data)))
    facts = {fact for block in blocks for fact in block.frame["fact"]}
    assert counted["subject-relation pairs"] == len(facts) == 4
    assert counted["prompts"] == sum(map(len, blocks)) == (1 + 2 + 2 + 1) * 2
    assert counted["unique triples"] == 4


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


def test_a_language_with_a_segmenter_has_words() -> None:
    pytest.importorskip("sudachipy")
    texts = ("[X]の首都は[Y]です。", "[X]の都は[Y]です。")
    japanese = replace(relation(*texts), language="ja")
    assert {"[x]", "[y]", "首都"} <= words(texts[0], "ja")
    found = lexical([japanese])
    assert 0 < (found.estimate.value or 0) < 1 and found.reason == ""


def test_relations_count_the_same_however_many_templates_they_have() -> None:
    alike = relation("[X] is [Y].", "[X] is [Y]!", "[X] is [Y]?")
    found = lexical([alike, relation("[X] [Y]", "[X] a b [Y]")])
    assert (found.estimate.value, found.estimate.n) == (0.25, 2)


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


def test_every_slot_counts_as_a_word_and_is_spoken_as_a_name() -> None:
    text = "In [T], [X] was [details.role] of [Y]."
    assert words(text) >= {"[t]", "[x]", "[details.role]", "[y]"}
    assert spoken(text) == "In 2000, Alpha was Gamma of Beta."


def test_a_parser_that_is_not_there_is_named() -> None:
    with pytest.raises(MissingExtra, match=r"spacy|neither an installed spaCy pipeline"):
        parser("no_such_pipeline")


def test_any_model_can_embed_templates_on_its_own_scale(tmp_path: Path) -> None:
    from tests.tiny import bert

    embed = encoder(f"hf:{bert(tmp_path / 'bert')}")
    alone, together = embed(["Alpha lies in Beta."]), embed(["Alpha lies in Beta.", "Beta."])
    assert np.allclose(alone[0], together[0], atol=1e-5), "what else is embedded changes nothing"
    assert not np.isclose(np.linalg.norm(alone[0]), 1)
    with pytest.raises(UsageError, match="hf:FOLDER"):
        encoder("bert")


def test_subjects_and_objects_are_counted_once_whatever_their_relation() -> None:
    peru = worlds.entity("Peru", "Republic of Peru", id="Q419")
    lima = worlds.entity("Lima", "City of Kings", id="Q2868")
    facts = [
        worlds.fact("P1", peru, lima, "Cusco"),
        worlds.fact("P2", worlds.entity("Peru", id="Q419"), "Cusco"),
        worlds.fact("P2", "Chile", "Santiago"),
    ]
    assert named_counts(worlds.dataset_of(facts)) == {
        "subjects": 2,
        "subjects with several names": 1,
        "objects": 3,
        "objects with several names": 1,
    }
