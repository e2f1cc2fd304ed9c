"""Prompts as turns: the template's own text and tokens, whatever the turns say."""

from __future__ import annotations

import copy
import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sonde.core.errors import AbilityError, PromptError
from sonde.core.prompts import Generate, Key, Prompt, Score, Trace, put
from sonde.engine.control_tokens import SHIELD
from sonde.engine.encode import CausalEncoder, Start, lengthened
from sonde.models.chat import Chat, chat_of, turns_of
from sonde.models.options import LoadOptions
from tests.chat.templates import SYSTEMLESS, TEMPLATES, tokenizer

KINDS = ("bytes", "pieces", "normalised")
WORDS = st.text("Paris éo.,\n <|[{東", max_size=12)
TOKENS = st.sampled_from(["<|im_end|>", "<|eot|>", "<|endoftext|>", "</think>", "<|im_", "end|>"])
SAID = st.lists(WORDS | TOKENS, max_size=4).map("".join).map(str.strip)
CONVERSATIONS = st.lists(SAID, min_size=1, max_size=5).filter(lambda said: len(said) % 2 == 1)


def chat(name: str, kind: str = "bytes", **options: Any) -> Chat:
    made = chat_of(tokenizer(name, kind), LoadOptions(chat="always", **options), "it")
    assert made is not None
    return made


def encoder(name: str, kind: str = "bytes") -> CausalEncoder:
    made = chat(name, kind)
    start = Start(id=tokenizer(name, kind).bos_token_id, always=False)
    return CausalEncoder(tokenizer(name, kind).backend_tokenizer, start, made.controls)


def messages(turns: list[str], system: str = "") -> list[dict[str, str]]:
    roles = ("user", "assistant")
    said = [{"role": roles[i % 2], "content": turn} for i, turn in enumerate(turns)]
    return [{"role": "system", "content": system}] * bool(system) + said


def applied(name: str, kind: str, turns: list[str], system: str = "", **how: Any) -> Any:
    given = {"add_generation_prompt": True, "enable_thinking": False, "return_dict": False}
    return tokenizer(name, kind).apply_chat_template(messages(turns, system), **given, **how)


def prompt(want: Any, prefix: str, suffix: str = "", turns: tuple[int, ...] = ()) -> Prompt:
    key = Key(fact="f", relation="r", template="t", subject="s")
    return Prompt(key=key, prefix=prefix, suffix=suffix, want=want, turns=turns)


def asked(made: Chat, *prompts: Prompt) -> list[Prompt]:
    blocks = [block for each in put(prompts).blocks for block in made.in_turns(each)]
    return [prompt for block in blocks for prompt in block.prompts()]


def without_thoughts(name: str, text: str) -> str:
    """What the template writes, with thoughts that it opens closed at once."""
    return text.rstrip() + "\n\n</think>\n\n" if name == "r1" else text


def with_template(template: str) -> Any:
    made = copy.copy(tokenizer("chatml", "bytes"))
    made.chat_template = template
    return made


LOOPS = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
EXCESSIVE = {
    "nested loops": (LOOPS, "it takes more than 2 s to render"),
    "a power": ("{{ 10 ** (10 ** 9) }}", "it takes more than 2 s to render"),
    "a product": ("{{ 'x' * 10 ** 9 }}", "it takes more than 512 MiB to render"),
    "a filter": ("{{ 'x' | center(10 ** 10) }}", "it takes more than 512 MiB to render"),
    "a long text": ("{{ 'x' * 10 ** 7 }}", "it writes 10,000,001 characters, and 1,048,580 are"),
}


@pytest.mark.parametrize("case", EXCESSIVE)
def test_a_template_that_takes_too_much_is_rejected_on_any_thread(case: str) -> None:
    template, why = EXCESSIVE[case]
    turn = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    options = LoadOptions(chat="always")
    with ThreadPoolExecutor(1) as thread:
        made = thread.submit(chat_of, with_template(template + turn), options, "it")
        with pytest.raises(AbilityError, match="the chat template of it cannot be used") as error:
            made.result()
    assert why in str(error.value)
    assert chat_of(with_template(turn), options, "it") is not None


def test_a_template_that_takes_too_much_for_some_prompts_is_rejected_there() -> None:
    turn = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    if_odd = "{% if '<' in messages[0]['content'] %}{{ 'x' * 10 ** 9 }}{% endif %}"
    made = chat_of(with_template(if_odd + turn), LoadOptions(chat="always"), "it")
    assert made is not None and made.conversation(("Paris",)) == "Paris"
    with pytest.raises(PromptError, match="it takes more than 512 MiB"):
        made.conversation(("<Paris",))


