"""Chat templates as families of models have them, and a small tokenizer that knows their tokens."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import transformers
from tokenizers import AddedToken, Tokenizer, normalizers, processors

from tests.tiny import byte_pairs, llama, metaspaces

CHATML = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou help.<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""SmolLM2's and Qwen's, with a system text of its own where none is given."""

LLAMA3 = (
    "{{ bos_token }}{% for message in messages %}"
    "{{ '<|head|>' + message['role'] + '<|/head|>\n\n' + message['content'] | trim + '<|eot|>' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|head|>assistant<|/head|>\n\n' }}{% endif %}"
)
"""Llama 3's: it writes the beginning of the text itself."""

LLAMA2 = (
    "{% for message in messages %}{% if message['role'] == 'system' %}"
    "{{ raise_exception('System role not supported') }}{% elif message['role'] == 'user' %}"
    "{{ bos_token + '[INST] ' + message['content'] | trim + ' [/INST]' }}"
    "{% else %}{{ ' ' + message['content'] | trim + ' ' + '<|eot|>' }}{% endif %}{% endfor %}"
)
"""Mistral's and Llama 2's: no system text, and an answer begins with a space."""

GEMMA = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}"
    "{{ raise_exception('System role not supported') }}{% endif %}{% for message in messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Roles must alternate') }}{% endif %}"
    "{% set role = 'model' if message['role'] == 'assistant' else message['role'] %}"
    "{{ '<|head|>' + role + '\n' + message['content'] | trim + '<|eot|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|head|>model\n' }}{% endif %}"
)

QWEN3 = (
    "{% for message in messages %}{% set said = message['content'] %}"
    "{% if message['role'] == 'assistant' and '</think>' in said %}"
    "{% set said = said.split('</think>')[-1].lstrip('\n') %}{% endif %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + said + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
    "{% if enable_thinking is defined and enable_thinking is false %}"
    "{{ '<think>\n\n</think>\n\n' }}{% endif %}{% endif %}"
)
"""Qwen 3's: the assistant thinks first, unless it is told not to; thoughts of others are cut."""

R1 = (
    "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}"
    "{{ '<|head|>' + message['content'] }}{% else %}"
    "{{ '<|/head|>' + message['content'] + '<|eot|>' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|/head|><think>\n' }}{% endif %}"
)
"""DeepSeek-R1's: the template itself opens what the assistant thinks."""

VICUNA = (
    "{% for message in messages %}"
    "{{ ('USER: ' if message['role'] == 'user' else 'ASSISTANT: ') + message['content'] + '\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ 'ASSISTANT:' }}{% endif %}"
)
"""One without any special token."""

DATED = "{{ 'Today is ' + strftime_now('%d %b %Y') + '.\n' }}" + CHATML
"""Llama 3.2's way: the day stands before everything."""

TEMPLATES = {
    "chatml": CHATML,
    "llama3": LLAMA3,
    "llama2": LLAMA2,
    "gemma": GEMMA,
    "qwen3": QWEN3,
    "r1": R1,
    "vicuna": VICUNA,
}
SYSTEMLESS = ("llama2", "gemma")
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|head|>", "<|/head|>", "<|eot|>")


def backend(kind: str = "bytes") -> Tokenizer:
    """A tokenizer with every token that a template writes; it opens texts by itself."""
    tokenizer = metaspaces() if kind == "pieces" else byte_pairs()
    tokenizer = Tokenizer.from_str(tokenizer.to_str())
    if kind == "normalised":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in SPECIAL])
    first = ("<|endoftext|>", tokenizer.token_to_id("<|endoftext|>"))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|endoftext|> $A", special_tokens=[first]
    )
    return tokenizer


@cache
def tokenizer(name: str, kind: str = "bytes", more: tuple[str, ...] = ()) -> Any:
    """The same as transformers has it, with a chat template and `more` tokens, not special ones."""
    wrap: Any = transformers.PreTrainedTokenizerFast
    made = wrap(
        tokenizer_object=backend(kind), bos_token="<|endoftext|>", eos_token="<|endoftext|>"
    )
    made.add_tokens(list(more))
    made.chat_template = {**TEMPLATES, "dated": DATED}[name]
    return made


def chat_model(
    folder: Path, name: str = "chatml", *, seed: int = 0, more: tuple[str, ...] = ()
) -> Path:
    """A tiny causal model with a chat template, on disk."""
    made = tokenizer(name, more=more)
    llama(folder, seed=seed, vocab_size=len(made), max_position_embeddings=512)
    made.save_pretrained(folder)
    return folder
