"""`sonde profile`: one model or several, plug-ins and tiny models, configs and refusals."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sonde as package
from sonde.core.components import _plugins
from tests import tiny
from tests.chat.templates import chat_model
from tests.command import Sonde, files
from tests.written import dataset

TOWNS = {f"town {n}": "ABCD"[n % 4] + "land" for n in range(24)}
TABLE = "town,country\n" + "".join(f"{town},{country}\n" for town, country in TOWNS.items())


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return dataset(tmp_path / "towns", {"P36": ("[X] is in [Y].", TOWNS)})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "towns.csv"
    path.write_text(TABLE)
    return path


@pytest.fixture
def writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The scheme of a generate-only model, as installed with its package."""
    info = tmp_path / "installed" / "writes-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: writes\nVersion: 1\n")
    entry = "[sonde.models]\nwrites = tests.cli.writing_model:COMPONENT\n"
    (info / "entry_points.txt").write_text(entry)
    monkeypatch.syspath_prepend(str(info.parent))
    _plugins.cache_clear()
    yield "writes"
    _plugins.cache_clear()


def results_of(folder: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return value


def value(folder: Path, name: str) -> float | None:
    number: float | None = results_of(folder)["estimates"][name].get("value")
    return number


def instruments(folder: Path) -> set[str]:
    return {
        name.removeprefix("accuracy.instrument.")
        for name in results_of(folder)["estimates"]
        if name.startswith("accuracy.instrument.")
    }


def test_a_generate_only_plug_in_has_a_profile(
    sonde: Sonde, writes: str, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = sonde("profile", "-m", f"{writes}:0.7", "-d", data, "-o", out)
    assert done.code == 0, done
    assert "recalls" in done.out.splitlines()[1]
    result = results_of(out)
    assert instruments(out) == {"question", "continued:1", "generated list"}
    assert "recognized" not in result["estimates"]
    # they are one form, so that nothing is estimated
    assert value(out, "known") is None
    assert (value(out, "accuracy") or 0) > (value(out, "evidence_threshold") or 1)
    for name in ("lowest", "highest", "recalled", "recalled_with_examples", "unknown"):
        assert value(out, name) is not None
    assert value(out, "recalled.baseline") is not None
    assert value(out, "accuracy.baseline.instrument.question") is not None
    assert result["provenance"]["probe"]["name"] == "profile"
    assert result["provenance"]["probe"]["sonde"] == package.__version__


def test_a_model_that_knows_nothing(sonde: Sonde, writes: str, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = sonde("profile", "-m", f"{writes}:0", "-d", data, "-o", out)
    assert "no evidence of knowledge beyond chance" in " ".join(done.out.split()[:40])
    result = results_of(out)
    assert "no evidence of knowledge beyond chance" in result["title"]
    assert "suggests that about" not in done.out


@pytest.mark.parametrize("kind", ["causal", "masked", "seq2seq", "chat"])
def test_tiny_models_and_a_table_without_templates(
    kind: str, sonde: Sonde, table: Path, tmp_path: Path
) -> None:
    makers: dict[str, Any] = {"causal": tiny.llama, "masked": tiny.bert, "seq2seq": tiny.t5}
    folder = makers.get(kind, chat_model)(tmp_path / "model")
    out = tmp_path / "out"
    columns = "subject=town,object=country"
    words: tuple[Any, ...] = (
        "profile",
        "-m",
        f"hf:{folder}",
        "-d",
        table,
        "--columns",
        columns,
        "-o",
        out,
    )
    words = (*words, "--limit", 12, "--set", "max_tokens=2", "--set", "shots=3", "--device", "cpu")
    done = sonde(*words)
    assert done.code == 0, done
    assert instruments(out) == (
        {"list"} if kind == "masked" else {"list", "generated list", "question"}
    )
    run = package.open_run(out)
    assert bool(run.manifest.model.get("chat")) == (kind == "chat")
    assert run.manifest.probe["settings"]["bare_question"] == (kind == "chat")
    # the printed command makes the same run
    plan = sonde(*words, "--dry-run")
    [line] = [line for line in plan.out.splitlines() if line.startswith("sonde run")]
    before = files(out)
    again = sonde(*shlex.split(line)[1:])
    assert again.code == 0, again
    assert files(out) == before
    assert len(package.open_run(out).provenance()["run"]["sessions"]) == 1


def test_resumed_and_shown(sonde: Sonde, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("profile", "-m", "control:majority", "-d", data, "-o", out)
    assert sonde(*words).code == 0
    before = files(out), results_of(out)["estimates"]
    assert sonde(*words).code == 0
    assert (files(out), results_of(out)["estimates"]) == before
    assert sonde("profile", "--config", out / "config.toml").code == 0
    assert (files(out), results_of(out)["estimates"]) == before
    graded = package.open_run(out).results().rows["fact_no"].to_list()
    subject = package.open_run(out).results().facts["subject"][graded[0]]
    shown = sonde("show", out, subject)
    assert shown.code == 0, shown
    assert shown.out.count("correct") >= 6
    assert "not graded" not in shown.out
    html = (out / "report.html").read_text()
    assert "Accuracy of each instrument" in html


def test_two_models_are_compared(sonde: Sonde, writes: str, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    models = ("-m", f"{writes}:0.9", "-m", f"{writes}:0")
    done = sonde("profile", *models, "-d", data, "-o", out)
    assert done.code == 0, done
    folders = [out / f"profile-towns-{share}" for share in ("0.9", "0")]
    assert all((f / "results.json").exists() and (f / "config.toml").exists() for f in folders)
    assert (out / "compare-towns.html").exists()
    assert "better than" in done.out or "worse than" in done.out or "higher" in done.out
    both = sonde("compare", *folders, "--json")
    assert both.code == 0, both
    compared = json.loads(both.out)
    assert "do not share" not in json.dumps(compared["summary"])


def test_models_of_other_kinds_are_compared_on_shared_instruments(
    sonde: Sonde, writes: str, table: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    models = ("-m", f"{writes}:0.9", "-m", "control:majority")
    columns = ("--columns", "subject=town,object=country")
    done = sonde("profile", *models, "-d", table, *columns, "-o", out)
    assert done.code == 0, done
    text = " ".join(done.out.split())
    assert "16 prompts are not compared, because not all runs have them." in text, text


def test_a_study_goes_on_after_a_dataset_that_fails(
    sonde: Sonde, data: Path, tmp_path: Path
) -> None:
    config = tmp_path / "study.toml"
    broken = tmp_path / "broken.csv"
    config.write_text(
        f'model = ["control:majority", "scripted:"]\ndata = ["{broken}", "{data}"]\n'
        f'out = "{tmp_path / "out"}"\nlimit = 12\n[set.profile]\nshots = 3\n'
    )
    plan = sonde("profile", "--config", config, "--dry-run")
    assert plan.out.count("sonde run profile -m") == 2
    assert plan.err.count("broken.csv") >= 2
    assert not (tmp_path / "out").exists()
    done = sonde("profile", "--config", config)
    assert done.code == 2
    assert "2 of 4 runs failed" in done.err
    assert (tmp_path / "out" / "compare-towns.html").exists()
    broken.write_text("subject,object\n" + TABLE.partition("\n")[2])
    kept = {path: path.read_bytes() for path in tmp_path.glob("out/*/timings.jsonl")}
    assert sonde("profile", "--config", config).code == 0
    assert len(kept) == 2
    assert all(path.read_bytes() == content for path, content in kept.items())
    assert (tmp_path / "out" / "compare-broken.html").exists()


def test_a_config_with_several_problems(sonde: Sonde, tmp_path: Path) -> None:
    config = tmp_path / "study.toml"
    config.write_text(
        'model = ["scripted:", "scripted:"]\ndata = "atlas"\nlimt = 3\nprobe = ["x"]\n'
    )
    sonde("profile", "--config", config).refused(
        2, "unknown key 'limt'", "'scripted:' is listed twice", "no probe called 'x'"
    )


@pytest.mark.parametrize(
    ("words", "code", "parts"),
    [
        (("-m", "scripted:", "-m", "scripted:"), 2, ("listed twice",)),
        (("-d", "atlas"), 2, ("no model",)),
        (("-m", "scripted:", "--set", "shot=3"), 2, ("unknown setting 'shot'",)),
        (("-m", "scripted:", "--config", "x.toml"), 2, ("leave out --model",)),
        (("--config", "x.toml"), 2, ("x.toml cannot be read",)),
    ],
)
def test_flags_that_do_not_fit(
    sonde: Sonde, words: tuple[str, ...], code: int, parts: tuple[str, ...]
) -> None:
    sonde("profile", *words).refused(code, *parts)


@pytest.mark.parametrize(
    ("rows", "part"),
    [
        ({"a": "A", "b": "B"}, "fewer than 3 facts besides the examples"),
        (dict.fromkeys("abcdefgh", "A"), "the same object"),
    ],
)
def test_a_table_that_cannot_be_graded(
    sonde: Sonde, rows: dict[str, str], part: str, tmp_path: Path
) -> None:
    path = tmp_path / "facts.csv"
    path.write_text("subject,object\n" + "".join(f"{s},{o}\n" for s, o in rows.items()))
    done = sonde("profile", "-m", "scripted:", "-d", path, "-o", tmp_path / "out")
    done.refused(done.code, part, "add facts")
    assert done.code != 0
    assert not (tmp_path / "out" / "complete.json").exists()


def test_a_model_that_is_capable_of_no_instrument(sonde: Sonde, writes: str, data: Path) -> None:
    done = sonde("profile", "-m", f"{writes}:0.5", "-d", data, "--set", "generate=false")
    done.refused(done.code, "score")
