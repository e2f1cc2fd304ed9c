"""Force tokens on a server by several routes, have it write and draw; refuse the strange.

Each test tries one thing in one dialect, and says why it does not work.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import exp
from typing import Any

from sonde.core.errors import ServerError, UsageError
from sonde.models.served.asking import Fails, ask_all
from sonde.models.served.asks import (
    Ask,
    Draw,
    Floats,
    Ids,
    Kind,
    Next,
    Rate,
    Spell,
    Write,
    Written,
)
from sonde.models.served.dialect import Dialect
from sonde.models.served.reading import Text, cheapest
from sonde.models.served.tokens import LocalTokens
from sonde.models.served.transport import Transport

SENTENCE = "The capital of France is"
PANGRAM = "Sphinx of black quartz, judge my vow"
ALIKE = 8
"""Tokens of one text that are tried, where the server tells texts alone."""

FORCED = 3
"""Unlikely tokens that are forced behind it."""

WRITTEN, DRAWN = 8, 8
"""Tokens that are written behind it, and texts that are drawn."""

SPELLED = 24
"""Tokens from all over the vocabulary that a server must spell as the local tokenizer does."""

APART, RELATIVE = 0.25, 0.02
"""How far two routes to one log-probability may lie apart, in nats and of its size.

Half precision is that coarse on unlikely tokens; a wrong number is farther off.
"""

SAME = 1e-7
"""Numbers of different tokens that are nearer than this are one number given twice."""

BATCH = 32
"""Asks in a request to a server that takes several."""


class Tests:
    """What is tried with a server; `rated` and `nexts` are the same numbers by two routes.

    `heard`: what asks were answered with. `spread`: how far numbers lay apart that were asked for
    in two ways which agree.
    """

    def __init__(self, dialect: Dialect, transport: Transport, tokens: LocalTokens) -> None:
        self.dialect, self.transport, self.tokens = dialect, transport, tokens
        encoder = tokens.encoder
        self.opening = encoder.opened(SENTENCE, encoder.to_open([SENTENCE])[0])
        self.words = unlikely(tokens, SPELLED)
        self.forced = self.words[:FORCED]
        self.rated: list[float] | None = None
        self.nexts: list[float] | None = None
        self.written: Written | None = None
        self.drawn: list[Written] = []
        self.spelled: str | None = None
        self.heard: dict[Ask, Any] = {}
        self.spread = 0.0

    def rate(self) -> None:
        """Force tokens by putting them into the prompt: together and one at a time."""
        start, ids = len(self.opening), self.opening + self.forced
        (together,) = self.ask(Rate(ids, start))
        steps = [Rate(ids[: start + n + 1], start + n) for n in range(len(self.forced))]
        alone = [float(self.ask(step)[0][0]) for step in steps]
        if not self.agree(together, alone):
            raise Fails(
                f"it gives forced tokens {shown(together)} in one text and {shown(alone)} "
                "one by one, so that its numbers belong to other tokens or depend on what follows"
            )
        others = self.rated_behind(self.forced)
        refuse_strange(others, together)
        self.rated = [*together, *others]

    def agree(self, one: Any, other: Any) -> bool:
        """Whether two ways to the same numbers agree; how far they lie apart is kept."""
        if good := near(one, other):
            self.spread = max(self.spread, apart(one, other))
        return good

    def rated_behind(self, ids: Ids) -> list[float]:
        """The log-probability of each of some tokens behind the sentence."""
        start = len(self.opening)
        return [float(self.ask(Rate((*self.opening, id), start))[0][0]) for id in ids]

    def next(self) -> None:
        """Ask for tokens that follow a text, all of them unlikely."""
        ids = self.opening + self.forced
        starts = range(len(self.opening), len(ids))
        chain = [Next(ids[:n], (ids[n],)) for n in starts]
        found = [float(self.ask(step)[0][0]) for step in chain]
        (others,) = self.ask(Next(self.opening, self.forced))
        refuse_strange(others, found)
        if not self.agree(others[:1], found[:1]):
            raise Fails(
                f"it gives a token {shown(found[:1])} by itself and {shown(others[:1])} beside "
                "others, so that its numbers depend on what else is asked"
            )
        self.nexts = [*found, *others]

    def write(self) -> None:
        """Have some tokens written."""
        (self.written,) = self.ask(Write(self.opening, WRITTEN, ""))
        forced = self.rated is not None or self.nexts is not None
        if not self.written.logps and not (forced and self.written.ids):  # which may be read
            raise Fails("it gives no log-probabilities of what it writes")
        refuse_constant(self.written.logps)
        self.reads_beginnings()

    def reads_beginnings(self) -> None:
        """Have texts written after prompts that begin otherwise: what is read decides numbers."""
        ends = self.words[1:] + self.opening
        texts = [Write((first, *ends), 2, "") for first in self.words[:2]]
        one, other = (self.ask(text)[0] for text in texts)
        if one.logps and one.text == other.text and apart(one.logps, other.logps) < SAME / 100:
            raise Fails("what it writes does not depend on how a prompt begins: it is cut")

    def write_agrees(self, can: Collection[Kind]) -> bool:
        """Force what was written: it must get the log-probabilities that it was written with.

        Gives whether there was something to force; a server may tell texts of tokens that leave
        open which they are.
        """
        for more in range(FORCED):
            text, written = self.opening + self.forced[:more], self.written
            if more or written is None:
                (written,) = self.ask(Write(text, WRITTEN, ""))
            ids = written.ids or self._ids(written.pieces)
            if logps := written.logps[: len(ids)]:
                self._force(text, ids[: len(logps)], logps, can)
                return True
            if not written.ids and self._one_of(text, written, can):
                return True
        return False

    def follow(self) -> None:
        """Ask for what was written as what follows: the same numbers, or nodes are of elsewhere."""
        written = self.written or Written(text="", ended=False)
        steps = list(zip(range(FORCED), written.ids, written.logps, strict=False))
        asks = [Next(self.opening + written.ids[:n], (id,)) for n, id, _ in steps]
        found, logps = [float(self.ask(ask)[0][0]) for ask in asks], [logp for *_, logp in steps]
        if not self.agree(found, logps):
            raise ServerError(
                f"the server writes tokens with {shown(logps)} and gives them {shown(found)} when "
                "they are asked for behind the same text; its numbers cannot be trusted"
            )

    def _one_of(self, text: Ids, written: Written, can: Collection[Kind]) -> bool:
        """Whether one of several tokens that were maybe written first gets what that one got."""
        spelled = self.tokens.texts.plain
        alike = [id for id, own in enumerate(spelled) if own in written.pieces[:1]]
        for id in alike[:ALIKE]:
            with suppress(Fails):
                self._force(text, (id,), written.logps[:1], can)
                return True
        return False

    def _force(self, opening: Ids, ids: Ids, logps: Sequence[float], can: Collection[Kind]) -> None:
        """Have tokens rated that were written."""
        reads = tuple(range(len(opening), len(opening + ids)))
        (forced,) = self.read([Text(ids=opening + ids, reads=reads)], can)
        if not self.agree(forced, logps):
            raise Fails(
                f"it writes tokens with {shown(logps)} and gives the same tokens "
                f"{shown(forced)} when they are forced; its numbers cannot be trusted"
            )

    def read(self, texts: Sequence[Text], can: Collection[Kind]) -> list[Floats]:
        """The log-probabilities of what is read of texts, as a run would ask for them."""
        reading = cheapest(self.dialect, can, texts)
        asks = list(reading.owners)
        results = ask_all(self.transport, self.dialect, asks)
        return reading.values(dict(zip(asks, results, strict=True)))

    def _ids(self, pieces: Sequence[str]) -> Ids:
        """The tokens of some texts, up to the first that is none or several."""
        found = []
        for piece in pieces:
            alike = [id for id, text in enumerate(self.tokens.texts.plain) if text == piece]
            if len(alike) != 1:
                break
            found += alike
        return tuple(found)

    def draw(self) -> None:
        """Have texts drawn, several in a request or, where that gives one text, one by one."""
        try:
            self.drawn = self._drawn()
        except Fails:
            kind: Any = type(self.dialect)
            narrow = kind(replace(self.dialect.setting, draws=1))
            if self.dialect.draws == narrow.draws:
                raise
            self.dialect = narrow
            self.drawn = self._drawn()

    def _drawn(self) -> list[Written]:
        """Texts after words that lead nowhere, so that hardly two are alike."""
        count, opening = min(DRAWN, self.dialect.draws), self.opening + self.forced
        asks = [Draw(opening, count, WRITTEN, "", 7 + n) for n in range(DRAWN // count)]
        drawn = [written for ask in asks for written in self.ask(ask)[0]]
        if len({written.text for written in drawn}) == 1:
            raise Fails(f"it draws {drawn[0].text!r} {len(drawn)} times out of {len(drawn)}")
        return drawn

    def steady(self, held: str) -> str:
        """How texts are drawn, for the manifest; `held`: whether that was tried."""
        ignored = "which does not heed its seed: another run draws other texts"
        again, before = ([each.text for each in drawn] for drawn in (self._drawn(), self.drawn))
        heeds = "seeded" if again == before else ignored
        return f"by the server, {held}, {heeds}; not the engine's way of splitting counts"

    def witness(self, can: Collection[Kind]) -> Iterator[tuple[Ask, Any]]:
        """Asks and their answers by which a server is known again, by each way that it can."""
        if self.spelled is not None:
            yield Spell(self.words), self.spelled
        for kind in ("rate", "next", "write"):
            if kind in can:
                yield from ((a, self.heard[a]) for a in self.known[kind] if a in self.heard)

    @property
    def known(self) -> Mapping[Kind, Sequence[Ask]]:
        """A few asks of each kind that are answered twice alike; of nodes and of texts two."""
        start, ids = len(self.opening), self.opening + self.forced
        return {
            "rate": (Rate(ids, start),),
            "next": (Next(self.opening, self.forced), Next(ids[:-1], self.forced)),
            "write": tuple(Write(ids[:n], WRITTEN, "") for n in (start, start + 1)),
        }

    def batched(self, can: Collection[Kind]) -> Dialect:
        """The dialect with several asks in a request, where the server answers these alike."""
        kind: Any = type(self.dialect)
        wide: Dialect = kind(replace(self.dialect.setting, batch=BATCH))
        start, ids = len(self.opening), self.opening + self.forced
        more = (Rate((*self.opening, self.forced[-1]), start), Rate(ids[:-1], start))
        tried = {**self.known, "rate": (*self.known["rate"], *more)}
        for asks in (tried[kind] for kind in tried if kind in can):
            try:
                alone = [self.ask(ask)[0] for ask in asks]
                together = ask_all(self.transport, wide, asks)
            except Fails:
                return self.dialect
            pairs = zip(alone, together, strict=True)
            alike = wrote_alike if isinstance(asks[0], Write) else self.agree
            if not all(alike(one, other) for one, other in pairs):
                return self.dialect
        return wide if "rate" in can or "next" in can else self.dialect

    def ask(self, ask: Ask) -> list[Any]:
        """The result of one ask."""
        found = ask_all(self.transport, self.dialect, [ask])
        self.heard.setdefault(ask, found[0])
        return found


def refuse_strange(others: Sequence[float] | Floats, chain: Sequence[float] | Floats) -> None:
    """Refuse numbers of different tokens that cannot all be theirs.

    `others` are of tokens in the same place, which share one probability; `chain` of tokens that
    follow each other.
    """
    refuse_constant(others, "different tokens in one place")
    refuse_constant(chain)
    if sum(map(exp, others)) > 1.001:
        raise Fails(f"different tokens in one place get {shown(others)}: together more than all")


def refuse_constant(values: Sequence[float] | Floats, what: str = "different places") -> None:
    """Refuse one number for all: two of them may be the same in half precision."""
    if len(values) > 1 and max(values) - min(values) < SAME:
        raise Fails(f"it gives {what} the same log-probabilities ({shown(values)})")


def near(one: Any, other: Any) -> bool:
    """Whether two routes agree on some log-probabilities."""
    pairs = zip(one, other, strict=True)
    return all(abs(a - b) <= APART + RELATIVE * max(abs(a), abs(b)) for a, b in pairs)


def wrote_alike(one: Written, other: Written) -> bool:
    """Whether two texts are one, as likely each time."""
    alike = one.text == other.text and len(one.logps) == len(other.logps)
    return alike and near(one.logps, other.logps)


def apart(one: Any, other: Any) -> float:
    """How far log-probabilities lie apart at most."""
    return float(max((abs(a - b) for a, b in zip(one, other, strict=True)), default=0.0))


def unlikely(tokens: LocalTokens, count: int) -> Ids:
    """Tokens from all over the vocabulary that are letters, behind a space or not."""
    plain = tokens.texts.plain
    words = [id for id, text in enumerate(plain) if text and text.strip().isalpha()]
    words = [id for id in words if len(plain[id] or "") > 1] or words
    if len(words) < FORCED:  # what its tokens say depends on those around them
        words = list(dict.fromkeys(tokens.encoder.to_open([PANGRAM])[0]))
    if len(words) < FORCED:
        raise UsageError(f"the tokenizer {tokens.name} has too few words to try a server with")
    step = max(len(words) // count, 1)
    return tuple(words[::step][-count:])


def shown(values: Any) -> str:
    """Log-probabilities as a message has them."""
    return ", ".join(f"{value:.3f}" for value in values)
