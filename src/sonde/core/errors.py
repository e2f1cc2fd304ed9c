"""Every error a user can meet: what happened, with which value, what to do about it.

Knows nothing of where errors are shown. The exit codes are documented in docs/formats.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class SondeError(Exception):
    """Something the user can understand and act on; shown as one message, without a stack trace."""

    exit_code = 1


class UsageError(SondeError):
    """The request itself is off: an unknown name, a bad setting."""

    exit_code = 2


class DataError(SondeError):
    """A dataset file is missing, malformed or inconsistent."""

    exit_code = 3


class TemplateError(DataError):
    """A template lacks a slot, or has one too many."""


class ModelError(SondeError):
    """A model cannot be found, loaded or trusted."""

    exit_code = 4


class AbilityError(ModelError):
    """The model cannot do what the probe asks of it."""


class PromptError(ModelError):
    """The model cannot take this prompt: it is too long, or an answer in it has no token."""


class PromptTooLong(PromptError):
    """The prompt has more tokens than the model takes: `needed` where `limit` is the most."""

    def __init__(self, message: str, *, needed: int, limit: int) -> None:
        super().__init__(message)
        self.needed = needed
        self.limit = limit


class NotFinite(ModelError):
    """The model gives NaN or infinity where a log-probability belongs."""

    def __init__(self, found: str) -> None:
        super().__init__(
            f"{found}. Such numbers are never compared: try a larger --dtype (half precision "
            "overflows in some models); 'sonde doctor' says whether the weights are damaged"
        )


class MissingExtra(ModelError):
    """An optional dependency is not installed."""


class CertificateError(ModelError):
    """A certificate was changed or says broken, or its model gives other numbers by now."""


class EndpointError(ModelError):
    """A model behind an address does not answer, or not in a form that can be read."""


class ServerError(EndpointError):
    """A server answers in a way that cannot be trusted, or will not take what it is asked."""


class StoreError(SondeError):
    """A run folder cannot be written, read or continued."""

    exit_code = 5


class RunMismatch(StoreError):
    """The folder holds a different run from the one asked for."""


class CorruptShard(StoreError):
    """A shard of a run does not read back as it was written."""


class WorkerError(SondeError):
    """Workers cannot be started, are not alike, or are lost again and again."""

    exit_code = 6


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint naming what the user may have meant, whatever the case, or everything there is.

    >>> nearest("lma", ["lama", "belief"])
    "did you mean 'lama'?"
    >>> nearest("zzz", ["lama", "belief"])
    'known: belief, lama'
    """
    names = sorted(known)
    folded = {name.casefold(): name for name in names}
    close = get_close_matches(word.casefold(), folded, n=3, cutoff=0.5)
    if close:
        return "did you mean " + " or ".join(repr(folded[name]) for name in close) + "?"
    return "known: " + (", ".join(names) or "none")
