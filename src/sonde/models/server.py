"""`server:URL`: a model behind an HTTP server, such as vLLM's, SGLang's or llama.cpp's.

Which of them it is, and what it can do, is found out when it is loaded. Knows nothing of dialects.
"""

from __future__ import annotations

import logging
import os
import weakref
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import ClassVar

from sonde.core.abilities import Model
from sonde.core.errors import UsageError
from sonde.core.facts import Dataset
from sonde.http.address import Address, check_url
from sonde.models.options import LoadOptions, needs_extra

log = logging.getLogger("sonde")

KEY = "SONDE_API_KEY"
"""The environment variable with the key, if a server wants one."""

CHECK = "check the address, or wait until the server is ready"

TRIALS = 2
"""How often something is tried again at most while a server is being found out."""

LOADING = 30.0
"""Seconds that are waited for a server to begin with, at most."""


@dataclass(frozen=True, slots=True)
class ServerScheme:
    """A model behind an address."""

    name: ClassVar[str] = "server"
    usage: ClassVar[str] = "server:URL"
    summary: ClassVar[str] = (
        "a model behind a server (vLLM, SGLang, llama.cpp, other OpenAI-compatible ones), with "
        "--tokenizer FOLDER; what it can do is tried"
    )

    def check(self, rest: str) -> None:
        """It must be an address, with nothing in it that may not be seen."""
        check_url(rest, "server:")
        if "@" in rest or "?" in rest:
            raise UsageError(
                "server: takes an address alone, which is shown and kept in the manifest; a user "
                f"name, a password or a key does not belong there. {KEY} holds the key"
            )

    def load(self, rest: str, options: LoadOptions, dataset: Dataset | None) -> Model:
        """Find out how the server is spoken with and what it can."""
        address = address_of(rest, options)
        if not options.tokenizer:
            raise UsageError(
                f"server:{address.shown} needs --tokenizer FOLDER, with the "
                "tokenizer of the model that is served: a server is sent token ids"
            )
        needs_extra(
            "server", f"model 'server:{address.shown}'", "httpx", "tenacity", "transformers"
        )
        from sonde.http.server import connected
        from sonde.models.served.lanes import Lanes
        from sonde.models.served.model import served_model
        from sonde.models.served.tokens import read_tokens
        from sonde.models.served.transport import HttpTransport
        from sonde.models.served.trials import NAMED, Witness, find

        tokens = read_tokens(options.tokenizer, options, f"server:{address.shown}")
        # a dialect that is not the server's fails, and need not fail often
        quick = replace(
            address,
            retries=min(TRIALS, address.retries),
            away=min(LOADING, address.away),
            advice=CHECK,
        )
        with connected(quick, "server") as server:
            server.wait_until_ready()  # soon told, where nothing answers at all
            trial = find(HttpTransport(server), tokens, options.served_model, address.shown)
        stack = ExitStack()
        slots = trial.about.slots
        if slots:  # more at once would wait there, and push out what slots keep
            address = replace(address, concurrency=min(address.concurrency, slots))
        transport = HttpTransport(stack.enter_context(connected(address, "server")))
        transport.server.greet = Witness(trial, transport).check
        sent = Lanes(transport, address.concurrency) if slots else transport
        model = served_model(trial.found(address.shown), trial.dialect, sent, tokens)
        weakref.finalize(model, stack.close)
        if NAMED in trial.notes:
            log.warning(
                "%s lists no models and answers to any name: that it serves %r is not known",
                model.identity.name,
                options.served_model,
            )
        for ability, why in model.lacks().items():
            log.warning("%s cannot %s: %s", model.identity.name, ability, why)
        return model


def address_of(url: str, options: LoadOptions) -> Address:
    """Where a server is, and how patiently it is asked."""
    key = os.environ.get(KEY, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise UsageError(f"{KEY} holds a character that no key has; set it again")
    return Address(
        url=url.rstrip("/").removesuffix("/v1"),
        kind="the server",
        concurrency=options.concurrency,
        retries=options.server_retries,
        wait=options.server_backoff,
        timeout=options.server_timeout,
        away=options.server_wait,
        health="/health",
        key=key,
        denied=f"the key is taken from the environment variable {KEY}",
        advice="run the same command again once it answers: what is finished is kept",
    )


COMPONENT = ServerScheme()
