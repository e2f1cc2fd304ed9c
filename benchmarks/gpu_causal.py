"""Benchmark (d), second half: whole runs of `ic-lke` on a GPU, and 100 options behind 600 tokens.

A whole run goes from a loaded model to a finished folder: all test facts of the bundled `atlas`,
fifty other facts before each, its options behind it; with SmolLM2 and with random weights in the
shape of Llama-2-7B, both in bfloat16. The alternative is plain batches with the full context, every
option a row, at the best of several batch sizes, on some of the same facts. The last two rows have
no folder: the same 600 tokens before every subject and the same 100 options behind it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

import sonde
from benchmarks.common import Positions, Result, best_of, parser, tell
from sonde.core.columns import one_by_one
from sonde.core.facts import Dataset
from sonde.core.prompts import Key, Prompt, Score, prompts_of
from sonde.engine.encode import CausalEncoder, lengthened
from sonde.models.options import LoadOptions
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.causal.token_tree import row_logps
from sonde.models.torch.loading.weights import Loaded
from sonde.runs.run import run

LENGTH = 600
OPTIONS = 100
BATCHES = (25, 50, 100)
SHAPE = "Llama-2-7B shape"


def main() -> None:
    """Measure and tell."""
    chosen = arguments()
    atlas = sonde.dataset("atlas", limit=chosen.limit)
    lines = [f"{f.subject.name} {o.name}" for f in facts_of(atlas) for o in f.objects]
    wrapped = tokenizer(lines)
    tokens = chosen.batch_tokens
    rows: list[tuple[str, ...]] = []
    findings: list[str] = []
    for name in chosen.models.split(","):
        if name == "smollm2":
            model: Any = sonde.model(
                name, device=chosen.device, dtype="bfloat16", batch_tokens=tokens
            )
        else:
            model = CausalModel(llama(wrapped, LoadOptions(batch_tokens=tokens), chosen))
        own, told = whole(name, model, atlas, chosen.plain)
        rows, findings = [*rows, *own], [*findings, told]
        if name == "llama":
            own, told = behind_600(model, facts_of(atlas), wrapped, chosen.facts)
            rows, findings = [*rows, *own], [*findings, told]
        del model
    result = Result(
        name="gpu_causal",
        title=f"Whole runs of ic-lke, and {OPTIONS} options behind {LENGTH} tokens, on a GPU",
        columns=("what", "model", "facts", "ms/fact"),
        rows=tuple(rows),
        findings=(f"{device_name()}, bfloat16", *findings),
    )
    tell(result, write=chosen.write)


def arguments() -> Any:
    """What was asked for."""
    options = parser(__doc__ or "")
    options.add_argument("--models", default="smollm2,llama")
    options.add_argument("--facts", type=int, default=400)
    options.add_argument("--limit", type=int, default=None, help="facts of a relation in a run")
    options.add_argument("--plain", type=int, default=4, help="facts that the alternative scores")
    options.add_argument("--batch-tokens", type=int, default=None)
    options.add_argument("--device", default="cuda")
    options.add_argument("--layers", type=int, default=32)
    options.add_argument("--width", type=int, default=4096)
    return options.parse_args()


def device_name() -> str:
    """The GPU, where there is one."""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"


def waited() -> float:
    """The time, when the GPU has done all it was given."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def facts_of(dataset: Dataset) -> list[Any]:
    """Every fact, of all splits."""
    return [fact for relation in dataset.relations for fact in dataset.facts(relation.id)]


