"""`sonde doctor --against`: the verdict in the terminal and as JSON, and what a run makes of it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from sonde import api
from sonde.core.certificates import Certificate
from sonde.core.errors import UsageError
from sonde.models.options import LoadOptions
from sonde.reports.terminal import as_text
from sonde.runs.run import open_run, run
from tests import tiny
from tests.chat.templates import chat_model
from tests.command import Sonde, in_this_process
from tests.models.gguf_file import write_gguf


@pytest.fixture
def sonde(capsys: pytest.CaptureFixture[str]) -> Sonde:
    return in_this_process(capsys)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SONDE_CACHE", str(tmp_path / "cache"))
    few = api.dataset("atlas", relations=FEW)  # as many as show it
    monkeypatch.setattr("sonde.runs.certifying.fixed_facts", lambda: few)


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    return tiny.llama(tmp_path / "reference")


FEW = ("P36", "P30", "P17", "P19", "P103", "P20", "P27", "P37", "P140", "P106")
ASKED = ("--relations", "P36", "--limit", "1", "--device", "cpu")


def test_the_same_weights_are_equal_and_a_run_shows_it(
    sonde: Sonde, reference: Path, tmp_path: Path
) -> None:
    model = f"hf:{tiny.llama(tmp_path / 'copy')}"
    out = tmp_path / "certificates" / "mine.json"
    done = sonde("doctor", "-m", model, "--against", f"hf:{reference}", "-o", out, *ASKED)
    assert done.code == 0 and "but for rounding" in done.out
    for check in ("scoring", "backwards", "one by one", "writing"):
        assert f"certificate, {check}" in done.out
    assert "0 of 10 first answers differ" in done.out and "0 of 10 texts differ" in done.out
    found = Certificate.from_json(out.read_text())
    assert done.out.count("certificate: ") == 2 and str(out) in done.out
    made = sonde("run", "lama", "-m", model, *ASKED, "-o", tmp_path / "run")
    assert made.code == 0 and "were not compared" not in made.out
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Certificate: equal" in page and found.digest[:16] in page
    told = json.loads(sonde("report", tmp_path / "run", "--json").out)["provenance"]
    assert told["certificate"]["verdict"] == "equal"


def test_from_python_the_same_certificate_is_made_kept_and_given_to_runs(
    sonde: Sonde, reference: Path, tmp_path: Path
) -> None:
    near = tiny.spoiled(tiny.llama(tmp_path / "near"), "q_proj", lambda tensor: tensor * 1.02)
    model, against, out = f"hf:{near}", f"hf:{reference}", tmp_path / "mine.json"
    told = sonde("doctor", "-m", model, "--against", against, *ASKED, "--json")
    by_command = json.loads(told.out)["certificate"]
    load = LoadOptions(device="cpu")
    found = api.certify(model, against, load=load, out=out)
    assert json.loads(out.read_text()) == json.loads(found.to_json())
    assert json.loads(json.dumps(asdict(replace(found, made="")))) == by_command | {"made": ""}
    ready = api.model(model, device="cpu")
    for other, how in ((api.model(against, device="cpu"), None), (against, load)):
        assert api.certify(ready, other, load=how).against == found.against
    data = api.dataset("atlas", relations=("P36",), limit=1)
    for certificate in (None, out, str(out)):
        done = run(api.probe("lama"), model, data, tmp_path / "run", certificate=certificate)
        assert done.manifest.certificate["verdict"] == "other numerics"
    with pytest.raises(UsageError, match="no model scheme 'hff'"):
        api.certify("hf:nowhere", "hff:x")
    with pytest.raises(UsageError, match=f"{tmp_path} is a folder; name a file"):
        api.certify(model, against, out=tmp_path)
    with pytest.raises(UsageError, match="counts the facts of a dataset"):
        api.certify(model, "control:majority", load=load)


def test_other_weights_a_little_are_other_numerics(
    sonde: Sonde, reference: Path, tmp_path: Path
) -> None:
    near = tiny.spoiled(tiny.llama(tmp_path / "near"), "q_proj", lambda tensor: tensor * 1.02)
    done = sonde("doctor", "-m", f"hf:{near}", "--against", f"hf:{reference}", *ASKED)
    assert done.code == 0
    assert "warning  certificate" in done.out and "other numerics than" in done.out


def test_half_precision_against_itself_is_not_asked_in_float32_too(
    sonde: Sonde, reference: Path
) -> None:
    model = f"hf:{reference}"
    words = ("doctor", "-m", model, "--dtype", "bfloat16", "--against", model, *ASKED)
    done = sonde(*words)
    assert "other numerics than" in done.out and "half precision" not in done.out
    same = sonde(*words, "--against-dtype", "bfloat16", "--json")
    assert json.loads(same.out)["certificate"]["against"]["largest"] == 0


def test_broken_ones_end_with_the_exit_code_of_models_and_keep_their_certificate(
    sonde: Sonde, reference: Path, tmp_path: Path
) -> None:
    scaled = tiny.spoiled(tiny.llama(tmp_path / "scaled"), "lm_head", lambda t: t / 0.8)
    words = ("doctor", "-m", f"hf:{scaled}", "--against", f"hf:{reference}", *ASKED)
    done = sonde(*words, "--json")
    done.refused(4, "1 fault (certificate)")
    found = json.loads(done.out)["certificate"]
    assert found["verdict"] == "broken"
    assert "log-probabilities are scaled, as with a temperature of 0.80" in found["reasons"]
    (kept,) = (tmp_path / "cache" / "certificates").glob("*.json")
    asked = ("-m", f"hf:{scaled}", *ASKED, "-o", tmp_path / "run", "--no-html")
    for verb in (("run", "lama"), ("run", "lama", "--vary", "top_k=5,10")):
        sonde(*verb, *asked).refused(4, "do not trust these numbers", f"or remove {kept}, to run")
        assert not (tmp_path / "run").exists()
    kept.unlink()
    assert sonde("run", "lama", *asked).code == 0


def test_another_opening_is_named(sonde: Sonde, reference: Path, tmp_path: Path) -> None:
    bare = tiny.llama(tmp_path / "bare", opens=False)
    done = sonde("doctor", "-m", f"hf:{bare}", "--against", f"hf:{reference}", *ASKED)
    assert done.code == 4 and "texts open otherwise" in " ".join(done.out.split())


def test_what_cannot_be_is_refused_at_once(sonde: Sonde, reference: Path, tmp_path: Path) -> None:
    model = f"hf:{reference}"
    sonde("doctor", "-m", model, "-o", tmp_path / "c.json").refused(2, "say --against which model")
    sonde("doctor", "-m", model, "--against", "hff:x").refused(2, "no model scheme 'hff'")
    sonde("doctor", "-m", model, "--against", f"hf:{tmp_path}/no").refused(4, "is not a folder")
    assert not (tmp_path / "cache" / "certificates").exists()


def test_a_gguf_file_of_a_folder_is_equal_to_it(
    sonde: Sonde, reference: Path, tmp_path: Path
) -> None:
    path = write_gguf(tmp_path / "model.gguf", reference, adds_bos=True)
    done = sonde("doctor", "-m", f"gguf:{path}", "--against", f"hf:{reference}", *ASKED, "--json")
    found = json.loads(done.out)["certificate"]
    assert (found["verdict"], found["against"]["differ"]) == ("equal", 0)


def test_a_model_that_is_asked_in_turns_has_a_certificate_of_its_own(
    sonde: Sonde, tmp_path: Path
) -> None:
    model = f"hf:{chat_model(tmp_path / 'chat')}"
    done = sonde("doctor", "-m", model, "--chat", "always", "--against", model, *ASKED, "--json")
    found = json.loads(done.out)["certificate"]
    assert found["verdict"] == "equal" and found["model"]["chat"] == found["reference"]["chat"]
    assert "<|im_start|>assistant" in found["recheck"]["prefix"]
    words = ("run", "lama", "-m", model, *ASKED, "--no-html")
    turns = sonde(*words, "--chat", "always", "-o", tmp_path / "turns")
    assert turns.code == sonde(*words, "-o", tmp_path / "plain").code == 0
    shown = {name: as_text(open_run(tmp_path / name).report()) for name in ("turns", "plain")}
    assert "Certificate: equal" in shown["turns"] and "Certificate" not in shown["plain"]
