"""A few answered prompts and the manifest of the run they belong to."""

from __future__ import annotations

from sonde.core.answers import Answered, Filled, Generated, Sampled, Scored, Traced
from sonde.core.prompts import Fill, Generate, Key, Prompt, Prompts, Sample, Score, Trace, Want, put
from sonde.store.manifest import Manifest
from sonde.store.rows import Answering


def key(number: int) -> Key:
    return Key(fact=f"f{number}", relation="P1", template="P1-1", subject=f"subject {number}")


def scored(number: int) -> Answered:
    answer = Scored(
        options=("a", "b"), logps=((-0.5, -1.5), (-2.25,)), suffix_logps=((-0.125,), (-4.0,))
    )
    return Answered(key=key(number), prefix="Of x is ", suffix=".", answer=answer)


def filled(number: int) -> Answered:
    answer = Filled(
        top=("a", "b"),
        top_logps=(-0.5, -1.0),
        watched=("b", "not one token"),
        watched_logps=(-1.0, None),
        watched_ranks=(2, None),
        mass=-0.25,
    )
    return Answered(key=key(number), prefix="Of x is ", suffix="", answer=answer)


def generated(number: int, end_logp: float | None = -0.25) -> Answered:
    answer = Generated(
        text=" Ålesund", logps=(-0.5, -1.0), end_logp=end_logp, finished=end_logp is not None
    )
    return Answered(key=key(number), prefix="Of x is", suffix="", answer=answer)


def sampled(number: int) -> Answered:
    answer = Sampled(texts=(" a", "", " b\tc"), counts=(5, 3, 2))
    return Answered(key=key(number), prefix="Of x is", suffix="", answer=answer)


def thought(number: int) -> Answered:
    """Draws of a chat model, some of which thought first."""
    before = (("Hm. </think>", "So. </think>"), ("",))
    answer = Sampled(texts=("Oslo", "Ål"), counts=(2, 1), thoughts=before)
    return Answered(key=key(number), prefix="Of x is", suffix="", answer=answer)


def traced(number: int) -> Answered:
    answer = Traced(logps=((-0.5, -1.5), (), (-0.25,)))
    return Answered(key=key(number), prefix="Of x is y", suffix="", answer=answer)


ROWS = [
    *(scored(0), filled(1), scored(2), generated(3), generated(4, None), sampled(5), traced(6)),
    *(sampled(7), thought(8)),
]


def want(row: Answered) -> Want:
    """What such an answer answers."""
    answer = row.answer
    if isinstance(answer, Scored):
        return Score(options=answer.options)
    if isinstance(answer, Filled):
        return Fill(watched=answer.watched)
    if isinstance(answer, Traced):
        return Trace(spans=tuple((i, i + 1) for i in range(len(answer.logps))))
    return Generate() if isinstance(answer, Generated) else Sample(count=10)


def prompts(rows: list[Answered]) -> Prompts:
    """The prompts that some rows answer."""
    return put(
        [Prompt(key=r.key, prefix=r.prefix, suffix=r.suffix, want=want(r), own=r.own) for r in rows]
    )


def answering(rows: list[Answered]) -> Answering:
    """Some rows as a model gives them."""
    answers = Answering(prompts(rows))
    for i, row in enumerate(rows):
        answers.add(i, row.answer)
    return answers


def manifest(seed: int = 0) -> Manifest:
    """What a run of the majority control says of itself, on a machine that says little."""
    return Manifest(
        dataset={"name": "world", "version": "1", "fingerprint": "0123", "notes": {"rows": 3}},
        selection={"split": "test", "relations": ("P1",), "limit": None, "seed": seed},
        probe={
            "name": "lama",
            "sonde": "0.1.0",
            "settings": {"uhn": "string"},
            "reading": {"k": 10},
        },
        model={"name": "control:majority", "weights": "counts:0123", "details": {"device": "cpu"}},
        shard_weight=4096,
        surroundings={"versions": {"sonde": "0.1.0"}, "python": "3.11.2", "git": {}},
    )
