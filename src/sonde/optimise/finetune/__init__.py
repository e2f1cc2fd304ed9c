"""Fine-tuning: every weight of the model follows the gradient, for each relation by itself.

The template is the relation's first. Of a random model it is the control that shows how much can be
learned from the training facts alone. Knows settings; tensors are left to the files that are
imported when it is run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast

from sonde.core.abilities import Model
from sonde.core.components import setting
from sonde.core.errors import ModelError, UsageError
from sonde.optimise.making import Job, Made, refuse_schedule, refuse_without_gradients


@dataclass(frozen=True, slots=True, kw_only=True)
class FineTune:
    """All weights of the model, trained for each relation with its first template."""

    name: ClassVar[str] = "finetune"

    epochs: int = setting(10, "how often every training fact is seen; 0 leaves the start", min=0)
    batch: int = setting(2, "training facts of a relation in one step", min=1)
    rate: float = setting(2e-6, "the highest learning rate")
    warmup: float = setting(0.1, "share of the steps in which the rate rises")
    decay: float = setting(0.0, "weight decay of AdamW")
    checks: int = setting(1, "how often in an epoch dev facts are looked at", min=1)
    patience: int = setting(
        0, "end a relation after so many looks at dev facts without a gain; 0: never", min=0
    )
    softmax: Literal["model", "allowed"] = setting(
        "model", "the loss is over every token of the model, or over the answers allowed"
    )
    keep: Literal["float16", "float32", "nothing"] = setting(
        "float16", "how the change of each weight is kept; finetuned:FOLDER needs it"
    )
    together: int = setting(
        0, "relations trained side by side; 0: as many as a GPU holds, one on a CPU", min=0
    )

    def refuse(self, model: Model) -> None:
        """Only a model with weights that reads one text can be trained here."""
        refuse_schedule(self.rate, self.warmup)
        if self.decay < 0:
            raise UsageError(f"setting decay must not be negative, found {self.decay}")
        refuse_without_gradients(model, "it cannot be fine-tuned")
        from sonde.models.torch.loading.spread import is_spread
        from sonde.models.torch.loading.weights import refuse_fixed

        loaded = cast(Any, model).loaded
        refuse_fixed(loaded, "finetune", "fine-tuned")
        if is_spread(loaded.model):
            raise ModelError(
                f"finetune: {loaded.name} is spread over several devices, and copies of its "
                "weights are trained on one; leave out --device-map"
            )

    def make(self, job: Job) -> Iterator[Made]:
        """Train the relations in groups, each group side by side."""
        from sonde.optimise.finetune.tuning import tuned

        return tuned(self, job)


COMPONENT = FineTune
