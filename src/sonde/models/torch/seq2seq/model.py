"""Encoder-decoder language models: they read the prompt and are scored on writing the answer.

Equal prompts are read once, and what was read is kept for what else is asked of them, until the
model is told to forget. The options' first tokens are read off one pass; what follows goes through
the decoder in rows. Reading looks both ways, so prompts that only begin alike share nothing.
`reference` is the naive twin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from sonde.core.abilities import Identity
from sonde.core.answers import Generated, Sampled, Scored
from sonde.core.costs import ShardCost
from sonde.core.errors import AbilityError, ModelError, PromptError
from sonde.core.prompts import Prompt, Score
from sonde.engine.batching import Budget
from sonde.engine.schedule import Pass, Passes, answer_passes, source_passes
from sonde.engine.seq2seq_encode import Ids, Seq2SeqEncoder, Source, beginnings, row_of
from sonde.models.torch.causal.token_tree import token_logps
from sonde.models.torch.loading.device import float_logits
from sonde.models.torch.loading.limits import check_text, explain_oom, naming
from sonde.models.torch.loading.weights import Loaded, identify, out_of_memory, token_id
from sonde.models.torch.seq2seq.decoder import Reader, Rows, Seq2SeqDecoder, feed

BATCH_TOKENS = {"cpu": 16_384, "cuda": 131_072}
"""Tokens read, times the rows that look at them."""

ENOUGH = {"cpu": 2048, "cuda": 32_768}
"""Tokens from which a batch is better read than filled up with shorter texts and padding."""

READ_BYTES = {"cpu": 2**29, "cuda": 2**32}

Logps = tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Answers to score after one source, and which prompts want which of them."""

    source: Source
    targets: tuple[Ids, ...]
    owners: tuple[tuple[int, tuple[Ids, ...]], ...]


class Seq2SeqModel:
    """A model that reads a text and writes another."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self.model = loaded.model
        self.encoder = Seq2SeqEncoder(loaded.backend)
        self.start = first_token(loaded)
        device = loaded.device.split(":")[0]
        tokens = loaded.options.batch_tokens or BATCH_TOKENS[device]
        self.budget = Budget(tokens, out_of_memory)
        self.enough = min(ENOUGH[device], tokens)
        self.reader = Reader(self.model, READ_BYTES[device])
        float_logits(self.model)

    @property
    def identity(self) -> Identity:
        """What makes this model's answers its own."""
        token = self.loaded.backend.id_to_token(self.start)
        return identify(self.loaded, bos=f"answers open with {token}", scoring="rows")

    def reset_cache(self) -> None:
        """Drop what was read, so that answers depend on what is asked with them alone."""
        self.reader.cache.clear()

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        """Yield (position, answer) with the log-probabilities of every option's tokens."""
        return explain_oom(self._score(prompts))

    def generate(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Generated]]:
        """Yield (position, answer) with the likeliest text for every prompt."""
        return explain_oom(self.decoder().generate(prompts))

    def sample(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Sampled]]:
        """Yield (position, answer) with texts drawn from the model."""
        return explain_oom(self.decoder().sample(prompts))

    def estimate_costs(self, shards: Iterable[Sequence[Prompt]]) -> Iterator[ShardCost]:
        """What each shard would cost, in turn."""
        from sonde.models.torch.costs import seq2seq_costs  # it knows this class

        return seq2seq_costs(self, shards)

    def decoder(self) -> Seq2SeqDecoder:
        """What writes texts."""
        return Seq2SeqDecoder(self.loaded, self.encoder, self.reader, self.budget, self.start)

    def asked(self, prompt: Prompt) -> tuple[Source, tuple[Ids, ...]]:
        """What is read and what may be answered, refused if the model cannot take it."""
        want = prompt.want
        if not isinstance(want, Score):
            raise AbilityError("score() takes prompts that want Score(…)")
        with naming(prompt):
            if not want.options:
                raise PromptError("there is no option to score")
            source = self.encoder.source(prompt.prefix, want.after(prompt.suffix))
            targets = tuple(self.encoder.targets(want.texts(prompt.prefix)))
            # a last token is never fed, and the model's own first one always is
            longest = max(len(source.ids), len(source.opens) + max(map(len, targets)))
            strange = max(*source.ids, *(max(target) for target in targets))
            check_text(longest, strange, self.loaded)
        return source, targets

    def source_passes(self, tasks: Sequence[Task]) -> Passes:
        """How the sources of some tasks that open alike are read."""
        opening = 1 + len(tasks[0].source.opens)
        sources = [task.source.ids for task in tasks]
        return source_passes(self.budget, sources, opening, enough=self.enough)

    def answer_passes(self, width: int, fed: Sequence[tuple[int, Ids]]) -> Passes:
        """How rows of answers are fed, all of which see `width` tokens that were read."""
        return answer_passes(self.budget, width, [len(ids) for _, ids in fed], self.enough)

    def _score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        options = [getattr(prompt.want, "options", ()) for prompt in prompts]
        asked = [(i, self.asked(prompt)) for i, prompt in enumerate(prompts)]
        for group in grouped(asked):
            run = self.budget.execute(self.source_passes(group), partial(self._logps, group))
            for step, answers in run:
                for number, logps in zip(step.members, answers, strict=True):
                    for owner, targets in group[number].owners:
                        rows = tuple(logps[target] for target in targets)
                        yield owner, Scored(options=options[owner], logps=rows)

    def _logps(self, tasks: Sequence[Task], step: Pass) -> list[dict[Ids, Logps]]:
        """Log-probabilities of the tokens of every answer, for some tasks that open alike."""
        chosen = [tasks[i] for i in step.members]
        logits, rows = self.reader.open(step.work, (self.start, *chosen[0].source.opens))
        answers = [(i, target) for i, task in enumerate(chosen) for target in task.targets]
        first = read_off(logits, [(i, (target[0],)) for i, target in answers])
        del logits
        after = self._after(rows, chosen)
        logps: list[dict[Ids, Logps]] = [{} for _ in chosen]
        for (i, target), opening in zip(answers, first, strict=True):
            logps[i][target] = opening + after.get((i, target), ())
        return logps

    def _after(self, rows: Rows, tasks: Sequence[Task]) -> dict[tuple[int, Ids], Logps]:
        """The same for what follows the first token of each answer of several."""
        fed, through = fed_rows(tasks)

        def forward(step: Pass) -> list[tuple[tuple[int, Ids], Logps]]:
            chosen = [fed[i] for i in step.members]
            widest = step.shapes[0].width
            tokens = [(*ids, *(0,) * (widest - len(ids))) for _, ids in chosen]
            logits = feed(self.model, rows.pick([number for number, _ in chosen]), tokens)
            wanted = [(row, own) for row, i in enumerate(step.members) for own in through[i]]
            reads = [(row * widest, target[1:]) for row, (_, target) in wanted]
            logps = read_off(logits.flatten(0, 1), reads)
            return [(own, each) for (_, own), each in zip(wanted, logps, strict=True)]

        passes = self.answer_passes(rows.states.shape[1], fed)
        return {
            own: logps for _, pairs in self.budget.execute(passes, forward) for own, logps in pairs
        }


