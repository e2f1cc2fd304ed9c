"""A model whose numbers are none stops a run, with the prompt named; nothing of it is ranked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf, nan
from pathlib import Path
from typing import Any, ClassVar, Self

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sonde
from sonde.core.abilities import Identity, Model
from sonde.core.answers import Filled, Generated, Sampled, Scored, Traced
from sonde.core.columns import Given
from sonde.core.errors import CorruptShard, NotFinite
from sonde.core.facts import Dataset
from sonde.core.prompts import Fill, Generate, Prompt, Sample, Score, Trace, Want, prompts_of
from sonde.core.reports import Report
from sonde.data.catalog import load as load_dataset
from sonde.probes.lama import Lama
from sonde.store.manifest import Digests
from sonde.store.runs import RunFolder
from tests import tiny
from tests.worlds import numbered
from tests.written import dataset as written_dataset

from .world import Listing, unseal

CITIES = {"France": "Paris", "Austria": "Vienna", "Norway": "Oslo"}


@pytest.fixture
def cities(tmp_path: Path) -> Dataset:
    """Capitals that every tiny model has a token for."""
    text = "The capital of [X] is [Y]."
    return load_dataset(str(written_dataset(tmp_path / "data", {"P36": (text, CITIES)})))


def opened(folder: Path, dtype: str = "float32") -> Model:
    return sonde.model(f"hf:{folder}", device="cpu", dtype=dtype)


def stopped(probe: str, model: Model, data: Dataset, out: Path, **settings: Any) -> str:
    """What a run says that stops; it keeps nothing."""
    with pytest.raises(NotFinite) as caught:
        sonde.run(sonde.probe(probe, **settings), model, data, out)
    assert not RunFolder(out).shards()
    said = str(caught.value)
    for part in ("'P36:France'", "'P36'", "France", "--dtype", "sonde doctor"):
        assert part in said, f"{part} is not in {said}"
    return said


def test_one_nan_in_a_norm_stops_lama(cities: Dataset, tmp_path: Path) -> None:
    assert NotFinite("").exit_code == 4
    model = opened(tiny.spoiled(tiny.llama(tmp_path / "m"), "norm.weight", tiny.one_nan))
    assert "NaN" in stopped("lama", model, cities, tmp_path / "out")


def test_infinite_embeddings_stop_lama(cities: Dataset, tmp_path: Path) -> None:
    model = opened(tiny.spoiled(tiny.llama(tmp_path / "m"), "embed_tokens", tiny.endless))
    stopped("lama", model, cities, tmp_path / "out")


def test_an_overflow_in_float16_stops_and_float32_goes_on_in_a_folder_of_its_own(
    cities: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tiny.spoiled(tiny.llama(tmp_path / "m"), "model.norm.weight", tiny.huge)
    probe = sonde.probe("lama")
    with pytest.raises(NotFinite, match=r"float16.*larger --dtype"):
        sonde.run(probe, opened(folder, "float16"), cities)
    run = sonde.run(probe, opened(folder), cities)
    assert run.results().counts()["prompts"] == len(CITIES)


def test_a_masked_model_is_not_said_to_lack_the_tokens(cities: Dataset, tmp_path: Path) -> None:
    model = opened(tiny.spoiled(tiny.bert(tmp_path / "m"), "LayerNorm.weight", tiny.one_nan))
    assert "NaN" in stopped("lama", model, cities, tmp_path / "out")
    with pytest.raises(NotFinite, match=r"relation 'P36'.*The capital of N/A is ___"):
        sonde.run(sonde.probe("belief"), model, cities, tmp_path / "belief")


def test_belief_icl_is_not_said_to_be_overconfident(cities: Dataset, tmp_path: Path) -> None:
    model = opened(tiny.spoiled(tiny.t5(tmp_path / "m"), "layer_norm.weight", tiny.one_nan))
    stopped("belief-icl", model, cities, tmp_path / "out", context="zero-shot")


def test_monitor_is_not_said_to_know_nothing(tmp_path: Path) -> None:
    atlas = sonde.dataset("atlas", relations=("P36",), limit=2)
    model = opened(tiny.spoiled(tiny.llama(tmp_path / "m"), "norm.weight", tiny.one_nan))
    with pytest.raises(NotFinite, match="relation 'P36', fact 'P36:"):
        sonde.run(sonde.probe("monitor"), model, atlas, tmp_path / "out")


@pytest.mark.parametrize("kind", ["llama", "mamba", "t5"])
def test_nothing_is_drawn_from_what_is_no_distribution(tmp_path: Path, kind: str) -> None:
    make = {**tiny.CAUSAL, **tiny.SEQ2SEQ}[kind]
    model: Any = opened(tiny.spoiled(make(tmp_path / "m"), "norm", tiny.one_nan))
    prompts = [
        replace(tiny.score(text, (), fact=text), want=Sample(count=3)) for text in ("Oslo", "Paris")
    ]
    with pytest.raises(NotFinite, match=r"fact '(Oslo|Paris)', template 't'.*larger --dtype"):
        list(model.sample(prompts))


SCORED = Scored(options=("a", "b"), logps=((-1.0,), (-2.0,)), suffix_logps=((-1.0,), (-1.0,)))
FILLED = Filled(
    top=("a",),
    top_logps=(-1.0,),
    watched=("a", "many tokens"),
    watched_logps=(-1.0, None),
    watched_ranks=(1, None),
    mass=-0.5,
)
GENERATED = Generated(text=" a", logps=(-1.0,), end_logp=-1.0)
TRACED = Traced(logps=((-1.0,), ()))
BROKEN: dict[str, Callable[[float], Any]] = {
    "scored": lambda x: replace(SCORED, logps=((-1.0,), (-2.0, x))),
    "scored, after": lambda x: replace(SCORED, suffix_logps=((-1.0,), (x,))),
    "filled, top": lambda x: replace(FILLED, top_logps=(x,)),
    "filled, watched": lambda x: replace(FILLED, watched_logps=(x, None)),
    "filled, mass": lambda x: replace(FILLED, mass=x),
    "generated": lambda x: replace(GENERATED, logps=(-1.0, x)),
    "generated, end": lambda x: replace(GENERATED, end_logp=x),
    "traced": lambda x: replace(TRACED, logps=((-1.0,), (x,))),
}


WANTS: dict[str, Want] = {
    "Scored": Score(options=("a", "b")),
    "Filled": Fill(watched=("a", "many tokens")),
    "Generated": Generate(),
    "Traced": Trace(spans=((0, 1), (1, 2))),
    "Sampled": Sample(count=2),
}


@dataclass(frozen=True, kw_only=True)
class Asking:
    """Asks about one fact after the other in several ways."""

    name: ClassVar[str] = "asking"
    kinds: tuple[str, ...]

    def suited(self, can: frozenset[Any]) -> Self:
        return self

    def ask(self, dataset: Dataset) -> Iterator[Prompt]:
        for prompt in prompts_of(Lama(answer="score").ask(dataset)):
            kind = self.kinds[int(prompt.key.fact[-1]) % len(self.kinds)]
            yield replace(prompt, want=WANTS[kind])

    def read(self, dataset: Dataset, answered: Given) -> Report:
        raise NotImplementedError


def ask_all(answers: Sequence[Any], out: Path) -> None:
    """Ask about the facts of a small world for such answers, and give them."""
    kinds = tuple(type(answer).__name__ for answer in answers)
    sonde.run(Asking(kinds=kinds), Giving(answers), numbered(), out)


class Giving:
    """Answers the facts of one relation well and those of another as it is told."""

    identity = Identity(name="giving", architecture="giving", dtype="bfloat16")

    def __init__(self, answers: Sequence[Any]) -> None:
        self.answers = answers

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Any]]:
        for i, prompt in enumerate(prompts):
            yield i, self.answers[int(prompt.key.fact[-1]) % len(self.answers)]

    fill = generate = trace = sample = score


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("value", [nan, inf, -inf])
def test_no_number_of_any_answer_may_be_endless(tmp_path: Path, kind: str, value: float) -> None:
    answers = [SCORED, FILLED, GENERATED, TRACED, BROKEN[kind](value)]
    with pytest.raises(NotFinite) as caught:
        ask_all(answers, tmp_path / "out")
    said = str(caught.value)
    assert "relation 'P1', fact 'P1:4', template 'P1-1' ('P1 of subject 4 is ___.')" in said
    assert ("NaN" if value != value else str(value)) in said
    assert "giving" in said
    assert "bfloat16" in said


def test_draws_that_were_never_made_are_refused(tmp_path: Path) -> None:
    answers = [Sampled(texts=(" a",), counts=(2,)), Sampled(texts=(" a", " b"), counts=(2, 0))]
    with pytest.raises(NotFinite, match="fact 'P1:1'"):
        ask_all(answers, tmp_path / "out")


class Failing(Listing):
    """Gives NaN from some fact on."""

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        for place, answer in Listing.score(self, prompts):
            broken = prompts[place].key.fact.startswith("P2")
            yield place, replace(answer, logps=((nan,),) * len(answer.logps)) if broken else answer


def test_what_was_finished_before_is_kept_and_gone_on_from(tmp_path: Path) -> None:
    out = tmp_path / "out"
    probe, data = Lama(answer="score"), numbered()
    with pytest.raises(NotFinite, match="fact 'P2:0'"):
        sonde.run(probe, Failing(), data, out, shard_weight=36)
    assert [path.stem for path in RunFolder(out).shards()] == ["00000"]
    mended = Listing()
    run = sonde.run(probe, mended, data, out, shard_weight=36)
    assert {fact[:2] for fact in mended.asked} == {"P2"}
    assert run.results().counts()["prompts"] == 12


def spoil_shard(out: Path) -> Path:
    """Put NaN where a number was, in a run as it was made before NaN was refused."""
    (path,) = RunFolder(out).shards()
    table = pq.read_table(path)
    rows = table.column("logps").to_pylist()
    rows[3][0][0] = nan
    place = table.schema.get_field_index("logps")
    table = table.set_column(place, table.field(place), pa.array(rows, table.field(place).type))
    pq.write_table(table, path)
    Digests(out / "shards.sha256").add(path, path.read_bytes())
    unseal(out)
    return path


def test_a_stored_nan_stops_the_reading_and_is_computed_anew(tmp_path: Path) -> None:
    out = tmp_path / "out"
    probe, data = Lama(answer="score"), numbered()
    run = sonde.run(probe, Listing(), data, out)
    before = run.estimates()
    path = spoil_shard(out)
    for read in (run.report, run.to_polars, lambda: list(run.answered())):
        with pytest.raises(CorruptShard) as caught:
            read()
        said = str(caught.value)
        assert f"shard {path} holds NaN" in said
        assert "fact 'P1:3'" in said
        assert "the same run again" in said
    assert sonde.run(probe, Listing(), data, out).estimates().equals(before)
    assert (out / "quarantine").is_dir()
