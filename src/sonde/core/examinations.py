"""What a model shows of itself: tokens with a naive second opinion, and what an answer rests on.

Plain data, the same for every backend: a model in this process, or a server that shows its tokens.
How much each token of a prompt spoke for or against an answer is in nats.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sonde.core.answers import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a model can take. `context` in tokens, None for any length.

    `vocabulary` is how many tokens the model has, `tokens` how many its tokenizer has. `bos` is how
    the user wants texts opened: as the tokenizer does (auto), always or never with BOS. `path` says
    how texts go through the model, and `slow` why that is not the quickest way, if it is not.
    `damaged` are the weights that hold NaN or infinity, by name; None where nobody looked.
    """

    context: int | None
    vocabulary: int
    tokens: int
    bos: Literal["auto", "always", "never"] = "auto"
    path: str = ""
    slow: str = ""
    damaged: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """One text as the model is given it, beside what its tokenizer makes of the whole text.

    The answer is ids[start:stop], what is scored after it ids[stop:end]; `pieces` are the tokens'
    texts. `opens` and `closes` are the special tokens that the tokenizer itself puts around a text;
    `bos` are the ids that count as an opening. `content` are the tokens of the text in one piece
    without those, `offsets` their characters, and `apart` its tokens when prefix and answer are
    tokenised one by one. The answer's characters are begin..finish, with
    nothing but spaces between `gap` and begin.
    """

    answer: str
    ids: tuple[int, ...]
    pieces: tuple[str, ...]
    start: int
    stop: int
    end: int
    opens: tuple[int, ...]
    closes: tuple[int, ...]
    bos: frozenset[int]
    content: tuple[int, ...]
    offsets: tuple[tuple[int, int], ...]
    apart: tuple[int, ...]
    gap: int
    begin: int
    finish: int
    unknown: int | None = None

    @property
    def opening(self) -> int:
        """How many tokens that open a text stand at its start."""
        count = 0
        while count < len(self.ids) and self.ids[count] in self.bos:
            count += 1
        return count

    @property
    def closing(self) -> int:
        """How many of the tokens that close a text stand at its end."""
        count = len(self.closes)
        return count if count and self.ids[-count:] == self.closes else 0

    @property
    def inner(self) -> tuple[int, ...]:
        """Its tokens without those that open and close it."""
        return self.ids[self.opening : len(self.ids) - self.closing]


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """What a model shows about one prompt; `refused` says why it could not be shown.

    `texts` hold an answer each. `sources` are only read, by a model that writes its answer into a
    text of its own; then `texts` are what it writes.
    `askable` is False for a prompt the model cannot take, so that it is not put to the model.
    `naive` is the answer computed one text at a time, without any sharing. `shifted` are answers
    that a fault of one place would give, by name of the fault. `totals` are the sums of the
    probabilities of the whole vocabulary at the answer; `likelihood` is the mean log-probability
    of the text's own tokens, and `otherwise` the same had the text been opened the other way.
    """

    limits: Limits
    texts: tuple[Text, ...] = ()
    sources: tuple[Text, ...] = ()
    naive: Answer | None = None
    shifted: Mapping[str, Answer] = field(default_factory=dict)
    totals: tuple[float, ...] = ()
    likelihood: float | None = None
    otherwise: float | None = None
    askable: bool = True
    refused: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token of a prompt: its characters, which are `start` to `stop` of the prompt's text.

    Of tokens that are parts of one character, all but the first have no text.
    """

    text: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """The log-probability of an answer, shared out among the tokens of its prompt.

    `score` is that of the answer after the prompt, `baseline` that after a prompt that says
    nothing. The weights sum to the difference between them, but for at most `error`. Above zero a
    token makes the answer likelier. `steps`: how many gradients were taken.
    """

    answer: str
    tokens: tuple[Token, ...]
    weights: tuple[float, ...]
    score: float
    baseline: float
    error: float
    steps: int

    def __post_init__(self) -> None:
        if len(self.tokens) != len(self.weights):
            raise ValueError(f"{len(self.tokens)} tokens need as many weights")

    @property
    def gap(self) -> float:
        """What there was to share out."""
        return self.score - self.baseline
