"""Servers that speak as others do, and leave something out or cut it."""

from __future__ import annotations

from typing import Any

from tests.servers.answering import Body, Face


class Deaf(Face):
    """It tells the log-probabilities of what it writes, and passes over `echo`."""

    def choice(self, index: int, ids: list[int], body: Body, number: int) -> Any:
        return super().choice(index, ids, {**body, "echo": False}, number)


class Short(Face):
    """It keeps the end of a prompt that is longer than it takes, and says nothing."""

    def completions(self, body: Body) -> Any:
        cut = [ids[-40:] for ids in body["prompt"]] if isinstance(body["prompt"][0], list) else ...
        prompts = body["prompt"][-40:] if cut is ... else cut
        return super().completions({**body, "prompt": prompts})


class Untold(Face):
    """It keeps the last forty tokens of a prompt and does not tell how many it read."""

    def completions(self, body: Body) -> Any:
        prompt = body["prompt"]
        cut = [ids[-40:] for ids in prompt] if isinstance(prompt[0], list) else prompt[-40:]
        return {**super().completions({**body, "prompt": cut}), "usage": None}


class Silent(Face):
    """It writes, and tells nothing else."""

    def choice(self, index: int, ids: list[int], body: Body, number: int) -> Any:
        return super().choice(index, ids, {**body, "echo": False, "logprobs": None}, number)
