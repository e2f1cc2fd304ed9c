"""Benchmark: options scored and answers written by an encoder-decoder model, as MONITOR asks them.

Random weights in the shape of t5-small; a prompt has one option to score, or a hundred, or a text
to be written. The alternatives are plain loops with transformers over the same token ids: every
option in a pass of its own, and one `generate` for each prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

import sonde
from benchmarks.common import Result, parser, seconds, tell
from sonde.core.answers import Scored
from sonde.core.columns import one_by_one
from sonde.core.facts import Dataset
from sonde.core.prompts import Generate, Key, Prompt, Score, Want
from sonde.models.options import LoadOptions
from sonde.models.torch.loading.weights import UNLIMITED, Loaded
from sonde.models.torch.seq2seq import Seq2SeqModel

SPECIAL = ["<pad>", "</s>", "<unk>", "<extra_id_0>"]
SIZE = 32128
WRITTEN = 15
SHOTS = 4


def main() -> None:
    """Measure and tell."""
    options = parser(__doc__ or "")
    options.add_argument("--prompts", type=int, default=100)
    options.add_argument("--others", type=int, default=5, help="prompts for the plain loops")
    chosen = options.parse_args()
    dataset = sonde.dataset("atlas", relations=("P36",))
    model = Seq2SeqModel(t5_small(tokenizer(dataset)))
    rows, findings = [], []
    for label, count in (("1 option", 1), ("100 options", 100)):
        prompts = asked(dataset, chosen.prompts, count)
        own = seconds(partial(answered, model, prompts), warm=warm(model))
        few = prompts[: chosen.others]
        other = seconds(partial(apart, model, few))
        gap = furthest(answered(model, few), apart(model, few[:1]))
        rows.append(row(f"scoring, {label}", own / len(prompts), other / len(few)))
        findings.append(f"{label}: log-probabilities differ by at most {gap:.1g} nats")
    writing = asked(dataset, chosen.prompts, 0)
    model.reset_cache()
    own = seconds(lambda: list(model.generate(writing)), warm=warm(model))
    other = seconds(lambda: generated(model, writing[: chosen.others]))
    rows.append(row(f"writing {WRITTEN} tokens", own / len(writing), other / chosen.others))
    lengths = [len(model.encoder.source(prompt.prefix).ids) for prompt in writing]
    findings.append(
        f"{chosen.prompts} prompts of {sum(lengths) / len(lengths):.0f} tokens on average through "
        f"sonde, {chosen.others} of them through the loops; {torch.get_num_threads()} threads"
    )
    columns = ("what", "sonde, ms/prompt", "one by one, ms/prompt", "times faster")
    title = "Options and texts of a T5-small shape, beside plain loops"
    told = Result(
        name="seq2seq", title=title, columns=columns, rows=tuple(rows), findings=tuple(findings)
    )
    tell(told, write=chosen.write)


def answered(model: Seq2SeqModel, prompts: Sequence[Prompt]) -> list[Scored]:
    """The engine's answers, with nothing read before."""
    model.reset_cache()
    found = dict(one_by_one(model.score(prompts)))
    return [found[i] for i in range(len(prompts))]


def row(label: str, own: float, other: float) -> tuple[str, ...]:
    """One line of the table; seconds a prompt."""
    return label, f"{1000 * own:.1f}", f"{1000 * other:.1f}", f"{other / own:.1f}"


def warm(model: Seq2SeqModel) -> Any:
    """A first pass, which is not counted."""
    prompt = _prompt("x", "Q: Where is it?\nA:", Score(options=("there", "not here")))
    return lambda: list(one_by_one(model.score([prompt])))


def asked(dataset: Dataset, count: int, options: int) -> list[Prompt]:
    """Questions behind some answered ones; with options to score, or none for a text to write."""
    facts = list(islice(dataset.facts("P36"), count + SHOTS))
    shots, rest = facts[:SHOTS], facts[SHOTS:]
    told = "".join(f"Q: {question(f.subject.name)}\nA: {f.objects[0].name}\n" for f in shots)
    names = list(
        dict.fromkeys(name for r in dataset.relations for name in dataset.object_names(r.id))
    )
    found = []
    for i in range(count):
        fact = rest[i % len(rest)]
        again = "" if i < len(rest) else f"{i} "  # so that no two are equal
        text = f"{told}Q: {again}{question(fact.subject.name)}\nA:"
        some = tuple(names[(i + n) % len(names)] for n in range(options))
        found.append(_prompt(fact.id, text, Score(options=some) if some else written()))
    return found


def question(subject: str) -> str:
    """A question about a subject."""
    return f"What is the capital of {subject}?"


def written() -> Generate:
    """What MONITOR wants written."""
    return Generate(most=WRITTEN, until="\n")


def _prompt(fact: str, text: str, want: Want) -> Prompt:
    key = Key(fact=fact, relation="P36", template="t", subject="s")
    return Prompt(key=key, prefix=text, want=want)


@torch.inference_mode()
def apart(model: Seq2SeqModel, prompts: Sequence[Prompt]) -> list[Scored]:
    """Every option in a pass of its own."""
    found = []
    for prompt in prompts:
        assert isinstance(prompt.want, Score)
        ids = torch.tensor([model.encoder.source(prompt.prefix).ids])
        logps = []
        for target in model.encoder.targets(prompt.want.options):
            labels = torch.tensor([target])
            table = torch.log_softmax(model.model(input_ids=ids, labels=labels).logits[0], -1)
            logps.append(tuple(table.gather(1, labels[0][:, None])[:, 0].tolist()))
        found.append(Scored(options=prompt.want.options, logps=tuple(logps)))
    return found


def generated(model: Seq2SeqModel, prompts: Sequence[Prompt]) -> None:
    """The likeliest text of every prompt, by a call of its own."""
    for prompt in prompts:
        ids = torch.tensor([model.encoder.source(prompt.prefix).ids])
        model.model.generate(input_ids=ids, max_new_tokens=WRITTEN, do_sample=False, num_beams=1)


def furthest(one: Sequence[Scored], two: Sequence[Scored]) -> float:
    """The largest difference between two sets of answers, where there are both, in nats."""
    pairs = (
        (a, b)
        for x, y in zip(one, two, strict=False)
        for a, b in zip(x.logps, y.logps, strict=True)
    )
    return max(abs(p - q) for a, b in pairs for p, q in zip(a, b, strict=True))


def tokenizer(dataset: Dataset) -> Any:
    """Byte-level BPE over the dataset's names, framed as T5 frames texts."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=4000,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    names = [n for r in dataset.relations for n in dataset.object_names(r.id)]
    made.train_from_iterator([*names, *map(question, names)], trainer)
    made.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    wrap: Any = transformers.PreTrainedTokenizerFast
    return wrap(tokenizer_object=made, pad_token="<pad>", eos_token="</s>", unk_token="<unk>")


def t5_small(wrapped: Any) -> Loaded:
    """Random weights in the shape of t5-small."""
    ids: dict[str, Any] = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
    torch.manual_seed(0)
    config = transformers.T5Config(vocab_size=SIZE, **ids)  # its defaults are t5-small's
    net: Any = transformers.T5ForConditionalGeneration(config)
    return Loaded(
        name="t5-small",
        model=net.eval(),
        tokenizer=wrapped,
        weights="random",
        device="cpu",
        dtype="float32",
        options=LoadOptions(device="cpu"),
        context=UNLIMITED,
        vocabulary=SIZE,
    )


if __name__ == "__main__":
    main()
