"""Prompts as turns of a conversation, written by a model's own chat template.

A prompt's text goes into the user's turn and its answer into the assistant's, where it is scored or
written. Examples may be turns of their own. Where text follows the gap, the user's turn shows the
sentence with a gap, and the assistant's turn goes on with that text behind the answer. What stands
in a turn is the prompt's text but for spaces at its ends. Knows a tokenizer of transformers and
texts; nothing of models.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from sonde.core.answers import CLOSED, OPENED
from sonde.core.errors import AbilityError, PromptError
from sonde.core.fingerprints import fingerprint
from sonde.core.prompts import Block, Generate, Sample, Score, Trace, Want
from sonde.core.texts import spoken
from sonde.engine.control_tokens import shielded
from sonde.engine.encode import CausalEncoder, Start
from sonde.engine.endings import Endings, Thoughts
from sonde.models.chat_templates import RENDERER, RenderError

if TYPE_CHECKING:
    from sonde.engine.token_texts import TokenTexts
    from sonde.models.options import LoadOptions

GAP = "___"
"""What stands in the user's turn where the answer belongs, if the sentence goes on behind it."""

DAY = {"%d": "26", "%b": "Jul", "%B": "July", "%m": "07", "%Y": "2024", "%y": "24", "%A": "Friday"}
"""The day that templates write which ask for today's: prompts are to be the same on every day.

It is what those of Llama 3 write where nobody tells them.
"""

MARK = "\ufdd1"
ODD = re.compile(r"[<\[{|\ufdd0\ufdd1]")
"""What may mean something to a template: a text that holds it is given to the template itself."""

Turns = tuple[str, ...]
"""What user and assistant say in turn; the user has the last word."""


class Render(Protocol):
    """A chat template: a conversation as one text, as it writes it."""

    def __call__(self, system: str, turns: Turns, *, thoughts: bool) -> str:
        """It ends where the assistant is to answer; with the answer, where that is the last turn.

        `thoughts`: whether the assistant is to think first, in templates that leave it the choice.
        """


