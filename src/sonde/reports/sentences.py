"""Sentences of a report as data: the id of a template and its values. The only place with English.

A field of a template has a format: `{value:percent}`, `{n:#fact}` (a count with its noun),
`{e:estimate}`, `{'above':strong}` (these words). A trailing `!` marks what a reader must not miss;
pages print it bold. No code reads the English again.
"""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from string import Formatter
from typing import Any, NamedTuple

from sonde.reports.cells import Estimate, escape_control_characters, format_ends, format_number

SENTENCES = {
    # titles
    "title.facts": "{model:name} is correct on {k:count} of {n:#fact}",
    "title.score": "{model:name}: {label} {value}, {over}",
    "title.varied": "{model:name}: {label} {scores}",
    "title.above": "{first:sentence}, {points:size} above {baseline}",
    "title.below": "{first:sentence}, {points:size} below {baseline}",
    "title.none": "{first:sentence}: no significant difference from {baseline}",
    "title.collapsed": "{model:name} answers {names:either} for {k:count} of {n:#fact} and is "
    "correct on {correct:count}",
    "title.empty": "{k:count} of {n:#answer} of {model:name} are empty, so no conclusion is drawn",
    "over.one": "mean over {facts:#fact}",
    "over.facts": "mean over {facts:#fact} of {relations:#relation}",
    "over.relations": "mean over {relations:#relation}",
    # prompts
    "prompted.one": "{model:name} was prompted with {template:quoted} for {n:#fact!} about "
    "{relation:quoted} from {dataset}{left:dropped}.",
    "prompted.several": "{model:name} was prompted with {n:#fact!} about {relation:quoted} from "
    "{dataset}, each with up to {prompts:#prompt}{left:dropped}.",
    "prompted.many": "{model:name} was prompted with {n:#fact!} about {relations:#relation} from "
    "{dataset}{left:dropped}.",
    "request.score": "The model scored {options:options} in the gap of {which}; the most probable "
    "one is its answer.",
    "request.fill": "The model predicted one token at the mask in {which}.",
    "request.generate": "The model generated a text after {which}; its answer is the text up to "
    "where it stops.",
    "request.chat": "Prompts were sent in the model's chat format{system:system}.",
    "example": "A prompt and its top answers. Gold answer: {gold:quoted}.",
    # how good
    "score.facts": "The top answer is correct for {k:count!} of {n:#fact}: {e:estimate!}.",
    "score.varied": "{label:capital}: {scores}. Values of a varied setting are not pooled.",
    "score.mean": "{label:capital}: {e:estimate!}, {over}.",
    "baseline.none": "{baseline:capital} scores {b}: {'no significant difference':strong}, "
    "{d:change}.",
    "baseline.above": "{baseline:capital} scores {b}; the model is {'above':strong} it: "
    "{d:change}.",
    "baseline.below": "{baseline:capital} scores {b}; the model is {'below':strong} it: "
    "{d:change}.",
    "relations.some": "The model is significantly above it on {above:count!} of "
    "{n:#relation}{over:listed} and below it on {below:count}{under:listed} (Holm).",
    "relations.none": "No single relation differs significantly from it (Holm, {per:#fact} per "
    "relation on average).",
    # the profile: what a model knows by every instrument
    "profile.title": "{model:name} is correct on {low:percent} to {high:percent} of {n:#fact}, "
    "depending on the prompt",
    "profile.title.recalled": "{model:name} recalls {recalled:percent} of {n:#fact} without help; "
    "{low:percent} to {high:percent} are correct, depending on the prompt",
    "profile.title.none": "{model:name} shows no evidence of knowledge beyond chance on {n:#fact}",
    "profile.prompted": "{model:name} was prompted with {n:#fact!} about {relations:#relation} "
    "from {dataset} in {k:#way}{left:dropped}.",
    "profile.range": "It is correct on {low:percent!} ({lowest}, chance {low_chance:percent}) to "
    "{high:percent!} ({highest}, chance {high_chance:percent}).",
    "profile.recalled": "Without examples it generates the correct answer for {share:percent!} "
    "(chance {by_chance:percent}).",
    "profile.examples": "With examples it does so for a further {share:percent} (chance "
    "{by_chance:percent}).",
    "profile.recognized": "For a further {share:percent} some prompt ranks the correct option "
    "first (chance {by_chance:percent}).",
    "profile.evidence": "Mean accuracy over the prompts is {mean:percent}. If answers are dealt to "
    "other facts, 95% of the deals stay below {needed:percent}.",
    "profile.none": "Mean accuracy over the prompts is {mean:percent}, {'not above':strong} the "
    "{needed:percent} below which 95% of deals of the answers to other facts stay. So the share of "
    "known facts is not estimated.",
    "profile.known": "The overlap of the prompts suggests that about {value:percent} (95%\u00a0CI "
    "{low:percent} to {high:percent}) of the facts are known. On {models:count} trained models "
    "whose knowledge is known, such estimates were off by {mae:size} on average and by at most "
    "{worst:size}.",
    # warnings
    "excluded": "{k:count!} of {n:#fact} could not be scored. Score them all with {command:code}.",
    "collapse": "{names:either!} is the answer to {share:percent!} of {n:#fact}, but the gold "
    "answer to {gold:percent}.",
    "collapse.hits": "{names:either} accounts for {hits:count} of the {correct:#correct answer}, "
    "so accuracy may reflect this default rather than knowledge.",
    "collapse.relations": "On {k:count!} of {n:#relation}, one or two answers dominate more than "
    "the gold answers explain.",
    "empty": "{k:count!} of {n:#answer} are empty.",
    "unfinished": "{k:count!} of {n:#answer} were cut at the token limit. Raise {flag:code}.",
    "chat": "The model has a chat template. Prompt it in its chat format with {command:code}.",
    "certificate.none": "The numbers of another program were not compared with those of the model. "
    "Compare them with {command:code}.",
    "certificate.differs": "The certificate of this model has the verdict {verdict:strong}, "
    "compared with {reference}.",
    "certificate.later": "Some answers are older than the certificate.",
    # figures and facts
    "groups.tested": "{k:count} of {n:#group} differ significantly from the control after Holm's "
    "correction. The intervals shown are not corrected.",
    "groups.plain": "Intervals are not corrected for the number of groups.",
    "trend": "Rank correlation of {name} with the score: {e:change}.",
    "contrasts": "Difference from {references:either}, paired by fact. Intervals are not "
    "corrected.",
    "collapse.figure": "The {k:count} most extreme of {n:count}.",
    "counted": "Number of {unit}, {n:count} in all.",
    # method
    "method.fill": "Probabilities are those of the predicted token.",
    "method.score": "Probabilities are shares among the scored options. The rank is that of the "
    "best gold name; ties count against the model.",
    "method.generate": "A generated answer is compared with the gold names as text.",
    "method.interval": "Intervals are 95% CIs: Wilson's for a share of independent facts, "
    "otherwise from a bootstrap over subjects within relations.",
    "method.test": "Differences are paired by fact. Their p and interval come from the same test; "
    "over several relations p is adjusted by Holm's method.",
    "method.groups": "Groups with fewer than {least:count} facts are merged into “other”.",
    "method.collapse": "The warning about dominating answers appears where one or two answers "
    "cover more than {covered:percent} of the facts of a relation and {excess:size} more than "
    "their share of gold answers, which answers drawn from the gold distribution do in at most "
    "{level:percent} of draws.",
    # one fact
    "fact.title": "{subject}, {relation}: {k:count} of {n:#prompt} correct",
    "fact.gold": "Gold answer: {gold:quoted}.",
    "fact.excluded": "Excluded: {reason}.",
    "fact.prompt": "{verdict}{rank:ranked}.",
}

