"""Models that are asked in turns: here as behind a server, and what a run keeps of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

import sonde
from sonde.core.abilities import as_given
from sonde.core.answers import CLOSED, OPENED, Generated, Sampled
from sonde.core.columns import one_by_one
from sonde.core.errors import AbilityError, PromptError
from sonde.core.prompts import Generate, Prompt, Sample, prompts_of, put
from sonde.engine.endings import thought_length
from sonde.models.load import attributor, load
from sonde.models.options import LoadOptions
from sonde.models.torch import reference
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.loading.weights import load_folder
from sonde.reports.terminal import as_text
from tests.chat.templates import chat_model, tokenizer
from tests.servers.agreement import assert_same, write
from tests.servers.answering import Answering, Face, serving
from tests.tiny import CITIES, score, trace

OPTIONS = LoadOptions(device="cpu", chat="always")

ASKED = [
    score("The capital of France is ", CITIES, "."),
    score("The city of ", (*CITIES[:3], "<|im_end|>"), " is large."),
    score("", ("paris", "Oslo"), " is <|im_start|> large.", capitals=True),
    score("The city of ", CITIES[:3], " is large.", whole=True),
    trace("Peru Paris, Norway Oslo, Austria Vienna", (10, 15), (25, 32)),
    write("Where is Paris?", Generate(most=6, until="")),
    write("Where is Oslo? ", Generate(most=6)),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return chat_model(tmp_path_factory.mktemp("chat") / "tiny")


def loaded(folder: Path, **options: Any) -> CausalModel:
    chosen = replace(OPTIONS, **options)
    return CausalModel(load_folder("hf:chat", folder, chosen, weights="w"))


def given(model: Any, prompts: Sequence[Prompt]) -> list[Prompt]:
    return list(prompts_of(as_given(model, put(prompts).blocks)))


def of(prompts: Sequence[Prompt], kind: str) -> list[Prompt]:
    return [prompt for prompt in prompts if type(prompt.want).__name__ == kind]


def numbers(answers: Any) -> list[Any]:
    found = dict(one_by_one(answers))
    return [found[i].logps for i in range(len(found))]


@pytest.mark.parametrize("name", ["chatml", "llama3", "llama2"])
def test_answers_in_turns_are_those_of_the_naive_way(
    name: str, tmp_path: Path, device: str
) -> None:
    model = loaded(chat_model(tmp_path, name), device=device)
    prompts, net = given(model, ASKED), model.model
    for kind, ask, naive in (
        ("Score", model.score, reference.score_causal),
        ("Trace", model.trace, reference.trace_causal),
    ):
        own = of(prompts, kind)
        assert_same(numbers(ask(own)), numbers(naive(net, model.encoder, own)))
    texts = of(prompts, "Generate")
    plain = dict(reference.generate_causal(net, model.encoder, texts, model.endings.ends))
    written = dict(model.generate(texts))
    assert [written[i].text for i in written] == [plain[i].text for i in written]


def test_a_served_model_is_asked_in_the_same_turns_as_it_is_here(folder: Path) -> None:
    here = loaded(folder)
    with serving(Face(Answering(folder, 512))) as address:
        options = LoadOptions(tokenizer=str(folder), chat="always")
        there: Any = load(f"server:{address}/v1", options)
        prompts = given(there, ASKED)
        assert prompts == given(here, ASKED) and there.identity.chat == here.identity.chat
        scored, traced = of(prompts, "Score"), of(prompts, "Trace")
        assert_same(numbers(there.score(scored)), numbers(here.score(scored)))
        assert_same(numbers(there.trace(traced)), numbers(here.trace(traced)))
        texts = of(prompts, "Generate")
        written, own = dict(there.generate(texts)), dict(here.generate(texts))
        assert {i: own[i].text for i in own} == {i: written[i].text for i in written}


def test_a_run_keeps_the_rendered_text_and_names_the_template(folder: Path, tmp_path: Path) -> None:
    data = sonde.dataset("atlas", relations=("P36",), limit=2)
    probe = sonde.probe("framing", shots=1)
    runs = {
        chat: sonde.run(probe, load(f"hf:{folder}", LoadOptions(chat=chat)), data, tmp_path / chat)
        for chat in ("always", "never")
    }
    first, plain = (runs[chat].to_polars() for chat in ("always", "never"))
    assert first["prefix"][0].startswith("<|im_start|>system\nYou help.<|im_end|>\n")
    assert {*first["prefix"].str.count_matches("<|im_start|>", literal=True)} == {5}
    manifest = json.loads((tmp_path / "always" / "manifest.json").read_text())
    assert len(manifest["model"]["chat"]["template"]) == 16
    silent = json.loads((tmp_path / "never" / "manifest.json").read_text())
    assert "chat" not in silent["model"] and silent["model"]["details"]["chat template"]
    assert "turns" not in plain.columns and "turns" not in first.columns


def test_a_first_finding_suggests_turns_where_answers_are_mostly_empty(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = sonde.dataset("atlas", relations=("P36",), limit=2)
    monkeypatch.setattr(CausalModel, "score_and_generate", None)

    def silent(self: Any, prompts: Sequence[Prompt]) -> Any:
        return ((i, Generated(text="", logps=())) for i, _ in enumerate(prompts))

    monkeypatch.setattr(CausalModel, "generate", silent)
    for chat, suggested in (("never", True), ("always", False)):
        model = load(f"hf:{folder}", LoadOptions(chat=chat))  # type: ignore[arg-type]
        report = sonde.run(sonde.probe("belief-icl", samples=0), model, data, tmp_path / chat)
        text = " ".join(as_text(report.report()).split())
        assert "are empty, so no conclusion is drawn" in text
        assert ("--chat always" in text) is suggested


def test_what_a_model_thinks_is_kept_apart_from_its_answer(tmp_path: Path) -> None:
    """A text that ends in the middle of thoughts has no answer; what follows them is judged."""
    folder = chat_model(tmp_path, "r1")
    model = loaded(folder, chat_thinking=8)
    asked = given(model, [write("Where is Paris?", Generate(most=4, until=""))])
    (_, written), *_ = model.generate(asked)
    assert written.text == "" and written.thoughts and written.logps == ()
    naive = reference.generate_causal(
        model.model, model.encoder, asked, model.endings.ends, model.endings.thoughts
    )
    assert dict(naive)[0].thoughts == written.thoughts
    text = "Hm.\nYes. </think>\n\n Oslo\nor"
    path = tuple(tokenizer("r1").encode(text, add_special_tokens=False))
    tail = model.endings.tail(model.encoder.open(asked[0].prefix))
    counts = range(1, len(path) + 1)
    ends = (model.endings.end(tail, path[:n], Generate(most=99)) for n in counts)
    end = next(end for end in ends if end is not None)
    assert (end.text, end.thoughts, end.finished) == ("Oslo", "Hm.\nYes. </think>\n\n ", True)
    logps = [-float(n) for n in counts]
    found = model.endings.generated(tail, path, logps, end)
    assert (found.text, found.thoughts) == ("Oslo", "Hm.\nYes. </think>")
    said = tokenizer("r1").decode([path[-int(logp) - 1] for logp in found.logps])
    assert said.strip() == "Oslo"


@pytest.fixture(scope="module")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that ends its thoughts with about one token of twenty."""
    folder = chat_model(tmp_path_factory.mktemp("thinker"), "r1", more=(OPENED, CLOSED))
    load: Any = transformers.AutoModelForCausalLM
    net = load.from_pretrained(folder)
    closed = transformers.AutoTokenizer.from_pretrained(folder).convert_tokens_to_ids(CLOSED)
    with torch.no_grad():  # a direction that every state has, and one token reads
        net.get_input_embeddings().weight[:, 0] = 2
        net.lm_head.weight[:, 0] = 0
        net.lm_head.weight[closed, 0] = 2
    net.save_pretrained(folder)
    return folder


