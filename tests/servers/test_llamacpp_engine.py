"""A GGUF file in llama.cpp, in this process: the same numbers, whatever else is asked."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from sonde.core.abilities import abilities, deciding
from sonde.core.costs import Cost
from sonde.core.errors import MissingExtra, ModelError, PromptTooLong, UsageError
from sonde.models.llamacpp import parted
from sonde.models.load import load
from sonde.models.options import LoadOptions
from sonde.models.served.lanes import Lanes
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.loading.weights import load_folder
from tests import tiny
from tests.command import in_this_process
from tests.models.gguf_file import write_gguf
from tests.servers.agreement import SCORED, assert_agrees, assert_same, rows
from tests.servers.llama import write_model
from tests.tiny import CITIES, score

pytest.importorskip("xllamacpp", reason="pip install 'sonde[llamacpp]'")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_model(tmp_path_factory.mktemp("llama"), max_position_embeddings=512)


@pytest.fixture(scope="module")
def inside(files: tuple[Path, Path]) -> Any:
    return load(f"llamacpp:{files[1]}?threads=1")


@pytest.fixture(scope="module")
def quantised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("quantised")
    sizes: Any = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 4}
    plain = tiny.llama(folder / "plain", **sizes, max_position_embeddings=512)
    return write_gguf(folder / "tiny.gguf", plain, adds_bos=True, form="Q8_0")


def test_it_gives_what_the_model_gives_here(files: tuple[Path, Path], inside: Any) -> None:
    here = CausalModel(load_folder("hf:here", files[0], LoadOptions(device="cpu"), weights="w"))
    assert abilities(inside) == {"score", "trace", "generate", "sample"}
    assert_agrees(inside, here)


def test_its_identity_names_the_file_the_form_of_its_weights_and_how_they_are_computed(
    files: tuple[Path, Path], inside: Any
) -> None:
    dequantised: Any = load(f"gguf:{files[1]}")
    identity = inside.identity
    assert _decides(inside) == _decides(load(f"llamacpp:{files[1]}?threads=1"))  # beside its copy
    assert identity.weights == dequantised.identity.weights
    assert identity.tokenizer == dequantised.identity.tokenizer
    assert identity.bos == dequantised.identity.bos == "<|endoftext|> always"
    assert identity.dtype == "all F32"
    assert "(llama.cpp, xllamacpp 20" in identity.architecture
    details = identity.details
    assert details["server version"].startswith("xllamacpp 20")
    assert (details["keys and values"], details["flash attention"]) == ("f32", "off")
    assert details["device"] == "cpu" and details["context"] == "512 tokens"


def test_longer_texts_get_more_context_and_the_same_numbers(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sonde.models.served.llamacpp_engine.SHORTEST", 256)
    model: Any = load(f"llamacpp:{files[1]}?slots=2&threads=1")
    first, long = [score("It is ", CITIES)], [score("France is large. " * 40, CITIES)]
    before = rows(model.score(first), first)
    assert model.transport.context == 256
    (answer,) = rows(model.score(long), long)
    assert model.transport.context == 512 and len(answer.logps) == len(CITIES)
    assert_same([a.logps for a in rows(model.score(first), first)], [a.logps for a in before])
    with pytest.raises(PromptTooLong, match="tokens and the model takes 512"):
        list(model.score([score("France is large. " * 99, CITIES)]))
    model.transport.context = 0
    monkeypatch.setattr(model.transport, "path", Path("gone.gguf"))
    with pytest.raises(ModelError, match=r"llama\.cpp cannot run gone\.gguf with 512 tokens"):
        list(model.score(first))
    monkeypatch.undo()
    assert len(rows(model.score(first), first)) == 1


def test_numbers_do_not_depend_on_what_else_is_asked(
    files: tuple[Path, Path], inside: Any, quantised: Path
) -> None:
    other: Any = load(f"llamacpp:{quantised}?threads=1")
    for model in (inside, other):
        assert model.identity.details["computed"] == "token by token"
        together = rows(model.score(SCORED), SCORED)
        backwards = rows(model.score(SCORED[::-1]), SCORED)[::-1]
        assert [a.logps for a in together] == [a.logps for a in backwards]  # to the last bit
        alone = [rows(model.score([prompt]), [prompt])[0] for prompt in SCORED]
        assert [a.logps for a in together] == [a.logps for a in alone]


def test_texts_side_by_side_and_in_batches_are_told_and_near(
    files: tuple[Path, Path], inside: Any
) -> None:
    quick: Any = load(f"llamacpp:{files[1]}?slots=4&batch=512&threads=1")
    told = quick.identity.details["computed"]
    assert told == "4 texts side by side, up to 512 tokens of each at once"
    theirs, ours = rows(quick.score(SCORED), SCORED), rows(inside.score(SCORED), SCORED)
    assert_same([a.logps for a in theirs], [a.logps for a in ours])


def test_a_plan_counts_beginnings_that_texts_share_once(inside: Any) -> None:
    prompts = [score("The capital of France is Paris. " * 9 + f"{x} is ", CITIES) for x in CITIES]
    (cost,) = inside.estimate_costs([prompts])
    total = sum(cost.costs, Cost())
    assert total.requests <= len(CITIES) ** 2
    assert total.computed < total.naive / 10


def _decides(model: Any) -> Any:
    return deciding(asdict(model.identity))


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("kv=f16", "keys and values in f16"),
        ("flash=on", "flash attention"),
        ("batch=64", "up to 64 tokens"),
        ("slots=2", "2 texts side by side"),
    ],
)
def test_no_run_goes_on_with_settings_that_change_numbers(
    files: tuple[Path, Path], inside: Any, setting: str, told: str
) -> None:
    other: Any = load(f"llamacpp:{files[1]}?threads=1&{setting}")
    assert told in other.identity.dtype
    assert _decides(other) != _decides(inside)


def test_keys_and_values_that_do_not_fit_leave_fewer_slots(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    # 2 layers of 2 heads of 8 numbers, keys and values, 4 bytes each
    monkeypatch.setattr("sonde.models.served.llamacpp_engine.MEMORY", 256 * 1024 * 2)
    model: Any = load(f"llamacpp:{files[1]}?threads=1&slots=4")
    assert isinstance(model.transport._lanes, Lanes) and model.transport._lanes.slots == 2


def test_a_stopped_engine_leaves_no_thread_behind(files: tuple[Path, Path]) -> None:
    tasks = Path("/proc/self/task")
    if not tasks.is_dir():
        pytest.skip("threads are counted in /proc")
    before = len(list(tasks.iterdir()))
    model: Any = load(f"llamacpp:{files[1]}?threads=1")
    assert len(list(tasks.iterdir())) > before
    del model
    assert len(list(tasks.iterdir())) <= before + 1


@pytest.mark.parametrize("content", [b"", b"GGUF", b"no such thing" * 100])
def test_what_is_no_gguf_file_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "broken.gguf"
    file.write_bytes(content)
    with pytest.raises(ModelError, match=r"broken\.gguf cannot be turned from GGUF"):
        load(f"llamacpp:{file}")


def test_weights_that_llama_cpp_cannot_run_are_refused_in_a_sentence(
    tmp_path: Path, files: tuple[Path, Path]
) -> None:
    file = write_gguf(tmp_path / "tiny.gguf", files[0], without="blk.1.ffn_up.weight")
    with pytest.raises(ModelError, match=r"llama\.cpp cannot run .*tiny\.gguf with .* damaged"):
        load(f"llamacpp:{file}")


def test_a_missing_file_package_or_setting_is_named(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ModelError, match=r"nowhere\.gguf is not a file"):
        load("llamacpp:nowhere.gguf")
    with pytest.raises(UsageError, match="needs a file"):
        load("llamacpp:")
    with pytest.raises(UsageError, match="thread=4 is no setting; there are threads, slots, batch"):
        load(f"llamacpp:{files[1]}?thread=4")
    with pytest.raises(UsageError, match="slots=0 is no setting"):
        load(f"llamacpp:{files[1]}?slots=0")
    with pytest.raises(UsageError, match="kv=q8_0 works with flash attention only; add &flash=on"):
        load(f"llamacpp:{files[1]}?kv=q8_0")
    with pytest.raises(ModelError, match="may also not take keys and values in q8_0 and flash"):
        load(f"llamacpp:{files[1]}?kv=q8_0&flash=on")  # heads of 8 numbers are too small for it
    with pytest.raises(UsageError, match="computed as its file has it"):
        load(f"llamacpp:{files[1]}", LoadOptions(dtype="float16"))
    with pytest.raises(UsageError, match="sees no GPU; use --device cpu"):
        load(f"llamacpp:{files[1]}", LoadOptions(device="cuda"))
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(MissingExtra, match=r"xllamacpp; run: pip install 'sonde\[llamacpp\]'"):
        load(f"llamacpp:{files[1]}")


def test_threads_are_those_of_the_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert parted("a.gguf")[1].threads == 3
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert parted("a.gguf")[1].threads == 7
    assert parted("a.gguf?threads=2")[1].threads == 2


def test_numbers_are_the_same_in_several_threads(quantised: Path) -> None:
    models: list[Any] = [load(f"llamacpp:{quantised}?threads={count}") for count in (1, 2)]
    few = SCORED[:1]  # threads that wait for each other take long where others have the cores
    one, two = (rows(model.score(few), few) for model in models)
    assert [a.logps for a in one] == [a.logps for a in two]
    assert _decides(models[0]) == _decides(models[1])


@pytest.mark.parametrize(
    ("form", "verdict"), [("F32", "but for rounding"), ("Q4_0", "other numerics than gguf:")]
)
def test_a_certificate_tells_how_far_it_is_from_the_dequantised_copy(
    form: str, verdict: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # answers of so few weights part clearly: no rounding turns them
    plain = tiny.llama(tmp_path / "plain", intermediate_size=64, max_position_embeddings=512)
    file = write_gguf(tmp_path / "tiny.gguf", plain, adds_bos=True, form=form)
    words = ("--against", f"gguf:{file}", "--relations", "P36", "--limit", "1", "--device", "cpu")
    done = in_this_process(capsys)("doctor", "-m", f"llamacpp:{file}?threads=1", *words)
    shown = " ".join(done.out.split())
    assert verdict in shown
    same = "max |Δ log p| 0 of a token"
    assert shown.count(same) == 2  # asked backwards and one by one
