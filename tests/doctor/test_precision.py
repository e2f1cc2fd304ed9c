"""Half precision is held against float32 and against itself in other batches."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from sonde.core.abilities import abilities
from sonde.core.answers import Filled, Generated, Sampled, Scored
from sonde.core.errors import ModelError
from sonde.core.examinations import Examination, Limits
from sonde.core.facts import Dataset
from sonde.core.prompts import Fill, Generate, Key, Prompt, Sample, Score
from sonde.doctor.agreement import agreement
from sonde.doctor.diagnose import along, settled
from sonde.doctor.findings import Case, Finding
from sonde.doctor.precision import (
    Asked,
    beside_float32,
    change,
    fixed_prompts,
    moved_draws,
    token_gaps,
    verdict,
)
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.masked.model import MaskedModel
from sonde.models.torch.seq2seq import Seq2SeqModel
from sonde.probes.lama import Lama
from tests import tiny as world
from tests.command import in_this_process
from tests.tiny import CAUSAL, MASKED, Load, recast

OPENED = {**dict.fromkeys(CAUSAL, CausalModel), **dict.fromkeys(MASKED, MaskedModel)}


@pytest.fixture(autouse=True)
def _plain_kernels() -> Any:
    with torch.backends.mkldnn.flags(enabled=False):
        yield


def scored_prompts(count: int) -> list[Prompt]:
    key = Key(fact="f", relation="P36", template="t", subject="s")
    return [Prompt(key=key, prefix="It is ", want=Score(options=("a", "b")))] * count


def compared(half: Any, precise: Any, data: Dataset) -> dict[str, Finding]:
    asked = Asked.of(half, fixed_prompts(Lama(), data, abilities(half)))
    found = beside_float32(asked, precise, half.identity.dtype)
    return {finding.check.removeprefix("half precision").lstrip(", "): finding for finding in found}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", ["llama", "bert", "t5"])
def test_what_half_precision_changes_is_counted(
    tiny: Load, data: Dataset, kind: str, dtype: torch.dtype
) -> None:
    opened: Any = OPENED.get(kind, Seq2SeqModel)
    found = compared(opened(recast(tiny(kind), dtype)), opened(tiny(kind)), data)
    kinds = {"scoring", "filling"} if kind == "bert" else {"scoring", "writing", "drawing"}
    assert found.keys() == {"", *kinds}
    verdict, scoring = found[""].values, found["scoring"].values
    assert verdict["low"] <= verdict["differ"] / verdict["compared"] <= verdict["high"]
    assert 0 < scoring["float32.median"] <= scoring["float32.largest"] < 0.3
    assert scoring["batches.largest"] < 0.3
    assert "first answers differ from float32's" in found[""].found


def test_nothing_changes_in_the_same_precision(tiny: Load, data: Dataset) -> None:
    found = compared(CausalModel(tiny("llama")), CausalModel(tiny("llama")), data)
    assert found[""].verdict == "ok" and found[""].values["differ"] == 0
    assert found["scoring"].values["float32.largest"] < 1e-4
    assert found["drawing"].values["batches.differ"] == 0


def test_answers_that_float32_is_sure_of_are_named() -> None:
    (prompt,) = scored_prompts(1)
    sure, close, other = (
        Scored(options=("a", "b"), logps=((first,), (-2.0,))) for first in (-0.1, -1.9, -3.0)
    )
    same = change([prompt], [other], [close], Scored, 0.3)
    assert (same.differ, same.clear) == (1, ())
    clear = change([prompt], [other], [sure], Scored, 0.3)
    assert clear.clear == ("P36 's': 'b' for 'a'",)
    named, tied = (verdict([(found, clear)], "bfloat16") for found in (clear, same))
    assert named.verdict == "warning" and "bfloat16 changes clear answers" in named.advice
    assert "P36 's': 'b' for 'a'" in named.found
    # one of one is no share that could be told from one in twenty, but this is
    assert tied.verdict == "warning" and "changes many close answers" in tied.advice
    rare = replace(same, count=20)
    assert verdict([(rare, clear)], "bfloat16").verdict == "ok"


def test_the_prompts_hold_every_kind_of_want_once_by_kind(data: Dataset) -> None:
    asked = fixed_prompts(Lama(), data, frozenset(["score", "generate", "sample"]))
    kinds = [type(prompt.want) for prompt in asked]
    assert set(kinds) == {Score, Generate, Sample}
    assert kinds == sorted(kinds, key=lambda kind: kind.__name__)
    assert kinds.count(Generate) == len(data.relations) <= kinds.count(Score)
    free = fixed_prompts(Lama(), data, frozenset(["score", "fill"]))
    assert all(p.want.vocabulary is None for p in free if isinstance(p.want, Fill))


def test_gaps_are_those_of_tokens_in_common() -> None:
    one = Filled(
        top=("a", "b"), top_logps=(-1.0, -2.0), watched=("c", "d"), watched_logps=(-3, None)
    )
    two = Filled(top=("b", "e"), top_logps=(-2.5, -3), watched=("c", "d"), watched_logps=(-4, -1))
    assert list(token_gaps(one, two)) == [0.5, 1.0]
    same, other = (Generated(text=text, logps=(-1.0, -2.0)) for text in ("x", "y"))
    assert list(token_gaps(same, Generated(text="x", logps=(-1.5, -2.0)))) == [0.5, 0.0]
    assert list(token_gaps(same, other)) == []


def test_moved_draws_are_counted_once() -> None:
    one, other = Sampled(texts=("a", "b"), counts=(7, 3)), Sampled(texts=("a", "c"), counts=(5, 5))
    assert moved_draws(one, other) == moved_draws(other, one) == 5
    assert moved_draws(one, one) == 0


def test_what_was_refused_or_is_no_number_is_not_compared() -> None:
    prompts = scored_prompts(3)
    sound = Scored(options=("a", "b"), logps=((-1.0,), (-2.0,)))
    broken = Scored(options=("a", "b"), logps=((float("nan"),), (-2.0,)))
    found = change(prompts, [sound, broken, None], [sound, sound, sound], Scored, 0.3)
    assert (found.count, found.differ, found.gaps) == (1, 0, (0.0, 0.0))


def test_the_command_says_it_in_both_forms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sonde.doctor.precision.FACTS", 1)
    words = ("doctor", "-m", f"hf:{world.bert(tmp_path)}", "--relations", "P36", "--device", "cpu")
    sonde = in_this_process(capsys)
    assert "half precision" not in sonde(*words).out
    said = json.loads(sonde(*words, "--dtype", "bfloat16", "--json").out)
    (found,) = [each for each in said["findings"] if each["check"] == "half precision"]
    assert found["values"]["compared"] > 50

    def full(*_: Any) -> Any:
        raise ModelError("memory ran out on a single text.")

    monkeypatch.setattr("sonde.cli.doctor.beside_float32", full)
    shown = " ".join(sonde(*words, "--dtype", "bfloat16").out.split())
    assert (
        "half precision: it cannot be asked in float32 (memory ran out on a single text)" in shown
    )


class Shows:
    """Two texts of three tokens that part at the second, by so many nats."""

    def __init__(self, lead: float) -> None:
        logps = ((-1.0, -0.8 - lead, -0.5), (-1.0, -0.8, -0.1))
        self.naive = Scored(options=("x", "y"), logps=logps)
        ids = ((9, 4, 5, 6), (9, 4, 7, 8))
        self.texts = [SimpleNamespace(ids=row, start=1, stop=4) for row in ids]

    def examine(self, prompts: Any) -> Any:
        (prompt,) = prompts
        assert prompt.want == Score(options=("written", "naive")) and prompt.prefix == "It is"
        yield 0, self


@pytest.mark.parametrize(
    ("lead", "verdicts"), [(0.4, ["ok", "warning"]), (0.9, ["fault", "fault"])]
)
def test_texts_that_part_at_a_near_tie_are_no_fault(lead: float, verdicts: list[str]) -> None:
    (prompt,) = scored_prompts(1)
    answer, naive = (
        Generated(text=text, logps=logps)
        for text, logps in (("written", (-1.1, -1.1 - lead / 2, -0.6)), ("naive", (-1, -0.8, -0.1)))
    )
    shown = Examination(limits=Limits(context=None, vocabulary=9, tokens=9), naive=naive)
    case = Case(prompt=prompt, shown=shown, answer=answer)
    shows: Any = Shows(lead)
    assert along(shows, prompt, naive, naive, 9.0) is None
    (kept,), ties = settled([case], shows, 0.3)
    assert ties == (lead < 0.6)
    told = agreement([kept], Generated, 0.3, ties)
    assert [finding.verdict for finding in told] == verdicts
    assert ties == ("too close to tell apart" in told[1].found)
