"""`sonde attribute`: which words of a prompt an answer comes from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import MISSING, asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from sonde.attribution.asking import Parted, Shape, clean_answer, find_fact, free, of_fact
from sonde.attribution.report import Attributed, report
from sonde.cli.console import waiting, writing
from sonde.cli.options import (
    DATA,
    PAGE,
    SEED,
    AnswerOptions,
    SourceOptions,
    argument,
    matching,
    option,
    verb,
)
from sonde.cli.report import show_report
from sonde.core.abilities import Attributes, Generates, Model, prompts_as_given
from sonde.core.errors import UsageError
from sonde.core.plain import json_text, plain
from sonde.core.progress import told
from sonde.core.prompts import Generate, Key, Prompt
from sonde.core.reports import Report
from sonde.models.load import attributor
from sonde.reports.legacy import to_report

MOST_TOKENS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptOptions:
    """What is attributed: the answer to a prompt, or to the prompts of a fact."""

    model: list[str] = option(
        "Model, such as smollm2 or hf:FOLDER; repeatable.", MISSING, "--model", "-m"
    )
    prompt: str = argument("The text that the answer follows; or give --fact.", "")
    answer: str | None = option(
        "The answer to attribute (default: the model's own; a fact's object).", None
    )
    data: str = option(DATA, "atlas", "--data", "-d")
    source: SourceOptions
    fact: str = option("Id of a fact: its anchor, framing and interference prompts.", "")
    relation: str = option("The fact's relation, if its id needs one.", "")
    own: bool = option("Of a fact, attribute what the model itself answers.", False, "--own")
    form: Literal["plain", "qa"] = option(
        "A fact's questions as they are, or Q: … A: …", "plain", "--frame"
    )
    shots: int = option("Examples of the relation before a fact's questions.", 0, least=0)
    frames: int = option("Wordings of a fact's question; 0 for all there are.", 3, least=0)
    negatives: int = option("Wrong objects to put in front of a fact's question.", 2, least=0)

    def __post_init__(self) -> None:
        if bool(self.prompt) == bool(self.fact):
            raise UsageError("give either a prompt or a fact's id (--fact), and not both")
        if self.own and self.answer is not None:
            raise UsageError("--own attributes the model's own answers; leave out --answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOptions:
    """How exactly gradients are integrated."""

    steps: int = option("Gradients per prompt to begin with.", 50, least=1)
    most: int = option("Gradients per prompt at most, or about.", 1000, least=1)
    tolerance: float = option("Error to aim at, as a share of what is shared out.", 0.05, least=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientOptions(AnswerOptions):
    """How a model is loaded whose gradients are taken."""

    dtype: str = option("float32, or auto, float16, bfloat16.", "float32")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeOptions:
    """What is attributed, how, and what is written."""

    of: PromptOptions
    how: StepOptions
    seed: int = option(SEED, 0)
    load: GradientOptions
    html: Path | None = option(PAGE, None)
    as_json: Path | None = option("Write every token and weight here as JSON.", None, "--json")


@verb
def attribute(wanted: AttributeOptions) -> None:
    """Show which words of a prompt an answer comes from.

    Integrated gradients of the answer's log-probability, drawn as a strip of coloured tokens; needs
    the extra sonde[attribute].

    Example: sonde attribute -m smollm2 "The capital of France is" --answer Paris

    Example: sonde attribute -m smollm2 -d atlas --fact P36:Q38 --frame qa --shots 4
    """
    of = wanted.of
    with waiting(f"opening {of.data}"):
        if of.fact:
            title, prompts = _of_fact(of, wanted.seed)
        else:
            title, prompts = f"Attribution: {of.prompt.strip()}", [free(of.prompt, of.answer)]
    how = {**asdict(wanted.how), "most": max(wanted.how.steps, wanted.how.most)}
    rows: list[Attributed] = []
    identities: dict[str, object] = {}
    for name in dict.fromkeys(of.model):
        model = wanted.load.load(name)
        identities[name] = model.identity
        with waiting(name):
            attributed = _rows(name, model, prompts, how)
            rows += told(attributed, f"{name}: prompts attributed", len(prompts))
    settings = {**how, **asdict(wanted.load)}
    data = of.data if of.fact else ""
    provenance = {"models": identities, "settings": settings, "data": data}
    _show(report(rows, title), provenance, wanted.html, wanted.as_json)


def _of_fact(of: PromptOptions, seed: int) -> tuple[str, list[Parted]]:
    """What the report is called, and the fact's prompts."""
    dataset = of.source.load(of.data)
    dataset = replace(dataset, selection=replace(dataset.selection, seed=seed))
    fact = find_fact(dataset, of.fact, of.relation)
    prompts = of_fact(dataset, fact, matching(Shape, of), of.answer)
    if of.own:
        prompts = [replace(prompt, answer=None) for prompt in prompts]
    label, gold = dataset.relation(fact.relation).label, fact.objects[0].name
    return f"Attribution: {label} of {fact.subject.name} ({gold})", prompts


def _rows(
    name: str, model: Model, prompts: Sequence[Parted], how: dict[str, Any]
) -> Iterator[Attributed]:
    """Attribute each prompt's answer."""
    able: Attributes = attributor(model)
    answers = _own_answers(model, prompts)
    for prompt, own in zip(prompts, answers, strict=True):
        answer = own if prompt.answer is None else prompt.answer
        if not answer:
            raise UsageError(
                f"{name} answers nothing to {prompt.text!r}; give the answer to attribute by "
                "--answer"
            )
        found = able.attribute(prompt.text, answer, turns=prompt.turns, **how)
        yield Attributed(prompt=prompt, model=name, own=own, found=found)


def _own_answers(model: Model, prompts: Sequence[Parted]) -> list[str]:
    """The first line that the model itself writes after each prompt."""
    if not isinstance(model, Generates):
        return [""] * len(prompts)
    key = Key(fact="", relation="", template="", subject="")
    want = Generate(most=MOST_TOKENS)
    asked = [Prompt(key=key, prefix=p.text, want=want, turns=p.turns) for p in prompts]
    written = dict(model.generate(prompts_as_given(model, asked)))
    return [clean_answer(written[i].text) for i in range(len(prompts))]


def _show(
    report: Report, provenance: dict[str, Any], html: Path | None, as_json: Path | None
) -> None:
    """Show the report in the terminal, and write what is wanted of it."""
    lines = []
    if as_json is not None:
        with writing(as_json):
            shown = replace(to_report(report), provenance=provenance)
            text = json_text({name: plain(v) for name, v in shown.to_json().items()})
            as_json.write_text(text + "\n", encoding="utf-8")
        lines = [f"json: {as_json}"]
    show_report(report, provenance, lines, html=html)
