"""`sonde compare --paper optiprompt`: runs of lama under several templates, with their controls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

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
    template = f"lpaqa:{sources.lpaqa(home / 'lpaqa') / 'mine'}"
    words = ("run", "lama", "-d", f"lama:{data}", "--no-html", "-m")
    for name in ("majority", "class-prior", "naive-bayes"):
        ran(*words, f"control:{name}", "-o", home / name)
    ran(*words, "control:class-prior", "--template", template, "-o", home / "worded")
    return home


def numbers(sonde: Sonde, *words: str | Path) -> dict[str, Any]:
    done = sonde("compare", "--paper", "optiprompt", *words, "--json")
    assert done.code == 0, done.err
    estimates = json.loads(done.out)["estimates"]
    return {name: e["value"] for name, e in estimates.items()}


def test_runs_under_other_templates_are_compared_by_fact(sonde: Sonde, folder: Path) -> None:
    runs = (f"manual={folder / 'majority'}", f"opti={folder / 'worded'}", folder / "naive-bayes")
    values = numbers(sonde, *runs)
    # Dutch is the most common object of the facts prompted, Greek that of the training facts.
    # LPAQA has no template for P2.
    assert values["table-2.manual.string.All"] == pytest.approx(2 / 3)
    assert values["table-2.opti.string.All"] == pytest.approx(1 / 3)
    assert values["gains.opti.manual.All"] == pytest.approx(-1 / 3)


def test_relations_restrict_what_is_learned(sonde: Sonde, folder: Path) -> None:
    runs = (f"manual={folder / 'majority'}", f"prior={folder / 'class-prior'}")
    every = numbers(sonde, *runs)
    one = numbers(sonde, *runs, "--relations", "P1")
    assert every["table-2.prior.string.All"] == pytest.approx((1 / 3 + 0) / 2)
    assert one["table-2.prior.string.All"] == pytest.approx(1 / 3)
    [majority] = [
        v for k, v in one.items() if k.startswith("table-8.") and k.endswith("prior, Maj.")
    ]
    assert majority == pytest.approx(1 / 3), "the majority of P1 alone, by the class prior"


def test_the_report_is_shown_and_written(sonde: Sonde, folder: Path) -> None:
    runs = [f"manual={folder / 'majority'}", f"prior={folder / 'class-prior'}"]
    words = ("compare", "--paper", "optiprompt", *runs, "--easy", "prior", "--all-tables")
    done = sonde(*words, "-o", folder / "page")
    assert done.code == 0, done.err
    assert "A fact is easy if prior answers it" in " ".join(done.out.split())
    assert "Sampled easy and hard facts" in (folder / "page" / "report.html").read_text()


def test_what_cannot_be_read_is_rejected(sonde: Sonde, folder: Path) -> None:
    one, two = folder / "majority", folder / "class-prior"
    words = ("compare", "--paper", "optiprompt")
    sonde(*words, one, two, "--easy", "bayes").refused(2, "'bayes'", "majority")
    sonde("compare", one, two, "--easy", "majority").refused(2, "--paper")
    sonde("compare", "--paper", "belief", one, "--easy", "a").refused(2, "drop --easy")
    sonde(*words, f"a={one}", f"a={two}").refused(2, "same name")
    sonde(*words, f"={one}", two).refused(2, "NAME=FOLDER")
    other = folder / "belief"
    words = ("-m", "control:majority", "-d", "atlas", "--relations", "P30", "--limit", "3")
    assert sonde("run", "belief", *words, "--no-html", "-o", other).code == 0
    sonde("compare", "--paper", "optiprompt", other).refused(2, "no run fits", "sonde run lama")
