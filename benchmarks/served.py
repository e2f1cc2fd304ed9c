"""SmolLM2 behind vLLM: how near a server's numbers are, and how fast, beside lm-evaluation-harness.

A server is started on the folder of SmolLM2 in float32, and asked by sonde, in each of its ways,
and by lm-evaluation-harness's `local-completions`. Three prompts of twenty options are held against
transformers, text by text; a hundred options behind 700 tokens are timed.
"""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.common import Result, best_of, parser, seconds, tell
from benchmarks.ic_lke import Text, check_ids, questions, texts_of
from sonde import model
from sonde.core.columns import one_by_one
from sonde.core.prompts import Prompt
from sonde.models.load import load
from sonde.models.options import LoadOptions

NAME = "served"
SERVED = "smollm2"
RELATIONS = ("P36", "P190", "P17")
CONTEXT = 2048
BATCHES = (1, 8)
WAIT = 600.0
"""Seconds that a server has to start."""

Rows = list[list[float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way of asking the server: the log-probabilities of options, requests and seconds.

    `rows` are of each token of each option where tokens are told, else of the option as a whole.
    """

    name: str
    options: int
    requests: int
    seconds: float
    rows: Rows

    @property
    def rate(self) -> float:
        """Options per second."""
        return self.options / self.seconds


class Counting:
    """A transport that counts the requests that go through it."""

    def __init__(self, transport: Any) -> None:
        self.transport = transport
        self.requests = 0

    def look(self, path: str) -> Any:
        return self.transport.look(path)

    def send(self, requests: Any, read: Any, split: Any) -> Iterator[Any]:
        for answered in self.transport.send(requests, read, split):
            self.requests += 1
            yield answered


def main() -> None:
    """Start a server, ask it, print, and store where asked."""
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--facts", type=int, default=3, help="facts that sonde scores")
    options.add_argument("--options", type=int, default=100)
    options.add_argument("--prefix", type=int, default=700, help="tokens of the prefix, at least")
    options.add_argument("--relation", default="P190", help="relation of atlas that is timed")
    options.add_argument("--harness", type=int, default=100, help="options that lm-eval scores")
    options.add_argument("--trial", type=int, default=8, help="texts to find lm-eval's best batch")
    options.add_argument("--url", help="ask this server, which serves the folder, and start none")
    options.add_argument("--block", type=int, default=32, help="the server's --block-size")
    given = options.parse_args()
    logging.disable(logging.WARNING)
    here: Any = model("smollm2", device="cpu", dtype="float32")
    folder = here.loaded.tokenizer.name_or_path
    near = [p for r in RELATIONS for p in questions(here, r, 1, 20, 40)]
    far = questions(here, given.relation, given.facts, given.options, given.prefix)
    naive = by_transformers(here, near)
    with nullcontext(given.url) if given.url else serving(folder, given.block) as url:
        there: Any = load(f"server:{url}", LoadOptions(tokenizer=folder))
        gaps = [by_sonde(there, near, way) for way in ("nodes", "whole", "echo")]
        warm = [replace(prompt, prefix=prompt.prefix[40:]) for prompt in far[:1]]
        by_sonde(there, warm, "cheapest")
        ours = by_sonde(there, far, "cheapest")
        texts = texts_of(here, far[0])[: given.harness]
        theirs = by_harness(url, folder, texts, given.trial)
    length = len(texts_of(here, far[0])[0].span.ids)
    block = "" if given.url else f"vLLM's prefix cache holds blocks of {given.block} tokens."
    tell(as_result(naive, gaps, ours, theirs, length, block), write=given.write)


@contextmanager
def serving(folder: str, block: int, python: str = sys.executable) -> Iterator[str]:
    """vLLM's server on a folder, in float32; its address once it is ready.

    `python` is that of an environment with vLLM.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [python, "-m", "vllm.entrypoints.openai.api_server", "--model", folder]
    command += ["--served-model-name", SERVED, "--host", "127.0.0.1", "--port", str(port)]
    command += ["--dtype", "float32", "--max-model-len", str(CONTEXT), "--block-size", str(block)]
    usual = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}
    with open(os.devnull, "w") as nowhere:
        server = subprocess.Popen(
            command, env={**usual, **os.environ}, stdout=nowhere, stderr=nowhere
        )
    try:
        wait_for(server, f"http://127.0.0.1:{port}")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def wait_for(server: subprocess.Popen[bytes], url: str) -> None:
    """Until the server answers, or has ended."""
    until = time.monotonic() + WAIT
    while time.monotonic() < until and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return
        except OSError:
            time.sleep(1)
    raise SystemExit("vLLM's server did not start; see benchmarks/README.md for its environment")


def by_transformers(here: Any, prompts: Sequence[Prompt]) -> Rows:
    """The log-probabilities of every option's tokens, each text by itself."""
    import torch

    rows = []
    for text in (text for prompt in prompts for text in texts_of(here, prompt)):
        span = text.span
        with torch.inference_mode():
            logits = here.model(torch.tensor([span.ids])).logits[0].double()
        table = logits.log_softmax(-1)
        rows.append([float(table[n - 1, span.ids[n]]) for n in range(span.start, span.stop)])
    return rows


def by_sonde(there: Any, prompts: Sequence[Prompt], way: str) -> Way:
    """Score through the server: along nodes, whole texts, these by `echo`, or as it chooses."""
    from sonde.models.served.model import served_model
    from sonde.models.served.plain import Plain

    kinds = {"nodes": {"next"}, "whole": {"rate"}, "echo": {"rate"}}.get(way, there.found.can)
    echo = Plain(replace(there.dialect.setting, batch=1))
    transport = Counting(there.transport)
    dialect = echo if way == "echo" else there.dialect
    found = replace(there.found, can=frozenset(kinds))
    asked: Any = served_model(found, dialect, transport, there.tokens)
    answers: dict[int, Any] = {}
    took = seconds(lambda: answers.update(one_by_one(asked.score(prompts))))
    rows = [list(logps) for i in range(len(prompts)) for logps in answers[i].logps]
    return Way(
        name=f"sonde, {way}",
        options=len(rows),
        requests=transport.requests,
        seconds=took,
        rows=rows,
    )


def by_harness(url: str, folder: str, texts: Sequence[Text], trial: int) -> Way:
    """lm-evaluation-harness's `local-completions`, at its best batch size."""
    from lm_eval.api.instance import Instance  # type: ignore[import-not-found]
    from lm_eval.models.openai_completions import LocalCompletionsAPI  # type: ignore[import-not-found]

    def score(some: Sequence[Text], batch: int) -> list[float]:
        lm = LocalCompletionsAPI(
            model=SERVED,
            base_url=f"{url}/v1/completions",
            tokenizer=folder,
            tokenizer_backend="huggingface",
            batch_size=batch,
            max_length=CONTEXT - 1,
        )
        pairs = [(text.context, text.continuation) for text in some]
        for text, pair in zip(some, pairs, strict=True):
            check_ids(text.span, *lm._encode_pair(*pair))
        asked = [
            Instance(request_type="loglikelihood", doc={}, arguments=pair, idx=i)
            for i, pair in enumerate(pairs)
        ]
        return [logp for logp, _ in lm.loglikelihood(asked, disable_tqdm=True)]

    score(texts[:1], 1)
    part = texts[:trial]
    batch, _ = best_of(BATCHES, lambda size: len(part) / seconds(lambda: score(part, size)))
    found: list[float] = []
    took = seconds(lambda: found.extend(score(texts, batch)))
    return Way(
        name=f"lm-evaluation-harness, local-completions, batches of {batch}",
        options=len(texts),
        requests=-(-len(texts) // batch),
        seconds=took,
        rows=[[logp] for logp in found],
    )


def as_result(
    naive: Rows, gaps: Sequence[Way], ours: Way, theirs: Way, length: int, block: str
) -> Result:
    """The table, and what it shows."""
    apart = [largest_gap(way.rows, naive) for way in gaps]
    whole = [[sum(row)] for row in ours.rows[: theirs.options]]
    tokens = sum(map(len, naive))
    rows = [(way.name, *measured(way), f"{gap:.1e}") for way, gap in zip(gaps, apart, strict=True)]
    rows += [
        (f"{ours.name}, behind {length} tokens", *measured(ours), ""),
        (theirs.name, *measured(theirs), ""),
    ]
    same = all(
        np.array_equal(a, b) for way in gaps for a, b in zip(way.rows, gaps[0].rows, strict=True)
    )
    findings = (
        f"3 prompts of 20 options, {tokens} tokens that are scored, against transformers in "
        f"float32, each text by itself: the largest gap of a token is {max(apart):.1e} nats. The "
        f"three ways {'agree bit for bit' if same else 'differ by rounding'}.",
        f"Behind {length} tokens sonde scores {ours.rate / theirs.rate:,.0f} times the options per "
        "second of lm-evaluation-harness on the same server, with sums that differ by at most "
        f"{largest_gap(whole, theirs.rows):.1e} nats.",
        *([block] if block else []),
    )
    return Result(
        name=NAME,
        title="SmolLM2-135M behind vLLM's server, in float32 on a CPU",
        columns=("way", "options", "requests/option", "s", "options/s", "max |Δ log p| of a token"),
        rows=tuple(rows),
        findings=findings,
    )


def measured(way: Way) -> tuple[str, ...]:
    """The cells that every way has."""
    each = way.requests / way.options
    return str(way.options), f"{each:.2f}", f"{way.seconds:.1f}", f"{way.rate:.3g}"


def largest_gap(one: Rows, other: Rows) -> float:
    """How far two ways of scoring lie apart, at most."""
    return max(
        abs(a - b)
        for mine, yours in zip(one, other, strict=True)
        for a, b in zip(mine, yours, strict=True)
    )


if __name__ == "__main__":
    main()
