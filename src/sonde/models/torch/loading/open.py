"""Open a model folder as the kind of model it is."""

from __future__ import annotations

from pathlib import Path

from sonde.models.options import LoadOptions
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.loading.weights import explained, kind_of, load_folder, read_config
from sonde.models.torch.masked.model import MaskedModel
from sonde.models.torch.seq2seq.model import Seq2SeqModel


def open_model(
    name: str, folder: Path, options: LoadOptions
) -> CausalModel | MaskedModel | Seq2SeqModel:
    """A causal, a masked or an encoder-decoder model, as config.json says."""
    kind = kind_of(read_config(folder))
    loaded = load_folder(name, folder, options)
    with explained(folder):
        if kind == "causal":
            return CausalModel(loaded)
        return MaskedModel(loaded) if kind == "masked" else Seq2SeqModel(loaded)
