"""What `sonde doctor --against` does: hold a model against a reference, for a certificate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from sonde import api
from sonde.cli.console import waiting
from sonde.cli.options import LoadOptions, option
from sonde.core.abilities import Model, abilities, prompts_as_given
from sonde.core.certificates import Certificate
from sonde.core.errors import UsageError
from sonde.core.facts import Dataset
from sonde.doctor.certify import Replies, certificate_prompts, certify
from sonde.models.load import check, examiner
from sonde.runs.certificates import is_foreign, versions
from sonde.runs.probes import find_probe


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstOptions:
    """What a model is held against, and where the certificate is written."""

    against: str = option(
        "Hold the model's numbers against those of this one, such as hf:FOLDER, and make a "
        "certificate.",
        "",
    )
    against_dtype: str = option("What the other computes in.", "float32")
    out: Path | None = option(
        "Write the certificate into this file too; runs find it without.", None, "--out", "-o"
    )

    def check(self) -> None:
        """Refuse at once a name that no model can have, and a file without a certificate in it."""
        if self.against:
            check(self.against)
        elif self.out is not None:
            raise UsageError(f"-o {self.out} is for a certificate; say --against which model")


def ask(model: Model) -> Replies:
    """What a model answers to the fixed prompts, which are the same whatever the dataset."""
    fixed = certificate_prompts(find_probe("lama")(), fixed_facts(), abilities(model))
    with waiting("asking the fixed prompts of a certificate"):
        return Replies.of(model, prompts_as_given(model, fixed))


def fixed_facts() -> Dataset:
    """What the prompts ask about."""
    return api.dataset("atlas")


def compare(asked: Replies, wanted: AgainstOptions, load: LoadOptions) -> Certificate:
    """The certificate of a model by its replies and a reference, which is loaded for it."""
    # how the model itself is reached or fetched is not how the reference is
    own = {"revision": None, "tokenizer": "", "served_model": ""}
    dtype = "auto" if is_foreign(wanted.against) else wanted.against_dtype
    chosen = replace(load, dtype=dtype, **own)  # type: ignore[arg-type]
    reference = chosen.load(wanted.against)
    with waiting(f"asking {wanted.against}"):
        return certify(asked, reference, examiner(reference), versions())
