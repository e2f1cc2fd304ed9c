"""What must be known before runs are compared: how else than by their models they differ.

Knows how runs were made, nothing of their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from sonde.analysis.runs import Compared
from sonde.core.words import counted, listed

WAYS = {"filled": "filled in a word", "scored": "chose among options", "written": "wrote a text"}


def cares(runs: Sequence[Compared]) -> Iterator[str]:
    """A sentence for each thing that keeps runs from being the same question to other models."""
    yield from _differ(
        runs,
        lambda run: run.made.probe,
        "They are runs of different probes",
        "which ask in different ways",
    )
    yield from _differ(
        runs,
        lambda run: WAYS[run.judged.way],
        "They answered in different ways",
        "which differ in what counts as right and as sure",
    )
    yield from _vocabularies(runs)
    yield from _settings(runs)
    yield from _differ(
        runs,
        lambda run: run.dataset,
        "Their datasets are not the same",
        "and only facts of the same id, subject and answers in the same words are compared",
    )
    yield from _options(runs)
    yield from _differ(
        runs,
        lambda run: run.made.version,
        "They were made by different versions of sonde",
        "which may ask or judge differently",
    )
    for why, names in _by_value(runs, lambda run: run.made.numerics).items():
        yield f"The numbers of {listed(names)} are not known to be the model's own: {why}."


def _by_value(runs: Sequence[Compared], of: Callable[[Compared], str]) -> Mapping[str, list[str]]:
    """The runs of each value, as far as it is known."""
    found: dict[str, list[str]] = {}
    for run in runs:
        if value := of(run):
            found.setdefault(value, []).append(run.name)
    return found


def _differ(
    runs: Sequence[Compared], of: Callable[[Compared], str], what: str, so: str
) -> Iterator[str]:
    values = _by_value(runs, of)
    if len(values) > 1:
        told = "; ".join(f"{listed(names)}: {value}" for value, names in values.items())
        yield f"{what} ({told}), {so}."


def _vocabularies(runs: Sequence[Compared]) -> Iterator[str]:
    """Where a mask is filled, a model can answer with single tokens of its own alone."""
    filled = [run for run in runs if run.judged.way == "filled"]
    tokenizers = _by_value(filled, lambda run: run.made.tokenizer)
    if len(tokenizers) > 1:
        told = "; ".join(listed(names) for names in tokenizers.values())
        yield (
            f"They fill a mask from different vocabularies ({told}), so that each may answer with "
            "words that another cannot; a common vocabulary (sonde data convert --vocabulary) "
            "makes them alike."
        )


def _settings(runs: Sequence[Compared]) -> Iterator[str]:
    """Settings that differ; of runs of one probe."""
    if len({run.made.probe for run in runs}) > 1:
        return
    keys = dict.fromkeys(key for run in runs for key in run.made.settings)
    apart = {key: [run.made.settings.get(key, "–") for run in runs] for key in keys}
    told = [f"{key} {' / '.join(v)}" for key, v in apart.items() if len(set(v)) > 1]
    if told:
        yield (
            f"They were asked or read with different settings ({', '.join(told)}), so that the "
            "difference is of these as much as of the models."
        )


def _options(runs: Sequence[Compared]) -> Iterator[str]:
    """Relations in which runs had other answers to choose from."""
    known = [run.made.offered for run in runs if run.made.offered]
    shared = [id for id in known[0] if all(id in of for of in known)] if known else []
    apart = [id for id in shared if len({of[id] for of in known}) > 1]
    if apart:
        yield (
            "They had different answers to choose from in "
            f"{counted(len(apart), 'relation', 'relations')} ({listed(apart)}), which makes it "
            "easier for one than for another."
        )
