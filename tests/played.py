"""Graphs that a CPU can play: what was recorded is done again, by the same Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sonde.models.torch import recorded


class Played:
    """Does `work` each time it is replayed."""

    def __init__(self, work: Callable[[], object], *_: Any) -> None:
        self.replay = work


def play(monkeypatch: pytest.MonkeyPatch, graph: type[Any] = Played) -> None:
    """Let graphs of this sort be recorded, and steps run where they are called."""
    monkeypatch.setattr(recorded, "Graph", graph)
    monkeypatch.setattr(recorded, "aside", lambda _device, step, inputs: step(*inputs))
