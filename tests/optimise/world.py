"""A world small enough to learn: most subjects of a relation share their object.

Models are the tiny ones, random, so that all they get right they get from training.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import transformers
from tokenizers import Tokenizer, normalizers

from sonde.core.columns import one_by_one
from sonde.core.facts import Dataset, Fact, Template
from sonde.core.prompts import Cloze, Fill, Key, Prompt, Score
from sonde.models.load import load
from sonde.models.options import LoadOptions
from tests import tiny, worlds
from tests.worlds import dataset_of, relation, template

FIRST = ("Marie", "New", "Who", "France", "Austria", "It")
SECOND = ("Curie", "Norway", "York", "is", "capital", "language", "cities", "born", "Norwegian")
TEXTS = {"P36": "The capital of [X] is [Y] .", "P19": "[X] was born in [Y] ."}
OBJECTS = {"P36": ("Paris", "Vienna"), "P19": ("Warsaw", "York")}
SPLITS = ("train",) * 6 + ("dev",) * 2 + ("test",)


def dataset(*relations: str, vocabulary: tuple[str, ...] | None = None) -> Dataset:
    """Both relations, or those named."""
    ids = relations or tuple(TEXTS)
    held = (fact for id in ids for fact in facts(id))
    made = dataset_of(held, *(relation(id, template(f"{id}-own", TEXTS[id])) for id in ids))
    return replace(made, vocabulary=vocabulary)


def changed(data: Dataset, relation: str, instead: Iterable[Fact]) -> Dataset:
    """The dataset with other facts of one relation."""
    kept = tuple(instead)
    return replace(data, read=lambda id: kept if id == relation else data.read(id))


def facts(relation: str) -> tuple[Fact, ...]:
    """54 facts: six of nine to train on, two for development; one in five has the rarer object."""
    often, seldom = OBJECTS[relation]
    pairs = enumerate(product(FIRST, SECOND))
    return tuple(
        fact(relation, f"{a} {b}", seldom if i % 5 == 0 else often, SPLITS[i % len(SPLITS)])
        for i, (a, b) in pairs
    )


def opposed(right: str, wrong: str) -> Dataset:
    """P36 where dev facts have another object than training facts: to learn is to get worse."""
    objects = {"train": wrong, "dev": right, "test": right}
    given = [fact("P36", f.subject.name, objects[f.split], f.split) for f in facts("P36")]
    return changed(dataset("P36", vocabulary=(right, wrong)), "P36", given)


def fact(relation: str, subject: str, object: str, split: str) -> Fact:
    return worlds.fact(relation, subject, object, id=f"{relation}:{subject}", split=split)


def opened(folder: Path, dtype: str = "float32") -> Any:
    """A model out of a folder, on the CPU."""
    return load(f"hf:{folder}", LoadOptions(device="cpu", dtype=dtype))


def prompts(model: Any, template: Template, subjects: Iterable[str]) -> list[Prompt]:
    """What LAMA would ask: a hole to fill, or objects to score."""
    cities = ("Paris", "Vienna", "Warsaw", "New York")
    want = Fill(top=5, watched=cities) if hasattr(model, "fill") else Score(options=cities)
    found = []
    for subject in subjects:
        prefix, suffix = template.fill(subject)
        key = Key(fact=subject, relation="P36", template=template.id, subject=subject)
        cloze = Cloze(relation="P36", subject=subject)
        found.append(Prompt(key=key, prefix=prefix, suffix=suffix, want=want, cloze=cloze))
    return found


def answers(model: Any, asked: list[Prompt]) -> list[Any]:
    """The model's answers, in order."""
    ask = model.fill if hasattr(model, "fill") else model.score
    return [answer for _, answer in sorted(one_by_one(ask(asked)), key=lambda pair: pair[0])]


def metaspace_llama(folder: Path, *, legacy: bool = False) -> Path:
    """A causal model whose tokenizer writes spaces as ▁; `legacy`: before every part of a text."""
    tokenizer = Tokenizer.from_str(tiny.metaspaces().to_str())
    if legacy:
        steps = [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
        tokenizer.normalizer = normalizers.Sequence(steps)
        tokenizer.pre_tokenizer = None
    size = tokenizer.get_vocab_size()
    tiny.llama(folder, vocab_size=size)
    wrap: Any = transformers.PreTrainedTokenizerFast
    wrap(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>").save_pretrained(folder)
    return folder
