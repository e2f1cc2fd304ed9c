"""Tiny random models on disk, the same ones for the same seed: a folder as transformers keeps it.

Two layers of width 32 and a few hundred tokens, so that a test takes milliseconds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from math import inf, nan
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from sonde.core.prompts import Fill, Hidden, Key, Prompt, Score, Trace, Want
from sonde.models.options import LoadOptions
from sonde.models.torch.loading.weights import Loaded, load_folder

SENTENCES = (
    "The capital of France is Paris.",
    "Paris is the capital of France, and Vienna that of Austria.",
    "Oslo, Vienna and New York are cities; York is another.",
    "Marie Curie was born in Warsaw in 1867.",
    "The official language of Norway is Norwegian, in New Norway too.",
    "Who wrote it? It was written in Paris (France).",
)
CITIES = ("Paris", "Vienna", "Oslo", "Warsaw", "York", "New York", "New Norway", "Par")
SIZES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}


Load = Callable[[str], Loaded]
"""Loads a tiny model by the name of its architecture."""


def loader(folder: Callable[[str], Path], device: str = "cpu") -> Load:
    """Make and load each model once, in a folder of its own."""

    @cache
    def load(kind: str) -> Loaded:
        made = {**CAUSAL, **MORE, **MASKED, **SEQ2SEQ}[kind](folder(kind))
        # named by hand, so that no hash is written to a cache that outlives the test
        return load_folder(f"hf:{kind}", made, LoadOptions(device=device), weights=kind)

    return load


def recast(loaded: Loaded, dtype: torch.dtype) -> Loaded:
    """A copy of a loaded model in another precision, where it is."""
    model = type(loaded.model)(loaded.model.config).to(loaded.device, dtype).eval()
    model.load_state_dict(loaded.model.state_dict())
    return replace(loaded, model=model, dtype=str(dtype).removeprefix("torch."))


def score(
    prefix: str,
    options: tuple[str, ...],
    suffix: str = "",
    fact: str = "f",
    *,
    capitals: bool = False,
    punctuation: bool = False,
    whole: bool = False,
    hidden: Hidden = "answer",
) -> Prompt:
    """A prompt that wants options scored."""
    ways = {"capitals": capitals, "punctuation": punctuation, "whole": whole}
    return _prompt(prefix, suffix, Score(options=options, hidden=hidden, **ways), fact)


def fill(
    prefix: str,
    suffix: str = "",
    *,
    top: int = 5,
    watched: tuple[str, ...] = (),
    vocabulary: tuple[str, ...] | None = None,
    fact: str = "f",
    capitals: bool = False,
) -> Prompt:
    """A prompt that wants a hole filled."""
    want = Fill(top=top, watched=watched, vocabulary=vocabulary, capitals=capitals)
    return _prompt(prefix, suffix, want, fact)


def trace(text: str, *spans: tuple[int, int], fact: str = "f") -> Prompt:
    """A prompt that wants parts of its text read."""
    return _prompt(text, "", Trace(spans=spans), fact)


def _prompt(prefix: str, suffix: str, want: Want, fact: str) -> Prompt:
    key = Key(fact=fact, relation="P36", template="t", subject="s")
    return Prompt(key=key, prefix=prefix, suffix=suffix, want=want)


@cache
def byte_pairs(*, mask: bool = False) -> Tokenizer:
    """Byte-level BPE as GPT-2 has it, or as RoBERTa has it with a mask that eats the space."""
    special = ["<s>", "<pad>", "</s>", "<unk>"] if mask else ["<|endoftext|>", "<|im_end|>"]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=380,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES * 3, trainer)
    if mask:
        tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True)])
        tokenizer.post_processor = processors.RobertaProcessing(
            ("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False
        )
    return tokenizer


@cache
def word_pieces() -> Tokenizer:
    """WordPiece as uncased BERT has it."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    # written down and not trained, because the trainer orders pieces differently each time
    words = sorted(set(re.findall(r"[a-z]+|[^a-z ]", " ".join(SENTENCES).lower())) - {"norwegian"})
    letters = sorted(set("".join(words)))
    pieces = [*special, *words, *letters, *(f"##{c}" for c in letters), "##way", "##gian"]
    vocabulary = {piece: id for id, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(special)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


def metaspaces() -> Tokenizer:
    """BPE as Llama 2 has it: spaces are written ▁, and what it does not know becomes bytes."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    merges = [("▁", "i"), ("▁i", "s"), ("▁", "P"), ("a", "r"), ("▁P", "ar"), ("▁Par", "is")]
    merges.insert(4, ("i", "s"))
    tokens += ["▁", *"PariscOlo", *(a + b for a, b in merges)]
    vocabulary = {token: id for id, token in enumerate(dict.fromkeys(tokens))}
    tokenizer = Tokenizer(
        models.BPE(vocabulary, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    tokenizer.add_special_tokens(["<s>", "</s>"])
    return tokenizer


def llama(folder: Path, *, seed: int = 0, opens: bool = True, **changes: Any) -> Path:
    """A causal model with two key heads for four; `opens`: its tokenizer adds <|endoftext|>."""
    config = transformers.LlamaConfig(
        **{**_causal(), "num_key_value_heads": 2, "max_position_embeddings": 128, **changes}
    )
    tokenizer = Tokenizer.from_str(byte_pairs().to_str())
    if opens:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", 0)]
        )
    return _save(folder, transformers.LlamaForCausalLM, config, tokenizer, seed, GPT)


def gpt2(folder: Path, *, seed: int = 0, **changes: Any) -> Path:
    """A causal model with learned positions; its tokenizer adds nothing."""
    config = transformers.GPT2Config(
        **{**_causal(), "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, **changes}
    )
    return _save(folder, transformers.GPT2LMHeadModel, config, byte_pairs(), seed, GPT)


def mistral(folder: Path, *, seed: int = 0, **changes: Any) -> Path:
    """A causal model whose tokens see only the four before them."""
    config = transformers.MistralConfig(
        **{**_causal(), "num_key_value_heads": 2, "sliding_window": 4, **changes}
    )
    return _save(folder, transformers.MistralForCausalLM, config, byte_pairs(), seed, GPT)


def gemma3(folder: Path, *, seed: int = 0, **changes: Any) -> Path:
    """A causal model with one layer that sees everything and one with a window of five."""
    layers = ["sliding_attention", "full_attention"]
    config = transformers.Gemma3TextConfig(
        **{**_causal(), "num_key_value_heads": 2, "head_dim": 8, "sliding_window": 5}
        | {"layer_types": layers, "query_pre_attn_scalar": 8, **changes}
    )
    return _save(folder, transformers.Gemma3ForCausalLM, config, byte_pairs(), seed, GPT)


def neox(folder: Path, *, seed: int = 0, **changes: Any) -> Path:
    """A causal model whose attention and dense layers stand side by side."""
    config = transformers.GPTNeoXConfig(**{**_causal(), "max_position_embeddings": 128, **changes})
    return _save(folder, transformers.GPTNeoXForCausalLM, config, byte_pairs(), seed, GPT)


def qwen(folder: Path, *, seed: int = 0, **changes: Any) -> Path:
    """A causal model that normalises queries and keys, with one key head for all."""
    config = transformers.Qwen3Config(
        **{**_causal(), "num_key_value_heads": 1, "head_dim": 16, **changes}
    )
    return _save(folder, transformers.Qwen3ForCausalLM, config, byte_pairs(), seed, GPT)


def mamba(folder: Path, *, seed: int = 0, **changes: Any) -> Path:
    """A state-space model: no attention, so no tree."""
    config = transformers.MambaConfig(**{**_causal(), "state_size": 4, **changes})
    return _save(folder, transformers.MambaForCausalLM, config, byte_pairs(), seed, GPT)


def bert(folder: Path, *, seed: int = 0, **changes: Any) -> Path:
    """A masked model over WordPiece."""
    size = word_pieces().get_vocab_size()
    config = transformers.BertConfig(
        **{**SIZES, "vocab_size": size, "max_position_embeddings": 64, **changes}
    )
    return _save(folder, transformers.BertForMaskedLM, config, word_pieces(), seed, BERT)


def roberta(folder: Path, *, seed: int = 0, **changes: Any) -> Path:
    """A masked model over byte-level BPE; positions are counted from 2."""
    tokenizer = byte_pairs(mask=True)
    size = tokenizer.get_vocab_size()
    ids = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
    config = transformers.RobertaConfig(
        **{**SIZES, **ids, "vocab_size": size, "max_position_embeddings": 66, **changes}
    )
    return _save(folder, transformers.RobertaForMaskedLM, config, tokenizer, seed, ROBERTA)


def convbert(folder: Path, *, seed: int = 0, **changes: Any) -> Path:
    """A masked model with convolutions, which see what stands beside a text in its row."""
    size = word_pieces().get_vocab_size()
    config = transformers.ConvBertConfig(
        **{**SIZES, "vocab_size": size, "embedding_size": 32, "max_position_embeddings": 64}
        | changes
    )
    return _save(folder, transformers.ConvBertForMaskedLM, config, word_pieces(), seed, BERT)


def t5(folder: Path, *, seed: int = 0, **changes: Any) -> Path:
    """An encoder-decoder model with a token for gaps; texts that are read end with </s>."""
    tokenizer = _read_whole(("<pad>", "</s>", "<extra_id_0>"), "$A </s>")
    sizes: dict[str, Any] = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
    ids = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
    config = transformers.T5Config(
        **{**sizes, **ids, "vocab_size": tokenizer.get_vocab_size(), **changes}
    )
    return _save(folder, transformers.T5ForConditionalGeneration, config, tokenizer, seed, T5)


def bart(folder: Path, *, seed: int = 0, **changes: Any) -> Path:
    """An encoder-decoder model with learned positions, whose texts open with a token too."""
    tokenizer = _read_whole(("<pad>", "</s>", "<s>"), "<s> $A </s>")
    sizes: dict[str, Any] = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2}
    heads = {"encoder_attention_heads": 4, "decoder_attention_heads": 4}
    wide = {"encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 64}
    ids = {"pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 2, "decoder_start_token_id": 1}
    config = transformers.BartConfig(
        **{**sizes, **heads, **wide, **ids, "vocab_size": tokenizer.get_vocab_size()}
        | {"forced_eos_token_id": None, **changes}
    )
    return _save(folder, transformers.BartForConditionalGeneration, config, tokenizer, seed, BART)


def _read_whole(special: tuple[str, ...], form: str) -> Tokenizer:
    """Byte-level BPE with the special tokens of a model that reads whole texts."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=380,
        special_tokens=list(special),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES * 3, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=form, special_tokens=[(name, i) for i, name in enumerate(special)]
    )
    return tokenizer


