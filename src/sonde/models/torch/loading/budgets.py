"""How many tokens go through a model at once, for each kind of work that it does.

Whoever schedules passes asks `model.budgets[kind]`, a `Budget` that halves where memory runs out.
On a GPU it begins with what keeps the chip busy, by the size of the model, as far as free memory
allows; on a CPU, and for trees of tokens, with a number that served well. A measurement, for runs
that are large enough, finds what is better. Where a single text is too much, and where one cannot
be predicted, a sentence says so. Knows nothing of prompts or passes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar, cast

import torch

from sonde.core.abilities import Ability
from sonde.core.costs import Batches, Chosen
from sonde.core.errors import ModelError, PromptError
from sonde.engine.batching import Budget
from sonde.models.torch.loading.device import steady_attention
from sonde.models.torch.loading.spread import is_fetched
from sonde.models.torch.loading.weights import Loaded, out_of_memory

log = logging.getLogger("sonde")

BUSY = 1.2e13
"""Operations of a pass over rows that keep a GPU busy, whatever it costs to begin one."""

FEWEST, MOST = 8192, 131_072  # tokens of such a pass

WRITTEN = ("generate", "sample")
HELD = 16
"""So many times the tokens are held for texts that are written: a step feeds one of each text."""

CGROUP_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
CGROUP_2 = ("memory.max", "memory.current", "inactive_file")
"""Where a cgroup of either version has its limit, its use, and what of that is given up."""

SHARE = {"fed": 0.5, "held": 0.3}
"""Of free memory, for a pass, and for what texts keep until they end."""

IDLE = 2e10
"""Operations of a pass up to which it pays on a CPU to ask for more at once."""

GROWTH = {"cpu": 1.25, "cuda": 1.1}
"""How much faster twice as much at once must go to be worth it; a CPU's clock is less steady."""

