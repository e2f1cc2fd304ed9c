"""`sonde data build myriadlama`: real servers that answer, fail, die and come back; real LAMA."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sonde.data.builders.work import working
from sonde.data.format import open_dataset
from tests import tiny
from tests.command import COMMAND, PATIENCE, Sonde, await_that
from tests.data.chat_server import failing, rewording, said, serving
from tests.data.loopback import Reply
from tests.data.wikidata_server import item, wikidata

QUICK = ("--wait", 0, "--timeout", PATIENCE)

CAPITALS = {
    "Q20": ("Norway", "Q585", "Oslo"),
    "Q211": ("Latvia", "Q1773", "Riga"),
    "Q419": ("Peru", "Q2868", "Lima"),
    "Q750": ("Bolivia", "Q2907", "Sucre"),
    "Q579984": ("Lima Province", "Q2868", "Lima"),
}
ITEMS = {
    "Q20": item("Norway", "Kingdom of Norway", claims={"P36": ["Q585"]}),
    "Q211": item("Latvia", "Republic of Latvia", claims={"P36": ["Q1773"]}),
    "Q419": item("Peru", claims={"P36": ["Q99", "Q5555"]}),
    "Q750": item("Bolivia", "Plurinational State of Bolivia", claims={"P36": ["Q2907", "Q1491"]}),
    "Q585": item("Oslo", "Christiania"),
    "Q1773": item("Riga"),
    "Q2868": item("Lima", "City of Kings"),
    "Q99": item(to="Q2868"),
    "Q2907": item("Sucre"),
    "Q1491": item("La Paz", "Nuestra Señora de La Paz"),
}


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def lama(tmp_path: Path) -> Path:
    """LAMA's form: five capitals, one of which stands in its subject's name."""
    own = {"relation": "P36", "template": "[X] has [Y] .", "label": "capital", "type": "1-1"}
    written(tmp_path / "lama" / "relations.jsonl", [own])
    rows = [
        {"sub_label": name, "sub_uri": id, "obj_label": city, "obj_uri": of}
        for id, (name, of, city) in CAPITALS.items()
    ]
    written(tmp_path / "lama" / "facts" / "P36.jsonl", rows)
    written(tmp_path / "lama" / "train" / "P36" / "train.jsonl", [{"sub": "Italy", "obj": "Rome"}])
    return tmp_path / "lama"


@pytest.fixture
def templates(tmp_path: Path) -> Path:
    rows = ["The capital of [X] is [Y].", "[X] has [Y] .", "What is the capital of [X]? [Y]."]
    return written(
        tmp_path / "mine.jsonl", [{"relation": "capital", "template": text} for text in rows]
    )


def command(lama: Path, templates: Path, out: Path, *more: object) -> tuple[object, ...]:
    return (*("data", "build", "myriadlama"), lama, "--templates", templates, "-o", out, *more)


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }


def of_fact(folder: Path, subject: str) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    facts = {fact.subject.id: fact for fact in open_dataset(folder).facts("P36")}
    return facts[subject].subject.names, [entity.names for entity in facts[subject].objects]


def test_from_lama_wikidata_triples_and_a_chat_model_to_a_run(
    sonde: Sonde, lama: Path, templates: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    triples = written(
        tmp_path / "t.jsonl",
        [
            {"head": "Norway", "relation": "capital", "tail": "Trondheim"},
            {"head": "Chile", "relation": "capital", "tail": "Santiago"},
        ],
    )
    with wikidata(ITEMS) as wiki, serving(rewording) as server:
        words = ("--triples", triples, "--wikidata", "--wikidata-url", wiki.url, *QUICK)
        asked = ("--endpoint", server.url, "--model", "m", "--paraphrases", 19)
        rows = tmp_path / "rows" / "all.jsonl"
        rows.parent.mkdir()
        done = sonde(*command(lama, templates, out, *words, *asked, "--rows", rows))
    assert done.code == 0, done
    told = " ".join(done.out.split())
    assert "triples: 2 read, 1 of them about the base's pairs" in told
    assert "Wikidata: 4 subjects in 1 requests" in done.err
    assert "57 paraphrases of 3 templates are wanted: at least 3 requests" in told
    assert "relational templates 1 60 41 4,100" in told
    assert "unique triples 4 6 27,106 34,048" in told
    assert "subject-relation pairs 4 4 24,643 24,643" in told
    assert "objects left out whose name is in the subject's: 1" in told
    assert "items that Wikidata does not have: 1" in told
    assert "items that were merged into others: 1" in told
    assert of_fact(out, "Q20") == (
        ("Norway", "Kingdom of Norway"),
        [("Oslo", "Christiania"), ("Trondheim",)],
    )
    assert of_fact(out, "Q419") == (("Peru",), [("Lima", "City of Kings")])
    assert of_fact(out, "Q750")[1] == [("Sucre",), ("La Paz", "Nuestra Señora de La Paz")]
    built = open_dataset(out)
    groups = {t.group for t in built.relations[0].templates}
    assert len(groups) == 3 and built.relations[0].language == "en"
    assert [t.text for t in built.relations[0].templates if t.origin == "lama"] == ["[X] has [Y] ."]
    assert "paraphrases written by m" in built.card.sources
    assert sonde("data", "check", out).code == 0
    stats = " ".join(sonde("data", "stats", out).out.split())
    assert "unique triples 6" in stats and "prompts 420" in stats, stats
    read = " ".join(sonde("data", "stats", f"myriadlama:{rows.parent}").out.split())
    assert "unique triples 6" in read and "prompts 420" in read, read
    run = sonde("run", "belief", "-m", "control:majority", "-d", out, "-o", tmp_path / "run")
    assert run.code == 0, run


def test_nothing_is_asked_twice_when_the_same_set_is_built_again(
    sonde: Sonde, lama: Path, templates: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with wikidata(ITEMS) as wiki, serving(rewording) as server:
        words = ("--wikidata", "--wikidata-url", wiki.url, *QUICK)
        asked = ("--endpoint", server.url, "--model", "m", "--paraphrases", 2)
        done = sonde(*command(lama, templates, out, *words, *asked))
        assert "out.work keeps answers.jsonl, wikidata.jsonl" in " ".join(done.out.split())
        first, counts = content(out), (len(wiki.requests), len(server.requests))
        assert sonde(*command(lama, templates, out, *words, *asked, "--force")).code == 0
        assert (len(wiki.requests), len(server.requests)) == counts
        assert content(out) == first
        more = written(tmp_path / "mine.jsonl", [{"relation": "P36", "template": "[Y] rules [X]."}])
        assert sonde(*command(lama, more, out, *words, *asked, "--force")).code == 0
        assert len(wiki.requests) == counts[0] and len(server.requests) > counts[1]


def test_wikidata_that_dies_is_one_message_and_the_build_goes_on_later(
    sonde: Sonde, lama: Path, templates: Path, tmp_path: Path
) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    with wikidata(ITEMS) as wiki:
        words = ("--wikidata", "--wikidata-url", wiki.url, *QUICK, "--retries", 1)
        assert sonde(*command(lama, templates, whole, *words)).code == 0
        asked = len(wiki.requests)
    gone = sonde(*command(lama, templates, out, *words))
    gone.refused(4, "cannot be reached", "given up after 2 tries", "--aliases FOLDER")
    assert not out.exists() and not (tmp_path / "out.work").exists()
    dead = Reply(body="down", status=503)
    with wikidata(ITEMS, lambda n: dead if n > 1 else None, port=wiki.port):
        done = sonde(*command(lama, templates, out, *words))
    done.refused(
        4, "HTTP 503: down", f"kept in {out}.work/wikidata.jsonl", "run the same command again"
    )
    assert not out.exists()
    with wikidata(ITEMS, port=wiki.port) as again:
        assert sonde(*command(lama, templates, out, *words)).code == 0
        assert len(again.requests) == asked - 1
    assert content(out) == content(whole)


def test_a_killed_build_loses_one_answer_at_most_and_keeps_others_out(
    sonde: Sonde, lama: Path, templates: Path, tmp_path: Path
) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    with serving(rewording) as server:
        asked = ("--endpoint", server.url, "--model", "m", "--paraphrases", 19, *QUICK)
        assert sonde(*command(lama, templates, whole, *asked)).code == 0
    silent = Reply(body="", hang=True)
    with serving(failing(rewording, silent, 3)) as server:
        asked = ("--endpoint", server.url, "--model", "m", "--paraphrases", 19, *QUICK)
        words = [str(word) for word in command(lama, templates, out, *asked)]
        running = subprocess.Popen([COMMAND, *words], stdout=subprocess.DEVNULL)
        await_that(lambda: len(server.requests) == 3, running)
        second = sonde(*command(lama, templates, out, *asked))
        second.refused(5, f"{out} is being built by another process")
        running.send_signal(signal.SIGKILL)
        running.wait()
    assert not out.exists()
    with serving(rewording) as server:
        asked = ("--endpoint", server.url, "--model", "m", "--paraphrases", 19, *QUICK)
        assert sonde(*command(lama, templates, out, *asked)).code == 0
        assert len(server.requests) == 1
    assert content(out) == content(whole)


def test_a_model_that_says_the_same_for_ever_is_stopped(
    sonde: Sonde, lama: Path, templates: Path, tmp_path: Path
) -> None:
    same = said("In short, the capital of [X] is [Y].")
    with serving(lambda number, text: same) as server:
        asked = ("--endpoint", server.url, "--model", "m", *QUICK, "--patience", 3)
        done = sonde(*command(lama, templates, tmp_path / "out", *asked))
        assert len(server.requests) == 4
    done.refused(4, "nothing new 3 times in a row", "--fewer")
    assert not (tmp_path / "out").exists()


def test_what_reviewers_drop_is_not_in_the_set(
    sonde: Sonde, lama: Path, templates: Path, tmp_path: Path
) -> None:
    out, judged = tmp_path / "out", tmp_path / "judged.jsonl"
    with serving(rewording) as server:
        asked = ("--endpoint", server.url, "--model", "m", "--paraphrases", 2, *QUICK)
        assert sonde(*command(lama, templates, out, *asked)).code == 0
        [relation] = open_dataset(out).relations
        texts = [template.text for template in relation.templates]
        assert len(texts) == 9
        written(
            judged,
            [
                {"item": f"P36|{text}", "reviewer": "ann", "sources": ["s"], "keep": number > 0}
                for number, text in enumerate(texts[:-1])
            ],
        )
        again = (*command(lama, templates, out, *asked), "--review", judged, "--force")
        sonde(*again).refused(3, "1 templates of", "not judged yet", "--unjudged keep")
        done = sonde(*again, "--unjudged", "drop")
        assert "review: kept 7, dropped 2 templates" in done.out
        assert len(server.requests) == 3, "paraphrases are not asked for again"
    [relation] = open_dataset(out).relations
    assert [t.text for t in relation.templates] == texts[1:-1]
    heads = {t.group for t in relation.templates}
    assert len(heads) == 3 and heads <= {t.id for t in relation.templates}
    sonde(*again[:-2], tmp_path / "none.jsonl", "--force").refused(3, "none.jsonl is missing")


def test_names_and_objects_come_from_a_table_too(
    sonde: Sonde, lama: Path, templates: Path, tmp_path: Path
) -> None:
    table = tmp_path / "aliases"
    table.mkdir()
    (table / "en.tsv").write_text("Q750\tBolivia\tUpper Peru\nQ1491\tLa Paz\n")
    (table / "ja.tsv").write_text("Q750\tボリビア\n", encoding="utf-8")
    (table / "multi_valued.tsv").write_text("Q750\tP36\tQ2907 Q1491\nQ1\tP36\tQ2\n")
    more: tuple[object, ...] = ("--aliases", table)
    assert sonde(*command(lama, templates, tmp_path / "a", *more)).code == 0
    assert of_fact(tmp_path / "a", "Q750") == (("Bolivia", "Upper Peru"), [("Sucre",), ("La Paz",)])
    assert not (tmp_path / "a.work").exists(), "nothing was asked"
    assert sonde(*command(lama, templates, tmp_path / "b", *more, "--objects", "none")).code == 0
    assert of_fact(tmp_path / "b", "Q750")[1] == [("Sucre",)]
    more = (*more, "--relations", "capital")
    assert sonde(*command(lama, templates, tmp_path / "c", *more, "--language", "ja")).code == 0
    assert of_fact(tmp_path / "c", "Q750")[0] == ("Bolivia", "ボリビア")
    done = sonde(
        *command(lama, templates, tmp_path / "e", *more, "--language", "ja", "--translate")
    )
    done.refused(3, "has names in 'ja'")
    with (table / "ja.tsv").open("a", encoding="utf-8") as file:
        file.write("Q2907\tスクレ\n")
    done = sonde(
        *command(lama, templates, tmp_path / "e", *more, "--language", "ja", "--translate")
    )
    assert "facts left out that have no names in that language: 3" in done.out
    done = sonde("data", "build", "myriadlama", tmp_path / "e", "-o", tmp_path / "f")
    done.refused(2, "no relation of 'myriadlama' is in 'en', but in ja")
    assert of_fact(tmp_path / "e", "Q750") == (("ボリビア",), [("スクレ",)])
    done = sonde(*command(lama, templates, tmp_path / "d", *more, "--language", "fr"))
    done.refused(3, "fr.tsv is missing")
    assert not (tmp_path / "d").exists()


def test_a_guesser_is_asked_once(sonde: Sonde, lama: Path, templates: Path, tmp_path: Path) -> None:
    model, out = f"hf:{tiny.bert(tmp_path / 'bert')}", tmp_path / "out"
    done = sonde(*command(lama, templates, out, "--guesser", model, "--device", "cpu"))
    assert done.code == 0, done
    assert f"by {model}" in open_dataset(out).card.description
    (tmp_path / "bert").rename(tmp_path / "gone")
    again = sonde(*command(lama, templates, out, "--guesser", model, "--force"))
    assert again.code == 0, again


def test_requests_that_make_no_sense_are_refused(
    sonde: Sonde, lama: Path, templates: Path, tmp_path: Path
) -> None:
    build = command(lama, templates, tmp_path / "out")
    sonde(*build, "--aliases", tmp_path, "--wikidata").refused(2, "give one of them")
    sonde(*build, "--guesser", "hf:x", "--keep-guessable").refused(2, "give one of them")
    sonde(*build, "--objects", "tripels").refused(2, "did you mean 'triples'?")
    sonde(*build, "--translate").refused(2, "--translate needs names")
    sonde(*build, "--language", "English!").refused(2, "a code such as en")
    sonde(*build, "--wikidata", "--wikidata-url", "here").refused(2, "--wikidata-url must begin")
    sonde(*build, "--endpoint", "http://here").refused(2, "go together")
    sonde(*build, "--triples", tmp_path / "none").refused(3, "none does not exist")
    hints = written(tmp_path / "h.jsonl", [{"relation": "P1", "text": "x"}])
    sonde(*build, "--hints", hints).refused(3, "'P1' is no relation")
    sonde(*command(tmp_path / "nowhere", templates, tmp_path / "out")).refused(3, "nowhere")
    missing = command(lama, tmp_path / "none.jsonl", tmp_path / "out")
    sonde(*missing).refused(3, "--templates: ", "none.jsonl is missing")
    sonde(*build, "--rule", "majority").refused(2, "give these with --review")
    sonde(*build, "--unjudged", "keep").refused(2, "give these with --review")
    sonde(*build, "--relations", ",").refused(2, "',' holds no name")
    control = sonde(*build, "--guesser", "control:majority")
    assert "-d" not in control.refused(2, "counts the facts of a dataset", "a model that reads")
    assert not (tmp_path / "out").exists() and not (tmp_path / "out.work").exists()
    sonde(*build, "--rows", tmp_path / "rows.csv").refused(2, "--rows takes a .jsonl file")
    sonde(*build, "--rows", templates).refused(2, "mine.jsonl is there", "--force")
    with working(tmp_path / "out"):
        sonde(*build).refused(5, "is being built by another process")
    assert sonde(*build).code == 0
    sonde(*build).refused(2, "holds a dataset", "--force")


@pytest.mark.shared
def test_the_base_of_lama_has_the_counts_of_the_string_filter(
    sonde: Sonde, shared: Path, tmp_path: Path
) -> None:
    source = shared / "data"
    words = ("data", "build", "myriadlama", source / "lama", "--aliases", source / "aliases")
    done = sonde(*words, "-o", tmp_path / "out")
    told = " ".join(done.out.split())
    assert re.search(r"unique triples 29,285 \S+ 27,106 34,048", told), done
    assert re.search(r"subject-relation pairs 26,825 26,825 24,643 24,643", told)
    built = open_dataset(tmp_path / "out")
    subjects = [(r.id, id) for r in built.relations for id in built.frame(r.id)["subject_id"]]
    known = [relation for relation, id in subjects if re.fullmatch(r"Q\d+", id)]
    unknown = {relation for relation, id in subjects if not re.fullmatch(r"Q\d+", id)}
    # 26,810 where rows without identifiers are one subject, and two of one name, made one, are two
    assert len(known) + len(unknown) == 26_810 - 1


@pytest.mark.shared
def test_real_lama_and_a_server_with_every_fault_end_in_a_run(
    sonde: Sonde, shared: Path, tmp_path: Path
) -> None:
    """Nonsense, busy, too few, duplicates, then dead: every template has its paraphrases."""

    def faulty(number: int, text: str) -> Reply:
        few = rewording(number, text)
        lines = json.loads(few.body)["choices"][0]["message"]["content"].splitlines()
        replies = {
            1: said("As a model I cannot.\n[X] [X]\n[Y]"),
            2: Reply(body="slow down", status=429, headers={"Retry-After": "0"}),
            3: said("\n".join(lines[:2])),
            4: said("\n".join([lines[0]] * 19)),
        }
        return replies.get(number, few if number < 8 else Reply(body="gone", status=503))

    source, out = shared / "data", tmp_path / "out"
    (tmp_path / "lama" / "facts").mkdir(parents=True)
    for name in ("relations.jsonl", "facts/P36.jsonl", "facts/P1376.jsonl"):
        (tmp_path / "lama" / name).symlink_to(source / "lama" / name)
    wording = ("--templates", f"pararel:{source / 'pararel'}", "--aliases", source / "aliases")
    words = ("data", "build", "myriadlama", tmp_path / "lama", *wording)
    quick = ("--model", "m", "--paraphrases", 3, *QUICK, "--retries", 1)
    with serving(faulty) as server:
        done = sonde(*words, "-o", out, "--endpoint", server.url, *quick)
    done.refused(4, "HTTP 503: gone", "answers so far are kept", "run the same command again")
    assert not out.exists()
    with serving(rewording) as server:
        done = sonde(*words, "-o", out, "--endpoint", server.url, *quick)
    assert done.code == 0, done
    for relation in open_dataset(out).relations:
        assert set(Counter(t.group for t in relation.templates).values()) == {4}
    run = ("run", "belief", "-m", "control:majority", "-d", out, "--limit", 5)
    assert sonde(*run, "-o", tmp_path / "run").code == 0
