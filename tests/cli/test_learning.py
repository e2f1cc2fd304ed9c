"""`sonde compare --learning`: stored runs of lama under several templates, with their controls."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sonde as api
from tests.command import Sonde, ran
from tests.data import sources

TRAIN = [("Cleo", "Greek"), ("Dora", "Greek"), ("Anton", "Dutch")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of three controls, one of them also under a template of LPAQA's that only P1 has."""
    home = tmp_path_factory.mktemp("learning")
    data = sources.lama(home / "lama")
    rows = [{"sub": subject, "obj": object} for subject, object in TRAIN]
    sources.lines(data / "train" / "P1" / "train.jsonl", rows)
    sources.lines(data / "train" / "P2" / "train.jsonl", [{"sub": "Eve", "obj": "Bern"}])
    wording = f"lpaqa:{sources.lpaqa(home / 'lpaqa') / 'mine'}"
    words = ("run", "lama", "-d", f"lama:{data}", "--no-html", "-m")
    for name in ("majority", "class-prior", "naive-bayes"):
        ran(*words, f"control:{name}", "-o", home / name)
    ran(*words, "control:class-prior", "--template", wording, "-o", home / "worded")
    return home


def test_runs_under_other_templates_are_compared_by_fact(sonde: Sonde, folder: Path) -> None:
    runs = (f"manual={folder / 'majority'}", f"opti={folder / 'worded'}", folder / "naive-bayes")
    done = sonde("compare", "--learning", *runs, "--json")
    assert done.code == 0, done.err
    printed = json.loads(done.out)
    estimates = printed["estimates"]
    # Dutch is the commonest object of the facts asked, Greek that of the training facts
    assert estimates["accuracy.relation.P1.run.manual"]["value"] == pytest.approx(2 / 3)
    assert estimates["accuracy.relation.P1.run.opti"]["value"] == pytest.approx(1 / 3)
    assert estimates["gain.mean_over_relations.run.opti"]["value"] == pytest.approx(-1 / 3)
    assert estimates["majority.answered.relation.P1.run.opti"]["value"] == 1
    assert "accuracy.relation.P2.run.opti" not in estimates, "LPAQA has no template for it"
    assert printed["counts"]["easy_facts"] > 0, "naive Bayes decides what is easy"
    assert set(printed["provenance"]) == {"manual", "opti", "naive-bayes"}


def test_the_report_is_shown_written_and_made_from_python(sonde: Sonde, folder: Path) -> None:
    runs = [f"manual={folder / 'majority'}", f"prior={folder / 'class-prior'}"]
    done = sonde(
        "compare", "--learning", *runs, "--easy", "prior", "--all-tables", "-o", folder / "page"
    )
    assert done.code == 0, done.err
    for part in ("What 2 runs on lama may have learnt", "Accuracy by relation type", "prior"):
        assert part in done.out
    assert "Where the gains come from" in (folder / "page" / "report.html").read_text()
    report = api.learning(*runs, easy=("prior",))
    assert report.counts["easy_facts"] == 1
    assert report.estimates["accuracy.mean_over_facts.run.prior"].value == 0.25


def test_uhn_leaves_out_what_each_run_s_own_filter_does(sonde: Sonde, tmp_path: Path) -> None:
    data = tmp_path / "lama"
    relation = {"relation": "P103", "template": "[X] speaks [Y] .", "label": "l", "type": "N-1"}
    sources.lines(data / "relations.jsonl", [relation])
    people = ("Ann Dutch", "Bea Vos", "Cid Nix")
    rows = [{"sub_label": name, "obj_label": "Dutch"} for name in people]
    others = zip(("Dov", "Eli", "Fay", "Gus"), ("Thai", "Urdu", "Zulu", "Igbo"), strict=True)
    rows += [{"sub_label": name, "obj_label": language} for name, language in others]
    sources.lines(data / "facts" / "P103.jsonl", rows)
    # the table answers a part of a name as it answers the fact
    told = {"P103:Ann Dutch:Dutch": "Dutch", "P103:Bea Vos:Dutch": "Dutch"}
    (tmp_path / "told.json").write_text(json.dumps({"answers": told}))
    runs = {}
    for filter in ("string", "names"):
        out = tmp_path / filter
        words = ("-m", f"scripted:{tmp_path / 'told.json'}", "--uhn", filter, "-d", f"lama:{data}")
        assert sonde("run", "lama", *words, "--no-html", "-o", out).code == 0
        runs[filter] = api.open_run(out)
    report = api.learning(*runs.values())
    for name, run in zip(("uhn=string", "uhn=names"), runs.values(), strict=True):
        own = run.report().estimates["uhn.p_at_1.mean_over_relations"]
        found = report.estimates[f"accuracy.uhn.mean_over_relations.run.{name}"]
        assert (found.value, found.n) == (own.value, own.n)
    [methods] = [table for table in report.tables if table.id == "methods"]
    assert "names that the model guesses from (uhn=names)" in methods.note


def test_what_cannot_be_read_is_refused(sonde: Sonde, folder: Path) -> None:
    one, two = folder / "majority", folder / "class-prior"
    sonde("compare", "--learning", one, two, "--easy", "bayes").refused(2, "'bayes'", "majority")
    sonde("compare", one, two, "--easy", "majority").refused(2, "--learning")
    sonde("compare", "--learning", f"a={one}", f"a={two}").refused(2, "same name")
    sonde("compare", "--learning", f"={one}", two).refused(2, "NAME=FOLDER")
    other = folder / "belief"
    words = ("-m", "control:majority", "-d", "atlas", "--relations", "P30", "--limit", "3")
    assert sonde("run", "belief", *words, "--no-html", "-o", other).code == 0
    sonde("compare", "--learning", one, other).refused(2, "run of 'belief'", "lama")