@dataclass(frozen=True, kw_only=True, eq=False)
class Chat:
    """How a model is asked in turns.

    `specials`: every special token of its tokenizer, by its text. `examples`: whether these are
    turns of their own, "turns", or stand before the question in one, "one". `thinking`: tokens that
    may stand before a written answer, for text between <think> and </think>; with none, and where
    options are scored, the assistant answers at once.
    """

    render: Render
    specials: dict[str, int]
    template: str
    system: str = ""
    examples: str = "turns"
    thinking: int = 0
    opening: ClassVar[str] = "as the chat template has it"

    @property
    def identity(self) -> dict[str, str]:
        """What decides how prompts are put, for the manifest."""
        said = {"system": self.system, "examples": self.examples, "thinking": str(self.thinking)}
        return {"template": fingerprint([self.template]), **said}

    @cached_property
    def controls(self) -> tuple[str, ...]:
        """The special tokens that the template writes."""
        written = self._text((MARK,) * 3) + self._text((MARK,) * 4)
        return tuple(text for text in self.specials if text in written)

    @cached_property
    def ends(self) -> frozenset[int]:
        """The token with which the template ends an answer, if it is one."""
        after = self._text((MARK, MARK)).rpartition(MARK)[2].lstrip()
        found = [text for text in self.controls if after.startswith(text)]
        return frozenset(self.specials[text] for text in found)

    @cached_property
    def space(self) -> str:
        """What an answer begins with in the template's own conversations: a space, or nothing."""
        opening = self._text((MARK,)).rpartition(MARK)[2]
        before = self._text((MARK, MARK)).rpartition(MARK)[0].rpartition(MARK)[2]
        between = before.removeprefix(opening)
        return "" if between.strip(" ") or between == before else between

    @cached_property
    def thoughts(self) -> Thoughts:
        """Whether thoughts stand before a written answer, and whether the template opens them."""
        opened = self._text((MARK,), thoughts=True).rstrip().endswith(OPENED)
        return "begun" if self.thinking and opened else "may be"

    def __getstate__(self) -> dict[str, Any]:
        """All but what is kept for speed, for a process that renders elsewhere."""
        return {name: value for name, value in vars(self).items() if name != "_pieces"}

    def conversation(self, turns: Turns, *, thoughts: bool = False) -> str:
        """What user and assistant say in turn, as one text up to where the answer is to stand."""
        said = tuple(shielded(turn, self.controls) for turn in turns)
        pieces = self._pieces(len(said), thoughts)
        if pieces is None or any(map(ODD.search, said)):
            text = self._text(said, thoughts=thoughts)
        else:
            parts = (f"{piece}{turn}" for piece, turn in zip(pieces, said, strict=False))
            text = "".join(parts) + pieces[-1]
        bare = text.rstrip()
        if not thoughts and bare.endswith(OPENED):  # it would have the assistant think
            text = f"{bare}\n\n{CLOSED}\n\n"
        return text + self.space

    def placed(self, text: str, cuts: Sequence[int]) -> tuple[str, list[tuple[int, int, int]]]:
        """A prompt's text as a conversation, and what of that is the text's own.

        That is a stretch a turn: where it begins there, where in the text, and its characters.
        """
        cuts = cuts if self.examples == "turns" else ()
        turns = turns_of(text, "", cuts)
        whole, at, found = self.conversation(turns), 0, []
        around = self._pieces(len(turns), False) or ()
        for piece, turn, start in zip(around, turns, (0, *cuts), strict=False):
            at += len(piece)
            found.append((at, text.find(turn, start), len(turn)))
            at += len(turn)
        if not found or any(whole[a : a + n] != text[b : b + n] for a, b, n in found):
            raise PromptError(
                f"the chat template does not write the words of {text!r} as they are, so that "
                "they cannot be told from its own; leave out --chat always"
            )
        return whole, found

    def in_turns(self, block: Block) -> Iterator[Block]:
        """The prompts of a block as conversations; in parts, where options open some sentences."""
        if isinstance(block.want, Trace):
            yield self._traced(block)
            return
        apart = isinstance(block.want, Score) and block.want.capitals
        blank = [not prefix.strip() for prefix in block.frame["prefix"].to_list()]
        for opens, own in groupby(range(len(block)), key=lambda row: apart and blank[row]):
            rows = list(own)
            yield self._asked(block.part(rows[0], rows[-1] + 1), opens=opens)

    def _asked(self, block: Block, *, opens: bool) -> Block:
        frame = block.frame
        cuts = [()] * len(block)
        if self.examples == "turns" and "turns" in frame.columns:
            cuts = [each or () for each in frame["turns"].to_list()]
        thoughts = self.thinking > 0 and not isinstance(block.want, Score)
        rows = zip(frame["prefix"].to_list(), frame["suffix"].to_list(), cuts, strict=True)
        texts = [self.conversation(turns_of(*row), thoughts=thoughts) for row in rows]
        want = self._want(block.want, opens=opens)
        return replace(block, frame=_with(frame, prefix=texts), want=want, cloze=False)

    def _want(self, want: Want, *, opens: bool) -> Want:
        if isinstance(want, Score):
            # what stands before the answer is the user's, and is the same for every option
            after = want.whole or want.punctuation
            return replace(want, opens=opens, whole=False, punctuation=after)
        if isinstance(want, Generate | Sample):
            return replace(want, most=want.most + self.thinking, thinking=self.thinking)
        raise AbilityError("a conversation ends with its answer, so that no gap in it is filled")

    def _traced(self, block: Block) -> Block:
        """Texts that are read in parts: the assistant speaks from the first part on."""
        read = [self._read(*row) for row in block.frame.select("prefix", "spans").iter_rows()]
        texts, spans = zip(*read, strict=True)
        return replace(block, frame=_with(block.frame, prefix=texts, spans=spans), cloze=False)

    def _read(self, text: str, spans: Sequence[Sequence[int]]) -> tuple[str, list[list[int]]]:
        """A text whose parts are read as a conversation, and where its parts stand in that."""
        first = spans[0][0]
        before = self.conversation((text[:first].strip(),))
        whole = before + shielded(text[first:].lstrip(" "), self.controls)
        # counted from the end: before the first part is the user's turn, and shields are after it
        places = [[len(whole) - len(self._shielded(text[at:])) for at in span] for span in spans]
        places[0][0] = len(before.rstrip(" ") if text[first] == " " else before)
        return whole, places

    def _shielded(self, text: str) -> str:
        return shielded(text, self.controls)

    def _text(self, turns: Turns, *, thoughts: bool = False) -> str:
        try:
            return self.render(self.system, turns, thoughts=thoughts)
        except RenderError as error:
            raise PromptError(
                f"the chat template cannot be rendered ({error}); leave out --chat always"
            ) from None

    @cached_property
    def _pieces(self) -> Callable[[int, bool], Turns | None]:
        """What the template writes around so many turns; None if that depends on what they say."""

        def pieces(count: int, thoughts: bool) -> Turns | None:
            marks = [f"{MARK}{number}{MARK}" for number in range(count)]
            parts = re.split("|".join(marks), self._text(tuple(marks), thoughts=thoughts))
            return tuple(parts) if len(parts) == count + 1 else None

        return lru_cache(maxsize=64)(pieces)


