"""A certificate: how the numbers of a model compare with those of a reference, and what follows.

It is made by `sonde doctor --against`, kept as JSON with a digest of its content, and belongs to
one model, by its identity. Knows numbers and words, nothing of models and files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from math import inf
from typing import Any, Literal, Protocol, runtime_checkable

from sonde.core.abilities import Identity, identity_key
from sonde.core.answers import Scored
from sonde.core.components import fits
from sonde.core.files import parsed
from sonde.core.fingerprints import canonical
from sonde.core.prompts import Key, Prompt, Score
from sonde.core.reports import Column, Table

FORMAT = 1
Verdict = Literal["equal", "other numerics", "broken"]

EQUAL = 1e-3
"""Nats by which the log-probability of a token may differ where numbers are said to be equal."""

SLACK = 4.0
"""How many times as far as when it was asked otherwise a model may be when it is asked again."""

GAPS = ("against", "backwards", "apart")
"""What a model is compared with: a reference, and itself asked otherwise."""

SIZES: Mapping[float, str] = {
    0.05: "as much as flash attention or float16 change",
    0.6: "as much as bfloat16 changes",
    inf: "as much as weights in few bits change",
}
"""What usually changes a token by up to so many nats (decisions/048)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """How scored prompts differ from the same ones scored otherwise, in nats.

    `largest` and `median` are of a token, `option` the largest of a whole option. `differ`: first
    answers that are not the same, `sure` those among them that the other was sure of.
    """

    prompts: int = 0
    options: int = 0
    tokens: int = 0
    largest: float = 0.0
    median: float = 0.0
    option: float = 0.0
    differ: int = 0
    sure: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recheck:
    """One prompt and the log-probability of each token of its options, to ask a model again.

    A server that comes back may be another one: `same` says whether it is. `tolerance` in nats.
    """

    prefix: str
    suffix: str
    options: tuple[str, ...]
    logps: tuple[tuple[float, ...], ...]
    tolerance: float

    @classmethod
    def of(cls, prompt: Prompt, answer: Scored, moved: float = 0.0) -> Recheck:
        """A scored prompt; `moved`: how far its numbers are when the same model is asked again."""
        return cls(
            prefix=prompt.prefix,
            suffix=prompt.suffix,
            options=answer.options,
            logps=answer.logps,
            tolerance=max(EQUAL, SLACK * moved),
        )

    @property
    def prompt(self) -> Prompt:
        """What is asked."""
        key = Key(fact="recheck", relation="recheck", template="", subject="")
        want = Score(options=self.options)
        return Prompt(key=key, prefix=self.prefix, suffix=self.suffix, want=want)

    def same(self, logps: Sequence[Sequence[float]]) -> bool:
        """Whether the numbers of the options' tokens are those of the same model.

        >>> asked = Recheck(prefix="", suffix="", options=("a",), logps=((-1.0,),), tolerance=0.01)
        >>> asked.same([[-1.005]]), asked.same([[-1.2]]), asked.same([[-1.0, -1.0]])
        (True, False, False)
        """
        if [len(row) for row in logps] != [len(row) for row in self.logps]:
            return False
        pairs = zip(self.logps, logps, strict=True)
        gaps = (abs(a - b) for one, two in pairs for a, b in zip(one, two, strict=True))
        return all(gap <= self.tolerance for gap in gaps)  # of NaN that is false


