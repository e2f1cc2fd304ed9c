"""A server is asked as patiently as the flags say: new tries and the pauses before them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import sonde
from sonde.core.errors import EndpointError, UsageError
from sonde.models.load import load
from sonde.models.options import LoadOptions
from tests.data.loopback import Reply
from tests.servers.answering import Answering, Face, refusal, serving
from tests.tiny import score


@contextmanager
def served(face: Face, folder: Path, **options: Any) -> Iterator[Any]:
    with serving(face) as address:
        yield load(f"server:{address}", LoadOptions(tokenizer=str(folder), **options))


def failing(status: int) -> tuple[list[float], Callable[[str, dict[str, Any], Reply], Reply]]:
    """When a server that answers no completion was asked for one, and how it answers."""
    asked: list[float] = []

    def change(path: str, body: dict[str, Any], reply: Reply) -> Reply:
        if path != "/v1/completions":
            return reply
        asked.append(time.monotonic())
        return refusal(status, "CUDA error")

    return asked, change


@pytest.mark.parametrize(("retries", "told"), [(0, "one try"), (1, "2 tries"), (3, "4 tries")])
def test_a_request_is_tried_again_as_often_as_was_said(
    answering: Answering, folder: Path, retries: int, told: str
) -> None:
    asked, change = failing(500)
    face = Face(answering)
    with served(face, folder, server_retries=retries, server_backoff=0.01) as model:
        face.change = change
        with pytest.raises(EndpointError, match=rf"HTTP 500: CUDA error \(given up after {told}\)"):
            list(model.score([score("The capital is ", ("Paris",))]))
    assert len(asked) == 1 + retries


def test_the_pause_before_a_new_try_is_the_one_that_was_said_and_doubles(
    answering: Answering, folder: Path
) -> None:
    asked, change = failing(500)
    face = Face(answering)
    with served(face, folder, server_retries=2, server_backoff=0.2) as model:
        face.change = change
        with pytest.raises(EndpointError, match="given up after 3 tries"):
            list(model.score([score("The capital is ", ("Paris",))]))
    first, second = (later - before for before, later in pairwise(asked))
    assert first >= 0.2 and second >= 0.4


@pytest.mark.parametrize(
    "wrong",
    [{"server_retries": -1}, {"server_backoff": 61.0}, {"server_timeout": 0.0}]
    + [{name: math.nan} for name in ("server_backoff", "server_timeout", "server_wait")],
)
def test_patience_that_cannot_be_is_refused_from_python_too(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(UsageError, match=f"^--{name.replace('_', '-')} must be at least "):
        sonde.model("server:http://127.0.0.1:1", **wrong)
