"""Make a model's certificate: what it answers to fixed prompts, held against a reference."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from sonde.core.abilities import Model, abilities, prompts_as_given
from sonde.core.certificates import Certificate
from sonde.core.facts import Dataset
from sonde.data import catalog
from sonde.doctor.certify import Replies, certificate_prompts, certify
from sonde.models.load import examiner
from sonde.probes import PROBES
from sonde.runs.certificates import is_foreign, versions

Options = TypeVar("Options")


def fixed_facts() -> Dataset:
    """What the prompts ask about, whatever the dataset of a run."""
    return catalog.load("atlas")


def ask(model: Model) -> Replies:
    """What a model answers to the fixed prompts; it may be dropped then."""
    fixed = certificate_prompts(PROBES["lama"](), fixed_facts(), abilities(model))
    return Replies.of(model, prompts_as_given(model, fixed))


def as_reference(load: Options, reference: str, dtype: str) -> Options:
    """How a reference is loaded beside a model that is loaded so: in a dtype of its own.

    How the model itself is reached or fetched is not how the reference is.
    """
    own = {"revision": None, "tokenizer": "", "served_model": ""}
    return replace(load, dtype="auto" if is_foreign(reference) else dtype, **own)  # type: ignore[type-var]


def compare(asked: Replies, reference: Model) -> Certificate:
    """The certificate of a model by its replies, which a reference is asked for too."""
    return certify(asked, reference, examiner(reference), versions())