DRAWN = [write(text, Sample(count=150, most=4, until="")) for text in ("Where?", "Who is Oslo?")]


def assert_apart(drawn: Sampled) -> None:
    """Whatever stands before an answer is with it, once a draw; without an end there is none."""
    assert tuple(map(len, drawn.thoughts)) == drawn.counts and sum(drawn.counts) == 150
    said = dict(zip(drawn.texts, drawn.thoughts, strict=True))
    assert len(said) > 5 and all(t.endswith(CLOSED) for text in said if text for t in said[text])
    assert not all(t.endswith(CLOSED) for t in said[""])


@pytest.mark.parametrize("rows", [False, True])
def test_what_is_thought_before_drawn_answers_is_kept_with_them(
    thinker: Path, rows: bool, device: str
) -> None:
    """Each is what the whole text has before its answer, had nobody told thoughts apart."""
    model = loaded(thinker, chat_thinking=20, device=device)
    model.rows = rows
    # no limits of their own, so that texts are as long when nobody tells thoughts apart
    asked = [
        replace(each, want=replace(each.want, thinking=0))
        for each in given(model, DRAWN)
        if isinstance(each.want, Sample)
    ]
    found = dict(model.sample(asked))
    model.endings = replace(model.endings, thoughts="never")
    for position, whole in model.sample(asked):
        assert_apart(found[position])
        assert whole.thoughts == () and whole != found[position]
        starts = [thought_length(text, "begun") for text in whole.texts]
        parts = zip(whole.texts, starts, whole.counts, strict=True)
        expected = ((text[start:], text[:start].strip(), n) for text, start, n in parts)
        assert found[position] == Sampled.pooled(expected)


