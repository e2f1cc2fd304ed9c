"""`sonde doctor`: does sonde talk to this model correctly, on this data?"""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer

from sonde.cli.console import output, print_json, waiting
from sonde.cli.run import (
    Bos,
    Data,
    Device,
    Drop,
    Dtype,
    Guesser,
    Model,
    Relations,
    Revision,
    Seed,
    Set,
    Split,
    Tokens,
    Trust,
    Wording,
    pairs,
)
from sonde.core.abilities import Probe, abilities
from sonde.core.errors import ModelError, UsageError
from sonde.core.repeats import refuse_repeats
from sonde.core.settings import build, parse
from sonde.doctor.diagnose import diagnose
from sonde.doctor.findings import Diagnosis, counted
from sonde.doctor.sample import sample, wants
from sonde.runs.run import find_probe


def doctor(
    model: Model,
    data: Data = "atlas",
    wording: Wording = None,
    drop_guessable: Drop = None,
    guesser: Guesser = None,
    probe: Annotated[str, typer.Option(help="The probe whose prompts are looked at.")] = "lama",
    limit: Annotated[int, typer.Option(help="Facts looked at per relation.", min=1)] = 2,
    relations: Relations = "",
    split: Split = "test",
    seed: Seed = 0,
    device: Device = "auto",
    dtype: Dtype = "auto",
    batch_tokens: Tokens = None,
    bos: Bos = "auto",
    revision: Revision = None,
    trust_remote_code: Trust = False,
    set: Set = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every finding as JSON.")] = False,
) -> None:
    """Check that sonde talks to a model correctly.

    Looks at the tokens around the answer, at whether log-probabilities are alive, and at the fast
    path beside the naive one. Ends with exit code 4 if there is a fault.

    Example: sonde doctor -m smollm2 -d atlas --relations P36,P30
    """
    from sonde import api
    from sonde.models.examine import examiner

    if bos not in ("auto", "always", "never"):
        raise UsageError(f"--bos must be auto, always or never; not {bos!r}")
    kind = find_probe(probe)
    chosen: Probe = build(kind, parse(kind, pairs(set or [])))
    wanted = tuple(name for name in relations.split(",") if name)
    with waiting(f"opening {data}"):
        dataset = api.dataset(
            data,
            split=split,
            relations=wanted,
            seed=seed,
            wording=wording or (),
            drop_guessable=drop_guessable,
            guesser=guesser,
            device=device,
        )
        refuse_repeats(dataset, dataset.asked_relations())
    with waiting(f"loading {model} (the first time takes longest)"):
        loaded = api.model(
            model,
            data=dataset,
            device=device,
            dtype=dtype,
            revision=revision,
            bos=cast(Any, bos),
            batch_tokens=batch_tokens,
            trust_remote_code=trust_remote_code,
        )
    with waiting("looking at prompts, one text at a time"):
        can = abilities(loaded)
        prompts = sample(chosen.suited(can), dataset, limit)
        if not prompts:
            raise UsageError(f"probe {probe!r} finds nothing to ask in dataset {dataset.name!r}")
        found = diagnose(loaded, examiner(loaded), wants(prompts, dataset, can))
    show(found, loaded.identity, dataset.name, as_json=as_json)


def show(found: Diagnosis, identity: Any, data: str, *, as_json: bool) -> None:
    """Print what was found; a fault ends the command with a model's exit code."""
    from sonde.cli import diagnosis

    if as_json:
        print_json(diagnosis.as_json(found, identity, data))
    else:
        diagnosis.show(found, identity, data, output())
    if found.faults:
        names = "; ".join(finding.check for finding in found.faults)
        raise ModelError(
            f"{identity.name} on {data}: {counted(len(found.faults), 'fault')} ({names}). Do not "
            "trust numbers from this model before that is settled"
        )