COLUMNS = {  # of facts and rows, as tables head them
    "kind": "relation type",
    "template_no": "template",
    "rank": "gold rank",
    "confidence": "probability",
    "relation_tags": "relation tag",
    "tags": "tag",
    "guessable": "gold answer in the subject's name",
    "majority_correct": "gold answer is the most common object",
    "posterior": "P(known)",
    "several.answer": "most common answer",
    "several.rank": "median gold rank",
    "several.confidence": "mean probability",
}


class Sentence(NamedTuple):
    id: str
    values: Mapping[str, Any]


Line = Sentence | str  # reports that are not built from a run bring English


def say(id: str, **values: Any) -> Sentence:
    return Sentence(id, values)


def text(line: Line, html: bool = False) -> str:
    """A sentence in English; as HTML every value is escaped."""
    if isinstance(line, str):
        return escape(escape_control_characters(line)) if html else escape_control_characters(line)
    return _Render(html).vformat(SENTENCES[line.id], (), line.values)


def quoted(names: str | Sequence[str]) -> str:
    names = [names] if isinstance(names, str) else names
    return " and ".join(f"“{name}”" for name in names)


def count(n: int, noun: str) -> str:
    """1 fact, 60 facts."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def estimate(e: tuple[Estimate, str]) -> str:
    value, unit = e
    return format_number(value.value, unit) + format_ends(value, unit, " (95%\u00a0CI {} to {})")


def change(e: tuple[Estimate, str]) -> str:
    """A difference with its interval and p; of shares in points."""
    value, unit = e
    unit = {"percent": "points"}.get(unit, unit)
    words = "\u00a0points" if unit == "points" else ""
    inside = [ends] if (ends := format_ends(value, unit, "95%\u00a0CI {} to {}")) else []
    if value.p is not None:
        inside.append(
            f"p = {format_number(value.p, 'p')}".replace("= <", "< ").replace(" ", "\u00a0")
        )
    brackets = f" ({', '.join(inside)})" if inside else ""
    return f"{format_number(value.value, unit)}{words}{brackets}"


def listed(names: Sequence[str]) -> str:
    return f" ({', '.join(names)})" if 0 < len(names) <= 4 else ""


def dropped(reasons: Mapping[str, int]) -> str:
    """How many are excluded and why, at the end of a sentence."""
    if not reasons:
        return ""
    total, several = sum(reasons.values()), len(reasons) > 1
    be = "is" if total == 1 else "are"
    listed = ", ".join(f"{n:,} {reason}" if several else reason for reason, n in reasons.items())
    return f"; {total:,} of them {be} excluded ({listed})"


def either(names: Sequence[str]) -> str:
    return " or ".join(f"“{name}”" for name in names)


FORMATS: dict[str, Callable[[Any], str]] = {
    "": str,
    "strong": str,
    "code": str,
    "name": str,  # of a model: a page breaks it only if it must
    "capital": lambda words: words[:1].upper() + words[1:],
    "percent": lambda x: format_number(x, "percent"),
    "size": lambda x: f"{abs(x) * 100:.1f} points",
    "count": lambda n: format_number(n, "count"),
    "estimate": estimate,
    "change": change,
    "quoted": quoted,
    "either": either,
    "listed": listed,
    "dropped": dropped,
    "system": lambda words: f", with the system text “{words}”" if words else "",
    "options": lambda n: f"{n:,} options" if n else "options",
    "ranked": lambda rank: f", gold answer at rank {format_number(rank, 'count')}" if rank else "",
}


class _Render(Formatter):
    def __init__(self, html: bool) -> None:
        self.html = html

    def get_value(self, key: Any, args: Any, kwargs: Any) -> Any:
        literal = isinstance(key, str) and key.startswith("'")  # words to print bold
        return key.strip("'") if literal else kwargs[key]

    def format_field(self, value: Any, spec: str) -> str:
        bold, kind = spec.endswith("!") or spec == "strong", spec.rstrip("!")
        if kind == "sentence" or isinstance(value, Sentence):
            return text(value, self.html)
        plain = count(value, kind[1:]) if kind.startswith("#") else FORMATS[kind](value)
        plain = escape_control_characters(plain)
        if not self.html:
            return f"`{plain}`" if kind == "code" else plain
        tag = kind if kind in ("code", "name") else "strong" if bold else "bdi"
        start, end = (
            ('<span class="name">', "</span>") if tag == "name" else (f"<{tag}>", f"</{tag}>")
        )
        return f"{start}{escape(plain)}{end}"
