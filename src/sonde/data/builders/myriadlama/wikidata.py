"""Names and statements of items from Wikidata's API, fifty at a time, each kept once it came.

`wbgetentities` gives the label and the aliases of an item, and its claims. An item that was merged
into another is given as that other one; one that is not there has no names. Names that hold in any
language (`mul`) count in each. Deprecated statements, and those whose object is no item, do not
count.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from sonde import __version__
from sonde.core.errors import EndpointError
from sonde.core.fingerprints import fingerprint
from sonde.data.builders.myriadlama.objects import Named, Names, Pair, named
from sonde.data.builders.work import Journal
from sonde.http.address import Address, check_url
from sonde.http.failures import Failure
from sonde.http.server import Server, connected

URL = "https://www.wikidata.org/w/api.php"
FLAG = "--wikidata-url"
BATCH = 50
"""Items of one request, the most that is allowed."""

ITEM = re.compile(r"Q[1-9]\d*")
ANY = "mul"

BUSY = ("maxlag", "ratelimited", "readonly", "internal_api_error")
"""How the errors begin that another try may not meet."""

NO_ITEMS = "no items"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wikidata:
    """What is asked of Wikidata in one language: names, and objects of some `relations`."""

    server: Server
    journal: Journal
    language: str
    relations: tuple[str, ...] = ()

    @property
    def failures(self) -> Counter[str]:
        """Tries that came to nothing, by kind."""
        return self.server.failures

    def lacking(self, ids: Collection[str], *, claims: bool = False) -> list[str]:
        """The items among some identifiers that must still be asked about, each once."""
        items = filter(ITEM.fullmatch, dict.fromkeys(ids))
        return [
            id for id in items if any(self.journal.find(k) is None for k in self._keys(id, claims))
        ]

    def fetch(
        self,
        ids: Collection[str],
        *,
        claims: bool = False,
        progress: Callable[[int], None] = lambda count: None,
    ) -> None:
        """Ask for what is lacking, and keep every item; `progress` hears how many came."""
        lacking = self.lacking(ids, claims=claims)
        for start in range(0, len(lacking), BATCH):
            batch = lacking[start : start + BATCH]
            read = partial(_items, batch)
            items = self.server.get(self._query(batch, claims), read)
            self.journal.keep_all(
                entry for id in batch for entry in self._kept(id, items[id], claims)
            )
            progress(len(batch))

    def names(self, ids: Collection[str]) -> Names:
        """The names of items that were fetched and are there."""
        found = {}
        for id in ids:
            if kept := self.journal.find(self._keys(id, False)[0]):
                names, same = json.loads(kept)
                if same:
                    found[id] = Named(tuple(names), same)
        return found

    def statements(self, subjects: Collection[str]) -> Iterator[tuple[Pair, list[str]]]:
        """The objects of each relation and subject, of subjects that were fetched with claims."""
        for id in subjects:
            kept = self.journal.find(self._keys(id, True)[1])
            for relation, objects in json.loads(kept or "{}").items():
                yield (relation, id), objects

    def missing(self, ids: Collection[str]) -> list[str]:
        """The items that Wikidata does not have."""
        keys = ((id, self._keys(id, False)[0]) for id in ids)
        return [id for id, key in keys if self.journal.find(key) == json.dumps([[], ""])]

    def _keys(self, id: str, claims: bool) -> list[str]:
        address = self.server.address.shown
        keys = [f"{address} {self.language} {id}"]
        return [*keys, f"{address} {fingerprint(self.relations)} {id}"] if claims else keys

    def _kept(self, id: str, item: Mapping[str, Any], claims: bool) -> Iterator[tuple[str, str]]:
        """What is kept of an item, under the keys of what was asked."""
        names = named(_names(item, self.language), item.get("id") or id)
        gone = "missing" in item
        values: list[Any] = [[[], ""] if gone else [names.names, names.same]]
        if claims:
            values.append({r: o for r in self.relations if (o := _objects(item, r))})
        for key, value in zip(self._keys(id, claims), values, strict=True):
            yield key, json.dumps(value)

    def _query(self, batch: Sequence[str], claims: bool) -> dict[str, str]:
        return {
            "action": "wbgetentities",
            "format": "json",
            "ids": "|".join(batch),
            "props": "labels|aliases|claims" if claims else "labels|aliases",
            "languages": f"{self.language}|{ANY}",
            "maxlag": "5",
        }


@contextmanager
def opened(url: str, retries: int, wait: float, timeout: float) -> Iterator[Server]:
    """Talk to Wikidata, or to what speaks like it."""
    check_url(url, FLAG)
    address = Address(url=url, kind="Wikidata", retries=retries, wait=wait, timeout=timeout)
    agent = {"User-Agent": f"sonde/{__version__} (builds sets of facts with names)"}
    with connected(address, FLAG, agent, extra="paraphrase") as server:
        yield server


def _items(wanted: Sequence[str], value: Any) -> dict[str, Mapping[str, Any]]:
    """The items of an answer, by the identifiers they were asked for by."""
    if isinstance(value, dict) and isinstance(value.get("error"), dict):
        code, info = (str(value["error"].get(key, "")) for key in ("code", "info"))
        why = f"refuses: {code}: {info[:160]}"
        if code.startswith(BUSY):
            raise Failure(code, why)
        raise EndpointError(f"Wikidata {why}")
    entities = value.get("entities") if isinstance(value, dict) else None
    if not isinstance(entities, dict):
        raise Failure(NO_ITEMS, "")
    found: dict[str, Mapping[str, Any]] = {}
    for key, item in entities.items():
        if isinstance(item, dict):
            found[_inside(item, "redirects", "from") or key] = item
    if absent := [id for id in wanted if id not in found]:
        raise Failure(
            NO_ITEMS, f"left {len(absent)} of {len(wanted)} items out, such as {absent[0]}"
        )
    return found


def _names(item: Mapping[str, Any], language: str) -> list[str]:
    """The label and the aliases of a language, then those of all."""
    found: list[Any] = []
    for code in (language, ANY):
        found.append(_inside(item, "labels", code))
        aliases = _inside(item, "aliases", code)
        found.extend(aliases if isinstance(aliases, list) else ())
    texts = (entry.get("value") for entry in found if isinstance(entry, dict))
    return [text for text in texts if isinstance(text, str)]


def _objects(item: Mapping[str, Any], relation: str) -> list[str]:
    """The items that stand as objects of a relation, each once, deprecated ones left out."""
    claims = _inside(item, "claims", relation)
    found: dict[str, None] = {}
    for claim in claims if isinstance(claims, list) else ():
        value = _inside(claim, "mainsnak", "datavalue", "value")
        id = value.get("id") if isinstance(value, dict) else None
        if isinstance(id, str) and ITEM.fullmatch(id) and claim.get("rank") != "deprecated":
            found[id] = None
    return list(found)


def _inside(value: Any, *keys: str) -> Any:
    """What stands under keys within keys; None where it is not so."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value
