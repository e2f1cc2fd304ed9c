"""Write a tiny Llama as a GGUF file, as llama.cpp's converter would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import torch
import transformers

from tests.tiny import byte_pairs

NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def write_gguf(
    path: Path,
    folder: Path,
    *,
    adds_bos: bool | None = None,
    without: str = "",
    form: str = "F32",
) -> Path:
    """The tiny Llama of a folder in GGUF, matrices in a form such as Q8_0; one can be left out."""
    model: Any = transformers.LlamaForCausalLM.from_pretrained(folder)
    writer = gguf.GGUFWriter(path, "llama")
    _settings(writer, model.config)
    _tokenizer(writer)
    if adds_bos is not None:
        writer.add_add_bos_token(adds_bos)
    for name, weight in model.state_dict().items():
        if _name(name) != without:
            kind = gguf.GGMLQuantizationType[form if weight.dim() > 1 else "F32"]
            values = gguf.quants.quantize(_permuted(name, weight, model.config).numpy(), kind)
            writer.add_tensor(_name(name), values, raw_dtype=kind)
    return _close(writer, path)


def write_header(path: Path, *, kind: str, pre: str = "", adds_bos: bool | None = None) -> Path:
    """A GGUF file with nothing but what tells whether texts open with a token."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(kind)
    if pre:
        writer.add_tokenizer_pre(pre)
    if adds_bos is not None:
        writer.add_add_bos_token(adds_bos)
    return _close(writer, path)


def _settings(writer: Any, config: Any) -> None:
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
    writer.add_vocab_size(config.vocab_size)


def _tokenizer(writer: Any) -> None:
    body = json.loads(byte_pairs().to_str())
    vocabulary = byte_pairs().get_vocab()
    special = {token["id"] for token in body["added_tokens"]}
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([control if i in special else normal for i in range(len(tokens))])
    writer.add_token_merges([" ".join(pair) for pair in body["model"]["merges"]])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)


def _name(name: str) -> str:
    if name.startswith("model.layers."):
        number, _, rest = name.removeprefix("model.layers.").partition(".")
        return f"blk.{number}.{NAMES[rest.removesuffix('.weight')]}.weight"
    whole = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    return whole[name.removesuffix(".weight")] + ".weight"


def _permuted(name: str, weight: torch.Tensor, config: Any) -> torch.Tensor:
    """Queries and keys with their halves interleaved, as llama.cpp rotates them."""
    heads = {
        "q_proj": config.num_attention_heads,
        "k_proj": config.num_key_value_heads,
    }.get(name.split(".")[-2])
    if heads is None:
        return weight
    split = weight.reshape(heads, 2, weight.shape[0] // heads // 2, weight.shape[1])
    return split.swapaxes(1, 2).reshape(weight.shape).contiguous()


def _close(writer: Any, path: Path) -> Path:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
