"""Turn sentences into vectors: the mean of an encoder's last hidden states, of length one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
import transformers
from numpy.typing import NDArray

from sonde.models.torch.loading.weight_files import weight_files
from sonde.models.torch.loading.weights import explained, pretrained, read_config

if TYPE_CHECKING:
    from sonde.models.sentences import Encoder

BATCH = 64


def mean_encoder(folder: Path) -> Encoder:
    """Load a transformers folder as an encoder of sentences."""
    with explained(folder):
        weight_files(folder, read_config(folder))
        tokenizer, model, _ = pretrained(transformers.AutoModel, folder, "auto", trust=False)
    model.eval()

    def embed(texts: Sequence[str]) -> NDArray[np.floating]:
        batches = [texts[i : i + BATCH] for i in range(0, len(texts), BATCH)]
        found = []
        with torch.inference_mode():
            for batch in batches:
                inputs = tokenizer(list(batch), padding=True, truncation=True, return_tensors="pt")
                states = model(**inputs).last_hidden_state
                mask = inputs["attention_mask"].unsqueeze(-1).to(states.dtype)
                means = (states * mask).sum(1) / mask.sum(1)
                found.append(torch.nn.functional.normalize(means, dim=1).float().numpy())
        return np.concatenate(found)

    return embed
