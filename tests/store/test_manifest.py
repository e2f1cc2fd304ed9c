"""The manifest: the same text as ever, and a name that changes with what decides the answers."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from shutil import which

import pytest

import sonde
from sonde.models.controls import majority
from sonde.runs.run import describe
from sonde.store.manifest import Manifest, differences, surroundings

from .sample import manifest

GOLDEN = Path(__file__).parents[1] / "golden"
OPEN = {"notes", "settings", "reading", "details", "versions", "git"}


def test_the_text_is_as_it_always_was() -> None:
    assert manifest().to_json() == (GOLDEN / "manifest.json").read_text()


def test_a_run_of_the_bundled_facts_has_these_fields() -> None:
    facts = sonde.dataset("atlas", limit=1)
    probe = sonde.probe("lama").suited(frozenset({"fill"}))
    body = json.loads(describe(probe, majority(facts), facts, 4096).to_json())
    assert fields(body) == (GOLDEN / "manifest-fields.txt").read_text().splitlines()


def fields(value: object, path: str = "") -> list[str]:
    """The path of every value, in order, but for those whose names are not ours to fix."""
    if not isinstance(value, dict) or path.split(".")[-1] in OPEN:
        return [path]
    return [line for k, v in value.items() for line in fields(v, f"{path}.{k}".lstrip("."))]


def test_it_is_read_back() -> None:
    found = Manifest.from_json(manifest().to_json())
    assert found.to_json() == manifest().to_json()
    assert found.fingerprint == manifest().fingerprint
    assert differences(found, manifest()) == []


def test_only_what_decides_the_answers_changes_the_fingerprint() -> None:
    here = manifest()
    on_gpu = replace(here, model={**here.model, "details": {"device": "cuda"}}, surroundings={})
    moved = replace(here, model={**here.model, "name": "the same weights elsewhere"})
    read_otherwise = replace(here, probe={**here.probe, "reading": {"k": 3}})
    for same in (on_gpu, moved, read_otherwise):
        assert same.fingerprint == here.fingerprint
        assert differences(here, same) == []
    for other in (
        manifest(seed=1),
        replace(here, shard_weight=1),
        replace(here, model={**here.model, "weights": "others"}),
        replace(here, probe={**here.probe, "settings": {"uhn": "names"}}),
        replace(here, probe={**here.probe, "sonde": "0.2.0"}),
    ):
        assert other.fingerprint != here.fingerprint
        assert len(differences(here, other)) == 1


@pytest.mark.parametrize("text", ["", "[]", "null", "{}", '{"format": 2}', '{"format": 1}'])
def test_anything_else_is_no_manifest(text: str) -> None:
    with pytest.raises(ValueError, match=r"Expecting value|it has no|run format"):
        Manifest.from_json(text)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder one stands in, a git checkout with one file changed at equal size."""
    if not which("git"):
        pytest.skip("git is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GIT_DIR")
    (tmp_path / "file").write_text("as it was\n")
    (tmp_path / ".gitattributes").write_text("file filter=own\n")
    git("init", "--quiet")
    git("add", ".")
    git("-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "--quiet", "--message", "all")
    (tmp_path / "file").write_text("as it is!\n")
    return tmp_path


def git(*words: str) -> None:
    subprocess.run(["git", *words], check=True)


def test_the_checkout_one_stands_in_is_on_record(checkout: Path) -> None:
    found = surroundings()["git"]
    assert len(found["commit"]) == 40 and found["changed"] is True
    git("checkout", "--quiet", "file")
    assert surroundings()["git"]["changed"] is False


@pytest.mark.parametrize("door", ["core.fsmonitor", "filter.own.clean", "hook"])
def test_a_checkout_runs_no_program_of_its_own(checkout: Path, door: str) -> None:
    program = checkout / ".git" / "hooks" / "post-index-change"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\ntouch {checkout}/.git/ran\n")
    program.chmod(0o755)
    if door != "hook":
        git("config", door, str(program.rename(program.with_name("other"))))
    assert surroundings()["git"]["commit"]
    assert not (checkout / ".git" / "ran").exists()


def test_values_of_other_types_are_no_manifest() -> None:
    good = json.loads(manifest().to_json())
    for name, value in (("shard_weight", "4096"), ("selection", []), ("model", {"name": 1})):
        with pytest.raises(ValueError, match=r"its '\w+' cannot be|it has no"):
            Manifest.from_json(json.dumps({**good, name: value}))
    with pytest.raises(ValueError, match="not what its fingerprint names"):
        Manifest.from_json(json.dumps({**good, "shard_weight": 1}))


def test_a_selection_may_lack_what_was_added_later_and_has_nothing_else() -> None:
    here = manifest()
    older = replace(here, selection={"split": "test", "relations": ()})
    assert Manifest.from_json(older.to_json()).selection == {"split": "test", "relations": []}
    newer = replace(here, selection={**here.selection, "colour": "red"})
    with pytest.raises(ValueError, match="its 'selection' cannot be"):
        Manifest.from_json(newer.to_json())


def test_a_name_that_is_no_text_is_kept() -> None:
    here = manifest()
    odd = replace(here, model={**here.model, "name": "hf:caf\udce9", "weights": ""})
    found = Manifest.from_json(odd.to_json())
    assert found.model["name"] == "hf:caf\udce9"
    assert found.fingerprint == odd.fingerprint
