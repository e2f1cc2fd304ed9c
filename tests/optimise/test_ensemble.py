"""An ensemble answers the sentences it has templates for, and nothing as its base model would."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sonde.core.answers import Filled
from sonde.core.columns import one_by_one
from sonde.core.errors import PromptError
from sonde.core.facts import Template
from sonde.core.prompts import Prompt
from sonde.data.vocabulary import trial
from sonde.models.torch.by_relation import ensemble
from sonde.probes.belief import Belief
from sonde.probes.ic_lke import IcLke
from sonde.probes.lama import Lama
from sonde.runs.run import run
from tests.rows import asked as asked_of

from .world import answers, dataset, opened

Folders = Callable[[str], Path]
TEXTS = ("The capital of [X] is [Y] .", "[X] , and [Y] that of it .")
WEIGHTS = (0.75, 0.25)
TEMPLATES = tuple(Template(id=f"e{i}", text=text) for i, text in enumerate(TEXTS))


def together(base: Any, relation: str = "P36") -> Any:
    members = tuple(zip(TEMPLATES, WEIGHTS, strict=True))
    return ensemble("ensemble:prompts", base, {relation: members})


def logps(answer: Any) -> Any:
    """The log-probability of each option, or of each watched name that is one token."""
    if isinstance(answer, Filled):
        return np.array([-np.inf if x is None else x for x in answer.watched_logps])
    after = answer.suffix_logps or ((),) * len(answer.logps)
    return np.array([sum(a) + sum(b) for a, b in zip(answer.logps, after, strict=True)])


def averaged(base: Any, asked: Sequence[Prompt]) -> list[Any]:
    """What the base model gives when it is asked under each template, weighed."""
    found: list[Any] = [0.0] * len(asked)
    for template, weight in zip(TEMPLATES, WEIGHTS, strict=True):
        sides = [template.fill(prompt.key.subject) for prompt in asked]
        pairs = zip(asked, sides, strict=True)
        under = [replace(prompt, prefix=a, suffix=b) for prompt, (a, b) in pairs]
        for i, answer in enumerate(answers(base, under)):
            found[i] = found[i] + weight * logps(answer)
    return found


def assert_averaged(base: Any, asked: Sequence[Prompt]) -> None:
    for found, expected in zip(
        answers(together(base), list(asked)), averaged(base, asked), strict=True
    ):
        one = logps(found)
        known = np.isfinite(one)
        shift = (one - expected)[known]  # what fills a hole is made a distribution again
        assert known.any()
        assert np.allclose(shift, shift[0] if isinstance(found, Filled) else 0, atol=1e-4)


@pytest.mark.parametrize(("name", "way"), [("bert", "fill"), ("gpt2", "score")])
def test_sentences_about_facts_are_answered_under_all_templates(
    name: str, way: Any, folder: Folders
) -> None:
    base = opened(folder(name))
    assert_averaged(base, asked_of(Lama(answer=way), dataset("P36")))
    assert_averaged(base, asked_of(Belief(answer=way, bias=False), dataset("P36")))


@pytest.mark.parametrize(("name", "way"), [("bert", "fill"), ("gpt2", "score")])
def test_so_are_sentences_about_subjects_that_say_nothing(
    name: str, way: Any, folder: Folders
) -> None:
    asked = [p for p in asked_of(Belief(answer=way), dataset("P36")) if not p.key.fact]
    assert [prompt.key.subject for prompt in asked] == ["N/A", "", "?"]
    assert_averaged(opened(folder(name)), asked)


def test_in_context_estimation_is_refused_before_a_folder_is_made(
    folder: Folders, tmp_path: Path
) -> None:
    base = opened(folder("gpt2"))
    with pytest.raises(PromptError, match=r"single sentences.*cannot stand behind examples") as e:
        run(IcLke(shots=2), together(base), dataset("P36"), tmp_path / "run")
    assert base.identity.name in str(e.value)
    assert not (tmp_path / "run").exists()


def test_what_is_no_sentence_of_a_template_is_refused_when_it_is_asked(folder: Folders) -> None:
    base = opened(folder("bert"))
    model = together(base)
    with pytest.raises(PromptError, match="cannot stand behind examples"):
        list(one_by_one(model.score(asked_of(IcLke(shots=2), dataset("P36")))))
    with pytest.raises(PromptError, match="single sentences"):
        list(one_by_one(model.fill([trial(("Paris", "Oslo"), frozenset({"fill"}))])))


def test_the_name_filter_asks_in_its_own_words_and_is_refused(
    folder: Folders, tmp_path: Path
) -> None:
    model = together(opened(folder("bert")), "P19")
    run(Lama(), model, dataset("P19"), tmp_path / "string")
    with pytest.raises(PromptError, match="single sentences"):
        run(Lama(uhn="names"), model, dataset("P19"), tmp_path / "names")
    assert not (tmp_path / "names").exists()


def test_a_relation_without_templates_is_refused_before_a_folder_is_made(
    folder: Folders, tmp_path: Path
) -> None:
    with pytest.raises(PromptError, match="no templates for relation 'P19'"):
        run(Lama(), together(opened(folder("bert"))), dataset(), tmp_path / "run")
    assert not (tmp_path / "run").exists()
