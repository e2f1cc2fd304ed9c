"""Whether a text's log-probabilities depend on what else is in the batch, by how weights are held.

transformers is asked text by text and with all texts padded to one batch; sonde as it always is.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

import sonde
from benchmarks.common import Result, parser, tell
from sonde.core.columns import one_by_one
from sonde.core.prompts import Key, Prompt, Score
from sonde.engine.encode import Span
from sonde.models.torch import reference
from sonde.models.torch.causal.model import CausalModel

NAME = "few_bits"
PLACES = ("France", "Norway", "Italy", "Japan", "Peru")
OPTIONS = (" Paris", " Oslo", " Rome", " Tokyo", " Lima")
WORDINGS = ("The capital of {} is", "{} is a country whose largest and best known city is called")


def prompts() -> list[Prompt]:
    return [
        Prompt(
            key=Key(fact=place, relation="P36", template=wording, subject=place),
            prefix=wording.format(place),
            want=Score(options=OPTIONS),
        )
        for wording in WORDINGS
        for place in PLACES
    ]


def ways() -> dict[str, Any]:
    """The ways to hold weights that can be opened here."""
    bits: Any = transformers.BitsAndBytesConfig
    found: dict[str, Any] = {"float32": None}
    if find_spec("bitsandbytes"):
        found["bitsandbytes, 8 bits"] = bits(load_in_8bit=True)
        found["bitsandbytes, 4 bits (nf4)"] = bits(load_in_4bit=True, bnb_4bit_quant_type="nf4")
    if find_spec("torchao"):
        from torchao.quantization import Int8WeightOnlyConfig

        ao: Any = transformers.TorchAoConfig
        found["torchao, int8 weights"] = ao(Int8WeightOnlyConfig())
    return found


def held(plain: Path, folder: Path, config: Any, device: str) -> Path:
    """The model with its weights held so, as transformers saves it."""
    if config is None:
        return plain
    auto: Any = transformers.AutoModelForCausalLM
    model = auto.from_pretrained(
        plain, quantization_config=config, dtype=torch.float32, device_map={"": device}
    )
    model.save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(plain).save_pretrained(folder)
    return folder


@torch.inference_mode()
def padded(net: Any, spans: Sequence[Span]) -> list[float]:
    """Log-probabilities of the answers' tokens, all texts in one batch."""
    width = max(len(span.ids) for span in spans)
    ids = torch.tensor([[*span.ids, *[0] * (width - len(span.ids))] for span in spans])
    kept = torch.tensor([[1] * len(s.ids) + [0] * (width - len(s.ids)) for s in spans])
    logits = net(ids.to(net.device), attention_mask=kept.to(net.device)).logits.float()
    table = torch.log_softmax(logits, -1).cpu()
    pairs = [(k, i) for k, span in enumerate(spans) for i in range(span.start, span.stop)]
    return [float(table[k, i - 1, spans[k].ids[i]]) for k, i in pairs]


def flat(answers: Any) -> list[float]:
    found = dict(one_by_one(answers))
    return [logp for i in sorted(found) for own in found[i].logps for logp in own]


def measured(folder: Path, device: str) -> dict[str, np.ndarray]:
    """What each way of asking gives the same tokens."""
    model = sonde.model(f"hf:{folder}", device=device, dtype="auto")
    assert isinstance(model, CausalModel)
    asked, encoder, net = prompts(), model.encoder, model.model
    spans = [span for prompt in asked for span in encoder.encode(prompt.prefix, OPTIONS, "")]
    return {
        "alone": np.array(flat(reference.score_causal(net, encoder, asked))),
        "padded": np.array(padded(net, spans)),
        "sonde": np.array(flat(model.score(asked))),
    }


def apart(one: np.ndarray, other: np.ndarray) -> str:
    found = np.abs(one - other)
    return f"{found.max():.2g} ({found.mean():.2g})"


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--device", default="cpu", help="cpu or cuda (cpu)")
    chosen = options.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder, exact = Path(name), np.zeros(0)
        base: Any = sonde.model("smollm2", device="cpu", dtype="float32")
        base.model.save_pretrained(folder / "plain")
        base.loaded.tokenizer.save_pretrained(folder / "plain")
        for number, (way, config) in enumerate(ways().items()):
            there = held(folder / "plain", folder / str(number), config, chosen.device)
            found = measured(there, chosen.device)
            exact = exact if len(exact) else found["alone"]
            against = [found["padded"], found["sonde"], exact]
            rows.append((way, *(apart(found["alone"], other) for other in against)))
    title = "Nats a token, largest (mean), from transformers text by text (SmolLM2-135M)"
    columns = ("", "transformers, padded", "sonde", "float32, text by text")
    tell(Result(name=NAME, title=title, columns=columns, rows=tuple(rows)), write=chosen.write)


if __name__ == "__main__":
    main()
