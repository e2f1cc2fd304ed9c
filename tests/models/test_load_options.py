"""Options of a model that cannot be are refused wherever they are given."""

from __future__ import annotations

from typing import Any

import pytest

import sonde
from sonde.core.errors import UsageError

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "bos": ({"bos": "alwyas"}, "--bos must be auto, always or never; not 'alwyas'"),
    "batch_tokens": ({"batch_tokens": 0}, "--batch-tokens must be at least 1, not 0"),
    "chat": ({"chat": "maybe"}, "--chat must be never or always; not 'maybe'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_option_that_cannot_be_is_refused_from_python(name: str) -> None:
    given, said = REFUSED[name]
    with pytest.raises(UsageError, match=said):
        sonde.LoadOptions(**given)
    with pytest.raises(UsageError, match=said):
        sonde.model("control:majority", **given)