def grouped(asked: Sequence[tuple[int, tuple[Source, tuple[Ids, ...]]]]) -> list[list[Task]]:
    """Tasks of distinct sources, in groups whose answers open alike."""
    owners: dict[Source, list[tuple[int, tuple[Ids, ...]]]] = {}
    for position, (source, targets) in asked:
        owners.setdefault(source, []).append((position, targets))
    groups: dict[Ids, list[Task]] = {}
    for source, own in owners.items():
        targets = tuple(dict.fromkeys(target for _, each in own for target in each))
        task = Task(source=source, targets=targets, owners=tuple(own))
        groups.setdefault(source.opens, []).append(task)
    return list(groups.values())


Fed = list[tuple[int, Ids]]
"""Rows of the decoder: the number of a task, and what is fed."""


def fed_rows(tasks: Sequence[Task]) -> tuple[Fed, list[list[tuple[int, Ids]]]]:
    """What is fed after the opening, and for each row the (task, answer) that are read off it."""
    fed: Fed = []
    through: list[list[tuple[int, Ids]]] = []
    for number, task in enumerate(tasks):
        rows, first = beginnings(task.targets), len(fed)
        fed += [(number, ids) for ids in rows]
        through += [[] for _ in rows]
        for target in task.targets:
            if len(target) > 1:
                through[first + row_of(target, rows)].append((number, target))
    return fed, through


def read_off(logits: Any, reads: Sequence[tuple[int, Ids]]) -> list[Logps]:
    """The log-probabilities of some tokens in a row each, from the row named on; [rows, words]."""
    rows = [first + i for first, tokens in reads for i in range(len(tokens))]
    flat = [token for _, tokens in reads for token in tokens]
    logps = iter(token_logps(logits, np.array(rows), np.array(flat)).tolist())
    return [tuple(next(logps) for _ in tokens) for _, tokens in reads]


def first_token(loaded: Loaded) -> int:
    """The token with which the model opens everything it writes."""
    model = loaded.model
    for source in (getattr(model, "generation_config", None), model.config):
        found = getattr(source, "decoder_start_token_id", None)
        if found is None:
            continue
        if not 0 <= (first := token_id(loaded, "decoder_start_token_id", found)) < loaded.rows:
            raise ModelError(
                f"{loaded.name}: decoder_start_token_id is {first}, and the model has "
                f"{loaded.rows} tokens; mend its config.json or generation_config.json"
            )
        return first
    raise ModelError(
        f"{loaded.name} does not say which token its answers open with; give its config.json a "
        "decoder_start_token_id"
    )