def encoder_of(tokenizer: Any, start: Start, chat: Chat | None) -> CausalEncoder:
    """What turns prompts into tokens; a chat template itself writes what opens a text."""
    if chat is None:
        return CausalEncoder(tokenizer, start)
    return CausalEncoder(tokenizer, replace(start, always=False), chat.controls)


def endings_of(
    tokenizer: Any,
    ends: frozenset[int],
    chat: Chat | None,
    pieces: TokenTexts | None = None,
) -> Endings:
    """What finds the ends of written texts, one of which is the end of a turn."""
    if chat is None:
        return Endings(tokenizer, ends, pieces)
    return Endings(tokenizer, ends | chat.ends, pieces, chat.thoughts)


def turns_of(prefix: str, suffix: str, cuts: Sequence[int]) -> Turns:
    """What is said in turn: examples and their answers, and what is asked last.

    >>> turns_of("Q: A? B Q: C?", "", (6, 8))
    ('Q: A?', 'B', 'Q: C?')
    >>> turns_of("", " is in Asia.", ())
    ('___ is in Asia.',)
    """
    *before, last = (prefix[a:b].strip() for a, b in pairwise((0, *cuts, len(prefix))))
    if spoken(suffix) or not last:
        start = cuts[-1] if cuts else 0
        last = f"{prefix[start:]}{GAP}{suffix}".strip()
    return (*before, last)


def _with(frame: Any, **columns: Any) -> Any:
    import polars

    kinds: dict[str, Any] = {
        "prefix": polars.String,
        "spans": polars.List(polars.List(polars.Int64)),
    }
    made = [polars.Series(name, list(values), kinds[name]) for name, values in columns.items()]
    return frame.drop("turns", strict=False).with_columns(made)


def chat_of(tokenizer: Any, options: LoadOptions, name: str) -> Chat | None:
    """How a model with this tokenizer of transformers is asked in turns; None if it is not to be.

    `name`: the model's, for messages.
    """
    if options.chat == "never":
        return None
    template = template_of(tokenizer)
    if not template:
        raise AbilityError(
            f"{name} has no chat template, so that it cannot be asked in turns; leave out --chat "
            "always, or name the model that was tuned for conversations"
        )
    added = tokenizer.backend_tokenizer.get_added_tokens_decoder()
    chat = Chat(
        render=partial(_rendered, tokenizer, _dated(template)),
        specials={token.content: id for id, token in added.items() if token.special},
        template=template,
        system=options.chat_system,
        examples=options.chat_examples,
        thinking=options.chat_thinking,
    )
    if why := _fails(chat):
        system = options.chat_system and not _fails(replace(chat, system=""))
        what = "takes no system text" if system else "cannot be used"
        advice = "leave out --chat-system" if system else "leave out --chat always"
        raise AbilityError(f"the chat template of {name} {what} ({why}); {advice}")
    return chat


def template_of(tokenizer: Any) -> str:
    """The chat template of a tokenizer of transformers; empty where it has none."""
    try:
        return str(tokenizer.get_chat_template())
    except ValueError:
        return ""


def _dated(template: str) -> str:
    """A template for which it is always the same day."""
    if "strftime_now" not in template:
        return template
    parts = "".join(f" | replace('{sign}', '{text}')" for sign, text in DAY.items())
    return f"{{% macro strftime_now(form) %}}{{{{ form{parts} }}}}{{% endmacro %}}{template}"


def _rendered(tokenizer: Any, template: str, system: str, turns: Turns, *, thoughts: bool) -> str:
    said = [
        {"role": ("user", "assistant")[number % 2], "content": turn}
        for number, turn in enumerate(turns)
    ]
    first = [{"role": "system", "content": system}] if system else []
    return RENDERER.render(
        template,
        first + said,
        add_generation_prompt=len(turns) % 2 == 1,
        **{**tokenizer.special_tokens_map, "enable_thinking": thoughts},
    )


def _fails(chat: Chat) -> str:
    """Why a template cannot be used; empty where it can."""
    try:
        texts = [chat.render(chat.system, (MARK,) * count, thoughts=False) for count in range(1, 5)]
    except RenderError as error:
        return str(error)
    lost = [count for count, text in enumerate(texts, 1) if text.count(MARK) != count]
    return "it does not write every turn once" if lost else ""
