"""Certificates on disk: kept by identity, found by runs, shown by reports, refused when changed."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sonde
from sonde.core.abilities import Identity, identity_key
from sonde.core.answers import Scored
from sonde.core.certificates import Certificate, Gaps, Recheck
from sonde.core.columns import one_by_one
from sonde.core.errors import CertificateError, ModelError, StoreError, UsageError
from sonde.evaluation.layout import Exhibit
from sonde.models.scripted import Scripted
from sonde.reports.model import Report
from sonde.reports.sentences import text
from sonde.runs import certificates
from sonde.runs.run import Run, open_run, run
from sonde.runs.shards import Effort, Made, Numbered
from sonde.store.rows import Answering
from sonde.store.runs import RunFolder
from sonde.store.shards import shard_bytes
from tests.command import Sonde, in_this_process
from tests.written import two_relations

AGAIN = Recheck(
    prefix="It is", suffix="", options=("a", "b"), logps=((-1.0,), (-2.0, -0.5)), tolerance=1e-3
)


@dataclass(frozen=True)
class Named(Scripted):
    """A table of answers under a name of its own."""

    name: str = "scripted"

    @property
    def identity(self) -> Identity:
        return Identity(
            name=self.name, architecture="table", weights="w", details={"device": "here"}
        )


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SONDE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def model() -> Named:
    return Named(answers={})


def certificate(identity: Identity, **changes: Any) -> Certificate:
    found = Certificate(
        model=identity.described(),
        reference=Identity(name="hf:reference", architecture="Llama").described(),
        verdict="other numerics",
        reasons=("a token is up to 0.019 nats from the reference's",),
        against=Gaps(prompts=41, options=275, tokens=900, largest=0.019, median=0.002, option=0.03),
        backwards=Gaps(prompts=41, options=275, tokens=900),
        apart=Gaps(prompts=41, options=275, tokens=900),
        texts=41,
        texts_differ=1,
        ties=0,
        prompts="p",
        recheck=AGAIN,
        made="2026-01-02 03:04 UTC",
        versions={"sonde": "0"},
    )
    return replace(found, **changes)


EARLIER = "older than the certificate"


def shown(report: Report) -> str:
    """The sentences of a report, without line breaks."""
    return " ".join(text(line) for _, lines in report.warnings for line in lines)


def asked(model: Named, tmp_path: Path, name: str = "run", **more: Any) -> Run:
    facts = tmp_path / "facts"
    data = sonde.dataset(facts if facts.is_dir() else two_relations(facts))
    return run(sonde.probe("lama"), model, data, tmp_path / name, **more)


def test_a_run_finds_the_certificate_of_its_model(model: Named, tmp_path: Path) -> None:
    found = certificate(model.identity)
    (path,) = certificates.keep(found)
    assert path.parent == tmp_path / "cache" / "certificates"
    done = asked(model, tmp_path)
    assert done.manifest.certificate == found.entry
    assert found.entry["digest"] in (done.path / "manifest.json").read_text()
    again = open_run(done.path)
    report = again.report()
    assert "the verdict other numerics" in shown(report)
    table = report["certificate"]
    assert isinstance(table, Exhibit) and "up to 0.019 nats" in table.note
    assert table.frame["other answers"][0] == "0 of 41"
    assert again.provenance()["certificate"]["digest"] == found.digest
    assert "other numerics" in again._repr_html_()


def test_a_model_without_one_is_as_it_always_was(model: Named, tmp_path: Path) -> None:
    done = asked(model, tmp_path)
    assert "certificate" not in (done.path / "manifest.json").read_text()
    assert "ertificate" not in done.report().to_markdown()
    assert "certificate" not in done.provenance()


@pytest.mark.parametrize("scheme", ["server:http://127.0.0.1:1", "vllm:folder", "llamacpp:f.gguf"])
def test_a_model_that_others_compute_says_that_it_has_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, scheme: str
) -> None:
    with caplog.at_level(logging.WARNING):
        done = asked(Named(answers={}, name=scheme), tmp_path)
    (said,) = [r.getMessage() for r in caplog.records if "ertificate" in r.getMessage()]
    assert said.startswith("No certificate: what another program computes was not held against")
    assert "were not compared with those of the model" in shown(open_run(done.path).report())


def test_a_model_whose_certificate_says_broken_is_not_asked(model: Named, tmp_path: Path) -> None:
    bad = certificate(model.identity, verdict="broken", reasons=("shifted",))
    (path,) = certificates.keep(bad)
    with pytest.raises(CertificateError) as caught:
        asked(model, tmp_path)
    said = str(caught.value)
    assert "broken beside hf:reference, do not trust these numbers (shifted)" in said
    assert said.endswith(f"or remove {path}, to run without one") and "sonde doctor" in said
    assert not (tmp_path / "run").exists()
    path.unlink()
    with pytest.raises(CertificateError, match="or leave out --certificate"):
        asked(model, tmp_path, certificate=bad)
    assert asked(model, tmp_path).manifest.certificate == {}


def test_answers_of_which_a_certificate_says_later_that_they_are_broken_say_so(
    model: Named, tmp_path: Path
) -> None:
    done = asked(model, tmp_path)
    certificates.keep(certificate(model.identity, verdict="broken", reasons=("shifted",)))
    with pytest.raises(CertificateError, match="or give another folder with -o"):
        asked(model, tmp_path)
    asked_again = RunFolder(done.path).manifest().certificate
    assert asked_again["verdict"] == "broken"
    certificates.keep(certificate(model.identity, verdict="equal", reasons=()))
    assert asked(model, tmp_path).manifest.certificate["verdict"] == "equal"


def test_a_finished_run_is_given_its_certificate_by_the_same_command(
    model: Named, tmp_path: Path
) -> None:
    first = asked(model, tmp_path)
    shards = {path: path.read_bytes() for path in first.path.glob("shards/*.parquet")}
    found = certificate(model.identity)
    certificates.keep(found)
    assert asked(model, tmp_path).manifest.certificate == found.entry
    assert open_run(first.path).report()["certificate"]
    assert shards == {path: path.read_bytes() for path in first.path.glob("shards/*.parquet")}
    certificates.place(model.identity.described()).unlink()
    assert asked(model, tmp_path).manifest.certificate == found.entry, "the run's own stays"


def test_one_that_comes_after_the_answers_of_a_server_says_so(tmp_path: Path) -> None:
    served = Named(answers={}, name="server:x")
    asked(served, tmp_path)
    certificates.keep(certificate(served.identity, recheck=None))
    for _ in range(2):  # it stays so when the run is made again
        late, new = (open_run(asked(served, tmp_path, name).path) for name in ("run", "new"))
        assert EARLIER in shown(late.report()) and EARLIER not in shown(new.report())
        assert late.manifest.certificate["later"] and "later" not in new.manifest.certificate


def test_one_that_is_given_is_taken_before_the_cache(model: Named, tmp_path: Path) -> None:
    certificates.keep(certificate(model.identity))
    given_one = certificate(model.identity, verdict="equal", reasons=())
    done = asked(model, tmp_path, certificate=given_one)
    assert done.manifest.certificate["verdict"] == "equal"


def test_one_of_another_model_is_refused_before_anything_is_asked(
    model: Named, tmp_path: Path
) -> None:
    other = certificate(replace(model.identity, dtype="bfloat16"))
    with pytest.raises(UsageError, match=r"of another model \(dtype 'bfloat16', not ''\)"):
        asked(model, tmp_path, certificate=other)
    assert not (tmp_path / "run").exists()


def test_where_weights_have_a_hash_names_and_details_do_not_matter(model: Named) -> None:
    same = replace(model.identity, name="elsewhere", details={"device": "cuda"})
    assert identity_key(same.described()) == identity_key(model.identity.described())
    served = replace(same, weights="")
    renamed = replace(served, name="other")
    assert identity_key(served.described()) != identity_key(renamed.described())


def test_a_certificate_made_elsewhere_says_where(model: Named, tmp_path: Path) -> None:
    certificates.keep(certificate(replace(model.identity, details={"device": "there"})))
    table = asked(model, tmp_path).report()["certificate"]
    assert isinstance(table, Exhibit)
    assert table.note.endswith("It was made elsewhere: device was there and is here.")


def test_one_in_the_cache_that_was_changed_is_not_used_and_named(
    model: Named, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (path,) = certificates.keep(certificate(model.identity))
    path.write_text(path.read_text().replace("other numerics", "equal"))
    done = asked(model, tmp_path)
    assert not done.manifest.certificate
    assert "its content was changed after it was made" in caplog.text
    other = certificate(replace(model.identity, weights="x"))
    path.write_text(other.to_json())
    assert certificates.find(model) is None
    assert "it is the certificate of another model" in caplog.text


def test_a_changed_copy_in_a_run_is_refused(model: Named, tmp_path: Path) -> None:
    certificates.keep(certificate(model.identity))
    done = asked(model, tmp_path)
    path = done.path / "certificate.json"
    sound = path.read_text()
    path.write_text(sound.replace("0.019", "0.018"))
    with pytest.raises(StoreError, match="its content was changed"):
        open_run(done.path).report()
    path.write_text(certificate(model.identity, verdict="equal", reasons=()).to_json())
    with pytest.raises(StoreError, match="is not the certificate that the run was made with"):
        open_run(done.path).report()
    path.unlink()
    with pytest.raises(StoreError, match="cannot be read"):
        open_run(done.path).provenance()
    asked(model, tmp_path)  # mended from the cache
    assert path.read_text() == sound and open_run(done.path).report()


WRONG = [
    ("", "Expecting value"),
    ("[]", "no certificate"),
    ('{"format": 2, "digest": ""}', "another version"),
    ('{"format": 1, "digest": ""}', "no certificate"),
    ("\x00", "Expecting value"),
]


@pytest.mark.parametrize(("text", "why"), WRONG)
def test_a_file_that_is_none_is_refused_with_a_sentence(
    tmp_path: Path, text: str, why: str
) -> None:
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(ModelError, match=why):
        certificates.read(path)
    with pytest.raises(UsageError, match="there is no certificate"):
        certificates.read(tmp_path / "none.json")
    with pytest.raises(UsageError, match="cannot be read"):
        certificates.read(tmp_path)


def test_it_is_read_as_it_was_written(model: Named) -> None:
    for found in (certificate(model.identity), certificate(model.identity, recheck=None)):
        assert Certificate.from_json(found.to_json()) == found


@pytest.mark.parametrize("whose", ["model", "reference"])
def test_one_that_names_no_model_is_none_whatever_its_digest(model: Named, whose: str) -> None:
    for odd in ({}, {"name": 1}, {**model.identity.described(), "details": {"device": 1}}):
        found = certificate(model.identity, **{whose: odd})
        with pytest.raises(ValueError, match="no certificate"):
            Certificate.from_json(found.to_json())


LEAVES: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=3), st.just([])
)


@given(st.data())
def test_no_change_of_its_content_goes_unseen(data: st.DataObject) -> None:
    whole = json.loads(certificate(Named(answers={}).identity).to_json())
    place: Any = whole
    key = data.draw(st.sampled_from(sorted(place)))
    while isinstance(place[key], dict) and place[key] and data.draw(st.booleans()):
        place = place[key]
        key = data.draw(st.sampled_from(sorted(place)))
    new = data.draw(
        LEAVES.filter(lambda value: value != place[key] or type(value) is not type(place[key]))
    )
    place[key] = new
    with pytest.raises(ValueError, match=r"certificate|changed"):
        Certificate.from_json(json.dumps(whole))


@given(st.floats(-0.01, 0.01), st.integers(0, 2))
def test_the_same_model_is_known_again_by_its_numbers(by: float, at: int) -> None:
    flat = [-1.0, -2.0, -0.5]
    flat[at] += by
    assert AGAIN.same([flat[:1], flat[1:]]) == (abs(flat[at] - [-1.0, -2.0, -0.5][at]) <= 1e-3)


def test_other_tokens_or_no_numbers_are_another_model() -> None:
    assert not AGAIN.same([[-1.0], [-2.0]]) and not AGAIN.same([])
    assert not AGAIN.same([[float("nan")], [-2.0, -0.5]])
    assert AGAIN.prompt.want.options == ("a", "b")  # type: ignore[union-attr]


def test_a_cache_that_cannot_be_written_only_warns(
    model: Named, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setenv("SONDE_CACHE", str(blocked / "cache"))
    kept = certificates.keep(certificate(model.identity), tmp_path / "mine.json")
    assert kept == [tmp_path / "mine.json"] and "not kept in the cache" in caplog.text
    with pytest.raises(StoreError, match="cannot be written"):
        certificates.keep(certificate(model.identity), blocked / "mine.json")


@dataclass(frozen=True)
class Many(Named):
    """The same by workers, who answer whole shards."""

    @property
    def count(self) -> int:
        return 1

    def answer_shards(self, shards: Iterator[Numbered], effort: Effort) -> Made:
        for number, shard in shards:
            answers = Answering(shard)
            for position, result in Named.score(self, shard):
                answers.add(position, result)
            yield number, partial(shard_bytes, answers.table())


@pytest.mark.parametrize("kind", [Named, Many])
def test_a_model_that_others_compute_is_asked_the_certificates_prompt_again(
    kind: type[Named], caplog: pytest.LogCaptureFixture
) -> None:
    model = kind(answers={"recheck": "a"}, name="server:x")
    ((_, known),) = one_by_one(model.score([AGAIN.prompt]))
    assert isinstance(known, Scored)
    found = certificate(model.identity, recheck=Recheck.of(AGAIN.prompt, known))
    certificates.keep(found)
    assert certificates.find(model) == certificates.find(model, found) == found
    other = kind(answers={"recheck": "b"}, name="server:x")
    assert certificates.find(other) is None
    assert "gives other numbers than when it was certified" in caplog.text
    with pytest.raises(CertificateError, match="gives other numbers"):
        certificates.find(other, found)


def test_a_comparison_names_runs_whose_numbers_may_not_be_their_models(
    model: Named, tmp_path: Path
) -> None:
    sound = asked(model, tmp_path, "sound")
    given_one = certificate(model.identity)
    other = asked(model, tmp_path, "other", certificate=given_one)
    foreign = asked(Named(answers={}, name="server:x"), tmp_path, "foreign")
    text = shown(sonde.compare(sound, other, foreign).report)
    assert "its certificate says other numerics" in text and "there is no certificate" in text


def test_the_command_takes_one_and_refuses_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sonde_command: Sonde = in_this_process(capsys)
    facts = two_relations(tmp_path / "facts")
    words = ("run", "lama", "-m", "scripted:", "-d", facts, "--no-html")
    out = ("-o", tmp_path / "run")
    own = certificate(Scripted(answers={}).identity)
    path = tmp_path / "own.json"
    path.write_text(own.to_json())
    assert "other numerics" in sonde_command(*words, *out, "--certificate", path).out
    path.write_text(own.to_json().replace("0.019", "0.01"))
    sonde_command(*words, *out, "--certificate", path).refused(4, "changed after it was made")
    path.write_text(certificate(Named(answers={}).identity).to_json())
    other = ("-o", tmp_path / "other", "--certificate", path)
    sonde_command(*words, *other).refused(2, "of another model")
    assert not (tmp_path / "other").exists()
    sonde_command(*words, *out, "--certificate", tmp_path / "no").refused(2, "no certificate")
    copies = [*(tmp_path / "run").rglob("certificate.json")]
    assert len(copies) == 1
    copies[0].write_text("{}")
    sonde_command("report", tmp_path / "run").refused(5, "is not the run's certificate")
