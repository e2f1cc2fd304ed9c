"""Encoder-decoder language models: they read the prompt and are scored on writing the answer.

Equal prompts are read once, and what was read is kept for what else is asked of them, until the
model is told to forget. The options' first tokens are read off one pass; what follows goes through
the decoder in rows, and a text that is written is a row too, with its cache. Reading looks both
ways, so prompts that only begin alike share nothing. `reference` is the naive twin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, cast

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

from sonde.core.abilities import Ability, Identity, Named
from sonde.core.answers import Generated, Sampled
from sonde.core.costs import ShardCost
from sonde.core.errors import AbilityError, ModelError, PromptError
from sonde.core.progress import advance
from sonde.core.prompts import Prompt, Score
from sonde.core.rated import RatedColumns, ends_of, taken
from sonde.engine.batching import Budget
from sonde.engine.endings import Endings
from sonde.engine.limits import check_room, check_text, naming
from sonde.engine.prefixes import SourceCache
from sonde.engine.schedule import Pass, Passes, answer_passes, source_passes
from sonde.engine.seq2seq_encode import Ids, Seq2SeqEncoder, Source, beginnings, row_of
from sonde.models.torch.decode.steps import Leaf, end_tokens
from sonde.models.torch.decode.tree_decoder import LeafWriter, Step
from sonde.models.torch.decode.writer import Written
from sonde.models.torch.loading.budgets import Budgets, explain_oom
from sonde.models.torch.loading.device import float_logits, padded, token_logps
from sonde.models.torch.loading.weights import Loaded, identify, token_id

BATCH_TOKENS: Mapping[str, Mapping[Ability, int]] = {
    "cpu": {"score": 16_384, "generate": 16_384, "sample": 16_384},
    "cuda": {"score": 131_072, "generate": 131_072, "sample": 131_072},
}
"""Tokens read, times the rows that look at them."""

ENOUGH = {"cpu": 2048, "cuda": 32_768}
"""Tokens from which a batch is better read than filled up with shorter texts and padding."""

READ_BYTES = {"cpu": 2**29, "cuda": 2**32}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What was read ([rows, tokens, width] and its mask) and the keys and values so far."""

    states: Any
    mask: Any
    cache: Any

    def pick(self, rows: Sequence[int]) -> Rows:
        """Some rows, each as often as named, with a cache of their own."""
        index = torch.tensor(list(rows), device=self.states.device)
        own, cross = DynamicCache(), DynamicCache()
        kept = (self.cache.self_attention_cache, self.cache.cross_attention_cache)
        for new, old in zip((own, cross), kept, strict=True):
            for number, layer in enumerate(old.layers):
                here = index.to(layer.keys.device)
                keys, values = (t.index_select(0, here) for t in (layer.keys, layer.values))
                new.update(keys, values, number)
        return Rows(
            states=self.states.index_select(0, index),
            mask=self.mask.index_select(0, index),
            cache=EncoderDecoderCache(own, cross),
        )

    def going_on(self, rows: Sequence[int]) -> Rows:
        """The same where these are not needed any more: nothing is copied while all go on."""
        return self if list(rows) == list(range(len(self.states))) else self.pick(rows)


class Reader:
    """Reads texts, each once until it is told to forget, while there is room for what was read."""

    def __init__(self, model: Any, room: int) -> None:
        self.model = model
        token = model.get_input_embeddings().weight.shape[-1] * model.dtype.itemsize
        self.cache: SourceCache[Any] = SourceCache(room, token)

    def open(self, sources: Sequence[Ids], opening: Sequence[int]) -> tuple[Any, Rows]:
        """Read some texts and feed what opens every answer; logits after it, [rows, vocabulary]."""
        try:
            read = self._states(sources)
            states = pad_sequence(read, batch_first=True)
            mask = pad_sequence([torch.ones(len(each)) for each in read], batch_first=True).long()
            cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
            rows = Rows(states=states, mask=mask.to(states.device), cache=cache)
            return feed(self.model, rows, [list(opening)] * len(sources), last=True)[:, 0], rows
        except Exception:
            self.cache.clear()  # if memory ran out, what is kept is the first to go
            raise

    def _states(self, sources: Sequence[Ids]) -> list[Any]:
        missing = self.cache.missing(sources)
        new = dict(zip(missing, read(self.model, missing), strict=True))
        states = [self.cache.kept[ids] if ids in self.cache.kept else new[ids] for ids in sources]
        for ids, state in new.items():
            self.cache.keep(ids, state.clone)  # or the whole batch would stay in memory
        return states


@torch.inference_mode()
def read(model: Any, sources: Sequence[Ids]) -> list[Any]:
    """What the encoder makes of some texts, [tokens, width] each; padding is not looked at."""
    if not sources:
        return []
    states = model.get_encoder()(**padded(model.device, sources)).last_hidden_state
    return [states[i, : len(source)] for i, source in enumerate(sources)]


