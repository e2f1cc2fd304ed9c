"""What is sent to a model: prompts as columns. Knows neither models nor correct answers.

A batch is a frame with one row per prompt and one request for all of them. A prompt is a text with
a gap: `prefix`, the answer, `suffix`. Names that many prompts share, such as the options of a
relation, are stored once and referred to by number.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Names = tuple[str, ...]

KEY = ("relation", "fact", "template", "subject")
TEXTS = ("prefix", "suffix")

# Work of a prompt, in quarters of one scored option: what shards are sized by. A filled position
# costs about a quarter of an option.
OPTION = 4
TARGETS_PER_POSITION = 512
CHARACTERS_PER_OPTION = 128


class Request(msgspec.Struct, frozen=True, tag=True):
    """Base of what can be computed at the gap of a prompt. Structs, so that JSON comes free."""


class Score(Request, frozen=True, kw_only=True):
    """The log-probability of every option in the gap.

    Args:
        capitalize: an option that opens the sentence gets a capital.
        punctuation: closing punctuation counts.
        whole: all tokens of the sentence count, as in BEAR, not only those from the answer on.
        mask: what a masked model hides besides the predicted token: the rest of the answer, or the
            rest of its word.
    """

    capitalize: bool = False
    punctuation: bool = False
    whole: bool = False
    mask: Literal["answer", "word"] = "answer"


class FillMask(Request, frozen=True, kw_only=True):
    """The most likely single tokens in the gap, and the rank and log-probability of `targets`.

    `vocabulary` restricts the answers that are allowed; None allows every token.
    """

    top_k: int = 10
    targets: Names = ()
    vocabulary: Names | None = None
    capitalize: bool = False


class Generate(Request, frozen=True, kw_only=True):
    """The greedy continuation of the prefix, up to `stop` or `max_tokens`."""

    max_tokens: int = 32
    stop: str = "\n"
    reasoning_tokens: int = 0


class Sample(Request, frozen=True, kw_only=True):
    """`count` continuations at temperature 1, reproducible by (seed, prompt)."""

    count: int = 100
    max_tokens: int = 32
    stop: str = "\n"
    seed: int = 0
    reasoning_tokens: int = 0


class TokenLogprobs(Request, frozen=True, kw_only=True):
    """The log-probability of each token in some spans of the prefix (column `spans`)."""


AnyRequest = Score | FillMask | Generate | Sample | TokenLogprobs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PromptBatch:
    """Prompts with the same request.

    Args:
        frame: relation, fact, template, subject; then the probe's own columns; prefix, suffix;
            `options_id` if prompts differ in their options, `spans` for TokenLogprobs.
        request: what is computed for each of them.
        options: lists of options, numbered by `options_id` (without that column: number 0).
        cloze: each prompt is one template filled with its subject and nothing else.
        raw: sent as it is, also to a model that chats.
    """

    frame: pl.DataFrame
    request: AnyRequest
    options: Sequence[Names] = ()
    cloze: bool = False
    raw: bool = False

    @classmethod
    def of(cls, prompts: Iterable[Mapping[str, Any]], request: AnyRequest) -> "PromptBatch":
        """A batch of prompts that were made one by one; each may have its own `options`.

        Example:
            >>> PromptBatch.of([dict(relation="P36", fact="f", template="t", subject="France",
            ...                      prefix="The capital of France is", suffix=".")], Generate())
        """
        rows: list[dict[str, Any]] = []
        numbers: dict[Names, int] = {}
        for prompt in prompts:
            row = {**prompt, "suffix": prompt.get("suffix", "")}
            if "options" in row:
                names = tuple(row.pop("options"))
                row["options_id"] = numbers.setdefault(names, len(numbers))
            rows.append(row)
        frame = pl.DataFrame(rows, infer_schema_length=None)
        return cls(frame=frame, request=request, options=tuple(numbers))

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:
        return f"<PromptBatch: {len(self):,} prompts, {type(self.request).__name__}>"

    def select(self, rows: slice | Ints) -> "PromptBatch":
        """Some of the prompts, in the order given."""
        return replace(self, frame=self.frame[rows])

    def options_ids(self) -> Ints:
        """The number of each prompt's options."""
        if "options_id" in self.frame.columns:
            return self.frame["options_id"].to_numpy()
        return np.zeros(len(self), dtype=np.int64)

    def weights(self) -> Ints:
        """The work of each prompt."""
        if isinstance(self.request, Score):
            ids, index = np.unique(self.options_ids(), return_inverse=True)
            return OPTION * np.array([max(len(self.options[i]), 1) for i in ids])[index]
        if isinstance(self.request, TokenLogprobs):
            characters = self.frame["prefix"].str.len_chars().to_numpy().astype(np.int64)
            return OPTION * (1 + characters // CHARACTERS_PER_OPTION)
        if isinstance(self.request, FillMask):
            return np.full(len(self), 1 + len(self.request.targets) // TARGETS_PER_POSITION)
        return np.full(len(self), OPTION)


@dataclass(frozen=True, kw_only=True, eq=False)
class Shard:
    """Batches that are answered and stored together, as file `number` of a run."""

    number: int
    batches: tuple[PromptBatch, ...]

    def __len__(self) -> int:
        return sum(map(len, self.batches))

    @cached_property
    def weight(self) -> int:
        """The work of all its prompts."""
        return sum(int(batch.weights().sum()) for batch in self.batches)