SECONDS = {"cpu": 0.25, "cuda": 1.0}  # of a measurement, but for a pass that has begun
PASSES = 3
WIDTH = 32  # tokens of a row that is measured
SHARD = 2048
"""Tokens at once for which a shard has the right weight; for more it is larger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """A model in numbers: parameters, and the bytes that one token takes on its way.

    `layer`: inside a layer; `kept`: keys and values of all layers; `logits`: where it is read.
    """

    parameters: int
    layer: int
    kept: int
    logits: int

    @property
    def busy(self) -> int:
        """Tokens of a pass that keep a GPU busy, a power of two.

        >>> Sizes(parameters=134_515_008, layer=0, kept=0, logits=0).busy
        32768
        """
        tokens = nearest_power(BUSY / (2 * self.parameters))
        return min(max(tokens, FEWEST), MOST)

    def most(self, kind: Ability, free: float) -> int:
        """Tokens at once for which there is memory, a power of two."""
        if kind in WRITTEN:
            bytes = self.kept + (self.layer + self.logits) / HELD
            return power_below(SHARE["held"] * free / max(bytes, 1))
        return power_below(SHARE["fed"] * free / max(self.layer + self.logits, 1))


def nearest_power(number: float) -> int:
    """The power of two that is nearest, by its exponent."""
    return power_below(number * 2**0.5)


def power_below(number: float) -> int:
    """The largest power of two that is not more, from 1 on.

    >>> power_below(1000), power_below(1024), power_below(0.2)
    (512, 1024, 1)
    """
    return 1 << max(int(min(number, 2**62)).bit_length() - 1, 0)


def climb(
    rate: Callable[[int], float | None], sizes: Sequence[int], growth: float, usual: int
) -> int:
    """The last of rising sizes up to which every one goes so many times faster than the one before.

    Where there was no time to find a rate, it is at least the usual.

    >>> climb({1: 10.0, 2: 18.0, 4: 19.0, 8: 90.0}.get, [1, 2, 4, 8], 1.1, usual=4)
    2
    >>> climb({1: 10.0, 2: 18.0}.get, [1, 2, 4, 8], 1.1, usual=4)
    4
    """
    best, fastest = sizes[0], 0.0
    for size in sizes:
        found = rate(size)
        if found is None:
            return max(best, usual)
        if found <= growth * fastest:
            break
        best, fastest = size, found
    return best


class Budgets:
    """A token budget for each kind of work: what one learns about memory says little of another.

    `usual`: tokens on a CPU and for trees. `trees`: the kinds for which tokens go as one tree, a
    row that grows with them, so that a pass costs by its square. `read`: the share of tokens whose
    logits are wanted. `largest`: how many times its weight a shard holds at most.
    """

    def __init__(
        self,
        loaded: Loaded,
        usual: Mapping[str, Mapping[Ability, int]],
        *,
        trees: Collection[Ability] = (),
        read: float = 1.0,
        largest: int = 16,
    ) -> None:
        self.model = loaded.model
        self.device = loaded.device.split(":")[0]
        self.former = usual[self.device]
        self.given = loaded.options.batch_tokens is not None
        self.trees = trees
        self.largest = 1 if self.device == "cpu" else largest
        self.sizes = sizes_of(loaded.model, read)
        self._measured: dict[Ability, int] = {}
        tokens = self.usual()
        if self.given:
            tokens = dict.fromkeys(tokens, cast(int, loaded.options.batch_tokens))
        self._each = {kind: Budget(count, out_of_memory) for kind, count in tokens.items()}

    def __getitem__(self, kind: Ability) -> Budget:
        return self._each[kind]

    @property
    def tokens(self) -> dict[str, int]:
        """How many tokens go through at once as it stands."""
        return {kind: budget.tokens for kind, budget in self._each.items()}

    @property
    def threads(self) -> int:
        """Threads that compute on a CPU as it stands; 0 on a GPU."""
        return torch.get_num_threads() if self.device == "cpu" else 0

    def fix(self, tokens: Mapping[str, int], threads: int) -> None:
        """Go on with these, kinds that are not named as they are; 0 leaves the threads."""
        for kind, budget in self._each.items():
            budget.tokens = tokens.get(kind, budget.tokens)
        if threads and threads != self.threads != 0:
            torch.set_num_threads(threads)

    def usual(self) -> dict[Ability, int]:
        """What fits the chip and the model, without a measurement."""
        if self.device == "cpu":
            return self._within(self.former)
        # where weights are fetched for every pass, the fewer there are the better
        busy = MOST if is_fetched(self.model) else self.sizes.busy
        rows = {kind: HELD * busy if kind in WRITTEN else busy for kind in self.former}
        return self._within({**rows, **{kind: self.former[kind] for kind in self.trees}})

    def choose(self, *, measure: bool) -> Batches:
        """The given number, or else what fits."""
        chosen: Chosen = "usual"
        if self.given:
            chosen, tokens = "given", {kind: budget.tokens for kind, budget in self._each.items()}
        elif measure and self._pays():
            self._measured = self._measured or self._measure()
            chosen, tokens = "measured", self._measured
        else:
            tokens = self.usual()
        shards = min(power_below(tokens["score"] / SHARD), self.largest)
        named = {str(kind): count for kind, count in tokens.items()}
        return Batches(
            tokens=named, chosen=chosen, device=self.device, shards=shards, threads=self.threads
        )

    def _within(self, tokens: Mapping[Ability, int]) -> dict[Ability, int]:
        free = free_bytes(self.model.device)
        return {kind: min(count, self.sizes.most(kind, free)) for kind, count in tokens.items()}

    def _pays(self) -> bool:
        """Whether more at once may be faster: a CPU that has enough to do is as fast as it gets."""
        fed = self.former["score"]
        return self.device != "cpu" or 2 * self.sizes.parameters * fed <= IDLE

    def _measure(self) -> dict[Ability, int]:
        """What is usual, times what a measurement finds scoring should have.

        That holds for what goes the same way, rows or trees.
        """
        usual = self.usual()
        fed, tree = usual["score"], "score" in self.trees
        lowest = fed if self.device == "cpu" else max(fed // 4, WIDTH)
        highest = min(4 * fed, self.sizes.most("score", free_bytes(self.model.device)))
        sizes = [lowest]
        while 2 * sizes[-1] <= highest:
            sizes.append(2 * sizes[-1])
        try:
            found = climb(Rates(self.model, tree=tree), sizes, GROWTH[self.device], fed)
        except Exception:  # its code takes tokens in ways of its own only
            log.debug("not measured", exc_info=True)
            return usual
        alike = {kind: n for kind, n in usual.items() if (kind in self.trees) == tree}
        scaled = {kind: max(count * found // fed, 1) for kind, count in alike.items()}
        return self._within({**usual, **scaled})


class Rates:
    """Tokens a second that go through a model at once: 0 where memory runs out, None where time."""

    def __init__(self, model: Any, *, tree: bool) -> None:
        self.model = model
        self.tree = tree
        self.began = time.perf_counter()

    def __call__(self, tokens: int) -> float | None:
        """The fastest of the passes there is time for, after one that warms up."""
        found: list[float] = []
        try:
            while len(found) < PASSES and self.left() > 0:
                found.append(self._pass(tokens))
        except Exception as error:
            if not out_of_memory(error):
                raise
            return 0.0
        return tokens / min(found[1:]) if len(found) > 1 else None

    def left(self) -> float:
        """Seconds that are left."""
        return SECONDS[self.model.device.type] - (time.perf_counter() - self.began)

    def _pass(self, tokens: int) -> float:
        began = time.perf_counter()
        feed(self.model, tokens, tree=self.tree)
        if self.model.device.type == "cuda":
            torch.cuda.synchronize(self.model.device)
        return time.perf_counter() - began


@torch.inference_mode()
def feed(model: Any, tokens: int, *, tree: bool) -> None:
    """Let so many tokens go through a model's layers, in rows or as one tree."""
    encodes = bool(model.config.is_encoder_decoder)
    body = model.get_encoder() if encodes else model.base_model
    ids = torch.arange(tokens, device=model.device)[None] % WIDTH
    named = {"input_ids": ids if tree else ids.view(-1, min(WIDTH, tokens))}
    if tree:
        mask = torch.zeros(1, 1, tokens, tokens, dtype=model.dtype, device=model.device)
        named |= {"attention_mask": mask, "position_ids": ids}
    with steady_attention(model):
        body(**named)