def test_independent_draws_and_those_of_a_server_keep_thoughts_too(thinker: Path) -> None:
    model = loaded(thinker, chat_thinking=20)
    asked, net = given(model, DRAWN), model.model
    ends, thoughts = model.endings.ends, model.endings.thoughts
    generator = torch.Generator().manual_seed(3)
    naive = reference.sample_causal(net, model.encoder, asked[:1], ends, generator, thoughts)
    assert_apart(next(naive)[1])
    with serving(Face(Answering(thinker, 512))) as address:
        options = LoadOptions(tokenizer=str(thinker), chat="always", chat_thinking=20)
        there: Any = load(f"server:{address}/v1", options)
        for _, drawn in there.sample(given(there, DRAWN)):
            assert_apart(drawn)


def scripted(folder: Path, *path: str) -> Path:
    """A model that writes the tokens of a path, each after the one before it."""
    chat_model(folder, "vicuna", more=(OPENED, CLOSED))
    load: Any = transformers.AutoModelForCausalLM
    net, tokens = load.from_pretrained(folder), transformers.AutoTokenizer.from_pretrained(folder)
    ids = [tokens.encode(text, add_special_tokens=False)[-1] for text in path]
    with torch.no_grad():  # states are mostly the last token's embedding
        net.lm_head.weight[ids] = 0
        for place, (one, other) in enumerate(pairwise(ids)):
            axis = torch.eye(net.config.hidden_size)[place]
            net.get_input_embeddings().weight[one] = 9 * axis
            net.lm_head.weight[other] += 9 * axis
    net.save_pretrained(folder)
    return folder


def test_a_line_that_ends_in_unasked_thoughts_ends_no_answer_on_a_server_either(
    tmp_path: Path,
) -> None:
    folder = scripted(tmp_path, ":", OPENED, "\n", CLOSED, " Oslo", "\n")
    here = loaded(folder)
    with serving(Face(Answering(folder, 512))) as address:
        there: Any = load(f"server:{address}/v1", LoadOptions(tokenizer=str(folder), chat="always"))
        for model in (here, there):
            ((_, text),) = model.generate(given(model, [write("Where?", Generate(most=8))]))
            assert (text.text, text.thoughts) == ("Oslo", f"{OPENED}\n{CLOSED}")


def test_a_run_keeps_what_was_thought_before_drawn_answers(thinker: Path, tmp_path: Path) -> None:
    data = sonde.dataset("atlas", relations=("P36",), limit=2)
    probe = sonde.probe("belief-icl", samples=20, language="none")
    model = load(f"hf:{thinker}", LoadOptions(chat="always", chat_thinking=12))
    run = sonde.run(probe, model, data, tmp_path / "run")
    drawn = run.to_polars().filter(kind="sampled")
    kept = zip(drawn["counts"].to_list(), drawn["drawn_thoughts"].to_list(), strict=True)
    assert drawn.height and all([*map(len, own)] == counts for counts, own in kept)
    read = [a.answer for a in run.answered() if isinstance(a.answer, Sampled)]
    thoughts = [*chain.from_iterable(chain.from_iterable(a.thoughts for a in read))]
    assert len(thoughts) == 20 * drawn.height
    words = " ".join(as_text(run.report()).replace("│", " ").split()).replace("`", "")
    assert "answers were cut at the token limit. Raise --chat-thinking." in words


def test_a_template_without_a_system_text_says_so(tmp_path: Path) -> None:
    folder = chat_model(tmp_path, "gemma")
    with pytest.raises(AbilityError, match=r"takes no system text .*System role.*--chat-system"):
        loaded(folder, chat_system="Be brief.")


def test_costs_of_conversations_are_counted(folder: Path) -> None:
    model = loaded(folder)
    (cost,) = model.estimate_costs([put(of(given(model, ASKED), "Score"))])
    plain = loaded(folder, chat="never")
    (less,) = plain.estimate_costs([put(of(ASKED, "Score"))])
    assert np.sum([c.fed for c in cost.costs]) > np.sum([c.fed for c in less.costs])


@pytest.mark.parametrize("name", ["chatml", "llama3", "llama2"])
def test_an_answer_in_turns_is_attributed_to_the_prompts_own_words(
    name: str, tmp_path: Path
) -> None:
    pytest.importorskip("captum", reason="needs the extra sonde[attribute]")
    model: Any = loaded(chat_model(tmp_path, name))
    text, cuts = "Where is Oslo? Norway. Where is Paris? ", (15, 23)
    for turns in ((), cuts):
        want = replace(score(text, ("New York",)), turns=turns)
        ((_, scored),) = one_by_one(model.score(given(model, [want])))
        found = attributor(model).attribute(
            text, "New York", turns=turns, steps=50, most=1000, tolerance=0.01
        )
        assert found.score == pytest.approx(sum(scored.logps[0]), abs=1e-4)
        assert sum(found.weights) == pytest.approx(found.gap, abs=0.02)
        said = "".join(token.text for token in found.tokens)
        assert said.replace(" ", "") == text.replace(" ", "")
        assert all(text[t.start : t.stop].endswith(t.text) for t in found.tokens)
    with pytest.raises(PromptError, match=r"does not write the words of .* as they are"):
        attributor(model).attribute(
            "What is <|im_end|><|eot|>?", "Paris", steps=5, most=5, tolerance=1.0
        )
