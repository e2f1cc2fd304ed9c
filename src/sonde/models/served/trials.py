"""Find out which dialect a server speaks and what it can do, by trying; nothing is believed.

Unlikely tokens are forced, each by two routes that must agree; a token is spelled by the server, so
that a tokenizer which is not the server's is found. What a server cannot do is known, with the
reason, before any work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from sonde.core.components import Components
from sonde.core.errors import EndpointError, ServerError, UsageError
from sonde.core.fingerprints import fingerprint
from sonde.engine.prefixes import shared
from sonde.http.failures import Refused
from sonde.models.served import DIALECTS
from sonde.models.served.asking import Fails, ask_all
from sonde.models.served.asks import Ask, Kind, Written
from sonde.models.served.dialect import About, Dialect, Request, Setting, models_of
from sonde.models.served.drawing import check_draws
from sonde.models.served.forcing import Tests, apart, shown
from sonde.models.served.model import Found
from sonde.models.served.spelling import check_tokenizer
from sonde.models.served.tokens import LocalTokens
from sonde.models.served.transport import Transport

MODELS = "/v1/models"

STEADY = 0.02
"""How far a number may be from itself, asked later, in nats; four times what was seen if more.

With other texts in between, llama.cpp's flash attention moves it by 0.004.
"""

CHECKED, NAMED = "tokenizer checked by", "served name"

HELD = "as its log-probabilities say"
UNHELD = "not held against log-probabilities, which it does not tell"

NOBODY = "sonde-asks-whether-any-name-is-taken"
"""A name that no model has."""


@dataclass(slots=True)
class Trial:
    """What came of trying a dialect: which asks it answers, and why not the others.

    `shown`: asks and what they were answered with, by which the server is known again,
    numbers within `steady`;
    `text`: what it writes, by which a run knows its model: names of served models are soon given.
    """

    dialect: Dialect
    can: set[Kind] = field(default_factory=set)
    why: dict[Kind, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    about: About = field(default_factory=About)
    shown: Sequence[tuple[Ask, Any]] = ()
    steady: float = STEADY
    text: str = ""
    denied: EndpointError | None = None

    @property
    def scores(self) -> bool:
        """Whether options can be scored."""
        return bool(self.can & {"rate", "next"})

    def found(self, address: str) -> Found:
        """What a model behind an address is made from."""
        dialect, model = self.dialect, self.dialect.setting.model
        served = f"{model} on {dialect.name} {self.about.version}".strip()
        return Found(
            name=f"server:{address} {model}",
            about=self.about,
            can=frozenset(self.can),
            weights=f"{served}, writes {fingerprint([self.text])}" if self.text else "",
            why=self.why,
            notes=self.notes,
        )


@dataclass(frozen=True, slots=True)
class Witness:
    """Knows a server again: its models, what it says of itself, and what it answers."""

    trial: Trial
    transport: Transport

    def check(self) -> None:
        """Refuse a server that has become another."""
        dialect, before = self.trial.dialect, self.trial.about
        served_name(self.transport.look(MODELS), dialect.setting.model)
        if (now := about(dialect, self.transport)) != before:
            raise ServerError(
                f"the server is another than before ({_told(now)}, it was {_told(before)}); what "
                "it answers does not belong to this run"
            )

        def one_by_one(request: Request) -> list[Request]:
            return [part for ask in request.asks for part in dialect.requests([ask])]

        asks = [ask for ask, _ in self.trial.shown]
        try:
            answers = ask_all(self.transport, dialect, asks, one_by_one, again=True)
        except Fails as fails:
            raise ServerError(f"the server does not answer as before: {fails}") from None
        for again, (_, known) in zip(answers, self.trial.shown, strict=True):
            self._compare(again, known)

    def _compare(self, again: Any, known: Any) -> None:
        """Refuse what is answered otherwise than before."""
        what = "model"
        if isinstance(known, str):
            same, told, was, what = again == known, f"{again!r:.60}", f"{known!r:.60}", "tokenizer"
        elif isinstance(known, Written):
            same = self._wrote_alike(again, known)
            told, was = (f"{each.text!r} ({shown(each.logps)})" for each in (again, known))
        else:
            same, told, was = apart(again, known) <= self.trial.steady, shown(again), shown(known)
        if not same:
            raise ServerError(
                f"the server gives {told} where it gave {was}: another {what} has come up; what it "
                "answers does not belong to this run"
            )

    def _wrote_alike(self, again: Written, known: Written) -> bool:
        """Whether a text is the one of before, each token as likely.

        Of a server that can be known again otherwise it may part where two tokens are as likely.
        """
        tokens = [each.ids or each.pieces for each in (again, known)]
        common = shared(*tokens)
        if again.text != known.text and (not self.trial.scores or common == len(tokens[1])):
            return False
        pairs = list(zip(again.logps, known.logps, strict=False))[: common + 1]
        return all(abs(one - other) <= self.trial.steady for one, other in pairs)


def about(dialect: Dialect, transport: Transport) -> About:
    """What a server says of itself, in a dialect."""
    seen: dict[str, Any] = {}
    for path in (MODELS, *dialect.looks):
        with suppress(Refused):  # what a server shows to nobody says nothing
            seen[path] = transport.look(path)
    return dialect.about({path: reply for path, reply in seen.items() if reply is not None})


def find(transport: Transport, tokens: LocalTokens, model: str, where: str = "the server") -> Trial:
    """The dialect of a server with the most abilities, and what it can; those that score first.

    `model` is the name under which the model is served, empty where the server has only one;
    `where` is the server's address, for messages.
    """
    listed = transport.look(MODELS)
    setting = Setting(model=served_name(listed, model, where), pieces=tokens.pieces)
    found: list[Trial] = []
    for made in Components(DIALECTS, "sonde.dialects").values():
        trial = tried(made(setting), transport, tokens)
        found.append(trial)
        if trial.scores:
            break
    best = next((t for t in found if t.scores), max(found, key=lambda trial: len(trial.can)))
    if not best.can:
        for trial in found:
            if trial.denied is not None:
                raise trial.denied
        reasons = "; ".join(f"{t.dialect.name}: {next(iter(t.why.values()))}" for t in found)
        raise ServerError(f"this server speaks none of the dialects that sonde knows ({reasons})")
    best.about = about(best.dialect, transport)
    if not models_of(listed) and takes_any_name(best, transport):
        best.notes[NAMED] = "not confirmed: the server lists no models and answers to any name"
    return best


def takes_any_name(trial: Trial, transport: Transport) -> bool:
    """Whether a server answers also as a model that nobody has."""
    kind: Any = type(trial.dialect)
    other = kind(replace(trial.dialect.setting, model=NOBODY))
    try:
        return bool(ask_all(transport, other, [ask for ask, _ in trial.shown[-1:]]))
    except Fails:
        return False


def served_name(listed: Any, model: str, where: str = "the server") -> str:
    """The name under which a model is served: as asked for, if there, or the only one."""
    names = [str(entry["id"]) for entry in models_of(listed)]
    if model and (model in names or not names):
        return model
    if not model and len(names) == 1:
        return names[0]
    if not names:
        raise UsageError(
            f"{where} has no list of models ({MODELS}); check the address, or name the model with "
            "--served-model NAME if it is right"
        )
    served = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
    if model:
        raise ServerError(f"--served-model {model}: the server has no such model; it has {served}")
    raise UsageError(f"the server has several models; name one with --served-model: {served}")


def tried(dialect: Dialect, transport: Transport, tokens: LocalTokens) -> Trial:
    """What a server answers in a dialect, each thing tried on its own."""
    trial = Trial(dialect)
    tests = Tests(dialect, transport, tokens)
    steps: Mapping[Kind, Any] = {
        "rate": tests.rate,
        "next": tests.next,
        "write": tests.write,
        "draw": tests.draw,
    }
    for kind, step in steps.items():
        if kind in dialect.can:
            try:
                step()
                trial.can.add(kind)
            except Fails as fails:
                trial.why[kind], trial.denied = str(fails), fails.denied or trial.denied
    if trial.scores:
        _compare_routes(trial, tests)
    if trial.can:
        trial.notes[CHECKED] = check_tokenizer(tests)
        trial.dialect = tests.dialect = tests.batched(trial.can)
    trial.shown = tuple(tests.witness(trial.can))
    trial.steady = max(STEADY, 4 * tests.spread)
    if "write" in trial.can and tests.written is not None:
        trial.text = tests.written.text
        trial.notes["writes"] = repr(trial.text)
    if "draw" in trial.can:
        try:
            if trial.scores:
                check_draws(tests, trial.can)
            trial.notes["sampling"] = tests.steady(HELD if trial.scores else UNHELD)
        except Fails as fails:
            trial.can.discard("draw")
            trial.why["draw"] = str(fails)
    return trial


def _compare_routes(trial: Trial, tests: Tests) -> None:
    """Leave out what two routes do not agree on; of three, the one that stands alone."""
    forced = tests.rated is not None and tests.nexts is not None
    if forced and not tests.agree(tests.rated, tests.nexts):
        raise ServerError(
            f"the server gives the same tokens {shown(tests.rated)} when they stand in a prompt "
            f"and {shown(tests.nexts)} when they follow one; its numbers cannot be trusted"
        )
    lost: set[Kind] = set() if forced else {"rate", "next"}
    why = "its numbers come by one route alone, and nothing confirms them"
    try:
        if "write" in trial.can and tests.write_agrees(trial.can):
            if forced:
                tests.follow()
            return
    except Fails as fails:
        lost, why = lost | {"write"}, str(fails)
    for kind in lost & trial.can:
        trial.can.discard(kind)
        trial.why[kind] = why


def _told(about: About) -> str:
    context = f", {about.context} tokens" if about.context else ""
    return f"version {about.version or 'not told'}{context}"
