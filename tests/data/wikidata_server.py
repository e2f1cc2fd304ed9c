"""A small Wikidata behind a real loopback address, which answers as its API does or misbehaves."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from .loopback import Reply, Request, listening

Fault = Callable[[int], Reply | None]
"""A reply in the place of the sound one to the request of that number, from 1."""


@dataclass(slots=True)
class Wiki:
    """Where it listens, what it holds, and everything that it was asked."""

    items: Mapping[str, Mapping[str, Any]]
    url: str = ""
    requests: list[dict[str, str]] = field(default_factory=list)
    agents: list[str | None] = field(default_factory=list)

    @property
    def port(self) -> int:
        """Where to come back."""
        return urlsplit(self.url).port or 0

    @property
    def batches(self) -> list[list[str]]:
        """The identifiers of each request."""
        return [request["ids"].split("|") for request in self.requests]


def item(
    *names: str,
    to: str = "",
    code: str = "en",
    claims: Mapping[str, list[str | dict[str, Any]]] | None = None,
) -> dict[str, Any]:
    """An item with a label and aliases; `to` is the one that it was merged into."""
    texts = [{"language": code, "value": name} for name in names]
    return {
        "labels": {code: texts[0]} if texts else {},
        "aliases": {code: texts[1:]} if texts[1:] else {},
        "claims": {p: [_claim(value) for value in values] for p, values in (claims or {}).items()},
        "to": to,
    }


def _claim(value: str | dict[str, Any]) -> dict[str, Any]:
    """A statement whose object is an item, or one that is written out."""
    if isinstance(value, dict):
        return value
    return {
        "rank": "normal",
        "mainsnak": {
            "snaktype": "value",
            "datavalue": {"type": "wikibase-entityid", "value": {"id": value}},
        },
    }


def answered(items: Mapping[str, Mapping[str, Any]], query: Mapping[str, str]) -> Reply:
    """What the API gives: the parts and languages asked for, merged items under both names."""
    props, codes = query["props"].split("|"), query["languages"].split("|")
    entities: dict[str, Any] = {}
    for id in query["ids"].split("|"):
        found = items.get(id)
        if found is None:
            entities[id] = {"id": id, "missing": ""}
            continue
        target = found["to"] or id
        held = items[target]
        entities[id] = {"type": "item", "id": target}
        if target != id:
            entities[id]["redirects"] = {"from": id, "to": target}
        for part in ("labels", "aliases"):
            if part in props:
                entities[id][part] = {c: v for c, v in held[part].items() if c in codes}
        if "claims" in props:
            entities[id]["claims"] = held["claims"]
    return Reply(body=json.dumps({"entities": entities, "success": 1}))


@contextmanager
def wikidata(
    items: Mapping[str, Mapping[str, Any]], fault: Fault = lambda number: None, port: int = 0
) -> Iterator[Wiki]:
    """Listen on a loopback port, of the system's choice unless one is named."""
    wiki = Wiki(items)

    def replied(request: Request) -> Reply:
        query = {k: v[0] for k, v in parse_qs(urlsplit(request.path).query).items()}
        wiki.requests.append(query)
        wiki.agents.append(request.headers.get("User-Agent"))
        return fault(len(wiki.requests)) or answered(items, query)

    with listening(replied, port) as address:
        wiki.url = f"{address}/w/api.php"
        yield wiki
