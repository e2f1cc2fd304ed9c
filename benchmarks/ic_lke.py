"""A hundred options behind a prefix of 700 tokens: sonde, lm-evaluation-harness, transformers.

The shape of IC-LKE: a row of subject-object pairs, one subject more, and its object to be told from
99 others. All three score the same token ids with the same weights.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.common import Positions, Result, best_of, parser, seconds, tell
from sonde import dataset, model
from sonde.core.answers import Scored
from sonde.core.columns import one_by_one
from sonde.core.facts import Dataset, Fact
from sonde.core.prompts import Key, Prompt, Score
from sonde.core.scores import option_logps
from sonde.engine.encode import Span
from sonde.engine.prefixes import shared
from sonde.engine.token_tree import merge

NAME = "ic_lke"
OTHERS = ("P36", "P159", "P131", "P17", "P127", "P176", "P178")
BATCHES = (1, 8, 16)

Rows = list[list[float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """One option of one fact: as two texts, and as token ids."""

    fact: str
    context: str
    continuation: str
    span: Span


Texts = Sequence[Text]


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way of scoring, measured: summed log-probabilities of every option of some facts."""

    name: str
    facts: int
    seconds: float
    positions: int
    logps: Rows

    @property
    def rate(self) -> float:
        """Facts per second."""
        return self.facts / self.seconds


def main() -> None:
    """Measure, print, and store where asked."""
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--facts", type=int, default=40, help="facts that sonde scores")
    options.add_argument("--options", type=int, default=100)
    options.add_argument("--relation", default="P190", help="relation of atlas that is tested")
    options.add_argument("--prefix", type=int, default=700, help="tokens of the prefix, at least")
    options.add_argument("--others", type=int, default=1, help="facts that the others score")
    options.add_argument("--trial", type=int, default=16, help="texts to find the best batch with")
    options.add_argument("--no-harness", action="store_true", help="leave lm-eval out")
    given = options.parse_args()
    logging.disable(logging.WARNING)
    subject = model("smollm2")
    prompts = questions(subject, given.relation, given.facts, given.options, given.prefix)
    ours = by_sonde(subject, prompts)
    few = [text for prompt in prompts[: given.others] for text in texts_of(subject, prompt)]
    harness = [] if given.no_harness else [by_harness(subject, few, given.trial)]
    ways = [ours, *harness, by_batches(subject, few, given.trial)]
    tell(as_result(prompts, [texts_of(subject, p) for p in prompts], ways), write=given.write)


def questions(subject: Any, relation: str, facts: int, options: int, length: int) -> list[Prompt]:
    """Prompts with one prefix, each with its own object among the options."""
    atlas = dataset("atlas")
    asked = list(atlas.facts(relation))
    tested, shown = asked[:facts], asked[facts:]
    shown += [fact for other in OTHERS if other != relation for fact in atlas.facts(other)]
    prefix = prefix_of(subject, shown, length)
    names = objects(atlas, relation)
    return [question(prefix, fact, names, options) for fact in tested]


def prefix_of(subject: Any, shown: Sequence[Fact], length: int) -> str:
    """Pairs of subject and object, one space between all, until there are tokens enough."""
    words: list[str] = []
    for fact in shown:
        words += [fact.subject.name, fact.objects[0].name]
        text = " ".join(words)
        if len(subject.loaded.tokenizer(text).input_ids) >= length:
            return text
    raise SystemExit(f"the facts give fewer than {length} tokens; ask for a shorter prefix")


def objects(atlas: Dataset, tested: str) -> list[str]:
    """Names to choose wrong options from: the relation's own, then those of others."""
    own = (name for relation in (tested, *OTHERS) for name in atlas.object_names(relation))
    return list(dict.fromkeys(own))


def question(prefix: str, fact: Fact, names: Sequence[str], options: int) -> Prompt:
    """The fact's object and as many other names as make up the number of options."""
    right = {entity.name for entity in fact.objects}
    wrong = [name for name in names if name not in right][: options - 1]
    return Prompt(
        key=Key(fact=fact.id, relation=fact.relation, template="", subject=fact.subject.name),
        prefix=f"{prefix} {fact.subject.name} ",
        want=Score(options=(fact.objects[0].name, *wrong)),
    )


def texts_of(subject: Any, prompt: Prompt) -> list[Text]:
    """Every option's text; the space before the option belongs to the continuation."""
    assert isinstance(prompt.want, Score)
    spans = subject.encoder.encode(prompt.prefix, prompt.want.options, prompt.suffix)
    return [
        Text(
            fact=prompt.key.fact,
            context=prompt.prefix.rstrip(" "),
            continuation=f" {option}",
            span=span,
        )
        for option, span in zip(prompt.want.options, spans, strict=True)
    ]


def by_sonde(subject: Any, prompts: Sequence[Prompt]) -> Way:
    """Score through the engine; the warm-up's prefix is forgotten before the clock starts."""
    found: dict[int, Scored] = {}
    list(one_by_one(subject.score(prompts[:2])))
    subject.prefixes.clear()
    with Positions(subject.model.base_model) as positions:
        took = seconds(lambda: found.update(one_by_one(subject.score(prompts))))
    rows = [option_logps(found[i]).tolist() for i in range(len(prompts))]
    return Way(
        name="sonde",
        facts=len(prompts),
        seconds=took,
        positions=positions.count,
        logps=rows,
    )


