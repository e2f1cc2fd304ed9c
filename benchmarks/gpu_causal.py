"""Benchmark (d), second half: 100 options behind 600 tokens through a Llama-2-7B shape on a GPU.

Random weights in the shape of Llama-2-7B, bfloat16; prompts as IC-LKE asks them: pairs of the
bundled `atlas` as prefix, the same for every fact, then the subject, then each of 100 options. The
alternative is plain batches with the full context, every option a row.
"""

from __future__ import annotations

import time
from itertools import chain
from random import Random
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

import sonde
from benchmarks.common import Positions, Result, parser, tell
from sonde.core.columns import one_by_one
from sonde.core.prompts import Key, Prompt, Score
from sonde.engine.encode import lengthened
from sonde.engine.token_tree import merge
from sonde.models.options import LoadOptions
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.causal.token_tree import row_logps
from sonde.models.torch.loading.weights import Loaded

LENGTH = 600
OPTIONS = 100


def main() -> None:
    """Measure and tell."""
    options = parser(__doc__ or "")
    options.add_argument("--facts", type=int, default=400)
    options.add_argument("--batch-tokens", type=int, default=None)
    chosen = options.parse_args()
    facts = [
        f for r in sonde.dataset("atlas").relations for f in sonde.dataset("atlas").facts(r.id)
    ]
    wrapped = tokenizer([f"{f.subject.name} {o.name}" for f in facts for o in f.objects])
    model = CausalModel(llama(wrapped, LoadOptions(batch_tokens=chosen.batch_tokens)))
    prompts = asked(facts, wrapped, chosen.facts)
    list(one_by_one(model.score(prompts[:50])))
    torch.cuda.synchronize()
    with Positions(model.model.model) as fed:
        began = time.perf_counter()
        found = dict(one_by_one(model.score(prompts)))
        took = (time.perf_counter() - began) / len(prompts)
    branches = [model.branches(prompt) for prompt in prompts]
    nodes = sum(len(merge(b.spans).ids) for b in branches) / len(branches)
    whole = merge([lengthened(span, b.head) for b in branches for span in b.spans])
    spans = [lengthened(span, branches[0].head) for span in branches[0].spans]
    texts = [(span.ids, tuple(range(span.start, span.end))) for span in spans]
    rows: list[float] = []
    for _ in range(2):
        torch.cuda.synchronize()
        began = time.perf_counter()
        parts = [row_logps(model.model, texts[i : i + 50])() for i in range(0, OPTIONS, 50)]
        rows = [logp for part in parts for logp in part.tolist()]
        plain = time.perf_counter() - began
    pairs = zip(rows, chain.from_iterable(found[0].logps), strict=True)
    apart = max(abs(a - b) for a, b in pairs)
    result = Result(
        name="gpu_causal",
        title=f"{OPTIONS} options behind {LENGTH} tokens, Llama-2-7B shape",
        columns=("what", "facts", "ms/fact"),
        rows=(
            ("sonde, text in, answers out", str(len(prompts)), f"{took * 1000:.2f}"),
            ("batches of 50 rows with full context", "1", f"{plain * 1000:.0f}"),
        ),
        findings=(
            f"{torch.cuda.get_device_name()}, bfloat16; {nodes:.0f} nodes behind each subject; "
            f"{fed.count:,} positions fed, {len(whole.ids):,} distinct nodes of all texts",
            f"largest difference in log p of an option's token on the first fact, both in "
            f"bfloat16: {apart:.3f}",
        ),
    )
    tell(result, write=chosen.write)


def tokenizer(lines: list[str]) -> Any:
    """Byte-level BPE over the dataset's own names, no larger than Llama-2's."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=8000,
        special_tokens=["<s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(lines, trainer)
    wrap: Any = transformers.PreTrainedTokenizerFast
    return wrap(tokenizer_object=made, bos_token="<s>", eos_token="<s>")


def llama(wrapped: Any, options: LoadOptions) -> Loaded:
    """Random weights in the shape of Llama-2-7B, made on the GPU."""
    config = transformers.LlamaConfig(
        vocab_size=32000,
        hidden_size=4096,
        intermediate_size=11008,
        num_hidden_layers=32,
        num_attention_heads=32,
        max_position_embeddings=4096,
    )
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        net: Any = transformers.LlamaForCausalLM(config)
    torch.set_default_dtype(torch.float32)
    return Loaded(
        name="llama-2-7b shape",
        model=net.eval(),
        tokenizer=wrapped,
        weights="random",
        device="cuda",
        dtype="bfloat16",
        options=options,
        context=4096,
        vocabulary=32000,
    )


def asked(facts: list[Any], wrapped: Any, count: int) -> list[Prompt]:
    """The same pairs before every subject, the same options behind it."""
    draw = Random("benchmark")
    prefix = ""
    for fact in draw.sample(facts, len(facts)):
        if len(wrapped(prefix).input_ids) >= LENGTH:
            break
        prefix += f"{fact.subject.name} {fact.objects[0].name} "
    names = list(dict.fromkeys(o.name for fact in facts for o in fact.objects))
    want = Score(options=tuple(draw.sample(names, OPTIONS)))
    return [
        Prompt(
            key=Key(fact=fact.id, relation="all", template="pairs", subject=fact.subject.name),
            prefix=f"{prefix}{fact.subject.name} ",
            want=want,
        )
        for fact in draw.sample(facts, count)
    ]


if __name__ == "__main__":
    main()
