"""Running from Python: folders, resuming, refusing, and reading answers back."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import pytest

import sonde
from sonde.core.abilities import Identity
from sonde.core.answers import Scored
from sonde.core.errors import AbilityError, RunMismatch, StoreError, UsageError
from sonde.core.facts import Selection
from sonde.core.prompts import Fill, Key, Prompt, Score
from sonde.runs.run import default_folder, describe
from sonde.runs.shards import shards
from tests.command import files
from tests.worlds import dataset_of, numbered, numbered_fact

from .world import Listing

LAMA = sonde.probe("lama")


def test_a_run_asks_every_fact_once_and_reads_it_back(tmp_path: Path) -> None:
    model = Listing()
    ticks: list[tuple[float, int]] = []
    run = sonde.run(
        LAMA,
        model,
        numbered(),
        tmp_path / "out",
        progress=lambda done, total: ticks.append((done, total)),
        shard_weight=20,
    )
    assert sorted(model.asked) == sorted(row.key.fact for row in run.answered())
    assert len(set(model.asked)) == len(model.asked) == 12
    assert [row.key.fact for row in run.answered()] == [
        f"P{r}:{n}" for r in (1, 2) for n in range(6)
    ]
    assert ticks[-1] == (12, 12)
    assert [done for done, _ in ticks] == sorted(done for done, _ in ticks)
    assert run.results().counts()["prompts"] == 12


def test_the_same_settings_go_on_and_ask_nothing_twice(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out = tmp_path / "out"
    sonde.run(LAMA, Listing(), numbered(), out, shard_weight=12)
    before = files(out)
    (out / "shards" / "00001.parquet").unlink()
    again = Listing()
    with caplog.at_level(logging.INFO, logger="sonde"):
        sonde.run(LAMA, again, numbered(), out, shard_weight=12)
    assert sorted(again.asked) == ["P1:2", "P1:3"]
    assert f"{out}: going on after 2 of 12" in caplog.text
    assert files(out) == before
    third = Listing()
    with caplog.at_level(logging.INFO, logger="sonde"):
        sonde.run(LAMA, third, numbered(), out, shard_weight=12)
    assert third.asked == []
    assert f"{out} was complete" in caplog.text


def test_another_seed_model_dataset_or_setting_is_refused_by_name(tmp_path: Path) -> None:
    out, facts = tmp_path / "out", numbered()
    sonde.run(LAMA, Listing(), facts, out)
    others = {
        "selection.seed": (LAMA, Listing(), facts.select(Selection(seed=1))),
        "selection.limit": (LAMA, Listing(), facts.select(Selection(limit=2))),
        "model.name": (LAMA, Listing(name="other"), facts),
        "dataset.fingerprint": (LAMA, Listing(), numbered(7)),
        "probe.settings.top_k": (sonde.probe("lama", top_k=3), Listing(), facts),
    }
    for name, (probe, model, dataset) in others.items():
        with pytest.raises(RunMismatch, match=f"\n  {name}: .* in the folder, .* asked for\n"):
            sonde.run(probe, model, dataset, out)
        assert model.asked == []


def test_how_answers_are_read_may_change_after_the_run(tmp_path: Path) -> None:
    out, facts = tmp_path / "out", numbered()
    sonde.run(LAMA, Listing(), facts, out)
    again = Listing()
    other = sonde.run(sonde.probe("lama", k=3), again, facts, out)
    assert again.asked == []
    assert "p_at_3" in {*other.estimates()["metric"]}
    stored = sonde.open_run(out)
    assert "p_at_10" in {*stored.estimates()["metric"]}
    assert "p_at_5" in {*stored.estimates(k=5)["metric"]}
    with pytest.raises(UsageError, match="setting top_k decided the prompts"):
        stored.report(top_k=3)


def test_what_is_only_around_a_run_may_change(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run = sonde.run(LAMA, Listing(), numbered(), out)
    path = out / "manifest.json"
    path.write_text(path.read_text().replace(run.manifest.surroundings["python"], "3.99.0"))
    sonde.run(LAMA, Listing(), numbered(), out)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """A listing model that breaks at one fact."""

    inner: Listing = field(default_factory=Listing)
    at: str

    @property
    def identity(self) -> Identity:
        return self.inner.identity

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        if any(prompt.key.fact == self.at for prompt in prompts):
            raise RuntimeError("out of memory")
        yield from self.inner.score(prompts)


def test_a_model_that_fails_keeps_what_was_answered(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(RuntimeError, match="out of memory"):
        sonde.run(LAMA, Failing(at="P2:1"), numbered(), out, shard_weight=12)
    with pytest.raises(StoreError, match=r"unfinished run \(3 shards so far\)"):
        sonde.open_run(out)
    model = Listing()
    sonde.run(LAMA, model, numbered(), out, shard_weight=12)
    assert len(model.asked) == 6
    sonde.run(LAMA, Listing(), numbered(), tmp_path / "calm", shard_weight=12)
    assert files(out) == files(tmp_path / "calm")
    assert len((out / "timings.jsonl").read_text().splitlines()) == 2


def test_a_clock_that_is_set_back_changes_no_duration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = count(10**9, -3600)
    monkeypatch.setattr("time.time", lambda: float(next(clock)))
    run = sonde.run(LAMA, Listing(), numbered(), tmp_path / "out")
    [session] = run.provenance()["run"]["sessions"]
    assert session["began"] > 1e8
    assert 0 <= session["seconds"] < 1000


def test_a_model_without_the_ability_is_refused_before_a_folder_is_made(tmp_path: Path) -> None:
    with pytest.raises(AbilityError, match="can fill; this one can score"):
        sonde.run(sonde.probe("lama", answer="fill"), Listing(), numbered(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_nothing_to_ask_is_refused_before_a_folder_is_made(tmp_path: Path) -> None:
    dataset = dataset_of([numbered_fact("P1", 1, "train")])
    with pytest.raises(UsageError, match="finds nothing to ask in dataset 'world'"):
        sonde.run(LAMA, Listing(), dataset, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_run_can_be_read_after_its_dataset_is_gone(tmp_path: Path) -> None:
    dataset = replace(numbered().select(Selection(limit=2)), notes={"rows_read": 9})
    sonde.run(LAMA, Listing(), dataset, tmp_path / "out")
    run = sonde.open_run(tmp_path / "out")
    copy = run.dataset()
    assert [f for r in copy.relations for f in copy.facts(r.id)] == [
        f for r in dataset.relations for f in dataset.facts(r.id)
    ]
    assert copy.selection == dataset.selection
    assert copy.notes == {"rows_read": 9}
    assert run.probe() == LAMA.suited(frozenset({"score"}))


def test_a_data_frame_has_a_row_for_each_prompt(tmp_path: Path) -> None:
    run = sonde.run(LAMA, Listing(), numbered(), tmp_path / "out", shard_weight=12)
    frame = run.to_polars()
    assert frame.height == 12
    assert {"fact", "relation", "template", "subject", "prefix", "suffix", "options", "logps"} <= {
        *frame.columns
    }
    assert frame["fact"].to_list() == [row.key.fact for row in run.answered()]
    assert frame["options"].to_list()[0] == [f"object {n}" for n in range(6)]
    assert frame["logps"].to_list()[0] == [[-8.0, -0.5]] * 6


def test_shards_are_cut_by_the_work_in_them() -> None:
    key = Key(fact="f", relation="r", template="t", subject="s")
    score = Prompt(key=key, prefix="", want=Score(options=("a", "b", "c")))
    fill = Prompt(key=key, prefix="", want=Fill())
    cut = shards([score, score, fill, fill, score, fill], 4)
    assert [len(shard) for shard in cut] == [2, 4]  # a filled position weighs a quarter
    assert list(shards([], 4)) == []


def test_the_folder_of_a_run_is_named_after_it_and_stays_below_runs() -> None:
    dataset = numbered()
    card = replace(dataset.card, name="../../my data")
    names = set()
    for model in (Listing(), Listing(name="hf:/some/where/")):
        manifest = describe(LAMA, model, replace(dataset, card=card), 64)
        folder = default_folder(manifest)
        assert folder.parent == Path("runs")
        assert folder.name.startswith("lama-.._.._my_data-")
        names.add(folder.name)
    assert len(names) == 2


def test_a_run_has_a_row_for_each_graded_prompt(tmp_path: Path) -> None:
    run = sonde.run(LAMA, Listing(), numbered(), tmp_path / "out")
    frame = run.rows()
    first = frame.row(0, named=True)
    assert (first["relation"], first["fact"], first["subject"]) == ("P1", "P1:0", "subject 0")
    assert (first["template_no"], first["alias_no"]) == (1, 0)
    assert first["answer"] == "object 0" and first["confidence"] == pytest.approx(1 / 6)
    assert frame["rank"].to_list() == [6] * 12  # all options are alike, and ties count against it
    assert not frame["correct"].any()


def test_a_run_has_a_row_for_each_fact(tmp_path: Path) -> None:
    probe = sonde.probe("belief", bias=False)
    run = sonde.run(probe, Listing(), numbered(), tmp_path / "out")
    facts, prompts = run.facts(), run.rows()
    assert facts["fact"].to_list() == list(dict.fromkeys(prompts["fact"]))
    assert facts["prompts"].sum() == prompts.height
    assert facts["subject"][0] == "subject 0"
