"""New models of either kind, how they read a batch, and the folders they are kept in.

Knows transformers; nothing of worlds.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer

from sonde.core.files import PARTIAL
from sonde.core.fingerprints import draw_key
from sonde.lab.training.tokens import PAD, wrapped
from sonde.lab.training.train import CONTEXT, TrainSettings, shape
from sonde.lab.worlds.truth import Kind

WEIGHTS = "model.safetensors"


def new_model(settings: TrainSettings, tokenizer: Tokenizer) -> Any:
    """A model with random weights, drawn by the seed."""
    config = _config(settings, tokenizer)
    classes: Mapping[Kind, Any] = {
        "causal": transformers.LlamaForCausalLM,
        "masked": transformers.BertForMaskedLM,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(draw_key(settings.seed, "weights") >> 1)
        return classes[settings.kind](config)


def loss_of(model: Any, kind: Kind, ids: Any, labels: Any) -> Any:
    """The mean loss of a batch, in nats a token that is to be told."""
    if kind == "causal":
        logits = model(input_ids=ids, use_cache=False).logits
        return _cross_entropy(logits.flatten(0, 1), labels.flatten())
    hidden = model.bert(input_ids=ids, attention_mask=(ids != PAD).long()).last_hidden_state
    holes = labels >= 0
    return _cross_entropy(model.cls(hidden[holes]), labels[holes])  # the head at holes alone


def keep(model: Any, tokenizer: Tokenizer, kind: Kind, folder: Path) -> None:
    """Write a model into a folder, file by file whole or not at all."""
    partial = folder / f"model{PARTIAL}"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    model.save_pretrained(partial)
    wrap: Any = transformers.PreTrainedTokenizerFast
    limit: Mapping[str, Any] = {"model_max_length": CONTEXT[kind]}
    wrap(**wrapped(tokenizer, kind), **limit).save_pretrained(partial)
    for file in sorted(partial.iterdir()):
        with file.open("rb") as written:
            os.fsync(written.fileno())
        file.replace(folder / file.name)
    partial.rmdir()


def _cross_entropy(logits: Any, labels: Any) -> Any:
    return torch.nn.functional.cross_entropy(logits.float(), labels)


def _config(settings: TrainSettings, tokenizer: Tokenizer) -> Any:
    width, layers = shape(settings.size)
    common: dict[str, Any] = {
        "vocab_size": tokenizer.get_vocab_size(),
        "hidden_size": width,
        # three matrices of a causal layer are as many weights as two of a masked one
        "intermediate_size": width * 8 // 3 // 16 * 16 if settings.kind == "causal" else 4 * width,
        "num_hidden_layers": layers,
        "num_attention_heads": max(1, width // (32 if width <= 256 else 64)),
        "max_position_embeddings": CONTEXT[settings.kind],
        "pad_token_id": PAD,
        "tie_word_embeddings": True,
    }
    if settings.kind == "causal":
        start = tokenizer.token_to_id("<s>")
        return transformers.LlamaConfig(**common, bos_token_id=start, eos_token_id=start)
    return transformers.BertConfig(
        **common, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, type_vocab_size=1
    )
