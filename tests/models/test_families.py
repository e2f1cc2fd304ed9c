"""The table of models: bundled, and the user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from sonde.core.errors import DataError
from sonde.models.families import describe, model_table


@pytest.fixture(autouse=True)
def _no_table_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SONDE_MODELS", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.mark.parametrize("name", ["smollm2", "hf:x/SmolLM2-135M-Instruct", "gguf:./SmolLM2.gguf"])
def test_a_model_is_found_however_a_run_names_it(name: str) -> None:
    found = describe(name)
    assert found and (found.family, found.stage) == ("smollm2", "fine-tuned")


def test_an_unknown_model_is_none() -> None:
    assert describe("hf:somebody/something") is None


def test_bundled_fine_tuned_models_name_a_base_of_their_family() -> None:
    table = model_table()
    assert len(table) >= 20
    for model in table.values():
        base = table.get(model.base)
        assert base is None or (base.family, base.stage) == (model.family, "base"), model


def test_the_users_own_table_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = tmp_path / "config" / "sonde" / "models.toml"
    own.parent.mkdir(parents=True)
    own.write_text('[[model]]\nname = "gpt2"\nfamily = "mine"\nsize = 7\n')
    found = describe("gpt2")
    assert found and (found.family, found.size) == ("mine", 7)
    other = tmp_path / "other.toml"
    other.write_text('[[model]]\nname = "gpt2"\nfamily = "other"\n')
    monkeypatch.setenv("SONDE_MODELS", str(other))
    found = describe("gpt2")
    assert found and (found.family, found.size) == ("other", None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[model]\n", "TOML"),
        ('[[model]]\nname = "a"\n', "'family'"),
        ('[[model]]\nname = "a"\nfamily = "b"\nsise = 1\n', "unknown field 'sise'"),
        ('[[model]]\nname = "a"\nfamily = "b"\nsize = "7B"\n', "'size'"),
        ('[[model]]\nname = "a"\nfamily = "b"\nstage = "chat"\n', "base, fine-tuned"),
        ('model = "a"\n', "[[model]]"),
    ],
)
def test_a_bad_table_is_refused_clearly(
    text: str, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "models.toml"
    path.write_text(text)
    monkeypatch.setenv("SONDE_MODELS", str(path))
    with pytest.raises(DataError) as error:
        model_table()
    assert said in str(error.value) and str(path) in str(error.value)


def test_a_table_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SONDE_MODELS", "/nowhere/models.toml")
    with pytest.raises(DataError, match="missing"):
        model_table()
