"""Have sentences written by a chat model behind an OpenAI-compatible address; questions among them.

Knows nothing of how a server is reached (`sonde.http`).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sonde.core.errors import EndpointError, UsageError
from sonde.core.facts import ANSWER_SLOT, SUBJECT_SLOT, Relation
from sonde.core.fingerprints import fingerprint
from sonde.data.builders.work import Answer, Journal, Tokens
from sonde.data.lines import read_rows
from sonde.http.address import Address, check_url
from sonde.http.failures import Failure
from sonde.http.server import Server, connected

PATH = "/chat/completions"
KEY = "SONDE_API_KEY"

SPARE = 3
"""Sentences asked for beyond those that are missing: some will be too alike."""

LOST = "\ufffd"
"""What stands for a character that could not be read."""

HALF = re.compile("[\ud800-\udfff]")
_MARK = re.compile(r"^\s*(?:[-*•・]+|[(（]?\d+[.):．、）]|Q\d*:)\s*")
_AROUND = " \t\r\n\"'`*_“”‘’«»「」『』,"
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a model is asked, and how patiently: `retries` after the first, times in seconds."""

    url: str
    model: str
    key: str = field(default="", repr=False)
    retries: int = 5
    wait: float = 1.0
    timeout: float = 60.0

    def __post_init__(self) -> None:
        check_url(self.url, "--endpoint")
        if not (self.key.isascii() and self.key.isprintable()):
            raise UsageError(f"{KEY} holds a character that no key has; set it again")

    @property
    def address(self) -> Address:
        """Where completions are asked for."""
        base = self.url.rstrip("/")
        return Address(
            url=base if base.endswith(PATH) else base + PATH,
            retries=self.retries,
            wait=self.wait,
            timeout=self.timeout,
            key=self.key,
            denied=f"the key is taken from the environment variable {KEY}",
        )


class Chat:
    """A conversation of single questions; `failures` counts tries that came to nothing, by kind."""

    def __init__(self, model: str, server: Server) -> None:
        self._model, self._server = model, server

    @property
    def failures(self) -> Counter[str]:
        """Tries that came to nothing, by kind."""
        return self._server.failures

    def ask(self, text: str) -> Answer:
        """What the model writes; refuses after the last try, saying why."""
        body = {"model": self._model, "messages": [{"role": "user", "content": text}]}
        return self._server.post(body, _answer)


@contextmanager
def opened(endpoint: Endpoint) -> Iterator[Chat]:
    """Talk to an endpoint; refuses clearly where httpx is missing or the address is none."""
    with connected(endpoint.address, "--endpoint", extra="paraphrase") as server:
        yield Chat(endpoint.model, server)


def _answer(value: Any) -> Answer:
    """The text of the first choice of a chat completion, and what it cost."""
    try:
        text = value["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError):
        text = None
    if not isinstance(text, str) or not text.strip():
        raise Failure("no chat completion", "")
    whole = HALF.sub(LOST, text)  # half a character cannot be stored
    match value.get("usage"):
        case {"prompt_tokens": int(sent), "completion_tokens": int(received)}:
            return Answer(whole, Tokens(sent, received))
        case _:
            return Answer(whole)


class Exhausted(EndpointError):
    """A model has nothing new to say; the same answers, asked for again, would say it no better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Asks a model, and keeps its answers, so that nothing is asked twice."""

    ask: Callable[[str], Answer]
    model: str
    journal: Journal

    def answer(self, text: str, *place: str) -> str:
        """What the model writes, or wrote before; `place` tells apart questions of equal words."""
        key = fingerprint([self.model, *place, text])
        answer = self.journal.find(key)
        if answer is None:
            answer, tokens = self.ask(text)
            self.journal.keep(key, answer, tokens)
        return answer


def candidates(answer: str) -> Iterator[str]:
    """The lines of an answer that may be sentences, without numbers, dashes and quotes.

    >>> list(candidates("Sure:\\n1. \\"Where is [X]?\\"\\n- **Whence is [X]?**"))
    ['Sure:', 'Where is [X]?', 'Whence is [X]?']
    """
    text = _THOUGHT.sub("", answer)
    for line in _listed(text) or text.splitlines():
        sentence = _MARK.sub("", line).strip(_AROUND)
        if sentence and not sentence.startswith("```"):
            yield sentence


def _listed(text: str) -> list[str]:
    """The texts of an answer that is a JSON list or object of texts; none where it is not."""
    bare = re.sub(r"^```\w*|```$", "", text.strip()).strip()
    try:
        value = json.loads(bare) if bare.startswith(("[", "{")) else None
    except (ValueError, RecursionError):
        return []
    return list(_texts(value))


def _texts(value: Any) -> Iterator[str]:
    """Every text in a JSON value, in order."""
    if isinstance(value, str):
        yield value
    inner = value.values() if isinstance(value, dict) else value
    for entry in inner if isinstance(value, dict | list) else ():
        yield from _texts(entry)


def read_by_relation(path: Path) -> dict[str, tuple[str, ...]]:
    """Texts by relation from a file of JSON lines: `relation` and `text`."""
    found: dict[str, list[str]] = {}
    for row in read_rows(path):
        found.setdefault(row.text("relation"), []).append(row.text("text"))
    return {relation: tuple(texts) for relation, texts in found.items()}


def questions(
    asker: Asker, relation: Relation, kept: Sequence[str], missing: int, turn: int
) -> tuple[str, ...]:
    """Some questions, unlike those that are kept, if there are any; `turn` counts from 1."""
    text = request(relation, kept, missing + SPARE)
    return tuple(candidates(asker.answer(text, str(turn), relation.id)))


def request(relation: Relation, kept: Sequence[str], count: int) -> str:
    """What a model is asked: to reword the questions there are, or to make some of a statement."""
    if kept:
        task = f"Reword this question in {count} different ways:\n{kept[0]}\n"
    else:
        task = f"Write {count} different questions that ask for the answer to: {_told(relation)}\n"
    if kept[1:]:
        task += "These are there already; use other words and another order:\n"
        task += "".join(f"{text}\n" for text in kept[1:])
    return (
        f"{task}\n"
        f"{SUBJECT_SLOT} stands for a name. Write {SUBJECT_SLOT} exactly once in every question, "
        "name no other thing, and end each with a question mark. Every question must ask for "
        f"exactly the same thing ({relation.label}). Write one question a line and nothing else."
    )


def _told(relation: Relation) -> str:
    """The statement that a question is made of; the bare label where there is none."""
    for template in relation.templates:
        if template.style == "statement":
            return f"{template.text} ({ANSWER_SLOT} is the answer, the {relation.label})"
    return f"the {relation.label} of {SUBJECT_SLOT}"
