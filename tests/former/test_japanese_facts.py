"""Japanese facts of BMLAMA and mParaRel, put by four probes to a model that knows them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import sonde as api
from sonde.core.errors import MissingExtra
from sonde.core.facts import Dataset, Selection
from sonde.core.prompts import blocks_of, prompts_of
from sonde.data import catalog
from sonde.prompting import segmenting
from sonde.testing import answer_all, oracle_for

QUESTIONS = ("[X]の首都はどこですか？[Y]。", "[X]の首都の名前は何ですか？[Y]。")
SOURCES = {"bmlama": "bmlama17", "mpararel": "mpararel"}
WORDS = {"language": "auto" if find_spec("sudachipy") else "none"}
PROBES: dict[str, dict[str, Any]] = {
    "belief": {"answer": "score", "draws": 50},
    "belief-icl": {"samples": 0, "templates": "all", "draws": 50, **WORDS},
    "ic-lke": {"n": 5},
    "monitor": {"shots": 2, "frame": "qa"},
}


@pytest.fixture(scope="module", params=SOURCES)
def capitals(request: pytest.FixtureRequest, shared: Path) -> dict[bool, Dataset]:
    """Some capitals, in the set's own sentences and, under True, as questions."""
    whole = catalog.load(f"{request.param}:{shared / 'data' / SOURCES[request.param]}")
    asked = catalog.reworded(whole, [f"P36.ja={text}" for text in QUESTIONS])
    some = Selection(relations=("P36.ja",), limit=4)
    return {False: whole.select(some), True: asked.select(some)}


@pytest.mark.shared
@pytest.mark.parametrize("name", PROBES)
def test_a_model_that_knows_japanese_facts_is_right(
    capitals: dict[bool, Dataset], name: str
) -> None:
    data = capitals[name == "monitor"]
    assert {relation.language for relation in data.asked_relations()} == {"ja"}
    probe = api.probe(name, **PROBES[name])
    blocks = list(blocks_of(probe.ask(data)))
    texts = [prompt.prefix for prompt in prompts_of(blocks)]
    assert not any("Q:" in text or "A:" in text for text in texts)
    if name in ("monitor", "belief-icl"):
        assert all(text.endswith("\n答え：") for text in texts)
    judged = probe.read(data, answer_all(oracle_for(data), blocks)).judged
    assert judged is not None and judged.grid.right.all() and len(judged.pairs) == 4


@pytest.mark.shared
def test_without_a_segmenter_nothing_is_asked(
    capitals: dict[bool, Dataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segmenting, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'sonde\[ja\]'"):
        next(iter(api.probe("belief-icl", samples=0, templates="all").ask(capitals[False])))
    next(iter(api.probe("ic-lke", n=5).ask(capitals[False])))  # compares no words
