"""`sonde doctor`: does sonde talk to this model correctly, on this data?

Shown in the terminal or as JSON: the tokens around the answer, and a verdict per check.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from sonde.cli.console import line, output, print_json, say, waiting
from sonde.cli.options import (
    CHANGE,
    RELATIONS,
    SEED,
    SPLIT,
    AnswerOptions,
    AskOptions,
    changed,
    listed,
    option,
    verb,
)
from sonde.core.abilities import Identity, Model, Probe, abilities, prompts_as_given
from sonde.core.certificates import Certificate
from sonde.core.errors import ModelError, UsageError
from sonde.core.examinations import Text
from sonde.core.fact_frames import refuse_repeats
from sonde.core.facts import Dataset, Selection
from sonde.core.prompts import Prompt
from sonde.core.words import legible
from sonde.doctor.certify import Replies, findings
from sonde.doctor.diagnose import diagnose, more_facts, sample, wants
from sonde.doctor.findings import Case, Diagnosis, Finding, Verdict, counted
from sonde.doctor.precision import HALVES, Asked, beside_float32, fixed_prompts, not_compared
from sonde.models.load import check, examiner
from sonde.probes import PROBES
from sonde.runs import certifying
from sonde.runs.certificates import file_named, keep
from sonde.runs.certifying import as_reference, ask, compare
from sonde.runs.refusals import refuse_unworded

STYLES: dict[Verdict, str] = {
    "ok": "green",
    "warning": "bold yellow",
    "fault": "bold red",
    "not checked": "dim",
}
SHOWN = {"fault": "FAULT", "not checked": "–"}
BEFORE = 8  # tokens shown before the answer
AFTER = 3
SPELT = ("answer", "ids", "pieces", "start", "stop", "opening")  # of a text, in JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstOptions:
    """What a model is held against, and where the certificate is written."""

    against: str = option(
        "Hold the model's numbers against those of this one, such as hf:FOLDER, and make a "
        "certificate.",
        "",
    )
    against_dtype: str = option("What the other computes in.", "float32")
    out: Path | None = option(
        "Write the certificate into this file too; runs find it without.", None, "--out", "-o"
    )

    def check(self) -> None:
        """Refuse at once a name that no model can have, and a file without a certificate in it."""
        if self.against:
            check(self.against)
            file_named(self.out)
        elif self.out is not None:
            raise UsageError(f"-o {self.out} is for a certificate; say --against which model")


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorOptions:
    """What is asked of which model, and what is shown."""

    ask: AskOptions
    probe: str = option("The probe whose prompts are looked at.", "lama")
    limit: int = option("Facts looked at per relation.", 2, least=1)
    relations: str = option(RELATIONS, "")
    split: str = option(SPLIT, "test")
    seed: int = option(SEED, 0)
    load: AnswerOptions
    settings: list[str] | None = option(CHANGE, None, "--set")
    beside: AgainstOptions
    as_json: bool = option("Print every finding as JSON.", False, "--json")


@verb
def doctor(wanted: DoctorOptions) -> None:
    """Check that sonde talks to a model correctly.

    Looks at the tokens around the answer, at whether log-probabilities are alive, and at the fast
    path beside the naive one. Ends with exit code 4 if there is a fault. With --against it also
    makes a certificate: how far the model's numbers are from another's, and what that means.

    Example: sonde doctor -m smollm2 -d atlas --relations P36,P30

    Example: sonde doctor -m gguf:FILE --against hf:FOLDER
    """
    wanted.beside.check()
    probe = changed(PROBES.find(wanted.probe)(), wanted.settings)
    wanted.load.check(wanted.ask.model)
    dataset = wanted.ask.facts.open(wanted.ask.data, wanted.load.device).select(
        Selection(split=wanted.split, relations=listed(wanted.relations), seed=wanted.seed)
    )
    with waiting(f"reading {wanted.ask.data}"):
        refuse_repeats(dataset, dataset.asked_relations())
    refuse_unworded(probe, dataset)
    model = wanted.load.load(wanted.ask.model, dataset)
    identity = model.identity
    with waiting("looking at prompts, one text at a time"):
        diagnosis = _diagnosis(probe, model, dataset, wanted.limit)
    certificate = None
    if wanted.beside.against:
        with waiting("asking the fixed prompts of a certificate"):
            asked = ask(model)
        del model  # the reference needs the room
        certificate = _beside(asked, wanted.beside, wanted.load)
        found = findings(certificate)
        diagnosis = replace(diagnosis, findings=(*diagnosis.findings, *found))
    elif identity.dtype in HALVES:
        with waiting(f"comparing {identity.dtype} with float32"):
            half = Asked.of(model, _fixed(model))
            del model  # float32 needs the room
            found = _beside_float32(wanted, half, dataset, identity.dtype)
        diagnosis = replace(diagnosis, findings=(*diagnosis.findings, *found))
    show(diagnosis, identity, dataset.name, certificate, wanted)


def _beside(asked: Replies, wanted: AgainstOptions, load: AnswerOptions) -> Certificate:
    """The certificate of a model that has answered, by a reference that is loaded for it."""
    reference = as_reference(load, wanted.against, wanted.against_dtype).load(wanted.against)
    with waiting(f"asking {wanted.against}"):
        return compare(asked, reference)


def _fixed(model: Model) -> list[Prompt]:
    """The prompts that half precision and float32 are compared on: the same for every dataset."""
    fixed = fixed_prompts(PROBES["lama"](), certifying.fixed_facts(), abilities(model))
    return prompts_as_given(model, fixed)


def _beside_float32(
    wanted: DoctorOptions, half: Asked, dataset: Dataset, dtype: str
) -> list[Finding]:
    try:
        precise = replace(wanted.load, dtype="float32").load(wanted.ask.model, dataset)
        return beside_float32(half, precise, dtype)
    except (ModelError, MemoryError) as error:
        return [not_compared(f"it cannot be asked in float32 ({str(error).rstrip('.')})")]


def _diagnosis(probe: Probe, model: Model, dataset: Dataset, limit: int) -> Diagnosis:
    can = abilities(model)
    probe = probe.suited(can)
    prompts = sample(probe, dataset, limit)
    if not prompts:
        raise UsageError(f"probe {probe.name!r} finds nothing to ask in dataset {dataset.name!r}")
    given = prompts_as_given(model, wants(prompts, dataset, can))
    more = more_facts(probe, dataset, can)
    asked = prompts_as_given(model, [prompt for prompt, _ in more])
    objects = [name for _, name in more]
    return diagnose(model, examiner(model), given, list(zip(asked, objects, strict=True)))


def show(
    found: Diagnosis,
    identity: Identity,
    data: str,
    certificate: Certificate | None,
    wanted: DoctorOptions,
) -> None:
    """Print a diagnosis, keeping a certificate; a fault ends the command with a model's exit code.

    A certificate that tells of a fault is kept too, so that runs of the model tell of it.
    """
    kept = [] if certificate is None else keep(certificate, wanted.beside.out)
    if wanted.as_json:
        made = {} if certificate is None else {"certificate": asdict(certificate)}
        print_json({**plain(found, identity, data), **made})
    else:
        print_diagnosis(found, identity, data, output())
        for path in kept:
            say(f"certificate: {path}", soft_wrap=True)
    if found.faults:
        names = "; ".join(finding.check for finding in found.faults)
        raise ModelError(
            f"{identity.name} on {data}: {counted(len(found.faults), 'fault')} ({names}). Do not "
            "trust numbers from this model before that is settled"
        )


def print_diagnosis(found: Diagnosis, identity: Identity, data: str, console: Console) -> None:
    """Print a diagnosis."""
    console.print()
    console.print(line(f"Doctor: {identity.name} on {data}", "bold"))
    console.print(line(about(found, identity)))
    if identity.chat and found.cases:
        console.print(line("\nA prompt as the model is given it", "bold cyan"))
        asked = found.cases[0].prompt
        console.print(Padding(line(legible(f"{asked.prefix}___{asked.suffix}")), (0, 0, 0, 2)))
    shown = list(pictured(found.cases))
    if shown:
        console.print(line("\nTokens around the answer, which is in brackets", "bold cyan"))
    for case, text in shown:
        console.print(Padding(line(caption(case, text), "dim"), (0, 0, 0, 2)))
        console.print(Padding(picture(text, console.width - 4), (0, 0, 1, 2)))
    console.print(line("Checks" if shown else "\nChecks", "bold cyan"))
    console.print(Padding(table(found.findings), (0, 0, 0, 2)))
    console.print()
    console.print(line(summary(found), "bold"))


def about(found: Diagnosis, identity: Identity) -> str:
    """What was looked at, in a sentence."""
    facts = {case.prompt.key.fact for case in found.cases}
    relations = {case.prompt.key.relation for case in found.cases}
    where = f"{identity.dtype} on {identity.details.get('device', '?')}" if identity.dtype else ""
    told = ", ".join(part for part in (identity.architecture, where) if part)
    opening = f" Opening: {identity.bos}." if identity.bos else ""
    return (
        f"{told}.{opening} Looked at {counted(len(facts), 'fact')} of "
        f"{counted(len(relations), 'relation')}, {counted(len(found.cases), 'prompt')}; "
        f"tolerance {found.tolerance:g} nats."
    )


def pictured(cases: tuple[Case, ...]) -> Iterator[tuple[Case, Text]]:
    """One text of each relation, after what is read before it: of the first case that has one."""
    seen: set[str] = set()
    for case in cases:
        if case.texts and case.prompt.key.relation not in seen:
            seen.add(case.prompt.key.relation)
            yield from ((case, text) for text in case.given[len(case.texts) :])
            yield case, case.texts[0]


def caption(case: Case, text: Text) -> str:
    """Which text is shown."""
    opening = f"opens with {''.join(text.pieces[: text.opening])}" if text.opening else "no BOS"
    key = case.prompt.key
    part = "" if case.texts == case.given else ", written" if text.answer else ", read"
    return f"{key.relation} {key.subject}{part}: {counted(len(text.ids), 'token')}, {opening}"


def picture(text: Text, width: int) -> Table:
    """Two rows, token texts above their ids; as many before the answer as there is room for."""
    grid = Table.grid(padding=(0, 1))
    columns = fitted(text, width)
    for _ in columns:
        grid.add_column(no_wrap=True)
    grid.add_row(*(line(top, style) for top, _, style in columns))
    grid.add_row(*(line(below, "dim") for _, below, _ in columns))
    return grid


def fitted(text: Text, width: int) -> list[tuple[str, str, str]]:
    """The columns of a picture: token, id and style, from as far left as fits."""
    first, last = max(text.start - BEFORE, 0), min(text.stop + AFTER, len(text.ids))
    while True:
        columns = [column(text, i) for i in range(first, last)]
        columns = [("…", "", "dim")] * (first > 0) + columns
        columns += [("…", "", "dim")] * (last < len(text.ids))
        taken = sum(max(len(top), len(below)) + 1 for top, below, _ in columns)
        if taken <= width or first >= text.start:
            return columns
        first += 1


def column(text: Text, i: int) -> tuple[str, str, str]:
    """One token: its text with spaces made visible, and its id."""
    piece = legible(text.pieces[i].replace(" ", "␣").replace("\n", "⏎").replace("\t", "⇥"))
    if not text.start <= i < text.stop:
        return piece, str(text.ids[i]), ""
    left, right = "[" * (i == text.start), "]" * (i == text.stop - 1)
    return f"{left}{piece}{right}", " " * len(left) + str(text.ids[i]), "bold"


def table(findings: tuple[Finding, ...]) -> Table:
    """A verdict per check, with what to do where it is not well."""
    grid = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(max_width=26)
    grid.add_column()
    for finding in gathered(findings):
        style = STYLES[finding.verdict]
        found = line(finding.found, "dim" if finding.verdict == "not checked" else "")
        if finding.advice:
            found.append_text(line(f"\n→ {finding.advice}.", style))
        verdict = SHOWN.get(finding.verdict, finding.verdict)
        grid.add_row(line(verdict, style), line(finding.check), found)
    return grid


def gathered(findings: tuple[Finding, ...]) -> list[Finding]:
    """The findings, those that were not checked for the same reason as one."""
    reasons: dict[str, list[str]] = {}
    for finding in findings:
        if finding.verdict == "not checked":
            reasons.setdefault(finding.found, []).append(finding.check)
    absent = [
        Finding(check="not checked", verdict="not checked", found=f"{', '.join(names)}: {why}")
        for why, names in reasons.items()
    ]
    return [*(f for f in findings if f.verdict != "not checked"), *absent]


def summary(found: Diagnosis) -> str:
    """The verdict over all checks."""
    checked = sum(f.verdict != "not checked" for f in found.findings)
    if found.faults:
        return f"{counted(len(found.faults), 'fault')} in {counted(checked, 'check')}."
    doubts = f", {counted(len(found.warnings), 'warning')}" if found.warnings else ""
    return f"No fault in {counted(checked, 'check')}{doubts}."


def plain(found: Diagnosis, identity: Identity, data: str) -> dict[str, Any]:
    """Every finding, and the tokens of every text, as plain data."""
    return {
        "model": identity.described(),
        "data": data,
        "tolerance": found.tolerance,
        "faults": len(found.faults),
        "warnings": len(found.warnings),
        "findings": [
            # JSON has no infinity
            {**asdict(f), "values": {k: v if isfinite(v) else None for k, v in f.values.items()}}
            for f in found.findings
        ],
        "prompts": [_prompt(case) for case in found.cases],
    }


def _prompt(case: Case) -> dict[str, Any]:
    return {
        **asdict(case.prompt.key),
        "want": type(case.prompt.want).__name__.lower(),
        "prefix": case.prompt.prefix,
        "suffix": case.prompt.suffix,
        "refused": case.refused,
        "texts": [{name: getattr(text, name) for name in SPELT} for text in case.given],
    }