@runtime_checkable
class Rechecks(Protocol):
    """A model that another may take the place of while it is asked, and that looks for it."""

    def recheck(self, known: Recheck | None) -> None:
        """Ask a prompt again whenever answers are to be kept, and raise where they are not good.

        None ends that.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A model beside a reference, and beside itself asked otherwise.

    `against`: the reference; `backwards`: prompts and options in the opposite order; `apart`: one
    prompt after the other. `texts` were written by both, `texts_differ` of them not alike and
    `ties` of these where two tokens are too close to tell apart. `prompts` names what was asked,
    `reasons` say why the verdict is not a better one.
    """

    model: dict[str, Any]
    reference: dict[str, Any]
    verdict: Verdict
    reasons: tuple[str, ...]
    against: Gaps
    backwards: Gaps
    apart: Gaps
    texts: int
    texts_differ: int
    ties: int
    prompts: str
    recheck: Recheck | None
    made: str
    versions: dict[str, str]

    @property
    def digest(self) -> str:
        """SHA-256 of its content, in hex."""
        return hashlib.sha256(canonical(_body(self)).encode(errors="surrogatepass")).hexdigest()

    @property
    def entry(self) -> dict[str, str]:
        """What a run's manifest says of it."""
        name = str(self.reference.get("name", ""))
        return {"digest": self.digest, "verdict": self.verdict, "reference": name}

    @property
    def provenance(self) -> dict[str, Any]:
        """What a report has of it: all but the model, which stands beside it, and the recheck."""
        body = {k: v for k, v in _body(self).items() if k not in ("model", "recheck")}
        return {"digest": self.digest, **body}

    def belongs_to(self, identity: Mapping[str, Any]) -> bool:
        """Whether it is that of a model, by what decides the model's answers."""
        return identity_key(self.model) == identity_key(identity)

    def to_json(self) -> str:
        """As it is written."""
        body = {"format": FORMAT, **_body(self), "digest": self.digest}
        return json.dumps(body, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Read it back; raises ValueError on anything else, and on content that was changed."""
        body = parsed(text)
        if not isinstance(body, dict) or "digest" not in body or "format" not in body:
            raise ValueError("it is no certificate")
        version = body.pop("format")
        if not fits(version, int) or version != FORMAT:
            raise ValueError("it is a certificate of another version of sonde")
        digest = body.pop("digest")
        whole = set(body) == {f.name for f in fields(cls)} and fits(body, cls)
        if not whole or not all(_identifies(body[name]) for name in ("model", "reference")):
            raise ValueError("it is no certificate")
        try:
            parts: dict[str, Any] = {name: Gaps(**body[name]) for name in GAPS}
            if (again := body["recheck"]) is not None:
                parts["recheck"] = Recheck(**{k: _tuples(v) for k, v in again.items()})
            found = cls(**{**body, "reasons": tuple(body["reasons"]), **parts})
        except TypeError:
            raise ValueError("it is no certificate") from None
        if found.digest != digest:
            raise ValueError("its content was changed after it was made")
        return found


def in_words(found: Certificate) -> str:
    """What a report says of a certificate, in a sentence."""
    gaps, name = found.against, found.reference["name"]
    if found.verdict == "broken":
        why = "; ".join(found.reasons)
        return f"Certificate: broken beside {name}, do not trust these numbers ({why})."
    texts = f" and {found.texts_differ} of {found.texts} texts" if found.texts else ""
    differ = f"{gaps.differ} of {gaps.prompts} first answers{texts} differ"
    if found.verdict == "equal":
        near = f"every token to within {gaps.largest:.2g} nats"
        return f"Certificate: equal to {name}, {near}; {differ}."
    return (
        f"Certificate: other numerics than {name}, by up to {gaps.largest:.2g} nats a token "
        f"({size(gaps.largest)}); {differ}."
    )


def size(largest: float) -> str:
    """What usually changes a token so much.

    >>> size(0.019)
    'as much as flash attention or float16 change'
    """
    return next(said for limit, said in SIZES.items() if largest <= limit)


def tabulated(found: Certificate) -> Table:
    """The figures of a certificate, as a table of a report."""
    titles = ("", "largest, token", "median, token", "largest, option", "first answers that differ")
    beside = f"beside {found.reference['name']}"
    named = zip((beside, "asked backwards", "asked one by one"), GAPS, strict=True)
    rows = []
    for title, name in named:
        gaps: Gaps = getattr(found, name)
        nats = (f"{each:.2g}" for each in (gaps.largest, gaps.median, gaps.option))
        rows.append((title, *nats, f"{gaps.differ} of {gaps.prompts}"))
    reasons = f" Not equal because {'; '.join(found.reasons)}." if found.reasons else ""
    return Table(
        id="certificate",
        title=f"Certificate: {found.verdict}",
        columns=tuple(Column(title=title) for title in titles),
        rows=tuple(rows),
        note=f"Differences of log-probabilities on fixed prompts, in nats. Made {found.made}; "
        f"digest {found.digest[:16]}.{reasons}",
    )


def _identifies(value: Mapping[str, Any]) -> bool:
    """Whether something is an identity, as it is described."""
    maps = {"chat", "details"}
    named = all(isinstance(value.get(f.name), str) for f in fields(Identity) if f.name not in maps)
    return named and all(fits(value.get(name, {}), dict[str, str]) for name in maps)


def _body(found: Certificate) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(json.dumps(asdict(found)))  # tuples as lists
    return body


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