def test_templates_render_on_several_threads_and_in_a_forked_process() -> None:
    made, said = chat("chatml"), [f"<{number}>" for number in range(50)]
    expected = [made.conversation((turn,)) for turn in said]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda turn: made.conversation((turn,)), said)) == expected
    with multiprocessing.get_context("fork").Pool(2) as processes:
        assert processes.map(_conversation, said) == expected


def _conversation(turn: str) -> str:
    return chat("chatml").conversation((turn,))


@pytest.mark.parametrize("name", TEMPLATES)
@given(turns=CONVERSATIONS)
def test_a_conversation_is_the_text_that_the_template_writes(name: str, turns: list[str]) -> None:
    made = chat(name)
    text = applied(name, "bytes", turns, tokenize=False)
    found = made.conversation(tuple(turns)).replace(SHIELD, "")
    assert found == without_thoughts(name, text) + made.space


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["chatml", "llama3", "gemma", "llama2"])
def test_tokens_are_those_that_the_template_gives_and_texts_open_once(name: str, kind: str) -> None:
    turns = ["Where is Paris?", "In France.", "And is Oslo?"]
    ids = applied(name, kind, turns, tokenize=True)
    assert list(encoder(name, kind).open(chat(name, kind).conversation(tuple(turns)))) == ids
    bos = tokenizer(name, kind).bos_token_id
    assert ids.count(bos) == {"chatml": 0, "llama2": 2}.get(name, 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TEMPLATES)
@given(said=SAID)
def test_what_is_said_never_becomes_a_token_of_the_template(
    name: str, kind: str, said: str
) -> None:
    """However much it looks like one: there are as many as if something else were said."""
    made, reads = chat(name, kind), encoder(name, kind)
    specials = set(made.specials.values())

    def written(text: str) -> list[int]:
        return [id for id in reads.open(made.conversation((text,))) if id in specials]

    assert written(said) == written("Oslo")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TEMPLATES)
@given(said=SAID, options=st.lists(SAID.filter(bool), min_size=1, max_size=4), after=SAID)
@example(said="", options=["P", "P<|eot|>"], after="")
def test_options_are_tokenised_behind_a_turn_as_in_the_whole_text(
    name: str, kind: str, said: str, options: list[str], after: str
) -> None:
    made, fast, whole = chat(name, kind), encoder(name, kind), encoder(name, kind)
    text, names = made.conversation((said,)), tuple(dict.fromkeys(options))
    fast.prepare([(text, names, after)])
    found = fast.branch(text, names, after)
    spans = whole.encode(text, names, after)
    assert [lengthened(span, found.head) for span in found.spans] == spans


@pytest.mark.parametrize("name", [name for name in TEMPLATES if name not in SYSTEMLESS])
def test_a_system_text_stands_where_the_template_has_it(name: str) -> None:
    text = applied(name, "bytes", ["Where?"], "Be brief.", tokenize=False)
    found = chat(name, chat_system="Be brief.").conversation(("Where?",))
    assert found == without_thoughts(name, text) + chat(name).space


def test_a_template_puts_its_own_system_text_where_none_is_given() -> None:
    assert "You help." in chat("chatml").conversation(("Where?",))
    assert "You help." not in chat("chatml", chat_system="No.").conversation(("Where?",))


def test_a_template_that_writes_the_day_writes_the_same_one_every_day() -> None:
    assert chat("dated").conversation(("Where?",)).startswith("Today is 26 Jul 2024.\n")


def test_a_question_is_asked_and_its_answer_stands_in_the_assistants_turn() -> None:
    want = Score(options=("Paris",))
    (found,) = asked(chat("llama3"), prompt(want, "The capital of France is ", "."))
    assert found.prefix == (
        "<|endoftext|><|head|>user<|/head|>\n\nThe capital of France is<|eot|>"
        "<|head|>assistant<|/head|>\n\n"
    )
    assert (found.suffix, found.want) == (".", want)


def test_a_sentence_that_goes_on_is_shown_with_a_gap_and_goes_on_behind_the_answer() -> None:
    first, last = asked(
        chat("gemma"),
        prompt(Score(options=("paris",), capitals=True), "", " is in France."),
        prompt(Score(options=("paris",), capitals=True), "Here ", " is in France."),
    )
    assert "<|head|>user\n___ is in France.<|eot|>\n" in first.prefix
    assert "<|head|>user\nHere ___ is in France.<|eot|>\n" in last.prefix
    assert isinstance(first.want, Score) and isinstance(last.want, Score)
    assert first.suffix == last.suffix == " is in France."
    assert first.want.texts(first.prefix) == ("Paris",)
    assert last.want.texts(last.prefix) == ("paris",)