def whole(
    name: str, model: CausalModel, atlas: Dataset, plain: int
) -> tuple[list[tuple[str, ...]], str]:
    """A whole run, and the alternative on some of its facts; what was fed, in a sentence."""
    probe: Any = sonde.probe("ic-lke", pair_separator="space", example_separator="space")
    called = "SmolLM2-135M" if name == "smollm2" else SHAPE
    with TemporaryDirectory() as folder:
        warm = sonde.dataset("atlas", limit=2, seed=1)
        run(probe, model, warm, Path(folder) / "warm")
        forget(model)
        with Positions(model.model.base_model) as fed:
            began = waited()
            done = run(probe, model, atlas, Path(folder) / "run")
            took = waited() - began
        answers: Any = {each.key: each.answer for each in done.answered()}
    prompts: list[Any] = list(prompts_of(probe.ask(atlas)))
    count = len(prompts)
    sample = Random("benchmark").sample(prompts, min(plain, count))
    size, seconds, found = plain_batches(model, sample)
    pairs = [
        (a, b)
        for prompt, logps in zip(sample, found, strict=True)
        for a, b in zip(logps, chain.from_iterable(answers[prompt.key].logps), strict=True)
    ]
    apart = max(abs(a - b) for a, b in pairs)
    options = sum(len(prompt.want.options) for prompt in prompts)
    rows: list[tuple[str, ...]] = [
        ("whole run of ic-lke", called, f"{count:,}", f"{1000 * took / count:.2f}"),
        (f"plain batches of {size} rows", called, str(len(sample)), f"{1000 * seconds:.0f}"),
    ]
    batches = done.manifest.batches
    return rows, (
        f"{called}: {took:.2f} s for {options:,} options, {fed.count:,} positions fed with what "
        f"fills rows up, {batches['tokens']['score']:,} at once ({batches['chosen']}) in shards of "
        f"{batches['shards']} times the usual weight; largest difference in log p of an option's "
        f"token: {apart:.3f}"
    )


def forget(model: CausalModel) -> None:
    """Make a model as it is when it was just loaded."""
    model.prefixes.clear()
    model.encoder = CausalEncoder(model.loaded.backend, model.start)


def plain_batches(
    model: CausalModel, prompts: Sequence[Prompt]
) -> tuple[int, float, list[list[float]]]:
    """The best batch size, seconds a prompt with it, and the log-probabilities of every token."""
    texts = []
    for prompt in prompts:
        branches = model.branches(prompt)
        spans = [lengthened(span, branches.head) for span in branches.spans]
        texts.append([(span.ids, tuple(range(span.start, span.end))) for span in spans])

    def score(own: Sequence[Any], size: int) -> list[float]:
        parts = [row_logps(model.model, own[i : i + size])() for i in range(0, len(own), size)]
        return [logp for part in parts for logp in part.tolist()]

    def rate(size: int) -> float:
        score(texts[0], size)
        began = waited()
        score(texts[0], size)
        return 1 / (waited() - began)

    size, _ = best_of(BATCHES, rate)
    began = waited()
    found = [score(own, size) for own in texts]
    return size, (waited() - began) / len(texts), found


def behind_600(
    model: CausalModel, facts: list[Any], wrapped: Any, count: int
) -> tuple[list[tuple[str, ...]], str]:
    """Text in, answers out, without a folder."""
    prompts = asked(facts, wrapped, count)
    list(one_by_one(model.score(prompts[:50])))
    forget(model)
    began = waited()
    found = dict(one_by_one(model.score(prompts)))
    took = (waited() - began) / len(prompts)
    size, seconds, rows = plain_batches(model, prompts[:1])
    pairs = zip(rows[0], chain.from_iterable(found[0].logps), strict=True)
    apart = max(abs(a - b) for a, b in pairs)
    what = f"{OPTIONS} options behind {LENGTH} tokens"
    return [
        (f"{what}, text in, answers out", SHAPE, str(len(prompts)), f"{took * 1000:.2f}"),
        (f"the same, plain batches of {size} rows", SHAPE, "1", f"{seconds * 1000:.0f}"),
    ], f"{what}: largest difference in log p of an option's token on the first fact: {apart:.3f}"


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


def llama(wrapped: Any, options: LoadOptions, chosen: Any) -> Loaded:
    """Random weights in the shape of Llama-2-7B, made where they are used."""
    config = transformers.LlamaConfig(
        vocab_size=32000,
        hidden_size=chosen.width,
        intermediate_size=chosen.width * 43 // 16,
        num_hidden_layers=chosen.layers,
        num_attention_heads=chosen.width // 128,
        max_position_embeddings=4096,
    )
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    make: Any = transformers.LlamaForCausalLM
    with torch.device(chosen.device):
        net = make(config)
    torch.set_default_dtype(torch.float32)
    return Loaded(
        name="llama-2-7b shape",
        model=net.eval(),
        tokenizer=wrapped,
        weights="random",
        device=chosen.device,
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