def sizes_of(model: Any, read: float) -> Sizes:
    """The numbers of a model; those that its config does not say count as nothing."""
    config: Any = model.config.get_text_config()
    each, parts = int(model.dtype.itemsize), list(model.parameters())
    hidden = int(getattr(config, "hidden_size", 0) or 0)
    inner = int(getattr(config, "intermediate_size", None) or 4 * hidden)
    heads = int(getattr(config, "num_attention_heads", 0) or 1)
    keys = int(getattr(config, "num_key_value_heads", None) or heads)
    size = int(getattr(config, "head_dim", None) or hidden // heads)
    layers = int(getattr(config, "num_hidden_layers", 0) or 0)
    return Sizes(
        parameters=max(sum(part.numel() for part in parts), 1),
        layer=(6 * hidden + 2 * inner) * each,
        kept=2 * layers * keys * size * each,
        # as the head gives them, and in float32
        logits=int(read * int(config.vocab_size) * (each + 4)),
    )


def free_bytes(device: Any) -> float:
    """Memory that is free on a device, with what torch holds there and does not use."""
    if device.type == "cuda":
        held = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return float(torch.cuda.mem_get_info(device)[0] + held)
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        said = dict(line.split(":", 1) for line in lines)
        return min(1024.0 * int(said["MemAvailable"].split()[0]), cgroup_free())
    except (OSError, ValueError, KeyError):
        return float("inf")


def cgroup_free(root: Path = Path("/")) -> float:
    """Memory that the limits of this process's cgroups leave, of both versions.

    Pages of files that the kernel gives up first are not counted as used.
    """
    free = float("inf")
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return free
    for _, controllers, name in (line.split(":", 2) for line in lines):
        if not controllers:
            mount, names = root / "sys/fs/cgroup", CGROUP_2
        elif "memory" in controllers.split(","):
            mount, names = root / "sys/fs/cgroup/memory", CGROUP_1
        else:
            continue
        group = PurePosixPath(name.lstrip("/"))
        free = min(free, *(_left(mount / each, *names) for each in (group, *group.parents)))
    return free


def _left(group: Path, limit: str, usage: str, inactive: str) -> float:
    """What one cgroup leaves; all where it has no limit."""
    try:
        lines = (group / "memory.stat").read_text(encoding="ascii").splitlines()
        idle = int(dict(line.split() for line in lines)[inactive])
        used = int((group / usage).read_text(encoding="ascii")) - idle
        return max(int((group / limit).read_text(encoding="ascii")) - used, 0.0)
    except (OSError, ValueError, KeyError):  # "max" is no number
        return float("inf")


Item = TypeVar("Item")


def explain_oom(answers: Iterator[Item]) -> Iterator[Item]:
    """Say what to do where memory runs out on what cannot be made smaller."""
    try:
        yield from answers
    except Exception as error:
        if not out_of_memory(error):
            raise
        raise ModelError(
            "memory ran out on a single text; use a smaller --dtype, another --device or a "
            "smaller model"
        ) from error


def check_predicted(predicted: Iterable[int], loaded: Loaded) -> None:
    """Refuse a text in which the model would have to predict a vector of a soft prompt."""
    if loaded.vectors and any(id in loaded.vectors for id in predicted):
        raise PromptError(
            "a vector of a soft prompt stands where the model would have to predict it; score the "
            "answer alone, and use a template with every vector before [Y]"
        )
