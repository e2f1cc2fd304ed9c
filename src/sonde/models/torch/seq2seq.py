"""Encoder-decoder language models: they read the prompt and are scored on writing the answer.

A prompt is read once for all its options. The options' first tokens are read off one pass; what
follows goes through the decoder in rows, one for each distinct beginning. Reading looks both ways,
so prompts that begin alike share nothing. `reference_seq2seq.py` is the naive twin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from sonde.core.abilities import Identity
from sonde.core.answers import Generated, Sampled, Scored
from sonde.core.errors import AbilityError, ModelError
from sonde.core.prompts import Prompt, Score
from sonde.engine.pack import Budget
from sonde.engine.pairs import PairEncoder, Source
from sonde.models.torch.device import float_logits
from sonde.models.torch.identity import identify
from sonde.models.torch.limits import check_text, naming, telling
from sonde.models.torch.rows import Rows, feed, read
from sonde.models.torch.seq2seq_grow import PairGrower
from sonde.models.torch.weights import Loaded, out_of_memory

BATCH_TOKENS = {"cpu": 16_384, "cuda": 131_072}
"""Tokens read, times the rows that look at them."""

Targets = Sequence[tuple[int, ...]]


class Seq2SeqModel:
    """A model that reads a text and writes another."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self.model = loaded.model
        self.encoder = PairEncoder(loaded.backend)
        self.start = first_token(loaded)
        tokens = loaded.options.batch_tokens or BATCH_TOKENS[loaded.device.split(":")[0]]
        self.budget = Budget(tokens, out_of_memory)
        float_logits(self.model)

    @property
    def identity(self) -> Identity:
        """What makes this model's answers its own."""
        token = self.loaded.backend.id_to_token(self.start)
        return identify(self.loaded, bos=f"answers open with {token}", scoring="rows")

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        """Yield (position, answer) with the log-probabilities of every option's tokens."""
        return telling(self._score(prompts))

    def generate(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Generated]]:
        """Yield (position, answer) with the likeliest text for every prompt."""
        return telling(self._grower().generate(prompts))

    def sample(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Sampled]]:
        """Yield (position, answer) with texts drawn from the model."""
        return telling(self._grower().sample(prompts))

    def _grower(self) -> PairGrower:
        return PairGrower(self.loaded, self.encoder, self.budget, self.start)

    def _score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        for position, prompt in enumerate(prompts):
            if not isinstance(prompt.want, Score):
                raise AbilityError("score() takes prompts that want Score(…)")
            with naming(prompt):
                source = self.encoder.source(prompt.prefix, prompt.suffix)
                targets = self.encoder.targets(prompt.want.options)
                longest = max(len(source.ids), max(map(len, targets), default=0) + 2)
                strange = max([*source.ids, *(id for target in targets for id in target)])
                check_text(longest, strange, self.loaded)
            yield position, Scored(options=prompt.want.options, logps=self._logps(source, targets))

    def _logps(self, source: Source, targets: Targets) -> tuple[tuple[float, ...], ...]:
        """Log-probabilities of the tokens of every answer."""
        logits, rows = read(self.model, [source.ids], (self.start, *source.opens))
        first = torch.log_softmax(logits[0].float(), -1)
        beginnings = sorted({target[:-1] for target in targets if len(target) > 1})
        after = self._after(rows, beginnings, targets, len(source.ids))
        starts = first[torch.tensor([target[0] for target in targets], device=first.device)]
        return tuple(
            (start, *(after[target[:-1], target[1:]] if len(target) > 1 else ()))
            for start, target in zip(starts.tolist(), targets, strict=True)
        )

    def _after(
        self, rows: Rows, beginnings: Targets, targets: Targets, length: int
    ) -> dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[float, ...]]:
        """For each answer but its first token, by what was fed and what was to follow."""
        wanted: dict[tuple[int, ...], list[tuple[int, ...]]] = {b: [] for b in beginnings}
        for target in targets:
            if len(target) > 1:
                wanted[target[:-1]].append(target[1:])
        found = {}

        def forward(batch: list[int]) -> list[tuple[tuple[int, ...], torch.Tensor]]:
            fed = [beginnings[i] for i in batch]
            widest = max(map(len, fed))
            padded = [[*ids, *[ids[-1]] * (widest - len(ids))] for ids in fed]
            logits, _ = feed(self.model, rows.pick([0] * len(fed)), padded)
            tables = torch.log_softmax(logits.float(), -1)
            return [(ids, tables[i, : len(ids)]) for i, ids in enumerate(fed)]

        lengths = [length + len(ids) for ids in beginnings]
        for _, results in self.budget.run(lengths, forward):
            for ids, table in results:
                for following in wanted[ids]:
                    tokens = torch.tensor(following, device=table.device)
                    logps = table.gather(1, tokens[:, None])[:, 0].tolist()
                    found[ids, following] = tuple(logps)
        return found


def first_token(loaded: Loaded) -> int:
    """The token with which the model opens everything it writes."""
    model = loaded.model
    for source in (getattr(model, "generation_config", None), model.config):
        found = getattr(source, "decoder_start_token_id", None)
        if found is not None:
            return int(found)
    raise ModelError(
        f"{loaded.name} does not say which token its answers open with; give its config.json a "
        "decoder_start_token_id"
    )