CAUSAL: Mapping[str, Callable[..., Path]] = {
    "llama": llama,
    "gpt2": gpt2,
    "mistral": mistral,
    "gemma3": gemma3,
    "mamba": mamba,
}
MORE: Mapping[str, Callable[..., Path]] = {"neox": neox, "qwen": qwen}
"""Further causal ones, for what depends on how attention is written."""
MASKED: Mapping[str, Callable[..., Path]] = {"bert": bert, "roberta": roberta}
SEQ2SEQ: Mapping[str, Callable[..., Path]] = {"t5": t5, "bart": bart}

GPT = {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"}
T5 = {"pad_token": "<pad>", "eos_token": "</s>"}
BART = {**T5, "bos_token": "<s>"}
BERT = {
    "unk_token": "[UNK]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
ROBERTA = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "unk_token": "<unk>",
    "pad_token": "<pad>",
    "mask_token": AddedToken("<mask>", lstrip=True, special=True),
}


Tensor = torch.Tensor


def spoiled(folder: Path, name: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Path:
    """A model with the first tensor of that name changed."""
    path = folder / "model.safetensors"
    tensors = load_file(path)
    found = next(key for key in tensors if name in key)
    tensors[found] = change(tensors[found].clone())
    save_file(tensors, path, metadata={"format": "pt"})
    return folder


def renumbered(folder: Path) -> Path:
    """A model whose tokenizer has the same tokens under other numbers."""
    path = folder / "tokenizer.json"
    written = json.loads(path.read_text())
    ids = written["model"]["vocab"]
    numbers = list(ids.values())
    ids |= dict(zip(ids, [*numbers[:10], *numbers[11:], numbers[10]], strict=True))
    path.write_text(json.dumps(written))
    return folder


def one_nan(tensor: torch.Tensor) -> torch.Tensor:
    """The first number is none."""
    tensor.view(-1)[0] = nan
    return tensor


def endless(tensor: torch.Tensor) -> torch.Tensor:
    """Every number is infinite."""
    return torch.full_like(tensor, inf)


def huge(tensor: torch.Tensor) -> torch.Tensor:
    """Sound numbers, whose sums are too large for float16."""
    return tensor * 3e4


def _causal() -> dict[str, Any]:
    ids = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None}
    return {**SIZES, **ids, "vocab_size": byte_pairs().get_vocab_size()}


def _save(
    folder: Path,
    kind: Any,
    config: Any,
    tokenizer: Tokenizer,
    seed: int,
    tokens: Mapping[str, Any],
) -> Path:
    """Write weights that are random, and large enough that answers differ clearly."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = kind(config)
        for parameter in model.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.2)
    model.save_pretrained(folder)
    wrap: Any = transformers.PreTrainedTokenizerFast
    wrap(tokenizer_object=tokenizer, **tokens).save_pretrained(folder)
    return folder
