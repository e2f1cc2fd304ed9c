"""Hold a model's numbers against those of a reference, and against its own asked otherwise.

The prompts are fixed, so that certificates of different models can be compared. What comes of it is
a certificate: how far numbers lie apart, which first answers and texts differ, and a verdict
(decisions/048). Knows answers and whoever gives them, no library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from statistics import median

import numpy as np
from numpy.typing import NDArray

from sonde.core.abilities import Ability, Examines, Identity, Model, Probe, abilities
from sonde.core.answers import Answer, Generated, Scored
from sonde.core.certificates import EQUAL, Certificate, Gaps, Recheck, Verdict, size
from sonde.core.errors import AbilityError, ModelError
from sonde.core.facts import Dataset
from sonde.core.fingerprints import canonical, fingerprint
from sonde.core.progress import begin
from sonde.core.prompts import Generate, Prompt, Score
from sonde.core.scores import option_logps
from sonde.doctor.agreement import choice, lead, shape
from sonde.doctor.diagnose import along, answered, spread
from sonde.doctor.findings import Finding, counted, fault, ok, some, warning
from sonde.doctor.numbers import is_finite, values
from sonde.doctor.precision import NOTABLE, Given, fixed_prompts, interval

FACTS = 1  # of each relation
OPTIONS = 5
AGAIN = 14  # prompts that are asked backwards, and one after the other
CHECK = "certificate"

FAR = 0.5
"""Nats of the median token from which on it is not the same model any more."""

UNSTEADY = 0.1
"""The same where only the order of questions is another, or what is asked with them."""

SURE = 0.3
"""Nats a token, twice which an answer must lead for the reference to be sure of it."""

SHIFTED, SCALED = 0.2, 0.5
"""What may be left of a gap where a shift of each prompt, or one scale for all, explains it."""

ENOUGH = 12
"""Tokens; fewer may lie on a line by chance."""

ADVICE: dict[Verdict, str] = {
    "equal": "",
    "other numerics": "Do not compare its numbers with the reference's as if they were one model's",
    "broken": "Do not trust its numbers; see that both have the same weights and tokenizer, and "
    "that nothing stands between sonde and the model's own log-probabilities",
}


def certificate_prompts(probe: Probe, dataset: Dataset, can: frozenset[Ability]) -> list[Prompt]:
    """A fact of every relation with options to score, and with a text to write."""
    if "score" not in can:
        raise AbilityError(
            f"a certificate compares log-probabilities, and this model can only "
            f"{', '.join(sorted(can)) or 'answer nothing'}; it takes one that can score"
        )
    kinds = can & {"score", "generate"}
    return fixed_prompts(probe, dataset, kinds, facts=FACTS, options=OPTIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replies:
    """What a model answered to the fixed prompts, all of them at once, and scores asked otherwise.

    `backwards`: prompts and options in the opposite order; `apart`: one prompt after the other.
    Scores and texts are in the order of their prompts; None where one was refused or not asked.
    """

    identity: Identity
    scores: Sequence[Prompt]
    writes: Sequence[Prompt]
    together: Given
    backwards: Given
    apart: Given
    texts: Given

    @classmethod
    def of(cls, model: Model, prompts: Sequence[Prompt]) -> Replies:
        """Put the prompts to a model in every way."""
        scores = [prompt for prompt in prompts if isinstance(prompt.want, Score)]
        writes = [prompt for prompt in prompts if isinstance(prompt.want, Generate)]
        again = spread(range(len(scores)), AGAIN)
        chosen = [scores[i] for i in again]
        begin("asking the model", _options(scores) + 2 * _options(chosen) + len(writes))
        together, texts = answered(model, scores)[0], answered(model, writes)[0]
        turns, _ = answered(model, list(map(turned, reversed(chosen))))
        backwards = dict(zip(again, map(back, reversed(turns)), strict=True))
        apart = {i: answered(model, [scores[i]])[0][0] for i in again}
        return cls(
            identity=model.identity,
            scores=scores,
            writes=writes,
            together=together,
            backwards=[backwards.get(i) for i in range(len(scores))],
            apart=[apart.get(i) for i in range(len(scores))],
            texts=texts,
        )


def _options(prompts: Sequence[Prompt]) -> int:
    """How many options are scored."""
    return sum(len(p.want.options) for p in prompts if isinstance(p.want, Score))


def turned(prompt: Prompt) -> Prompt:
    """The prompt with its options in the opposite order."""
    assert isinstance(prompt.want, Score)
    return replace(prompt, want=replace(prompt.want, options=prompt.want.options[::-1]))


def back(answer: Answer | None) -> Answer | None:
    """The answer to a turned prompt as one to the prompt."""
    if not isinstance(answer, Scored):
        return answer
    rows = {"logps": answer.logps[::-1], "suffix_logps": answer.suffix_logps[::-1]}
    return replace(answer, options=answer.options[::-1], **rows)


def certify(
    asked: Replies, reference: Model, shows: Examines | None, versions: dict[str, str]
) -> Certificate:
    """A model's replies beside those of a reference, which `shows` examines; with a verdict."""
    if "score" not in abilities(reference):
        raise AbilityError(
            f"{reference.identity.name} cannot score options, so that nothing can be held against "
            "it; take a reference such as hf:FOLDER"
        )
    begin("asking the reference")
    own, _ = answered(reference, asked.scores)
    if not any(answer and sound(answer) for answer in own):
        raise ModelError(
            f"the reference {reference.identity.name} gives no number for any of the fixed prompts;"
            " nothing can be held against it"
        )
    against = gaps(asked.together, own)
    backwards, apart = (gaps(each, asked.together) for each in (asked.backwards, asked.apart))
    texts = parted(asked, reference, shows)
    otherwise = {"asked backwards": backwards, "asked one by one": apart}
    faults = [*unusable(asked, own), *lost(asked, otherwise), *explained(asked.together, own)]
    if against.largest > EQUAL and asked.identity.bos != reference.identity.bos:
        faults.append(f"texts open otherwise ({asked.identity.bos}; {reference.identity.bos})")
    verdict, reasons = judge(faults, against, otherwise, texts)
    return Certificate(
        model=asked.identity.described(),
        reference=reference.identity.described(),
        verdict=verdict,
        reasons=tuple(reasons),
        against=against,
        backwards=backwards,
        apart=apart,
        texts=texts.count,
        texts_differ=texts.differ,
        ties=texts.ties,
        prompts=fingerprint(canonical(asdict(p)) for p in (*asked.scores, *asked.writes)),
        recheck=recheck(asked, max(backwards.largest, apart.largest)),
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        versions=versions,
    )


