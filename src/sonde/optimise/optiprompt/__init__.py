"""OptiPrompt: vectors in the place of a prompt's words, found by gradient; the model is frozen.

Zhong, Friedman and Chen (2021). The loss is the cross-entropy of the object over all tokens of the
model, as their code has it; dev facts are judged over the answers allowed. Knows settings; tensors
are left to the files that are imported when it is run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from sonde.core.abilities import Model
from sonde.core.components import setting
from sonde.optimise.making import Job, Made, refuse_schedule, refuse_without_gradients


@dataclass(frozen=True, slots=True, kw_only=True)
class OptiPrompt:
    """Vectors in the place of words, found by gradient while the model stays frozen."""

    name: ClassVar[str] = "optiprompt"

    vectors: int = setting(5, "how many vectors stand between subject and answer", min=1)
    start: Literal["random", "manual"] = setting(
        "random", "begin with random vectors, or with a vector per token of the first template"
    )
    epochs: int = setting(10, "how often every training fact is seen; 0 leaves the start", min=0)
    batch: int = setting(16, "training facts of a relation in one step", min=1)
    rate: float = setting(3e-3, "the highest learning rate")
    warmup: float = setting(0.1, "share of the steps in which the rate rises")
    checks: int = setting(3, "how often in an epoch dev facts are looked at", min=1)
    patience: int = setting(
        0, "end a relation after so many looks at dev facts without a gain; 0: never", min=0
    )
    softmax: Literal["model", "allowed"] = setting(
        "model", "the loss is over every token of the model, or over the answers allowed"
    )
    together: int = setting(
        0, "relations trained side by side; 0: all of them on a GPU, four on a CPU", min=0
    )

    def refuse(self, model: Model) -> None:
        """Only a model with weights that reads one text has gradients to follow."""
        refuse_schedule(self.rate, self.warmup)
        refuse_without_gradients(model, "no prompt can be trained on it")

    def make(self, job: Job) -> Iterator[Made]:
        """Train the relations in groups, each group side by side."""
        from sonde.optimise.optiprompt.vectors import trained

        return trained(self, job)


COMPONENT = OptiPrompt
