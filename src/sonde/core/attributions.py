"""How much each token of a prompt spoke for or against an answer. Plain numbers, in nats."""

from __future__ import annotations

from dataclasses import dataclass


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
