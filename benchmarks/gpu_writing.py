"""Texts written and drawn on a GPU, text in and text out, beside transformers' generate.

Prompts are those of `belief-icl` on the bundled `atlas`: an instruction, four examples and a
question, at most 16 tokens to the end of the line. Both begin with texts and end with texts.
`generate` is given the prompts by length, in batches of several sizes up to all at once, and every
token that ends a line as an end; the fastest batch size counts. Each is warmed up, has the GPU's
memory to itself, and the better of as many turns counts. `--shape` measures random weights in the
shape of Llama-2-7B in place of SmolLM2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from time import perf_counter
from typing import Any

import torch

import sonde
from benchmarks.common import Result, parser, tell
from benchmarks.gpu_causal import llama, tokenizer
from benchmarks.samples import stopping
from sonde.core.prompts import Generate, Prompt, Sample, prompts_of
from sonde.models.options import LoadOptions
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.decode.steps import end_tokens
from sonde.models.torch.reference import generate_causal
from sonde.probes.belief_icl import BeliefIcl

NAME = "gpu_writing"
TURNS = 2


def asked(kind: type[Generate] | type[Sample], count: int) -> list[Prompt]:
    """The first prompts that want texts written, or drawn."""
    found = prompts_of(BeliefIcl().ask(sonde.dataset("atlas")))
    return list(islice((p for p in found if isinstance(p.want, kind)), count))


def timed(work: Callable[[], Any], device: str) -> tuple[float, Any]:
    """Seconds that some work takes, and what comes of it."""
    if device == "cuda":
        torch.cuda.synchronize()
    began = perf_counter()
    found = work()
    return perf_counter() - began, found


def ours(model: CausalModel, prompts: Sequence[Prompt]) -> list[Any]:
    """What sonde writes or draws, with nothing kept from before."""
    model.prefixes.clear()
    drawn = isinstance(prompts[0].want, Sample)
    found: dict[int, Any] = dict(model.sample(prompts) if drawn else model.generate(prompts))
    return [found[i] for i in range(len(prompts))]


def theirs(
    model: CausalModel, prompts: Sequence[Prompt], size: int, stops: list[int]
) -> list[list[str]]:
    """What generate writes or draws for each prompt, so many rows at a time."""
    texts: list[list[str]] = [[] for _ in prompts]
    want = prompts[0].want
    assert isinstance(want, Generate | Sample)
    count = want.count if isinstance(want, Sample) else 1
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i].prefix))
    for batch in cut(order, max(size // count, 1)):
        rows = rows_of(model, [prompts[i].prefix for i in batch], want, count, stops)
        said = model.loaded.tokenizer.batch_decode(rows, skip_special_tokens=True)
        for k, text in enumerate(said):
            texts[batch[k // count]].append(text.split(want.until)[0])
    return texts


def cut(order: list[int], size: int) -> Iterator[list[int]]:
    return (order[start : start + size] for start in range(0, len(order), size))


def rows_of(
    model: CausalModel, texts: list[str], want: Generate | Sample, count: int, stops: list[int]
) -> Any:
    """The tokens that generate puts behind some texts."""
    wrapped = model.loaded.tokenizer
    wrapped.padding_side = "left"
    wrapped.pad_token = wrapped.pad_token or wrapped.eos_token
    given = wrapped(texts, return_tensors="pt", padding=True).to(model.model.device)
    drawn = {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0}
    made = model.model.generate(
        input_ids=given.input_ids,
        attention_mask=given.attention_mask,
        max_new_tokens=want.most,
        num_return_sequences=count,
        eos_token_id=stops,
        pad_token_id=stops[0],
        **(drawn if isinstance(want, Sample) else {"do_sample": False}),
    )
    return made[:, given.input_ids.shape[1] :]


def emptied(device: str) -> None:
    """Give back what was kept of the GPU's memory."""
    if device == "cuda":
        torch.cuda.empty_cache()


def distinct(rows: list[int], most: int) -> list[int]:
    """Batch sizes up to all rows that there are."""
    return list(dict.fromkeys(min(size, most) for size in rows))


def sizes(chosen: str) -> list[int]:
    return [int(size) for size in chosen.split(",")]


