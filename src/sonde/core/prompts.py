"""What is asked of a model, and for whom. Gold answers never enter here."""

from __future__ import annotations

import re
from dataclasses import dataclass

SHOWN = 60
"""Characters of a long text that a message shows on either side of the hole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """Where a prompt comes from: the columns by which answers are joined to facts.

    A prompt that asks about several facts names them all in `fact`, a line for each; see `facts`.
    """

    fact: str
    relation: str
    template: str
    subject: str
    context: str = ""

    @property
    def facts(self) -> tuple[str, ...]:
        """The ids of the facts that are asked about: one, or those of a whole sequence."""
        return tuple(self.fact.split("\n"))

    @property
    def told(self) -> str:
        """How a prompt is named in a message: its facts, the first of them, and the template."""
        told = ", ".join(map(repr, self.facts[:3])) + (", …" if len(self.facts) > 3 else "")
        return f"fact{'s' * (len(self.facts) > 1)} {told}, template {self.template!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Ask for the log-probability of each option at the answer's place.

    What follows the answer counts with it, but punctuation alone does not, unless `punctuation` is
    wanted. `capitals`: an option that opens the sentence is written with a capital; the answer
    names it without.
    """

    options: tuple[str, ...]
    capitals: bool = False
    punctuation: bool = False

    def texts(self, prefix: str) -> tuple[str, ...]:
        """The options as they are written after `prefix`."""
        opens = self.capitals and not prefix.strip()
        return tuple(map(capitalised, self.options)) if opens else self.options

    def after(self, suffix: str) -> str:
        """What counts of the text after the answer."""
        return suffix if self.punctuation else spoken(suffix)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """Ask for the likeliest single tokens at the answer's place.

    `vocabulary` restricts what may be answered; `watched` names are reported with their rank even
    when they are not among the `top`. `capitals` as for `Score`.
    """

    top: int = 10
    watched: tuple[str, ...] = ()
    vocabulary: tuple[str, ...] | None = None
    capitals: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Generate:
    """Ask for the likeliest continuation, token by token (greedy).

    It ends at the text `until` (none if empty), at the model's own end of text, or after `most`
    tokens. Spaces that close the prefix are left to the model, as part of its answer.
    """

    most: int = 32
    until: str = "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Ask for `count` continuations drawn from the model as it is: full vocabulary, temperature 1.

    The draws depend on `seed` and on the prompt alone. `most` and `until` as for `Generate`.
    """

    count: int = 100
    most: int = 32
    until: str = "\n"
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Ask for the log-probability of every token of some parts of the prompt's own prefix.

    `spans` are character ranges (start, stop) of `prefix` that rise and do not overlap; the suffix
    is empty. A token belongs to the first span that it shares a character with, so one that
    straddles a span's start is the span's, unless the span before already has it. Some tokenizers
    leave the space before a word a token of its own: it counts only in a span that begins with the
    space. Spans that are to be compared, as `Score` compares options, should all begin there.
    Where a span opens the text, its first token is predicted from the model's start token.
    """

    spans: tuple[tuple[int, int], ...]


Want = Score | Fill | Generate | Sample | Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloze:
    """What a single sentence asks: the object of a subject in a relation, with nothing around it.

    A prompt that is one template of the relation, filled with the subject, may say so. A model can
    then put the same question in other words.
    """

    relation: str
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A text with a hole: `prefix` + answer + `suffix`, and what is wanted of the hole.

    `cloze` is what it asks where it is a single sentence; None where it is anything else.
    """

    key: Key
    prefix: str
    suffix: str = ""
    want: Want
    cloze: Cloze | None = None


def called(key: Key, prefix: str, suffix: str = "") -> str:
    """A prompt in a message: what it belongs to, and the text around the hole.

    >>> called(Key(fact="f", relation="r", template="t", subject="s"), "It is ", ".")
    "relation 'r', fact 'f', template 't' ('It is ___.')"
    """
    before = prefix if len(prefix) <= SHOWN else "…" + prefix[-SHOWN:]
    after = suffix if len(suffix) <= SHOWN else suffix[:SHOWN] + "…"
    return f"relation {key.relation!r}, {key.told} ({before + '___' + after!r})"


def spoken(suffix: str) -> str:
    """A text after the answer, or nothing if it is punctuation only."""
    return suffix if re.search(r"\w", suffix) else ""


def capitalised(text: str) -> str:
    """A text whose first character, spaces aside, is a capital where it has one.

    >>> capitalised("the Hague"), capitalised(" iPhone"), capitalised("1867"), capitalised("")
    ('The Hague', ' IPhone', '1867', '')
    """
    bare = text.lstrip()
    return text[: len(text) - len(bare)] + bare[:1].upper() + bare[1:]
