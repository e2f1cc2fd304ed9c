"""`sonde attribute`: which words of a prompt an answer comes from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from sonde.cli.console import progress, waiting
from sonde.cli.run import Bos, Data, Device, Revision, Seed, Tokens, Trust
from sonde.cli.show import show_report
from sonde.core.abilities import Attributes, Generates, Model
from sonde.core.errors import StoreError, UsageError
from sonde.core.prompts import Generate, Key, Prompt
from sonde.core.reports import Report

if TYPE_CHECKING:
    from sonde.attribution.asking import Parted, Shape
    from sonde.attribution.report import Attributed

MOST_TOKENS = 15


def attribute(
    model: Annotated[
        list[str],
        typer.Option("--model", "-m", help="Model, such as smollm2 or hf:FOLDER; repeatable."),
    ],
    prompt: Annotated[
        str, typer.Argument(help="The text that the answer follows; or give --fact.")
    ] = "",
    answer: Annotated[
        str | None,
        typer.Option(help="The answer to attribute (default: the model's own; a fact's object)."),
    ] = None,
    data: Data = "atlas",
    fact: Annotated[
        str, typer.Option(help="Id of a fact: its anchor, framing and interference prompts.")
    ] = "",
    relation: Annotated[str, typer.Option(help="The fact's relation, if its id needs one.")] = "",
    own: Annotated[
        bool, typer.Option("--own", help="Of a fact, attribute what the model itself answers.")
    ] = False,
    frame: Annotated[
        Literal["plain", "qa"], typer.Option(help="A fact's questions as they are, or Q: … A: …")
    ] = "plain",
    shots: Annotated[
        int, typer.Option(help="Examples of the relation before a fact's questions.", min=0)
    ] = 0,
    frames: Annotated[
        int, typer.Option(help="Wordings of a fact's question; 0 for all there are.", min=0)
    ] = 3,
    negatives: Annotated[
        int, typer.Option(help="Wrong objects to put in front of a fact's question.", min=0)
    ] = 2,
    steps: Annotated[int, typer.Option(help="Gradients per prompt to begin with.", min=1)] = 50,
    most: Annotated[
        int, typer.Option(help="Gradients per prompt at most, or about.", min=1)
    ] = 1000,
    tolerance: Annotated[
        float, typer.Option(help="Error to aim at, as a share of what is shared out.", min=0)
    ] = 0.05,
    seed: Seed = 0,
    device: Device = "auto",
    dtype: Annotated[str, typer.Option(help="float32, or auto, float16, bfloat16.")] = "float32",
    batch_tokens: Tokens = None,
    bos: Bos = "auto",
    revision: Revision = None,
    trust_remote_code: Trust = False,
    html: Annotated[
        Path | None, typer.Option(help="Write the self-contained HTML report here.")
    ] = None,
    as_json: Annotated[
        Path | None, typer.Option("--json", help="Write every token and weight here as JSON.")
    ] = None,
) -> None:
    """Show which words of a prompt an answer comes from.

    Integrated gradients of the answer's log-probability, drawn as a strip of coloured tokens; needs
    the extra sonde[attribute].

    Example: sonde attribute -m smollm2 "The capital of France is" --answer Paris

    Example: sonde attribute -m smollm2 -d atlas --fact P36:Q38 --frame qa --shots 4
    """
    from sonde.attribution.asking import Shape, free
    from sonde.attribution.report import report

    if bool(prompt) == bool(fact):
        raise UsageError("give either a prompt or a fact's id (--fact), and not both")
    if own and answer is not None:
        raise UsageError("--own attributes the model's own answers; leave out --answer")
    with waiting(f"opening {data}"):
        if fact:
            shape = Shape(form=frame, shots=shots, frames=frames, negatives=negatives)
            title, prompts = _of_fact(data, fact, relation, shape, answer, own, seed)
        else:
            title, prompts = f"Attribution: {prompt.strip()}", [free(prompt, answer)]
    how = {"steps": steps, "most": max(steps, most), "tolerance": tolerance}
    options: dict[str, Any] = {
        "device": device,
        "dtype": dtype,
        "bos": bos,
        "batch_tokens": batch_tokens,
        "revision": revision,
        "trust_remote_code": trust_remote_code,
    }
    rows: list[Attributed] = []
    identities: dict[str, object] = {}
    with progress(title) as tick:
        for name in dict.fromkeys(model):
            loaded = _load(name, options)
            identities[name] = loaded.identity
            for row in _rows(name, loaded, prompts, how):
                rows.append(row)
                tick(len(rows), len(prompts) * len(set(model)))
    provenance = {
        "models": identities,
        "settings": {**how, **options},
        "data": data if fact else "",
    }
    _show(report(rows, title), provenance, html, as_json)


def _of_fact(
    data: str, id: str, relation: str, shape: Shape, answer: str | None, own: bool, seed: int
) -> tuple[str, list[Parted]]:
    """What the report is called, and the fact's prompts."""
    from sonde.attribution.asking import find_fact, of_fact
    from sonde.data.catalog import load

    dataset = load(data)
    dataset = replace(dataset, selection=replace(dataset.selection, seed=seed))
    fact = find_fact(dataset, id, relation)
    made = of_fact(dataset, fact, shape, answer)
    made = [replace(each, answer=None) for each in made] if own else made
    label, gold = dataset.relation(fact.relation).label, fact.objects[0].name
    return f"Attribution: {label} of {fact.subject.name} ({gold})", made


