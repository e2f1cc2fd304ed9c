"""Wrong but well-formed numbers are found out before a server is taken for able to score."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import exp
from pathlib import Path
from typing import Any

import pytest

from sonde.models.options import LoadOptions
from sonde.models.served.tokens import LocalTokens, read_tokens
from sonde.models.served.trials import find
from tests.data.loopback import Reply
from tests.servers.answering import Answering, Body, Face
from tests.servers.direct import Direct

Logps = list[Any]


@pytest.fixture(scope="module")
def tokens(folder: Path) -> LocalTokens:
    return read_tokens(str(folder), LoadOptions(), "server:here")


def echoed(wrong: Callable[[Logps], Logps]) -> Callable[[str, Body, Reply], Reply]:
    """Sound replies but for the log-probabilities of prompts that are echoed."""

    def change(path: str, body: Body, reply: Reply) -> Reply:
        if not body.get("echo") or reply.status != 200:
            return reply
        said = json.loads(reply.body)
        for choice in said["choices"]:
            found = choice["logprobs"]
            found["token_logprobs"] = wrong(found["token_logprobs"])
        return replace(reply, body=json.dumps(said))

    return change


FAULTS: Mapping[str, Callable[[Logps], Logps]] = {
    "those of the next token": lambda logps: [None, *logps[2:], logps[-1]],
    "those of the token before": lambda logps: [None, None, *logps[1:-1]],
    "one row for all places": lambda logps: [None, *[logps[1]] * (len(logps) - 1)],
    "masked": lambda logps: [None, *[0.0] * (len(logps) - 1)],
    "scaled by a temperature": lambda logps: [None, *(x / 0.5 for x in logps[1:])],
    "probabilities": lambda logps: [None, *(exp(x) for x in logps[1:])],
    "absent": lambda logps: [None] * len(logps),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_wrong_numbers_of_a_prompt_are_found_out(
    fault: str, answering: Answering, tokens: LocalTokens
) -> None:
    face = Face(answering, change=echoed(FAULTS[fault]))
    trial = find(Direct(face), tokens, "")
    assert not trial.scores and trial.why["rate"]


def test_sound_numbers_are_taken(answering: Answering, tokens: LocalTokens) -> None:
    trial = find(Direct(Face(answering, change=echoed(list))), tokens, "")
    assert trial.dialect.name == "plain" and trial.scores and "rate" not in trial.why
