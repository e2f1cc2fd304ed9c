"""Names and statements from a Wikidata that answers, is busy, breaks off, or is not there."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from sonde.core.errors import EndpointError, UsageError
from sonde.data.builders.myriadlama.objects import Named
from sonde.data.builders.myriadlama.wikidata import BATCH, Wikidata, opened
from sonde.data.builders.work import Journal
from sonde.http.address import Address
from sonde.http.server import connected

from .loopback import Reply, noted
from .wikidata_server import Wiki, item, wikidata

ITEMS = {
    "Q142": item(
        "France",
        "French Republic",
        claims={
            "P36": [
                "Q90",
                {"rank": "deprecated", "mainsnak": {"datavalue": {"value": {"id": "Q1"}}}},
                {"rank": "normal", "mainsnak": {"snaktype": "novalue"}},
                {"rank": "normal", "mainsnak": {"datavalue": {"value": {"time": "+1789"}}}},
                "Q90",
            ],
            "P37": ["Q150"],
        },
    ),
    "Q90": item("Paris", "City of Light", " Paris ", ""),
    "Q9": item(to="Q90"),
    "Q150": item("French", code="mul"),
    "Q7": item("Sept", code="fr"),
}


def fetched(
    wiki: Wiki,
    journal: Path,
    ids: list[str],
    *,
    claims: bool = False,
    retries: int = 5,
    waits: list[float] | None = None,
    timeout: float = 600,
) -> Wikidata:
    """Ask for some items, with the relation P36."""
    address = Address(url=wiki.url, retries=retries, wait=1, timeout=timeout)
    with connected(address, "--url", sleep=noted([] if waits is None else waits)) as server:
        asked = Wikidata(server=server, journal=Journal(journal), language="en", relations=("P36",))
        asked.fetch(ids, claims=claims)
    return asked


def test_names_are_the_label_and_the_aliases_each_once(tmp_path: Path) -> None:
    with wikidata(ITEMS) as wiki:
        asked = fetched(wiki, tmp_path / "j", ["Q142", "Q90", "Q150", "Q7", "Q404", "Lima"])
    assert wiki.batches == [["Q142", "Q90", "Q150", "Q7", "Q404"]], "a name is no item"
    names = asked.names(["Q142", "Q90", "Q150", "Q7", "Q404", "Lima"])
    assert names["Q142"] == Named(("France", "French Republic"), "Q142")
    assert names["Q90"].names == ("Paris", "City of Light")
    assert names["Q150"].names == ("French",), "names of all languages count"
    assert names["Q7"].names == (), "it has none in English"
    assert "Q404" not in names and asked.missing(["Q142", "Q404", "Lima"]) == ["Q404"]


def test_an_item_that_was_merged_is_known_as_the_other(tmp_path: Path) -> None:
    with wikidata(ITEMS) as wiki:
        asked = fetched(wiki, tmp_path / "j", ["Q9"])
    assert asked.names(["Q9"]) == {"Q9": Named(("Paris", "City of Light"), "Q90")}


def test_statements_are_items_that_are_not_deprecated(tmp_path: Path) -> None:
    with wikidata(ITEMS) as wiki:
        asked = fetched(wiki, tmp_path / "j", ["Q142", "Q90"], claims=True)
        assert list(asked.statements(["Q142", "Q90"])) == [(("P36", "Q142"), ["Q90"])]
        assert wiki.requests[0]["props"] == "labels|aliases|claims"
        fetched(wiki, tmp_path / "j", ["Q142"])
        fetched(wiki, tmp_path / "j", ["Q142"], claims=True)
        assert len(wiki.requests) == 1, "both are kept"


def test_items_are_asked_for_fifty_at_a_time_and_never_twice(tmp_path: Path) -> None:
    ids = [f"Q{n}" for n in range(1, 121)]
    with wikidata({id: item(f"name of {id}") for id in ids}) as wiki:
        fetched(wiki, tmp_path / "j", ids[:60])
        asked = fetched(wiki, tmp_path / "j", [*ids, *ids])
    assert [len(batch) for batch in wiki.batches] == [BATCH, 10, BATCH, 10]
    assert sorted(id for batch in wiki.batches for id in batch) == sorted(ids)
    assert len(asked.names(ids)) == 120
    assert all(agent and agent.startswith("python-httpx") for agent in wiki.agents)


def busy(code: str) -> Reply:
    return Reply(body=json.dumps({"error": {"code": code, "info": "Waiting for a server"}}))


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(body="slow down", status=429), "HTTP 429"),
        (Reply(body="oh", status=500), "HTTP 500"),
        (busy("maxlag"), "maxlag"),
        (busy("ratelimited"), "ratelimited"),
        (Reply(body='{"entities": {"Q142": {"id": "Q1'), "no items"),
        (Reply(body='{"entities": {}}'), "no items"),
        (Reply(body='{"entities": []}'), "no items"),
        (Reply(body="[]"), "no items"),
        (Reply(body="<html>busy</html>"), "no items"),
        (Reply(body="{", cut=True), "no connection"),
        (Reply(body="", hang=True), "no answer in time"),
    ],
)
def test_what_may_pass_is_tried_again(reply: Reply, kind: str, tmp_path: Path) -> None:
    waits: list[float] = []
    with wikidata(ITEMS, lambda number: reply if number <= 2 else None) as wiki:
        timeout = 2 if reply.hang else 600
        asked = fetched(wiki, tmp_path / "j", ["Q142"], waits=waits, timeout=timeout)
    assert asked.names(["Q142"])["Q142"].names[0] == "France"
    assert waits == [1, 2] and asked.failures == {kind: 2}


def test_a_busy_server_says_how_long_to_wait(tmp_path: Path) -> None:
    lag = Reply(body=busy("maxlag").body, headers={"Retry-After": "5"})
    waits: list[float] = []
    with wikidata(ITEMS, lambda number: lag if number == 1 else None) as wiki:
        fetched(wiki, tmp_path / "j", ["Q142"], waits=waits)
    assert waits == [5]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (busy("param-illegal"), "refuses: param-illegal: Waiting"),
        (Reply(body="who?", status=403), "HTTP 403: who?"),
    ],
)
def test_what_will_not_pass_is_told_at_once(fault: Reply, said: str, tmp_path: Path) -> None:
    with wikidata(ITEMS, lambda number: fault) as wiki:
        with pytest.raises(EndpointError, match=said):
            fetched(wiki, tmp_path / "j", ["Q142"])
        assert len(wiki.requests) == 1


def test_an_item_that_is_left_out_is_no_answer(tmp_path: Path) -> None:
    short = Reply(body=json.dumps({"entities": {"Q142": {"id": "Q142"}}}))
    with (
        wikidata(ITEMS, lambda number: short) as wiki,
        pytest.raises(EndpointError, match=r"left 1 of 2 items out, such as Q90.*after 2 tries"),
    ):
        fetched(wiki, tmp_path / "j", ["Q142", "Q90"], retries=1)


def test_a_kill_loses_one_answer_at_most(tmp_path: Path) -> None:
    ids, journal = [f"Q{n}" for n in range(1, 101)], tmp_path / "j"
    items = {id: item(f"name of {id}") for id in ids}
    with (
        wikidata(items, lambda number: Reply(body="", status=503) if number == 2 else None) as wiki,
        pytest.raises(EndpointError),
    ):
        fetched(wiki, journal, ids, retries=0)
    data = journal.read_bytes()
    journal.write_bytes(data[: len(data) // 2])  # killed while the first answer was written
    kept = journal.read_bytes().count(b"\n")
    with wikidata(items, port=wiki.port) as wiki:
        asked = fetched(wiki, journal, ids)
    assert sum(map(len, wiki.batches)) == 100 - kept and 0 < kept < 50
    assert len(asked.names(ids)) == 100


def test_nobody_there_is_told(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refuses every connection
        wiki = Wiki({}, url=f"http://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(EndpointError, match="cannot be reached"):
            fetched(wiki, tmp_path / "j", ["Q1"], retries=0)
    assert not (tmp_path / "j").exists()


@pytest.mark.parametrize("url", ["wikidata.org", "http:///w"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="--wikidata-url"), opened(url, 0, 0, 1):
        pass


def test_wikidata_is_told_who_asks(tmp_path: Path) -> None:
    with wikidata(ITEMS) as wiki, opened(wiki.url, 0, 0, 600) as server:
        Wikidata(server=server, journal=Journal(tmp_path / "j"), language="en").fetch(["Q90"])
    assert wiki.agents[0] is not None and wiki.agents[0].startswith("sonde/")