def _load(name: str, options: dict[str, Any]) -> Model:
    from sonde import api

    if options["bos"] not in ("auto", "always", "never"):
        raise UsageError(f"--bos must be auto, always or never; not {options['bos']!r}")
    with waiting(f"loading {name} (the first time takes longest)"):
        return api.model(name, **options)


def _rows(
    name: str, model: Model, prompts: Sequence[Parted], how: dict[str, Any]
) -> Iterator[Attributed]:
    """Attribute each prompt's answer."""
    from sonde.attribution.report import Attributed
    from sonde.models.attribute import attributor

    able: Attributes = attributor(model)
    answers = _own_answers(model, prompts)
    for prompt, own in zip(prompts, answers, strict=True):
        answer = own if prompt.answer is None else prompt.answer
        if not answer:
            raise UsageError(
                f"{name} answers nothing to {prompt.text!r}; give the answer to attribute by "
                "--answer"
            )
        found = able.attribute(prompt.text, answer, **how)
        yield Attributed(prompt=prompt, model=name, own=own, found=found)


def _own_answers(model: Model, prompts: Sequence[Parted]) -> list[str]:
    """The first line that the model itself writes after each prompt."""
    from sonde.attribution.asking import cleaned

    if not isinstance(model, Generates):
        return [""] * len(prompts)
    key = Key(fact="", relation="", template="", subject="")
    want = Generate(most=MOST_TOKENS)
    asked = [Prompt(key=key, prefix=prompt.text, want=want) for prompt in prompts]
    written = dict(model.generate(asked))
    return [cleaned(written[i].text) for i in range(len(prompts))]


def _show(
    made: Report, provenance: dict[str, Any], html: Path | None, as_json: Path | None
) -> None:
    """Show the report in the terminal, and write what is wanted of it."""
    if as_json is not None:
        from sonde.reporting.render.json import as_json as to_json
        from sonde.reporting.render.json import json_text

        text = json_text(to_json(made, provenance))
        try:
            as_json.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise StoreError(f"{as_json} cannot be written: {error.strerror or error}") from error
    lines = [] if as_json is None else [f"json: {as_json}"]
    show_report(
        made,
        provenance,
        html=html,
        figures=None,
        format=cast(Any, "svg"),
        as_json=False,
        lines=lines,
    )
