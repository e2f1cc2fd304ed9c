"""What is asked of a model, and for whom: blocks of prompts as columns. No gold answers here.

A probe asks in blocks: a frame with a row for each prompt, and one want for all of them. A model is
given several blocks at once as `Prompts`, and may look at columns or at one prompt after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from sonde.core.fact_frames import text_lists
from sonde.core.texts import capitalised, spoken

if TYPE_CHECKING:
    import polars

    Frame = polars.DataFrame

KEY = ("fact", "relation", "template", "subject")
"""Columns that every block has, beside `prefix`, `suffix` and those that its probe adds."""

TEXTS = ("prefix", "suffix")

SHARED = (*KEY, *TEXTS, "options", "spans", "turns")
"""The names of columns that mean the same for every probe."""

Hidden = Literal["answer", "word"]
"""What a masked model does not see beside the token that it predicts: what is right of it there."""

SHOWN = 60
"""Characters of a long text that a message shows on either side of the gap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """Where a prompt comes from: the columns by which answers are joined to facts.

    A prompt that asks about several facts names the first here and all in `Prompt.facts`.
    """

    fact: str
    relation: str
    template: str
    subject: str

    @property
    def told(self) -> str:
        """How a prompt is named in a message: by its fact and template."""
        return f"fact {self.fact!r}, template {self.template!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Ask for the log-probability of each option at the answer's place.

    What follows the answer counts with it, but punctuation alone does not, unless `punctuation` is
    wanted. `capitals`: an option that opens the sentence is written with a capital; the answer
    names it without. `opens`: it opens its sentence whatever stands before it, as a turn of a
    conversation. A block whose rows have options of their own has none here, but a column of them.

    `whole`: every token of the text counts, also those before the answer, which then stand with the
    option's, and what closes the text. A masked model predicts a token of the answer with the rest
    of the answer masked, or, where `hidden` is "word", with the rest of the token's own word; a
    token outside the answer always with the rest of its word.
    """

    options: tuple[str, ...] = ()
    capitals: bool = False
    punctuation: bool = False
    whole: bool = False
    hidden: Hidden = "answer"
    opens: bool = field(default=False, repr=False)

    def texts(self, prefix: str) -> tuple[str, ...]:
        """The options as they are written after `prefix`."""
        opens = self.capitals and (self.opens or not prefix.strip())
        return tuple(map(capitalised, self.options)) if opens else self.options

    def after(self, suffix: str) -> str:
        """What counts of the text after the answer."""
        return suffix if self.punctuation or self.whole else spoken(suffix)


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
    tokens. Spaces that close the prefix are left to the model, as part of its answer. `thinking`:
    how many of those tokens are for what a chat model thinks first; its answer has the others.
    """

    most: int = 32
    until: str = "\n"
    thinking: int = field(default=0, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Ask for `count` continuations drawn from the model as it is: full vocabulary, temperature 1.

    The draws depend on `seed` and on the prompt alone. `most`, `until` and `thinking` as for
    `Generate`.
    """

    count: int = 100
    most: int = 32
    until: str = "\n"
    seed: int = 0
    thinking: int = field(default=0, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Ask for the log-probability of every token of some parts of the prompt's own prefix.

    `spans` are character ranges (start, stop) of `prefix` that rise and do not overlap; the suffix
    is empty. A token belongs to the first span that it shares a character with, so one that
    straddles a span's start is the span's, unless the span before already has it. Some tokenizers
    leave the space before a word a token of its own: it counts only in a span that begins with the
    space. Spans that are to be compared, as `Score` compares options, should all begin there.
    Where a span opens the text, its first token is predicted from the model's start token. A block
    has them in a column.
    """

    spans: tuple[tuple[int, int], ...] = ()


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
    """A text with a gap: `prefix` + answer + `suffix`, and what is wanted there.

    `cloze` is what it asks where it is a single sentence; None where it is anything else. `turns`:
    where in `prefix` the answer of each example begins and ends, so that a chat model may be shown
    examples as turns of its own. `own`: what else tells the probe's prompts apart, by name: texts,
    whole numbers, truths or lists of texts. All prompts of a probe have the same names; each is a
    column of a run.
    """

    key: Key
    prefix: str
    suffix: str = ""
    want: Want
    cloze: Cloze | None = None
    turns: tuple[int, ...] = ()
    own: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def facts(self) -> list[str]:
        """The ids of the facts that are asked about: one, or those of a whole sequence."""
        return self.own.get("facts") or [self.key.fact]

    @property
    def told(self) -> str:
        """How a prompt is named in a message: by the first of its facts and the template."""
        facts = self.facts
        if len(facts) == 1:
            return self.key.told
        first = ", ".join(map(repr, facts[:3])) + (", …" if len(facts) > 3 else "")
        return f"facts {first}, template {self.key.template!r}"


OWN: Mapping[type, str] = {Score: "options", Trace: "spans"}
"""The part of a want that each row of a block may have for itself, in a column of that name."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Block:
    """Prompts that want the same: a row of `frame` each.

    Its columns: `fact`, `relation`, `template`, `subject`; what else tells the probe's prompts
    apart; `prefix` and `suffix`; `turns` where prompts hold examples; and `options` or `spans`
    where each row has its own. `cloze`: each row is a single sentence that asks for the object of
    `subject` in `relation`. `raw`: sent as it is, also to a model that chats.
    """

    frame: Frame
    want: Want
    cloze: bool = False
    raw: bool = False

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:
        return f"<Block: {len(self):,} prompts, to {type(self.want).__name__.lower()}>"

    @property
    def own(self) -> str:
        """The column with what each row wants for itself; empty if all want the same."""
        name = OWN.get(type(self.want), "")
        return name if name in self.frame.columns else ""

    def part(self, start: int, stop: int) -> Block:
        """Some of its rows."""
        whole = start == 0 and stop >= len(self)
        return self if whole else replace(self, frame=self.frame[start:stop])

    def texts(self) -> list[tuple[str, str]]:
        """The text before and after each answer."""
        return list(zip(*(self.frame[name].to_list() for name in TEXTS), strict=True))

    def prompts(self) -> Iterator[Prompt]:
        """One prompt after the other, as an object."""
        own = self.own
        made: dict[Any, Want] = {}  # rows that want the same have the same object
        for row in self.frame.iter_rows(named=True):
            value = _frozen(row[own]) if own else None
            if value not in made:
                made[value] = replace(self.want, **cast(Any, {own: value})) if own else self.want
            yield self._prompt(row, made[value])

    def prompt(self, row: int) -> Prompt:
        """One of them as an object."""
        return next(self.part(row, row + 1).prompts())

    def _prompt(self, row: Mapping[str, Any], want: Want) -> Prompt:
        key = Key(**{name: row[name] for name in KEY})
        cloze = Cloze(relation=key.relation, subject=key.subject) if self.cloze else None
        texts = {name: row[name] for name in TEXTS}
        own = {name: value for name, value in row.items() if name not in SHARED}
        turns = tuple(row.get("turns") or ())
        return Prompt(key=key, want=want, cloze=cloze, turns=turns, own=own, **texts)


@dataclass(frozen=True, kw_only=True, eq=False)
class Prompts(Sequence[Prompt]):
    """Blocks that are put to a model together; as a sequence, one prompt after the other."""

    blocks: tuple[Block, ...]

    def __len__(self) -> int:
        return self.starts[-1]

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where each block begins among all prompts, and where the last one ends."""
        return (0, *accumulate(map(len, self.blocks)))

    @overload
    def __getitem__(self, index: int) -> Prompt: ...
    @overload
    def __getitem__(self, index: slice) -> Prompts: ...
    def __getitem__(self, index: int | slice) -> Prompt | Prompts:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                raise ValueError("prompts are cut into parts that follow each other")
            return self.part(start, stop)
        return self._objects[index]

    def __iter__(self) -> Iterator[Prompt]:
        return iter(self._objects)

    def part(self, start: int, stop: int) -> Prompts:
        """Those from `start` up to `stop`."""
        cut = (
            block.part(max(start - first, 0), stop - first)
            for block, first in zip(self.blocks, self.starts, strict=False)
            if first < stop and start < first + len(block)
        )
        return Prompts(blocks=tuple(cut))

    def column(self, name: str) -> list[Any]:
        """A column of all blocks, such as the relation of each prompt."""
        return [value for block in self.blocks for value in block.frame[name].to_list()]

    def places(self, numbers: Iterable[int]) -> list[int]:
        """Where the prompts of some blocks stand among all."""
        return [i for n in numbers for i in range(self.starts[n], self.starts[n + 1])]

    @cached_property
    def _objects(self) -> list[Prompt]:
        return [prompt for block in self.blocks for prompt in block.prompts()]


def blocks_of(asked: Iterable[Block] | Iterable[Prompt]) -> Iterator[Block]:
    """What a probe asks, in blocks; prompts that it makes one by one are gathered."""
    every = iter(asked)
    for first in every:
        rest: Any = chain([first], every)
        yield from rest if isinstance(first, Block) else gathered(rest)


def prompts_of(asked: Iterable[Block] | Iterable[Prompt]) -> Iterator[Prompt]:
    """What a probe asks, one prompt after the other."""
    for each in asked:
        yield from each.prompts() if isinstance(each, Block) else (each,)


def put(prompts: Sequence[Prompt]) -> Prompts:
    """Prompts as a model is given them."""
    if isinstance(prompts, Prompts):
        return prompts
    return Prompts(blocks=tuple(gathered(prompts)))


def gathered(prompts: Iterable[Prompt], most: int = 4096) -> Iterator[Block]:
    """Prompts that were made one by one, in blocks; each at most so large.

    A new block begins where another thing is wanted; options and spans of their own are columns.
    """
    rows: list[Prompt] = []
    for prompt in prompts:
        if rows and (len(rows) == most or not _alike(rows[-1], prompt)):
            yield _gathered(rows)
            rows = []
        rows.append(prompt)
    if rows:
        yield _gathered(rows)


def _alike(one: Prompt, other: Prompt) -> bool:
    if (one.cloze is None) is not (other.cloze is None):
        return False
    return one.want is other.want or _common(one.want) == _common(other.want)


def _common(want: Want) -> Want:
    """A want without the part that rows may have for themselves."""
    own = OWN.get(type(want))
    return replace(want, **cast(Any, {own: ()})) if own else want


def _gathered(rows: Sequence[Prompt]) -> Block:
    import polars

    first, own = rows[0].want, OWN.get(type(rows[0].want), "")
    columns: dict[str, Any] = {
        name: polars.Series([getattr(row.key, name) for row in rows], dtype=polars.String)
        for name in KEY
    }
    for name in rows[0].own:
        columns[name] = polars.Series([row.own[name] for row in rows])
    for name in TEXTS:
        columns[name] = polars.Series([getattr(row, name) for row in rows], dtype=polars.String)
    if any(row.turns for row in rows):
        turns = [row.turns for row in rows]
        columns["turns"] = polars.Series(turns, dtype=polars.List(polars.Int64))
    shared = not own or (own == "options" and all(row.want is first for row in rows))
    if not shared:
        lists = [getattr(row.want, own) for row in rows]
        pairs = polars.List(polars.List(polars.Int64))
        columns[own] = polars.Series(lists, dtype=pairs) if own == "spans" else text_lists(lists)
    return Block(
        frame=polars.DataFrame(columns),
        want=first if shared else _common(first),
        cloze=rows[0].cloze is not None,
    )


def _frozen(values: Sequence[Any]) -> tuple[Any, ...]:
    nested = bool(values) and isinstance(values[0], list)
    return tuple(map(tuple, values)) if nested else tuple(values)


def called(key: Key, prefix: str, suffix: str = "") -> str:
    """A prompt in a message: what it belongs to, and the text around the gap.

    >>> called(Key(fact="f", relation="r", template="t", subject="s"), "It is ", ".")
    "relation 'r', fact 'f', template 't' ('It is ___.')"
    """
    before = prefix if len(prefix) <= SHOWN else "…" + prefix[-SHOWN:]
    after = suffix if len(suffix) <= SHOWN else suffix[:SHOWN] + "…"
    return f"relation {key.relation!r}, {key.told} ({before + '___' + after!r})"