@torch.inference_mode()
def feed(model: Any, rows: Rows, tokens: Sequence[Sequence[int]], *, last: bool = False) -> Any:
    """Feed tokens to every row, as many to each; logits after each token, [rows, tokens, words].

    `last`: only after the last one. The cache of the rows grows with it.
    """
    output = model(
        encoder_outputs=BaseModelOutput(last_hidden_state=rows.states),
        attention_mask=rows.mask,
        decoder_input_ids=torch.tensor(list(tokens), device=model.device),
        past_key_values=rows.cache,
        use_cache=True,
    )
    return output.logits[:, -1:] if last else output.logits


class Seq2SeqDecoder(LeafWriter):
    """Writes texts and draws samples with an encoder-decoder model."""

    def __init__(
        self, loaded: Loaded, encoder: Seq2SeqEncoder, reader: Reader, budget: Budget, start: int
    ) -> None:
        opening = (start, *encoder.opens)
        super().__init__(Endings(loaded.backend, end_tokens(loaded)), opened=len(opening))
        self.loaded = loaded
        self.encoder = encoder
        self.reader = reader
        self.budget = budget
        self.opening = opening

    def tokenised(self, texts: Sequence[str]) -> list[Sequence[int]]:
        """Nothing yet: what is read depends on more than the text."""
        return [()] * len(texts)

    def ids(self, prompt: Prompt, tokens: Sequence[int], most: int) -> tuple[int, ...]:
        """What is read."""
        ids = self.encoder.source(prompt.prefix).ids
        check_text(len(ids), max(ids), self.loaded)
        check_room(self.opening, most, self.loaded)
        return ids

    def tail(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """What is written follows what opens every answer."""
        return self.opening

    def passes(self, leaves: Sequence[Leaf]) -> Passes:
        """Some prompts at a time; a prompt needs as many rows as it may have texts."""
        rows = [sum(leaf.shares.values()) for leaf in leaves]
        sources = [leaf.root.ids for leaf in leaves]
        return source_passes(self.budget, sources, self.opened, rows=rows)

    def texts(self, leaves: list[Leaf], step: Step) -> Iterator[tuple[list[Leaf], list[Written]]]:
        """All that is written after some prompts at a time."""
        grow = partial(self._grown, leaves, step)
        for each, written in self.budget.execute(self.passes(leaves), grow):
            yield [leaves[i] for i in each.members], written

    def _grown(self, roots: Sequence[Leaf], step: Step, batch: Pass) -> list[Written]:
        leaves = [roots[i] for i in batch.members]
        logits, rows = self.reader.open(batch.work, self.opening)
        ended: list[Written] = []
        while leaves:
            written, children = step(logits, leaves)
            ended += written
            leaves = [leaf for _, leaf in children]
            if leaves:
                rows = rows.going_on([row for row, _ in children])
                last = [[leaf.path[-1]] for leaf in leaves]
                logits = feed(self.loaded.model, rows, last)[:, -1]
        return ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Answers to score after one source, and which prompts want which of them."""

    source: Source
    targets: tuple[Ids, ...]
    owners: tuple[tuple[int, tuple[Ids, ...]], ...]


class Seq2SeqModel(Named):
    """A model that reads a text and writes another."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self.model = loaded.model
        self.encoder = Seq2SeqEncoder(loaded.backend)
        self.start = first_token(loaded)
        device = loaded.device.split(":")[0]
        self.budgets = Budgets(loaded, BATCH_TOKENS, read=1 / 8)
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

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[np.ndarray, RatedColumns]]:
        """Yield (positions, log-probabilities of every option's tokens)."""
        return explain_oom(self._score(prompts))

    def generate(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Generated]]:
        """Yield (position, answer) with the likeliest text for every prompt."""
        return explain_oom(self.decoder().generate(prompts))

    def sample(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Sampled]]:
        """Yield (position, answer) with texts drawn from the model."""
        return explain_oom(self.decoder("sample").sample(prompts))

    def estimate_costs(self, shards: Iterable[Sequence[Prompt]]) -> Iterator[ShardCost]:
        """What each shard would cost, in turn."""
        from sonde.models.torch.costs import seq2seq_costs  # it knows this class

        return seq2seq_costs(self, shards)

    @property
    def enough(self) -> int:
        """Tokens from which a batch of what is scored is better read than filled up."""
        return min(ENOUGH[self.loaded.device.split(":")[0]], self.budgets["score"].tokens)

    def decoder(self, kind: Literal["generate", "sample"] = "generate") -> Seq2SeqDecoder:
        """What writes texts."""
        budget = self.budgets[kind]
        return Seq2SeqDecoder(self.loaded, self.encoder, self.reader, budget, self.start)

    def asked(self, prompt: Prompt) -> tuple[Source, tuple[Ids, ...]]:
        """What is read and what may be answered, refused if the model cannot take it."""
        want = prompt.want
        if not isinstance(want, Score):
            raise AbilityError("score() takes prompts that want Score(…)")
        with naming(prompt):
            if not want.options:
                raise PromptError("there is no option to score")
            if want.whole:
                raise PromptError(
                    "an encoder-decoder model reads the sentence and writes the answer, so it has "
                    "no score of whole sentences; score the answers alone"
                )
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
        return source_passes(self.budgets["score"], sources, opening, enough=self.enough)

    def answer_passes(self, width: int, fed: Sequence[tuple[int, Ids]]) -> Passes:
        """How rows of answers are fed, all of which see `width` tokens that were read."""
        lengths = [len(ids) for _, ids in fed]
        return answer_passes(self.budgets["score"], width, lengths, self.enough)

    def _score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[np.ndarray, RatedColumns]]:
        asked = [(i, self.asked(prompt)) for i, prompt in enumerate(prompts)]
        options = [cast(Score, prompt.want).options for prompt in prompts]
        for group in grouped(asked):
            read = partial(self._logps, group)
            run = self.budgets["score"].execute(self.source_passes(group), read)
            for step, (ends, logps) in run:
                chosen = [group[i] for i in step.members]
                answers = numbered(chosen)
                owners = [(i, *owner) for i, task in enumerate(chosen) for owner in task.owners]
                wanted = np.array([answers[i, target] for i, _, own in owners for target in own])
                counts, places = np.diff(ends)[wanted], taken(ends, wanted)[1]
                named = [options[owner] for _, owner, _ in owners]
                columns = RatedColumns.scored(named, logps[places], counts)
                yield np.array([owner for _, owner, _ in owners]), columns

    def _logps(self, tasks: Sequence[Task], step: Pass) -> tuple[np.ndarray, np.ndarray]:
        """Log-probabilities of every distinct answer's tokens for some tasks that open alike.

        They are laid end to end; given first is where each answer begins.
        """
        chosen = [tasks[i] for i in step.members]
        logits, rows = self.reader.open(step.work, (self.start, *chosen[0].source.opens))
        answers = list(numbered(chosen))
        ends = ends_of([len(target) for _, target in answers])
        logps = np.empty(ends[-1], dtype=np.float32)
        first = np.array([(task, target[0]) for task, target in answers])
        logps[ends[:-1]] = token_logps(logits, *first.T).cpu().numpy()
        del logits
        self._read_after(rows, chosen, ends, logps)
        return ends, logps

    def _read_after(
        self, rows: Rows, tasks: Sequence[Task], ends: np.ndarray, logps: np.ndarray
    ) -> None:
        """Lay what follows the first token of each answer behind it."""
        fed, through = fed_rows(tasks)
        targets = [target for task in tasks for target in task.targets]

        def forward(step: Pass) -> tuple[np.ndarray, np.ndarray]:
            chosen = [fed[i] for i in step.members]
            widest = step.shapes[0].width
            tokens = [(*ids, *(0,) * (widest - len(ids))) for _, ids in chosen]
            logits = feed(self.model, rows.pick([task for task, _ in chosen]), tokens)
            reads = [
                (ends[number] + k, row * widest + k - 1, targets[number][k])
                for row, i in enumerate(step.members)
                for number in through[i]
                for k in range(1, len(targets[number]))
            ]
            places, before, wanted = np.array(reads).T
            return places, token_logps(logits.flatten(0, 1), before, wanted).cpu().numpy()

        passes = self.answer_passes(rows.states.shape[1], fed)
        options = sum(len(own) for task in tasks for _, own in task.owners)
        for step, (places, values) in self.budgets["score"].execute(passes, forward):
            logps[places] = values
            advance(len(step.members) * options / len(fed))


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


def numbered(tasks: Sequence[Task]) -> dict[tuple[int, Ids], int]:
    """The distinct (task, answer) of some tasks, in order, and the number of each."""
    pairs = [(i, target) for i, task in enumerate(tasks) for target in task.targets]
    return {pair: number for number, pair in enumerate(pairs)}


def fed_rows(tasks: Sequence[Task]) -> tuple[list[tuple[int, Ids]], list[list[int]]]:
    """Rows of the decoder: the task and what is fed, and the answers that are read off each.

    Answers are as `numbered` has them.
    """
    fed: list[tuple[int, Ids]] = []
    through: list[list[int]] = []
    answers = numbered(tasks)
    for task, targets in enumerate(each.targets for each in tasks):
        rows, first = beginnings(targets), len(fed)
        fed += [(task, ids) for ids in rows]
        through += [[] for _ in rows]
        for target in targets:
            if len(target) > 1:
                through[first + row_of(target, rows)].append(answers[task, target])
    return fed, through


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
