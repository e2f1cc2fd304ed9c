"""`sonde compare --learning`: stored runs of lama under several templates, with their controls."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
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
    template = f"lpaqa:{sources.lpaqa(home / 'lpaqa') / 'mine'}"
    words = ("run", "lama", "-d", f"lama:{data}", "--no-html", "-m")
    for name in ("majority", "class-prior", "naive-bayes"):
        ran(*words, f"control:{name}", "-o", home / name)
    ran(*words, "control:class-prior", "--template", template, "-o", home / "worded")
    return home


def test_runs_under_other_templates_are_compared_by_fact(sonde: Sonde, folder: Path) -> None:
    runs = (f"manual={folder / 'majority'}", f"opti={folder / 'worded'}", folder / "naive-bayes")
    done = sonde("compare", "--learning", *runs, "--json")
    assert done.code == 0, done.err
    estimates = json.loads(done.out)["estimates"]
    # Dutch is the most common object of the facts prompted, Greek that of the training facts
    assert estimates["run.manual.accuracy.relation.P1"]["value"] == pytest.approx(2 / 3)
    assert estimates["run.opti.accuracy.relation.P1"]["value"] == pytest.approx(1 / 3)
    gain = estimates["run.opti.accuracy.difference.from.manual"]
    assert gain["value"] == pytest.approx(-1 / 3)
    assert estimates["run.opti.majority.answered.relation.P1"]["value"] == 1
    assert "run.opti.accuracy.relation.P2" not in estimates, "LPAQA has no template for it"


def test_the_report_is_shown_written_and_made_from_python(sonde: Sonde, folder: Path) -> None:
    runs = [f"manual={folder / 'majority'}", f"prior={folder / 'class-prior'}"]
    done = sonde(
        "compare", "--learning", *runs, "--easy", "prior", "--all-tables", "-o", folder / "page"
    )
    assert done.code == 0, done.err
    for part in ("Learning from training facts: 2 runs", "A fact is easy if prior answers it"):
        assert part in " ".join(done.out.split())
    assert "Sampled easy and hard facts" in (folder / "page" / "report.html").read_text()
    frame = api.learning(*runs, easy=("prior",)).estimates
    assert isinstance(frame, pl.DataFrame)
    whole = frame.filter(
        (pl.col("run") == "prior") & (pl.col("metric") == "accuracy") & (pl.col("of") == "value")
        & (pl.col("over") == "facts") & (pl.col("group_by").list.len() == 0)
    )  # fmt: skip
    assert whole["value"].to_list() == [0.25]


def test_what_cannot_be_read_is_rejected(sonde: Sonde, folder: Path) -> None:
    one, two = folder / "majority", folder / "class-prior"
    sonde("compare", "--learning", one, two, "--easy", "bayes").refused(2, "'bayes'", "majority")
    sonde("compare", one, two, "--easy", "majority").refused(2, "--learning")
    sonde("compare", "--learning", f"a={one}", f"a={two}").refused(2, "same name")
    sonde("compare", "--learning", f"={one}", two).refused(2, "NAME=FOLDER")
    other = folder / "belief"
    words = ("-m", "control:majority", "-d", "atlas", "--relations", "P30", "--limit", "3")
    assert sonde("run", "belief", *words, "--no-html", "-o", other).code == 0
    sonde("compare", "--learning", one, other).refused(2, "run of 'belief'", "lama")
