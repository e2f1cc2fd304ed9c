"""LPAQA: choose among given templates by how many training facts they answer.

Jiang et al. (2020). The best template alone, the average of the k best, or their average with
weights: s(y) = sum of w_i log P(y | template i), w = softmax(theta), and P(y) = softmax(s(y)), with
theta tuned by gradient on the training facts. Models are run forwards only. Knows settings; tensors
are left to the files that are imported when it is run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from sonde.core.abilities import Model, Scores
from sonde.core.components import setting
from sonde.core.errors import AbilityError
from sonde.optimise.making import Job, Made, refuse_schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Lpaqa:
    """The templates of a source that answer most training facts, alone or averaged."""

    name: ClassVar[str] = "lpaqa"

    choose: Literal["best", "average", "weighted"] = setting(
        "best", "the best template, the k best averaged, or the k best with weights that are tuned"
    )
    k: int = setting(10, "how many templates are averaged; 0: all of them", min=0)
    epochs: int = setting(10, "how often weights are tuned on every training fact", min=0)
    batch: int = setting(32, "training facts in one step of tuning weights", min=1)
    rate: float = setting(0.1, "the learning rate of the weights' logarithms")

    def refuse(self, model: Model) -> None:
        """Any model that fills or scores will do."""
        refuse_schedule(self.rate)
        if not isinstance(model, Scores):
            raise AbilityError(
                f"{model.identity.name} can neither fill a masked position nor score options, so "
                "templates cannot be measured on it"
            )

    def make(self, job: Job) -> Iterator[Made]:
        """Measure the templates of each relation and choose."""
        from sonde.optimise.lpaqa.choosing import chosen

        return chosen(self, job)


COMPONENT = Lpaqa