def by_harness(subject: Any, texts: Texts, trial: int) -> Way:
    """lm-evaluation-harness's transformers model, given ours, at its best batch size."""
    from lm_eval.api.instance import Instance  # type: ignore[import-not-found]
    from lm_eval.models.huggingface import HFLM  # type: ignore[import-not-found]

    def score(some: Texts, batch: int) -> list[float]:
        lm = HFLM(pretrained=subject.model, tokenizer=subject.loaded.tokenizer, batch_size=batch)
        pairs = [(text.context, text.continuation) for text in some]
        for text, (context, continuation) in zip(some, pairs, strict=True):
            check_ids(text.span, *lm._encode_pair(context, continuation))
        requests = [
            Instance(request_type="loglikelihood", doc={}, arguments=pair, idx=i)
            for i, pair in enumerate(pairs)
        ]
        return [logp for logp, _ in lm.loglikelihood(requests, disable_tqdm=True)]

    return measured("lm-evaluation-harness", score, subject, texts, trial)


def by_batches(subject: Any, texts: Texts, trial: int) -> Way:
    """transformers as one would write it: padded batches with the whole context in every row."""

    def score(some: Texts, batch: int) -> list[float]:
        found: list[float] = []
        for start in range(0, len(some), batch):
            found += padded(subject.model, [t.span for t in some[start : start + batch]])
        return found

    return measured("transformers, padded batches", score, subject, texts, trial)


def padded(network: Any, spans: Sequence[Span]) -> list[float]:
    """The summed log-probability of every answer, each text a row."""
    import torch

    rows = [torch.tensor(span.ids) for span in spans]
    ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    lengths = torch.tensor([len(row) for row in rows])
    mask = (torch.arange(ids.shape[1])[None] < lengths[:, None]).long()
    with torch.inference_mode():
        logps = network(input_ids=ids, attention_mask=mask).logits.log_softmax(-1)
    steps = logps[:, :-1].gather(2, ids[:, 1:, None])[..., 0]
    return [float(steps[i, s.start - 1 : s.stop - 1].sum()) for i, s in enumerate(spans)]


def measured(
    name: str,
    score: Callable[[Texts, int], list[float]],
    subject: Any,
    texts: Texts,
    trial: int,
) -> Way:
    """Find the best batch size on a few texts, then score all of them with it."""
    score(texts[:1], 1)
    part = texts[:trial]
    batch, _ = best_of(BATCHES, lambda size: len(part) / seconds(lambda: score(part, size)))
    found: list[float] = []
    with Positions(subject.model.base_model) as positions:
        took = seconds(lambda: found.extend(score(texts, batch)))
    rows: dict[str, list[float]] = {}
    for text, logp in zip(texts, found, strict=True):
        rows.setdefault(text.fact, []).append(logp)
    return Way(
        name=f"{name}, batches of {batch}",
        facts=len(rows),
        seconds=took,
        positions=positions.count,
        logps=list(rows.values()),
    )


def check_ids(span: Span, context: Sequence[int], continuation: Sequence[int]) -> None:
    """Refuse to compare where the harness would score other tokens."""
    if (*context, *continuation) != span.ids or len(context) != span.start:
        raise SystemExit("lm-eval cuts a text into other tokens; there is nothing to compare")


def as_result(prompts: Sequence[Prompt], texts: list[list[Text]], ways: Sequence[Way]) -> Result:
    """The table, and what it shows."""
    ours, *others = ways
    spans = [text.span for own in texts for text in own]
    nodes, each = len(merge(spans).ids), len(texts[0])
    one_token = sum(span.stop - span.start == 1 for span in spans) / len(spans)
    prefix = shared(min(span.ids for span in spans), max(span.ids for span in spans))
    rows = [row_of(way, ours) for way in ways]
    excess = ours.positions / nodes - 1
    findings = [
        f"{len(prompts)} facts of {prompts[0].key.relation}, {each} options each, behind a prefix "
        f"of {prefix} tokens. {one_token:.0%} of the options are one token; lm-eval scores those "
        "of a fact together. "
        f"sonde put {ours.positions:,} positions through the model; the texts have {nodes:,} "
        f"distinct trie nodes ({excess:+.1%}).",
        *(versus(way, ours) for way in others),
    ]
    return Result(
        name=NAME,
        title="100 options behind a long prefix (SmolLM2-135M)",
        columns=("way", "facts", "s/fact", "facts/s", "positions/fact", "max |Δ log p|", "flipped"),
        rows=tuple(rows),
        findings=tuple(findings),
    )


def row_of(way: Way, ours: Way) -> tuple[str, ...]:
    """One way as a row of the table."""
    apart = [
        abs(a - b)
        for row, own in zip(way.logps, ours.logps, strict=False)
        for a, b in zip(row, own, strict=True)
    ]
    same = way is ours
    return (
        way.name,
        str(way.facts),
        f"{1 / way.rate:.3f}",
        f"{way.rate:.4g}",
        f"{way.positions / way.facts:,.0f}",
        "" if same else f"{max(apart):.1e}",
        "" if same else str(flipped(way, ours)),
    )


def flipped(way: Way, ours: Way) -> int:
    """How many facts get another first answer."""
    pairs = zip(way.logps, ours.logps, strict=False)
    return sum(row.index(max(row)) != own.index(max(own)) for row, own in pairs)


def versus(way: Way, ours: Way) -> str:
    """How much faster we are, in a sentence."""
    return f"sonde scores {ours.rate / way.rate:,.0f} times the facts per second of {way.name}."


if __name__ == "__main__":
    main()
