"""Datasets, models and probes by name, for use from Python."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sonde.compare import compare as compare
from sonde.core.abilities import Model, Probe
from sonde.core.certificates import Certificate
from sonde.core.components import build
from sonde.core.facts import Dataset, Selection
from sonde.core.reports import Report
from sonde.data import catalog
from sonde.models import load as models
from sonde.models.options import BosChoice, ChatChoice, ExampleChoice, LoadOptions
from sonde.probes import PROBES
from sonde.runs.run import load_on

if TYPE_CHECKING:
    from sonde.data.tables.columns import Given
    from sonde.runs.guessing import Guessable


def dataset(
    reference: str | Path,
    *,
    split: str = "test",
    relations: tuple[str, ...] = (),
    limit: int | None = None,
    seed: int = 0,
    template: str | Sequence[str] = (),
    columns: Given | None = None,
    languages: tuple[str, ...] = (),
    drop_guessable: Guessable | None = None,
    guesser: Model | str | None = None,
    device: str = "auto",
) -> Dataset:
    """Open a dataset: a bundled name, a folder, a table; `limit`: the most facts per relation.

    `template`, such as "The capital of [X] is [Y]." or lpaqa:FOLDER, or several of them, are
    templates that take the place of the dataset's own. `columns` of a table says which is what:
    {"subject": "Wine", "object": ["Region", "Grape"]}. `languages`, such as ("en", "fr"): only
    relations in these are asked. `drop_guessable` leaves out facts that can
    be guessed from names, judged for `names` by the masked model `guesser`, loaded on `device`.
    """
    selection = Selection(split=split, relations=tuple(relations), limit=limit, seed=seed)
    whole = whole_dataset(
        reference, template, columns, drop_guessable, guesser, device, tuple(relations)
    )
    return whole.select(selection).in_languages(languages)


def whole_dataset(
    reference: str | Path,
    template: str | Sequence[str] = (),
    columns: Given | None = None,
    drop_guessable: Guessable | None = None,
    guesser: Model | str | None = None,
    device: str = "auto",
    relations: tuple[str, ...] = (),
) -> Dataset:
    """A dataset as `dataset` opens it, with nothing selected."""
    load = partial(catalog.load, str(reference), template, columns, relations)
    if not drop_guessable and not guesser:
        return load()
    from sonde.runs.guessing import open_unguessable

    return open_unguessable(load, drop_guessable, guesser, device)


def card(
    data: Dataset | str | Path, *, split: str = "test", alike: float = 0.8, seed: int = 0
) -> Report:
    """The card of a dataset, as `sonde data card` writes it.

    What it holds, what leaks, what is there twice, and what can be guessed of the facts of `split`;
    `alike` is the share of character trigrams that near-duplicates have in common.
    """
    from sonde.cards import report

    whole = data if isinstance(data, Dataset) else whole_dataset(data)
    return report.card(whole, split=split, alike=alike, seed=seed)


def model(
    reference: str,
    *,
    data: Dataset | None = None,
    device: str = "auto",
    dtype: str = "auto",
    revision: str | None = None,
    bos: BosChoice = "auto",
    batch_tokens: int | None = None,
    workers: int | None = None,
    trust_remote_code: bool = False,
    device_map: str = "",
    max_memory: str = "",
    tokenizer: str = "",
    served_model: str = "",
    concurrency: int = 8,
    server_retries: int = 5,
    server_backoff: float = 1.0,
    server_timeout: float = 600.0,
    server_wait: float = 300.0,
    on: str = "",
    chat: ChatChoice = "never",
    chat_system: str = "",
    chat_examples: ExampleChoice = "turns",
    chat_thinking: int = 0,
) -> Model:
    """Load a model, such as hf:FOLDER, smollm2 or control:majority (which needs `data`).

    `on`: workers that load it each, such as "local:2"; what stands for them answers whole runs.
    """
    options = LoadOptions(
        device=device,
        dtype=dtype,
        revision=revision,
        bos=bos,
        batch_tokens=batch_tokens,
        workers=workers,
        trust_remote_code=trust_remote_code,
        device_map=device_map,
        max_memory=max_memory,
        tokenizer=tokenizer,
        served_model=served_model,
        concurrency=concurrency,
        server_retries=server_retries,
        server_backoff=server_backoff,
        server_timeout=server_timeout,
        server_wait=server_wait,
        chat=chat,
        chat_system=chat_system,
        chat_examples=chat_examples,
        chat_thinking=chat_thinking,
    )
    return load_on(reference, on, options, data)


def certify(
    model: Model | str,
    against: Model | str,
    *,
    load: LoadOptions | None = None,
    against_dtype: str = "float32",
    out: str | Path | None = None,
) -> Certificate:
    """Hold a model's numbers against those of a reference, as `sonde doctor --against` does.

    Models that are given by their names are loaded one after the other as `load` says, the
    reference in `against_dtype`. The certificate is kept where runs of the model find it, and in
    the file `out`.
    """
    from sonde.runs import certificates, certifying

    file = certificates.file_named(out)
    if isinstance(against, str):
        models.check(against)
    asked = certifying.ask(models.load(model, load) if isinstance(model, str) else model)
    if isinstance(against, str):  # only now: it needs the room of the other
        how = certifying.as_reference(load or LoadOptions(), against, against_dtype)
        against = models.load(against, how)
    made = certifying.compare(asked, against)
    certificates.keep(made, file)
    return made


def probe(name: str, **settings: Any) -> Probe:
    """A probe by name, with its settings as keywords."""
    return cast(Probe, build(PROBES.find(name), settings))
