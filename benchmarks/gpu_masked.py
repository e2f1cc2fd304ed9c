"""Benchmark (d), first half: short clozes through a BERT-base shape on a GPU, text in, answers out.

Random weights in the shape of bert-base-uncased, bfloat16; prompts as BELIEF asks them, every name
of every subject of `atlas` in every template, in blocks as probes give them. The alternative is a
plain loop over tensors that lie ready on the GPU, which tokenises nothing and reads nothing but the
likeliest token.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

import sonde
from benchmarks.common import Result, parser, tell
from sonde.core.facts import Dataset
from sonde.core.prompts import Fill, Key, Prompt, put
from sonde.models.options import LoadOptions
from sonde.models.torch.loading.weights import Loaded
from sonde.models.torch.masked.model import MaskedModel

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SIZE = 30522


def main() -> None:
    """Measure and tell."""
    options = parser(__doc__ or "")
    options.add_argument("--times", type=int, default=4, help="how often to ask the whole set")
    options.add_argument("--workers", type=int, default=None, help="processes that tokenise")
    options.add_argument("--batch-tokens", type=int, default=None)
    chosen = options.parse_args()
    dataset = sonde.dataset("atlas")
    wrapped = tokenizer(dataset)
    loaded = bert(wrapped, LoadOptions(workers=chosen.workers, batch_tokens=chosen.batch_tokens))
    model = MaskedModel(loaded)
    rows, rates = [], []
    for label, watch in (("top 10", False), ("top 10 and the relation's names", True)):
        prompts = asked(dataset, watch) * chosen.times
        rate, names = engine_rate(model, prompts)
        rates.append(rate)
        rows.append((f"sonde, {label}", f"{len(prompts):,}", f"{names:.0f}", f"{rate:,.0f}"))
    tokens = [len(span.ids) for span in model.encoder.masked(texts(prompts[:50_000]))]
    plain = plain_rate(loaded, model, texts(prompts[:100_000]))
    rows.append(("plain loop over ready tensors, top 1", "100,000", "0", f"{plain:,.0f}"))
    findings = (
        f"{rates[0] / plain:.2f} and {rates[1] / plain:.2f} times the plain loop.",
        f"{torch.cuda.get_device_name()}, bfloat16, {sum(tokens) / len(tokens):.1f} tokens a "
        f"prompt on average; the set asked {chosen.times} times over, farther apart than equal "
        f"texts are looked for; {model.tokenisers.workers} processes tokenise; ways: {model.ways}",
    )
    columns = ("what", "prompts", "names watched", "prompts/s")
    title = "Clozes through a BERT-base shape"
    result = Result(
        name="gpu_masked", title=title, columns=columns, rows=tuple(rows), findings=findings
    )
    tell(result, write=chosen.write)


def tokenizer(dataset: Dataset) -> Any:
    """WordPiece over the dataset's own words, filled up to BERT's size."""
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    words = [name for f in all_facts(dataset) for e in (f.subject, *f.objects) for name in e.names]
    words += [template.text for relation in dataset.relations for template in relation.templates]
    trainer = trainers.WordPieceTrainer(
        vocab_size=SIZE, special_tokens=SPECIAL, show_progress=False, min_frequency=4
    )
    made.train_from_iterator(words, trainer)
    vocabulary = made.get_vocab()
    vocabulary |= {f"[unused{id}]": id for id in range(len(vocabulary), SIZE)}
    made.model = models.WordPiece(vocabulary, unk_token="[UNK]")
    ends: Any = [(token, made.token_to_id(token)) for token in ("[SEP]", "[CLS]")]
    made.post_processor = processors.BertProcessing(*ends)
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    wrap: Any = transformers.PreTrainedTokenizerFast
    return wrap(tokenizer_object=made, **dict(zip(names, SPECIAL, strict=True)))


def bert(wrapped: Any, options: LoadOptions) -> Loaded:
    """Random weights in the shape of bert-base-uncased, on the GPU."""
    torch.manual_seed(0)
    make: Any = transformers.BertForMaskedLM
    net = make(transformers.BertConfig(vocab_size=SIZE))
    return Loaded(
        name="bert-base shape",
        model=net.to(torch.bfloat16).to("cuda").eval(),
        tokenizer=wrapped,
        weights="random",
        device="cuda",
        dtype="bfloat16",
        options=options,
        context=512,
        vocabulary=SIZE,
    )


def all_facts(dataset: Dataset) -> list[Any]:
    return [fact for relation in dataset.relations for fact in dataset.facts(relation.id)]


def asked(dataset: Dataset, watch: bool) -> list[Prompt]:
    """Every name of every subject in every template."""
    found: list[Prompt] = []
    for relation in dataset.relations:
        names = dataset.object_names(relation.id, aliases=True) if watch else ()
        want = Fill(top=10, watched=names)
        for fact in dataset.facts(relation.id):
            for template in relation.templates:
                for name in fact.subject.names:
                    prefix, suffix = template.fill(name)
                    key = Key(
                        fact=fact.id, relation=relation.id, template=template.id, subject=name
                    )
                    found.append(Prompt(key=key, prefix=prefix, suffix=suffix, want=want))
    return found


def texts(prompts: Sequence[Prompt]) -> list[tuple[str, str]]:
    return [(prompt.prefix, prompt.suffix) for prompt in prompts]


def engine_rate(model: MaskedModel, prompts: Sequence[Prompt]) -> tuple[float, float]:
    """Prompts per second, and how many names are watched on average."""
    blocks = put(prompts)
    answered = sum(len(block) for _, block in model.fill(blocks.part(0, 2**18)))  # warm-up
    began = time.perf_counter()
    answered = 0
    for positions, block in model.fill(blocks):
        answered += len(positions)
        assert len(block) == len(positions)
    took = time.perf_counter() - began
    assert answered == len(prompts)
    watched = [len(p.want.watched) for p in prompts if isinstance(p.want, Fill)]
    return len(prompts) / took, sum(watched) / len(watched)


@torch.inference_mode()
def plain_rate(loaded: Loaded, model: MaskedModel, given: Sequence[tuple[str, str]]) -> float:
    """Prompts per second of a simple loop: padded batches of like length, ready on the GPU."""
    spans = sorted(model.encoder.masked(given), key=lambda span: len(span.ids))
    ready = []
    for i in range(0, len(spans), 4096):
        part = spans[i : i + 4096]
        width = len(part[-1].ids)
        ids = torch.tensor([[*s.ids, *[0] * (width - len(s.ids))] for s in part], device="cuda")
        mask = torch.tensor(
            [[1] * len(s.ids) + [0] * (width - len(s.ids)) for s in part], device="cuda"
        )
        places = torch.tensor([s.start for s in part], device="cuda")
        ready.append((ids, mask, places))
    net = loaded.model
    for _ in range(2):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for ids, mask, places in ready:
            hidden = net.bert(input_ids=ids, attention_mask=mask).last_hidden_state
            rows = torch.arange(len(ids), device="cuda")
            net.cls(hidden[rows, places]).argmax(-1).cpu()
        torch.cuda.synchronize()
    return len(spans) / (time.perf_counter() - began)


if __name__ == "__main__":
    main()