def sound(answer: Answer) -> bool:
    """Whether every number of an answer can be a log-probability."""
    return is_finite(answer) and all(value <= EQUAL for value in values(answer))


def comparable(one: Given, other: Given) -> Iterator[tuple[Scored, Scored]]:
    """The pairs of scored answers whose numbers are some, and of the same tokens."""
    for a, b in zip(one, other, strict=True):
        if not isinstance(a, Scored) or not isinstance(b, Scored):
            continue
        if sound(a) and sound(b) and shape(a) == shape(b):
            yield a, b


def gaps(one: Given, other: Given) -> Gaps:
    """How scored answers differ from others to the same prompts."""
    pairs = list(comparable(one, other))
    if not pairs:
        return Gaps()
    tokens = [abs(a - b) for x, y in pairs for a, b in zip(values(x), values(y), strict=True)]
    options = [float(abs(option_logps(x) - option_logps(y)).max()) for x, y in pairs]
    flipped = [(choice(x), choice(y), y) for x, y in pairs if choice(x) != choice(y)]
    return Gaps(
        prompts=len(pairs),
        options=sum(len(x.options) for x, _ in pairs),
        tokens=len(tokens),
        largest=max(tokens),
        median=median(tokens),
        option=max(options),
        differ=len(flipped),
        sure=sum(lead(y, chosen, best) > 2 * SURE for chosen, best, y in flipped),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Parted:
    """How many texts were written by both, how many differ, and how many of these at a tie."""

    count: int
    differ: int
    ties: int


def parted(asked: Replies, reference: Model, shows: Examines | None) -> Parted:
    """The texts that differ from those of the reference."""
    if "generate" not in abilities(reference) or not asked.writes:
        return Parted(count=0, differ=0, ties=0)
    own, _ = answered(reference, asked.writes)
    pairs = [
        (prompt, text, other)
        for prompt, text, other in zip(asked.writes, asked.texts, own, strict=True)
        if isinstance(text, Generated) and isinstance(other, Generated)
    ]
    differ = [(p, a, b) for p, a, b in pairs if a.text != b.text]
    tied = [shows is not None and along(shows, p, a, b, EQUAL) is not None for p, a, b in differ]
    return Parted(count=len(pairs), differ=len(differ), ties=sum(tied))


def unusable(asked: Replies, own: Given) -> Iterator[str]:
    """What keeps answers from being compared at all, where the reference gives some."""
    found: dict[str, list[str]] = {
        "not answered": [],
        "no log-probabilities": [],
        "other tokens": [],
    }
    for prompt, answer, other in zip(asked.scores, asked.together, own, strict=True):
        if other is None or not sound(other):
            continue
        name = f"{prompt.key.relation} {prompt.key.subject!r}"
        if answer is None:
            found["not answered"].append(name)
        elif not sound(answer):
            found["no log-probabilities"].append(name)
        elif shape(answer) != shape(other):
            found["other tokens"].append(name)
    for what, names in found.items():
        if names:
            yield f"{what} in {counted(len(names), 'prompt')} of {len(own)}: {some(names)}"


def lost(asked: Replies, otherwise: Mapping[str, Gaps]) -> Iterator[str]:
    """What has numbers when all is asked at once, and none to compare when asked otherwise."""
    again = [asked.together[i] for i in spread(range(len(asked.scores)), AGAIN)]
    count = sum(answer is not None and sound(answer) for answer in again)
    for how, found in otherwise.items():
        if missing := count - found.prompts:
            yield f"{how}, it gives no such numbers in {counted(missing, 'prompt')} of {count}"


Floats = NDArray[np.float64]


def explained(one: Given, other: Given) -> Iterator[str]:
    """What was done to log-probabilities, where one number explains how they differ.

    The options' first tokens stand in one place. Divided by a temperature, their distances are all
    scaled alike; brought to a sum of one among themselves, they are all shifted alike.
    """
    shifts, centred, reference = [], [], []
    for a, b in comparable(one, other):
        pair = np.array([(x[0], y[0]) for x, y in zip(a.logps, b.logps, strict=True) if x])
        pair = np.unique(pair, axis=0)  # options that begin with the same token count once
        if len(pair) > 1:
            shifts.append(pair[:, 0] - pair[:, 1])
            centred.append(pair[:, 0] - pair[:, 0].mean())
            reference.append(pair[:, 1] - pair[:, 1].mean())
    if sum(map(len, shifts)) < ENOUGH:
        return
    gap, own, theirs = map(np.concatenate, (shifts, centred, reference))
    if _size(gap) <= EQUAL or not theirs.any():
        return
    slope = float(own @ theirs / (theirs @ theirs))
    moved = _size(own - theirs)
    if slope > 0 and moved > EQUAL and _size(own - slope * theirs) <= SCALED * moved:
        yield f"log-probabilities are scaled, as with a temperature of {1 / slope:.2f}"
    elif gap.mean() > 0 and moved <= SHIFTED * _size(gap):
        yield "log-probabilities are those among some tokens, not of the whole vocabulary"


def _size(numbers: Floats) -> float:
    """The root of the mean square."""
    return float(np.sqrt(np.mean(numbers**2)))


def judge(
    faults: Sequence[str], against: Gaps, otherwise: Mapping[str, Gaps], texts: Parted
) -> tuple[Verdict, list[str]]:
    """The verdict, and why it is not a better one; `otherwise`: the model beside itself."""
    broken = list(faults)
    if against.median > FAR:
        broken.append(f"a token is {against.median:.2g} nats from the reference's in the median")
    if against.prompts and interval(against.sure, against.prompts)[0] > NOTABLE:
        broken.append(
            f"{against.sure} of {against.prompts} first answers differ where the reference is sure"
        )
    for how, found in otherwise.items():
        if found.median > UNSTEADY:
            broken.append(f"{how}, it gives a token {found.median:.2g} nats more or less")
    if broken:
        return "broken", broken
    other = []
    if against.largest > EQUAL:
        other.append(f"a token is up to {against.largest:.2g} nats from the reference's")
    for how, found in otherwise.items():
        if found.largest > EQUAL:
            other.append(f"{how}, it gives a token up to {found.largest:.2g} nats more or less")
    if clear := texts.differ - texts.ties:
        other.append(f"{clear} of {counted(texts.count, 'text')} differ")
    return ("other numerics", other) if other else ("equal", [])


def recheck(asked: Replies, moved: float) -> Recheck | None:
    """The prompt that is asked again to see whether a model is still the same."""
    for prompt, answer in zip(asked.scores, asked.together, strict=True):
        if not isinstance(answer, Scored) or not sound(answer) or any(answer.suffix_logps):
            continue
        if prompt.prefix.strip():  # an option that opens a sentence may be written otherwise
            return Recheck.of(prompt, answer, moved)
    return None


def findings(found: Certificate) -> list[Finding]:
    """What `sonde doctor` says of a certificate: the verdict, and what it rests on."""
    against, name = found.against, str(found.reference["name"])
    why = "; ".join(found.reasons)
    if found.verdict == "equal":
        verdict = ok(f"equal to {name} but for rounding")
    elif found.verdict == "other numerics":
        said = f"other numerics than {name}, {size(against.largest)}: {why}"
        verdict = warning(said, ADVICE[found.verdict])
    else:
        verdict = fault(f"broken beside {name}: {why}", ADVICE[found.verdict])
    rest = {"scoring": ok(told(against, sure=True), figures(against))}
    rest["backwards"] = ok(told(found.backwards), figures(found.backwards))
    rest["one by one"] = ok(told(found.apart), figures(found.apart))
    if found.texts:
        ties = f", {found.ties} where two tokens are too close to tell apart" if found.ties else ""
        said = f"{found.texts_differ} of {found.texts} texts differ{ties}"
        rest["writing"] = ok(said, {"compared": found.texts, "differ": found.texts_differ})
    parts = [replace(each, check=f"{CHECK}, {part}") for part, each in rest.items()]
    return [replace(verdict, check=CHECK), *parts]


def told(found: Gaps, *, sure: bool = False) -> str:
    """What a comparison came to, in words, with the answers of which the other was `sure`."""
    clear = f", {found.sure} of them where the reference is sure" if sure and found.differ else ""
    return (
        f"max |Δ log p| {found.largest:.2g} of a token, {found.option:.2g} of an option, median "
        f"{found.median:.2g}; {found.differ} of {found.prompts} first answers differ{clear}"
    )


def figures(found: Gaps) -> dict[str, float]:
    """A comparison, for programs."""
    return {name: float(value) for name, value in asdict(found).items()}
