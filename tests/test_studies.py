"""Studies: every problem at once, commands and configs that repeat a run, cells that fail."""

import json
import shlex
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import sonde
from sonde.core.errors import SondeError, UsageError
from sonde.studies import Cell, read_study, run_cell
from tests.written import dataset

TOWNS = {f"town {n}": "ABC"[n % 3] + "land" for n in range(9)}
SMALL: Mapping[str, Any] = {"model": ["control:majority"], "probe": ["profile"]}


@pytest.fixture
def data(tmp_path: Path) -> str:
    return str(dataset(tmp_path / "towns", {"P36": ("[X] is in [Y].", TOWNS)}))


def problems(**config: Any) -> list[str]:
    with pytest.raises(UsageError) as error:
        read_study({"model": ["scripted:"], "data": ["atlas"]} | config)
    return str(error.value).split("; ")


def test_all_problems_are_stated_at_once() -> None:
    text = "; ".join(problems(
        model=["scripted:", "scripted:", "nothing:x"],
        data=["atlas", {"data": "atlas", "colums": "a"}],
        probe=["profile", "prfile"],
        limits=3,
        set={"profile": {"shot": 5, "sentences": "many"}, "lama": {}},
    ))  # fmt: skip
    for part in (
        "unknown key 'limits'; did you mean 'limit'",
        "model 'scripted:' is listed twice",
        "no model scheme 'nothing'",
        "unknown 'colums'",
        "no probe called 'prfile'; did you mean 'profile'",
        "unknown setting 'shot'; did you mean",
        "setting sentences must be int, not 'many'",
        "set.lama: the study has no probe 'lama'",
    ):
        assert part in text, f"{part!r} is not in {text!r}"


@pytest.mark.parametrize(
    ("config", "part"),
    [
        ({"model": []}, "no model is given"),
        ({"data": []}, "no data is given"),
        ({"data": ["atlas", "atlas"]}, "data 'atlas' is listed twice"),
        ({"data": ["a/facts.csv", "b/facts.csv"]}, "two runs would be stored in"),
        ({"data": [{"limit": 3}]}, "a dataset is a name, or a table with 'data'"),
        ({"set": 5}, "settings belong in a table of their probe"),
        ({"set": {"profile": 5}}, "settings belong in a table of their probe"),
    ],
)
def test_one_problem_is_one_sentence(config: dict[str, Any], part: str) -> None:
    assert part in "; ".join(problems(**config))


def test_files_that_are_no_config(tmp_path: Path) -> None:
    for text in (None, "model = [", "\xff"):
        path = tmp_path / "study.toml"
        if text is not None:
            path.write_text(text, encoding="latin-1")
        with pytest.raises(UsageError, match=r"study\.toml cannot be read"):
            read_study(path)


def test_the_cells_are_probes_by_datasets_by_models() -> None:
    cells = read_study({
        "model": ["scripted:", "control:random"],
        "data": ["atlas", {"data": "facts.csv", "limit": 2, "template": "[X] is [Y]."}],
        "probe": ["profile", "lama"],
        "limit": 5,
        "seed": 1,
        "device": "cpu",
        "set": {"profile": {"shots": 2}},
        "out": "runs/study",
    })  # fmt: skip
    assert [str(cell.out.relative_to("runs/study")) for cell in cells] == [
        f"{probe}-{data}-{model}"
        for probe in ("profile", "lama")
        for data in ("atlas", "facts")
        for model in ("scripted", "random")
    ]
    assert cells[0].select == {"limit": 5, "seed": 1, "device": "cpu"}
    assert cells[2].select == cells[0].select | {"limit": 2, "template": "[X] is [Y]."}
    assert cells[2].load == {"device": "cpu"}
    assert cells[0].settings == {"shots": 2}
    assert cells[4].settings == {}
    [one] = read_study({"model": "scripted:", "data": "atlas", "out": "here"})
    assert one.out == Path("here")


