"""A worker that cannot read or tell something says so instead of falling silent."""

from __future__ import annotations

import pytest

from sonde.core.errors import ModelError, WorkerError
from sonde.runs.workers.messages import Failed, pack, unpack
from sonde.runs.workers.worker import Worker, serve


def test_a_message_that_cannot_be_read_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Worker, "listen", lambda _: None)
    coming = [b"cos\nno_such_thing\n."]
    said: list[bytes] = []

    def receive() -> bytes:
        if not coming:
            raise EOFError
        return coming.pop()

    serve(receive, said.append)
    (failed,) = map(unpack, said)
    assert isinstance(failed, Failed)
    with pytest.raises(WorkerError, match="the same version of sonde on every machine"):
        raise failed.error()


def test_an_error_that_holds_what_cannot_travel_arrives_as_its_sentence() -> None:
    error = ModelError("no such weights")
    error.call = lambda: 0  # type: ignore[attr-defined]
    found = unpack(pack(Failed.of(error)))
    with pytest.raises(ModelError, match="no such weights"):
        raise found.error()
