"""`sonde data vocabulary`: the words that are one token for several models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sonde.cli.console import say, waiting
from sonde.core.abilities import abilities
from sonde.core.errors import AbilityError, StoreError, UsageError
from sonde.core.facts import Dataset
from sonde.data import catalog
from sonde.data.vocabulary import common, single, trial, words_of
from sonde.runs.run import answer


def vocabulary(
    models: Annotated[
        list[str], typer.Option("--model", "-m", help="A model; give it once for each of several.")
    ],
    data: Annotated[str, typer.Option("--data", "-d", help="The dataset whose words are tried.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write, a word a line.")],
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Write the dataset's words that are one token in every model, for fair comparison.

    Example: sonde data vocabulary -m hf:./bert -m hf:./roberta -d lama:./LAMA -o words.txt
    """
    if out.exists():
        raise UsageError(f"{out} is there; name a new file")
    dataset = catalog.load(data)
    words = words_of(dataset)
    known: dict[str, frozenset[str]] = {}
    for model in dict.fromkeys(models):
        known[model] = _single(model, words, device, dataset)
        say(f"{model}: {len(known[model]):,} of {len(words):,} words are one token")
    kept = common(words, known)
    try:
        out.write_text("".join(f"{word}\n" for word in kept), encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{out} cannot be written: {error.strerror or error}") from error
    say(f"{out}: {len(kept):,} words")


def _single(model: str, words: tuple[str, ...], device: str, dataset: Dataset) -> frozenset[str]:
    from sonde import api

    with waiting(f"loading {model}"):
        loaded = api.model(model, data=dataset, device=device)
    if not loaded.identity.tokenizer:
        raise AbilityError(f"{model} has no tokens, so no word of it is one token; leave it out")
    [(_, found)] = answer(loaded, [trial(words, abilities(loaded))])
    return single(found)
