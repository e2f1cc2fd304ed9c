"""AutoPrompt: trigger tokens between subject and answer, exchanged one at a time by gradient.

Shin et al. (2020). The gradient of the loss tells, to first order, what each token of the
vocabulary would change in a trigger's place; the most promising are tried on other facts, and the
best stays if it lowers the loss there. Knows settings; tensors are left to the files that are
imported when it is run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from sonde.core.abilities import Model
from sonde.core.components import setting
from sonde.optimise.making import Job, Made, refuse_without_gradients


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoPrompt:
    """Tokens of the vocabulary between subject and answer, found by following gradients."""

    name: ClassVar[str] = "autoprompt"

    triggers: int = setting(5, "how many tokens stand between subject and answer", min=1)
    iterations: int = setting(1000, "how often a trigger is looked at; 0 leaves the start", min=0)
    batch: int = setting(
        56, "training facts of a relation that give the gradient, and as many to try on", min=1
    )
    candidates: int = setting(10, "tokens that are tried in a trigger's place each time", min=1)
    form: Literal["text", "vectors"] = setting(
        "text",
        "use words that can be written down, or any token, kept as a vector of a soft prompt",
    )
    together: int = setting(
        0, "relations searched side by side; 0: all of them on a GPU, four on a CPU", min=0
    )

    def refuse(self, model: Model) -> None:
        """Only a model with weights that reads one text has gradients to follow."""
        refuse_without_gradients(model, "no triggers can be searched on it")

    def make(self, job: Job) -> Iterator[Made]:
        """Search for the relations in groups, each group side by side."""
        from sonde.optimise.autoprompt.search import searched

        return searched(self, job)


COMPONENT = AutoPrompt