CELL = Cell(
    probe="profile",
    model="scripted:",
    data='it\'s "x".csv',
    out=Path("out dir"),
    load={"chat": "never", "trust_remote_code": True},
    select={
        "limit": 3,
        "template": ["[X] is in [Y].", 'The "x" of [X] is [Y].'],
        "columns": {"subject": "a b", "object": ["c", "d"]},
        "relations": ["P1", "P2"],
    },
    settings={"shots": 2, "score": False},
)


def test_a_command_states_every_value() -> None:
    assert shlex.split(CELL.command()) == [
        *("sonde", "run", "profile", "-m", "scripted:", "-d", 'it\'s "x".csv', "-o", "out dir"),
        *("--limit", "3", "--template", "[X] is in [Y].", "--template", 'The "x" of [X] is [Y].'),
        *("--columns", "subject=a b,object=c,object=d", "--relations", "P1,P2"),
        *("--chat", "never", "--trust-remote-code", "--set", "shots=2", "--set", "score=False"),
    ]
    several = CELL._replace(settings={"markers": ("a", "b")}, select={}, load={})
    assert several.command().endswith("--set markers=a,b")


def test_a_config_states_every_value(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(CELL.config(), encoding="utf-8")
    assert read_study(path) == [CELL]
    assert tomllib.loads(CELL.config())["set"] == {"profile": {"shots": 2, "score": False}}


def test_each_run_has_the_config_that_repeats_it(data: str, tmp_path: Path) -> None:
    config = {**SMALL, "data": [data], "limit": 8, "out": str(tmp_path / "out")}
    config |= {"set": {"profile": {"shots": 2}}, "relations": "P36"}
    [(cell, run)] = sonde.study(config)
    assert isinstance(run, sonde.Run)
    assert run.path == cell.out == tmp_path / "out"
    file = run.path / "config.toml"
    before = {path: path.read_bytes() for path in run.path.glob("shards/*")}
    sessions = len(run.provenance()["run"]["sessions"])
    [(again, repeated)] = sonde.study(file)
    assert isinstance(repeated, sonde.Run)
    assert repeated.path == run.path
    assert again.config() == file.read_text(encoding="utf-8")
    assert {path: path.read_bytes() for path in run.path.glob("shards/*")} == before
    assert len(repeated.provenance()["run"]["sessions"]) == sessions
    assert repeated.manifest.probe["settings"]["shots"] == 2
    assert repeated.manifest.selection["relations"] == ["P36"]


def test_a_run_that_is_stopped_has_its_config_too(data: str, tmp_path: Path) -> None:
    [cell] = read_study({**SMALL, "data": [data], "out": str(tmp_path / "out")})

    def stop(done: float, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_cell(cell, stop)
    assert read_study(cell.out / "config.toml") == [cell]
    assert run_cell(cell).results().rows.height > 0


def test_a_dataset_that_fails_leaves_the_others_and_is_resumed(data: str, tmp_path: Path) -> None:
    broken = tmp_path / "broken.csv"
    config = {**SMALL, "data": [data, str(broken), {"data": "atlas", "relations": ["P30"]}]}
    config |= {"limit": 12, "out": str(tmp_path / "out")}
    first = list(sonde.study(config))
    assert [isinstance(run, SondeError) for _, run in first] == [False, True, False]
    assert "broken.csv" in str(first[1][1])
    assert not first[1][0].out.exists()
    times = [cell.out.joinpath("timings.jsonl").read_text() for cell, _ in first[::2]]
    broken.write_text("subject,object\n" + "".join(f"{t},{c}\n" for t, c in TOWNS.items()))
    second = list(sonde.study(config))
    assert all(isinstance(run, sonde.Run) for _, run in second)
    assert times == [cell.out.joinpath("timings.jsonl").read_text() for cell, _ in second[::2]]


def test_other_probes_of_a_study(data: str, tmp_path: Path) -> None:
    config = {**SMALL, "probe": ["lama", "qa"], "data": data, "out": str(tmp_path)}
    runs = {cell.probe: run for cell, run in sonde.study(config | {"model": "scripted:"})}
    assert isinstance(runs["lama"], sonde.Run)
    provenance = runs["lama"].report().to_json()["provenance"]
    assert provenance["probe"]["name"] == "lama"
    assert provenance["probe"]["sonde"] == sonde.__version__
    assert json.dumps(provenance)
