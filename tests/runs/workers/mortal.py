"""`mortal:FILE`: a model from another package that ends its process, or waits, where a file says.

The file is JSON: {"model": REFERENCE, "what": {FACT: N}}. `dies` and `waits`: before a shard that
holds the fact is answered, the first N times; `fails`: with a sentence. Under `load` it is while
the model is loaded. `differs`: each process has weights of its own. Marks beside the file say
what has happened, in whichever process.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from sonde.core.abilities import KeepsCache, Model
from sonde.core.errors import ModelError
from sonde.core.facts import Dataset
from sonde.core.prompts import Prompt
from sonde.models.load import load
from sonde.models.options import LoadOptions

FOR_EVER = 3600.0


class Mortal:
    """Answers as another model does, as long as it lives."""

    def __init__(self, plan: Path, inner: Any, asks: dict[str, Any]) -> None:
        self.plan, self.inner, self.asks = plan, inner, asks
        self.identity = inner.identity
        if asks.get("differs"):
            self.identity = replace(inner.identity, weights=f"those of {os.getpid()}")
        if hasattr(inner, "budgets"):
            self.budgets = inner.budgets
        for name in ("score", "fill"):
            if hasattr(inner, name):
                setattr(self, name, self._answer(name))

    def reset_cache(self) -> None:
        if isinstance(self.inner, KeepsCache):
            self.inner.reset_cache()

    def _answer(self, name: str) -> Any:
        def answer(prompts: Sequence[Prompt]) -> Iterator[Any]:
            for fact in {prompt.key.fact for prompt in prompts}:
                befall(self.plan, self.asks, fact)
            yield from getattr(self.inner, name)(prompts)

        return answer


def befall(plan: Path, asks: dict[str, Any], fact: str) -> None:
    """Let happen what the plan has for a fact."""
    if marked(plan, "dies", fact, asks.get("dies", {}).get(fact, 0)):
        os.kill(os.getpid(), signal.SIGKILL)
    if marked(plan, "waits", fact, asks.get("waits", {}).get(fact, 0)):
        time.sleep(FOR_EVER)
    if fact in asks.get("fails", {}):
        raise ModelError(f"{fact} is more than this model can bear; ask about another fact")


def marked(plan: Path, what: str, fact: str, times: int) -> bool:
    """Make the next mark, if there are fewer than so many."""
    for number in range(times):
        with suppress(FileExistsError):
            with mark(plan, what, fact, number).open("x") as file:
                file.write(str(os.getpid()))
            return True
    return False


def mark(plan: Path, what: str, fact: str, number: int = 0) -> Path:
    """The file that says that something has happened, and in which process."""
    return plan.with_name(f"{plan.stem}-{what}-{fact.replace(':', '-')}-{number}")


class MortalScheme:
    """Names the file with the plan."""

    name: ClassVar[str] = "mortal"
    usage: ClassVar[str] = "mortal:FILE"
    summary: ClassVar[str] = "dies"

    def load(self, rest: str, options: LoadOptions, dataset: Dataset | None) -> Model:
        asks = json.loads(Path(rest).read_text())
        befall(Path(rest), asks, "load")
        return Mortal(Path(rest), load(asks["model"], options, dataset), asks)


COMPONENT = MortalScheme()
