"""How much goes through a model at once is settled with a run's first shard, and stays."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

import sonde
from sonde.core.abilities import Batching
from sonde.core.costs import Batches
from sonde.core.errors import StoreError
from sonde.core.prompts import Prompt
from sonde.models.torch.loading import budgets
from sonde.runs import batches as settled
from sonde.runs.plan import plan
from tests import tiny
from tests.parity.test_memory import ERRORS, limit
from tests.worlds import numbered

from .workers.world import threads
from .world import Listing

LAMA = sonde.probe("lama", answer="score", close=False)
FACTS = numbered(8)
WEIGHT = 12

MODELS: dict[str, Callable[..., Path]] = {
    "causal": tiny.llama,
    "flat": tiny.mamba,
    "masked": tiny.bert,
    "encoder-decoder": tiny.t5,
}


class Stopping:
    """A model that is stopped when it has answered so many shards."""

    def __init__(self, model: Any, after: int) -> None:
        self.model, self.left = model, after
        self.identity, self.budgets = model.identity, model.budgets

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Any]:
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1
        return iter(list(self.model.score(prompts)))


def run(model: Any, out: Path) -> sonde.Run:
    return sonde.run(LAMA, model, FACTS, out, shard_weight=WEIGHT)


def stopped(model: Any, out: Path, after: int) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(Stopping(model, after), out)


def shards(out: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(out.glob("shards/*.parquet"))]


def said(out: Path) -> Any:
    return json.loads((out / "manifest.json").read_text())["batches"]


def sessions(out: Path) -> list[Any]:
    return [json.loads(line)["batches"] for line in (out / "timings.jsonl").open()]


def room(monkeypatch: pytest.MonkeyPatch, folder: Path, tokens: int) -> None:
    """Leave memory for so many tokens at once."""
    free = bytes_for(folder, tokens)
    monkeypatch.setattr(budgets, "free_bytes", lambda _: free)


def bytes_for(folder: Path, tokens: int) -> float:
    """How much free memory a model takes to have so many tokens go through it at once."""
    each = sonde.model(f"hf:{folder}", device="cpu").budgets.sizes  # type: ignore[attr-defined]
    return float(tokens * (each.layer + each.logits) / budgets.SHARE["fed"])


@pytest.mark.parametrize("kind", MODELS)
def test_a_run_goes_on_with_what_it_was_begun_with(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = MODELS[kind](tmp_path / "model")
    room(monkeypatch, folder, 16)
    run(sonde.model(f"hf:{folder}", device="cpu"), tmp_path / "whole")
    stopped(sonde.model(f"hf:{folder}", device="cpu"), tmp_path / "parts", after=2)
    monkeypatch.setattr(budgets, "free_bytes", lambda _: float("inf"))
    model: Any = sonde.model(f"hf:{folder}", device="cpu")
    assert model.budgets.tokens["score"] > 16
    assert run(model, tmp_path / "parts").manifest == run(model, tmp_path / "whole").manifest
    assert said(tmp_path / "parts")["tokens"]["score"] == 16
    assert shards(tmp_path / "parts") == shards(tmp_path / "whole")
    assert [each["score"] for each in sessions(tmp_path / "parts")] == [16, 16]


def test_a_large_run_measures_and_a_small_one_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny.bert(tmp_path / "model")
    monkeypatch.setattr(budgets.Rates, "__call__", lambda _, tokens: float(tokens))
    run(sonde.model(f"hf:{folder}", device="cpu"), tmp_path / "small")
    assert said(tmp_path / "small")["chosen"] == "usual"
    assert said(tmp_path / "small")["tokens"] == {"fill": 4096, "score": 4096}
    monkeypatch.setattr(settled, "LARGE", 1)
    run(sonde.model(f"hf:{folder}", device="cpu"), tmp_path / "large")
    assert said(tmp_path / "large")["chosen"] == "measured"
    assert said(tmp_path / "large")["tokens"] == {"fill": 16384, "score": 16384}
    assert run(Listing(), tmp_path / "table").manifest.batches == {}
    assert "batches" not in (tmp_path / "table" / "manifest.json").read_text()


def test_what_was_measured_names_no_other_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tiny.bert(tmp_path / "model")
    monkeypatch.setattr(settled, "LARGE", 1)
    monkeypatch.setattr(budgets.Rates, "__call__", lambda _, tokens: float(tokens))
    first = sonde.run(LAMA, sonde.model(f"hf:{folder}", device="cpu"), FACTS)
    monkeypatch.setattr(budgets.Rates, "__call__", lambda _, tokens: 1.0)
    again = sonde.run(LAMA, sonde.model(f"hf:{folder}", device="cpu"), FACTS)
    assert again.path == first.path and again.manifest == first.manifest


def test_a_given_number_wins_and_the_run_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, out = tiny.llama(tmp_path / "model"), tmp_path / "out"
    stopped(sonde.model(f"hf:{folder}", device="cpu"), out, after=2)
    run(sonde.model(f"hf:{folder}", device="cpu", batch_tokens=64), out)
    (told,) = [line for line in caplog.messages if "was begun with" in line]  # only what is asked
    assert "was begun with 1,024 tokens at once to score; from here on it is 64" in told
    assert said(out)["tokens"]["score"] == 1024
    assert [each["score"] for each in sessions(out)] == [1024, 64]
    run(sonde.model(f"hf:{folder}", device="cpu", batch_tokens=64), tmp_path / "given")
    assert said(tmp_path / "given")["chosen"] == "given"
    assert said(tmp_path / "given")["tokens"]["score"] == 64


def test_a_number_that_is_given_before_there_is_a_shard_is_the_runs_own(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, out = tiny.llama(tmp_path / "model"), tmp_path / "out"
    stopped(sonde.model(f"hf:{folder}", device="cpu"), out, after=0)
    stopped(sonde.model(f"hf:{folder}", device="cpu", batch_tokens=16), out, after=2)
    assert said(out)["tokens"]["score"] == 16
    assert "was begun with" not in caplog.text
    run(sonde.model(f"hf:{folder}", device="cpu"), out)
    assert sessions(out)[-1]["score"] == 16


def test_a_run_of_an_older_version_goes_on_as_that_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, out = tiny.llama(tmp_path / "model"), tmp_path / "out"
    run(sonde.model(f"hf:{folder}", device="cpu"), tmp_path / "whole")
    stopped(sonde.model(f"hf:{folder}", device="cpu"), out, after=2)
    body = json.loads((out / "manifest.json").read_text())
    del body["batches"]
    (out / "manifest.json").write_text(json.dumps(body))
    other = Batches(tokens={"score": 16}, shards=4)
    monkeypatch.setattr(budgets.Budgets, "choose", lambda _, measure: other)
    run(sonde.model(f"hf:{folder}", device="cpu"), out)
    assert shards(out) == shards(tmp_path / "whole")
    assert "batches" not in json.loads((out / "manifest.json").read_text())


def test_memory_that_ran_out_is_told_kept_and_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tiny.llama(tmp_path / "model")

    def tight() -> Any:
        model: Any = sonde.model(f"hf:{folder}", device="cpu")
        limit(monkeypatch, model.model, 30, ERRORS[0])
        return model

    with caplog.at_level(logging.WARNING, logger="sonde"):
        run(tight(), tmp_path / "whole")
    told = [line for line in caplog.messages if "memory ran out" in line]
    assert len(told) == 1 and "go through the model at once from here on (before: 1,024)" in told[0]
    left = said(tmp_path / "whole")["halved"]["score"]
    assert said(tmp_path / "whole")["tokens"]["score"] == 1024 and left <= 30
    assert sessions(tmp_path / "whole")[0]["score"] == left
    stopped(tight(), tmp_path / "parts", after=3)
    caplog.clear()
    run(sonde.model(f"hf:{folder}", device="cpu"), tmp_path / "parts")
    assert "memory ran out" not in caplog.text
    assert shards(tmp_path / "parts") == shards(tmp_path / "whole")


def test_larger_shards_stay_as_large_whatever_is_asked_for_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, out = tiny.llama(tmp_path / "model"), tmp_path / "out"
    large = Batches(tokens={"score": 4096}, shards=2)
    with monkeypatch.context() as patch:
        patch.setattr(budgets.Budgets, "choose", lambda _, measure: large)
        stopped(sonde.model(f"hf:{folder}", device="cpu"), out, after=2)
    model: Any = sonde.model(f"hf:{folder}", device="cpu")
    scheme = plan(LAMA, model, FACTS, out, seconds=0, shard_weight=WEIGHT)
    assert scheme.batches == {"score": 4096} and scheme.done_shards == 2
    run(model, out)
    run(sonde.model(f"hf:{folder}", device="cpu"), tmp_path / "other")
    assert len(shards(out)) == scheme.shards < len(shards(tmp_path / "other"))
    assert not (out / "quarantine").exists()


def test_a_run_begun_on_another_device_goes_on_as_is_usual_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder, out = tiny.llama(tmp_path / "model"), tmp_path / "out"
    there = Batches(tokens={"score": 32_768}, device="cuda", shards=2)
    with monkeypatch.context() as patch:
        patch.setattr(budgets.Budgets, "choose", lambda _, measure: there)
        stopped(sonde.model(f"hf:{folder}", device="cpu"), out, after=2)
    run(sonde.model(f"hf:{folder}", device="cpu"), out)
    assert "was begun with 32,768 tokens at once to score; from here on it is 1,024" in caplog.text
    assert sessions(out)[-1]["score"] == 1024 and said(out)["tokens"] == {"score": 32_768}
    assert not (out / "quarantine").exists()


@pytest.mark.parametrize(
    "entry",
    [
        {"shards": 0},
        {"tokens": {"score": 0}},
        {"tokens": {"score": "9"}},
        {"chosen": "x"},
        [],
        {"a": 1},
    ],
)
def test_batches_that_cannot_be_are_refused(tmp_path: Path, entry: Any) -> None:
    out = tmp_path / "out"
    run(Listing(), out)
    body = json.loads((out / "manifest.json").read_text())
    (out / "manifest.json").write_text(json.dumps({**body, "batches": entry}))
    with pytest.raises(StoreError, match="its 'batches' cannot be"):
        run(Listing(), out)


def test_a_wrapped_model_has_the_budgets_of_its_base(tmp_path: Path) -> None:
    from sonde.core.facts import Template
    from sonde.models.torch.by_relation import ensemble

    base: Any = sonde.model(f"hf:{tiny.llama(tmp_path / 'model')}", device="cpu")
    members = {"P1": ((Template(id="t", text="[X] is [Y]."), 1.0),)}
    wrapped: Any = ensemble("both", base, members)
    assert isinstance(wrapped, Batching) and wrapped.budgets is base.budgets
    assert not isinstance(ensemble("both", Listing(), members), Batching)


class Noting(Stopping):
    """One that notes how many threads there are while it answers."""

    def __init__(self, model: Any) -> None:
        super().__init__(model, -1)
        self.threads: set[int] = set()

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Any]:
        self.threads.add(torch.get_num_threads())
        return super().score(prompts)


@pytest.mark.parametrize(("begun", "after"), [(2, 1), (1, 2)])
def test_a_run_goes_on_with_the_threads_that_it_was_begun_with(
    begun: int, after: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """BLAS may round otherwise with others; what the program had, it has again."""
    model = sonde.model(f"hf:{tiny.bert(tmp_path / 'model')}", device="cpu")
    with threads(begun):
        run(model, tmp_path / "whole")
        stopped(model, tmp_path / "part", 2)
    noting = Noting(model)
    with threads(after), caplog.at_level(logging.WARNING):
        run(noting, tmp_path / "part")
        assert torch.get_num_threads() == after
    assert noting.threads == {begun} and said(tmp_path / "part")["threads"] == begun
    assert shards(tmp_path / "part") == shards(tmp_path / "whole")
    told = f"begun with {begun} thread on a CPU and goes on so, though there could be {after}"
    assert (told in caplog.text) is (begun < after)


def test_a_plan_is_measured_with_the_threads_of_its_run_and_gives_them_back(tmp_path: Path) -> None:
    model = sonde.model(f"hf:{tiny.bert(tmp_path / 'model')}", device="cpu")
    with threads(1):
        stopped(model, tmp_path / "part", 2)
    noting = Noting(model)
    with threads(2):
        plan(LAMA, noting, FACTS, tmp_path / "part", shard_weight=WEIGHT)
        assert torch.get_num_threads() == 2
    assert noting.threads == {1}