def test_a_whole_sentence_counts_from_its_answer_on() -> None:
    (found,) = asked(chat("gemma"), prompt(Score(options=("a",), whole=True), "It is ", "."))
    assert isinstance(found.want, Score)
    assert (found.want.whole, found.want.after(found.suffix)) == (False, ".")


def test_an_answer_begins_with_a_space_where_the_templates_own_do() -> None:
    made = chat("llama2")
    assert made.space == " " and {chat(n).space for n in TEMPLATES} == {"", " "}
    (found,) = asked(made, prompt(Score(options=("Paris",)), "Where? "))
    assert found.prefix == "<|endoftext|>[INST] Where? [/INST] "


@pytest.mark.parametrize(
    ("name", "token"), [("chatml", "<|im_end|>"), ("llama3", "<|eot|>"), ("llama2", "<|eot|>")]
)
def test_an_answer_ends_with_the_token_that_ends_a_turn(name: str, token: str) -> None:
    assert chat(name).ends == {tokenizer(name).convert_tokens_to_ids(token)}
    assert chat("vicuna").ends == frozenset() == frozenset(chat("vicuna").controls)


def test_examples_are_turns_or_stand_in_one() -> None:
    text, cuts = "Answer.\nQ: A?\nA: B\nQ: C?\nA:", (17, 19)
    (found,) = asked(chat("chatml"), prompt(Generate(), text, turns=cuts))
    said = applied("chatml", "bytes", ["Answer.\nQ: A?\nA:", "B", "Q: C?\nA:"], tokenize=False)
    assert found.prefix == said
    (one,) = asked(chat("chatml", chat_examples="one"), prompt(Generate(), text, turns=cuts))
    assert one.prefix == applied("chatml", "bytes", [text], tokenize=False)


@given(text=st.text("ab \n", min_size=1, max_size=20), data=st.data())
def test_turns_hold_the_text_and_nothing_else(text: str, data: st.DataObject) -> None:
    places = st.lists(st.integers(0, len(text)), max_size=4).map(sorted)
    cuts = data.draw(places.filter(lambda found: len(found) % 2 == 0))
    turns = turns_of(text, "", cuts)
    assert len(turns) == len(cuts) + 1
    said = "".join(turns) if turns[-1] != "___" else "".join(turns[:-1])
    assert "".join(said.split()) == "".join(text.split())


@pytest.mark.parametrize("name", TEMPLATES)
def test_parts_that_are_read_stand_in_the_assistants_turn(name: str) -> None:
    text = "Peru Lima, Chile Santiago, <|eot|> Oslo"
    spans = tuple((text.index(x) - 1, text.index(x) + len(x)) for x in ("Santiago", "Oslo"))
    (found,) = asked(chat(name), prompt(Trace(spans=spans), text))
    assert isinstance(found.want, Trace)
    read = [found.prefix[start:stop] for start, stop in found.want.spans]
    assert [part.strip() for part in read] == ["Santiago", "Oslo"] and read[1] == " Oslo"
    before = chat(name).conversation(("Peru Lima, Chile",))
    assert found.prefix.startswith(before + "Santiago, <")
    assert found.prefix[len(before) :].replace(SHIELD, "") == text[text.index("Santiago") :]


def test_options_are_scored_without_thoughts_and_texts_may_have_some() -> None:
    made = chat("qwen3", chat_thinking=100)
    ask = (prompt(Score(options=("a",)), "Q?"), prompt(Generate(most=8), "Q?"))
    scored, written = asked(made, *ask)
    assert scored.prefix.endswith("assistant\n<think>\n\n</think>\n\n")
    assert written.prefix.endswith("assistant\n") and written.want == Generate(
        most=108, thinking=100
    )
    at_once = asked(chat("qwen3"), *ask)
    assert at_once[0].prefix == at_once[1].prefix == scored.prefix
    begun = asked(chat("r1", chat_thinking=100), *ask)
    assert begun[0].prefix.endswith("<think>\n\n</think>\n\n")
    assert begun[1].prefix.endswith("<think>\n") and chat("r1", chat_thinking=9).thoughts == "begun"