def compared(
    model: CausalModel, prompts: list[Prompt], rows: list[int], device: str
) -> tuple[list[tuple[str, ...]], list[Any]]:
    """A line for sonde and for each batch size of generate, in milliseconds a prompt."""
    stops = stopping(model, prompts[0].want.until)  # type: ignore[union-attr]
    ours(model, prompts[: max(len(prompts) // 8, 1)])
    emptied(device)
    turns = [timed(partial(ours, model, prompts), device) for _ in range(TURNS)]
    own = min(seconds for seconds, _ in turns)
    found = turns[0][1]
    what = f"{prompts[0].want.count} samples" if isinstance(prompts[0].want, Sample) else "greedy"
    each = 1000 / len(prompts)
    lines: list[tuple[str, ...]] = []
    lines += [(f"sonde, {what}", f"{len(prompts):,}", f"{own * each:.3f}", "1.0×")]
    print(lines[-1], [round(seconds * each, 3) for seconds, _ in turns], flush=True)
    model.prefixes.clear()
    theirs(model, prompts[: max(rows[0] // 100, 8)], rows[0], stops)
    for size in distinct(rows, len(prompts) * getattr(prompts[0].want, "count", 1)):
        emptied(device)
        try:
            took = min(
                timed(partial(theirs, model, prompts, size, stops), device)[0] for _ in range(TURNS)
            )
        except torch.OutOfMemoryError:
            lines.append((f"generate, {what}, {size:,} rows", "", "memory ran out", ""))
            print(lines[-1], flush=True)
            continue
        times = (f"{took * each:.3f}", f"{took / own:.1f}×")
        lines.append((f"generate, {what}, {size:,} rows", f"{len(prompts):,}", *times))
        print(lines[-1], flush=True)
    return lines, found


def checked(model: CausalModel, prompts: list[Prompt]) -> str:
    """How many texts are those of the naive twin, on the same weights in float32."""
    expected = generate_causal(model.model, model.encoder, prompts, end_tokens(model.loaded))
    naive = dict(expected)
    same = sum(a.text == naive[i].text for i, a in enumerate(ours(model, prompts)))
    return f"In float32 {same} of {len(prompts)} texts are those of the naive twin."


def shape(options: LoadOptions, chosen: Any) -> CausalModel:
    """Random weights in the shape of Llama-2-7B, or so wide and deep."""
    data = sonde.dataset("atlas")
    facts = [fact for relation in data.relations for fact in data.facts(relation.id)]
    lines = [f"{fact.subject.name} {o.name}\n" for fact in facts for o in fact.objects]
    return CausalModel(llama(tokenizer(lines), options, chosen))


def main() -> None:
    """Measure and tell."""
    options = parser(__doc__ or "")
    options.add_argument("--shape", action="store_true", help="the shape of Llama-2-7B")
    options.add_argument("--device", default="cuda")
    options.add_argument("--prompts", type=int, default=8192, help="prompts to write on from")
    options.add_argument("--drawn", type=int, default=256, help="prompts to draw for; 0: none")
    options.add_argument("--rows", default="2048,4096,8192,16384,32768", help="of generate")
    options.add_argument("--checked", type=int, default=256, help="texts held against the twin")
    options.add_argument("--batch-tokens", type=int, default=None)
    options.add_argument("--layers", type=int, default=32, help="of the shape")
    options.add_argument("--width", type=int, default=4096, help="of the shape")
    chosen = options.parse_args()
    cuda, tokens = chosen.device == "cuda", chosen.batch_tokens
    if chosen.shape:
        model: Any = shape(LoadOptions(batch_tokens=tokens), chosen)
    else:
        dtype = "bfloat16" if cuda else "float32"
        model = sonde.model("smollm2", device=chosen.device, dtype=dtype, batch_tokens=tokens)
    rows = sizes(chosen.rows)
    lines, _ = compared(model, asked(Generate, chosen.prompts), rows, chosen.device)
    findings = []
    if chosen.drawn:
        more, found = compared(model, asked(Sample, chosen.drawn), rows, chosen.device)
        lines += more
        distinct = sum(len(answer.texts) for answer in found) / len(found)
        findings.append(f"{distinct:.0f} distinct texts a prompt are drawn on average.")
    if chosen.checked and not chosen.shape:
        exact: Any = sonde.model("smollm2", device=chosen.device, dtype="float32")
        findings.append(checked(exact, asked(Generate, chosen.checked)))
    where = torch.cuda.get_device_name() if cuda else "CPU"
    tell(
        Result(
            name=NAME + ("_7b" if chosen.shape else ""),
            title=f"Texts of {'a Llama-2-7B shape' if chosen.shape else 'SmolLM2-135M'}, {where}",
            columns=("what", "prompts", "ms a prompt", "of sonde's"),
            rows=tuple(lines),
            findings=tuple(findings),
        ),
        write=chosen.write,
    )


if __name__ == "__main__":
    main()
