"""`sonde run PROBE`: put a probe to a model. Each probe's settings become flags of its own."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_origin

import typer

from sonde.cli.console import progress, waiting
from sonde.cli.show import show_run
from sonde.core.abilities import Model as LoadedModel
from sonde.core.abilities import Probe, abilities
from sonde.core.errors import UsageError
from sonde.core.facts import Dataset
from sonde.core.settings import Setting, build, parse, settings_of
from sonde.runs.controls import chosen as chosen_controls
from sonde.runs.controls import run_controls
from sonde.runs.run import SHARD_WEIGHT, probes, run

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help=(
        "Put a probe's questions to a model and report what it knows.\n\n"
        "Example: sonde run lama -m smollm2 -d atlas --limit 10"
    ),
)

Model = Annotated[
    str, typer.Option("--model", "-m", help="Model, such as smollm2 or hf:FOLDER ('sonde models').")
]
Data = Annotated[
    str,
    typer.Option(
        "--data",
        "-d",
        help="Dataset: a bundled name, a folder, or sources joined by a plus ('sonde data ls').",
    ),
]
Wording = Annotated[
    list[str] | None,
    typer.Option(
        help="Templates in the place of the dataset's own: SOURCE:FOLDER, or a dataset; repeatable."
    ),
]
Drop = Annotated[
    Literal["string", "names"] | None,
    typer.Option(
        "--drop-guessable",
        help="Leave out facts whose object's name is in the subject's; 'names': also those that "
        "--guesser guesses from a person's name.",
    ),
]
Guesser = Annotated[
    str | None, typer.Option(help="The masked model that judges names, such as hf:FOLDER.")
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="Run folder; an interrupted run goes on there by itself."),
]
Limit = Annotated[int | None, typer.Option(help="Ask about at most this many facts per relation.")]
Split = Annotated[str, typer.Option(help="Which split of the dataset to ask about.")]
Relations = Annotated[str, typer.Option(help="Only these relations, separated by commas.")]
Seed = Annotated[int, typer.Option(help="Seed of every draw.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Dtype = Annotated[str, typer.Option(help="auto, float32, float16 or bfloat16.")]
Tokens = Annotated[
    int | None, typer.Option(help="Tokens that go through the model at once (default: by device).")
]
Bos = Annotated[
    str, typer.Option(help="Open texts with the beginning-of-text token: auto, always or never.")
]
Revision = Annotated[str | None, typer.Option(help="Revision of a hub model.")]
Trust = Annotated[
    bool, typer.Option("--trust-remote-code", help="Let a model folder run its own Python code.")
]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="Set a probe setting: KEY=VALUE; repeatable.")
]
Html = Annotated[bool, typer.Option("--html/--no-html", help="Write report.html into the folder.")]
Controls = Annotated[
    str,
    typer.Option(
        help="Controls to run beside the model, separated by commas: majority, class-prior, "
        "naive-bayes, random, random-embeddings, or all."
    ),
]
Plan = Annotated[
    bool, typer.Option("--plan", help="Print what the run would cost, as 'sonde plan' does.")
]


def run_probe(
    probe: Callable[..., Probe],
    settings: dict[str, Any],
    *,
    model: Model,
    data: Data = "atlas",
    wording: Wording = None,
    drop_guessable: Drop = None,
    guesser: Guesser = None,
    out: Out = None,
    limit: Limit = None,
    split: Split = "test",
    relations: Relations = "",
    seed: Seed = 0,
    device: Device = "auto",
    dtype: Dtype = "auto",
    batch_tokens: Tokens = None,
    bos: Bos = "auto",
    revision: Revision = None,
    trust_remote_code: Trust = False,
    set: Set = None,
    controls: Controls = "",
    html: Html = True,
    plan: Plan = False,
) -> None:
    """Run one probe; what every probe's command has in common."""
    names = chosen_controls(controls)
    chosen, loaded, dataset = prepare(
        probe,
        settings,
        model=model,
        data=data,
        wording=wording,
        drop_guessable=drop_guessable,
        guesser=guesser,
        limit=limit,
        split=split,
        relations=relations,
        seed=seed,
        device=device,
        dtype=dtype,
        batch_tokens=batch_tokens,
        bos=bos,
        revision=revision,
        trust_remote_code=trust_remote_code,
        set=set,
    )
    if plan:
        from sonde.cli.plan import show_plan

        show_plan(chosen, loaded, dataset, out)
        return
    with progress(f"{chosen.name} on {dataset.name}") as tick:
        done = run(chosen, loaded, dataset, out, progress=tick, shard_weight=SHARD_WEIGHT)
    settled = chosen.suited(abilities(loaded))
    del loaded  # a control may be as large
    load = loader(
        dataset,
        device=device,
        dtype=dtype,
        batch_tokens=batch_tokens,
        bos=bos,
        revision=revision,
        trust_remote_code=trust_remote_code,
    )
    run_controls(names, model, settled, dataset, done.path, load=load, watch=progress)
    show_run(done, html=done.path / "report.html" if html else None)


def prepare(
    probe: Callable[..., Probe],
    settings: dict[str, Any],
    *,
    model: str,
    data: str,
    wording: list[str] | None,
    drop_guessable: Literal["string", "names"] | None,
    guesser: str | None,
    limit: int | None,
    split: str,
    relations: str,
    seed: int,
    device: str,
    dtype: str,
    batch_tokens: int | None,
    bos: str,
    revision: str | None,
    trust_remote_code: bool,
    set: list[str] | None,
) -> tuple[Probe, LoadedModel, Dataset]:
    """The probe, the model and the dataset that a command names."""
    from sonde import api

    if bos not in ("auto", "always", "never"):
        raise UsageError(f"--bos must be auto, always or never; not {bos!r}")
    if batch_tokens is not None and batch_tokens < 1:
        raise UsageError(f"--batch-tokens must be at least 1, not {batch_tokens}")
    kind = cast(type, probe)
    chosen: Probe = build(kind, {**settings, **parse(kind, pairs(set or []))})
    wanted = tuple(name for name in relations.split(",") if name)
    with waiting(f"opening {data}"):
        dataset = api.dataset(
            data,
            split=split,
            relations=wanted,
            limit=limit,
            seed=seed,
            wording=wording or (),
            drop_guessable=drop_guessable,
            guesser=guesser,
            device=device,
        )
    loaded = loader(
        dataset,
        device=device,
        dtype=dtype,
        batch_tokens=batch_tokens,
        bos=bos,
        revision=revision,
        trust_remote_code=trust_remote_code,
    )(model)
    return chosen, loaded, dataset


def loader(
    dataset: Dataset,
    *,
    device: str,
    dtype: str,
    batch_tokens: int | None,
    bos: str,
    revision: str | None,
    trust_remote_code: bool,
) -> Callable[[str], LoadedModel]:
    """Loads models by name, as a command says how."""
    from sonde import api

    def load(model: str) -> LoadedModel:
        with waiting(f"loading {model} (the first time takes longest)"):
            return api.model(
                model,
                data=dataset,
                device=device,
                dtype=dtype,
                revision=revision,
                bos=cast(Any, bos),
                batch_tokens=batch_tokens,
                trust_remote_code=trust_remote_code,
            )

    return load


def pairs(texts: list[str]) -> dict[str, str]:
    """KEY=VALUE texts as a mapping."""
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--set takes KEY=VALUE, not {text!r}")
        found[key] = value
    return found


def flags_of(act: Callable[..., None]) -> list[inspect.Parameter]:
    """The flags that a command has from the function behind it: its keywords."""
    hints = inspect.get_annotations(act, eval_str=True)
    found = inspect.signature(act).parameters.values()
    return [p.replace(annotation=hints[p.name]) for p in found if p.kind is p.KEYWORD_ONLY]


def command(
    verb: str, probe: type, act: Callable[..., None], flags: list[inspect.Parameter]
) -> Callable[..., None]:
    """The command of one probe: the verb's flags, then the probe's settings as flags."""
    own = settings_of(probe)

    def call(**values: Any) -> None:
        given = {s.name: values.pop(s.name) for s in own}
        lists = parse(probe, {s.name: given[s.name] for s in own if get_origin(s.type) is tuple})
        settings = {**given, **lists}
        act(cast(Callable[..., Probe], probe), settings, **values)

    parameters = flags + [_flag(s) for s in own]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {p.name: p.annotation for p in parameters}
    example = f"Example: sonde {verb} {cast(Any, probe).name} -m smollm2 -d atlas --limit 10"
    call.__doc__ = f"{inspect.getdoc(probe)}\n\n{example}"
    return call


def _flag(setting: Setting) -> inspect.Parameter:
    word = setting.name.replace("_", "-")
    flag = f"--{word}/--no-{word}" if setting.type is bool else f"--{word}"
    option = typer.Option(flag, help=setting.help)
    kind, default = setting.type, setting.default
    if get_origin(kind) is tuple:  # several values are one text, separated by commas
        kind, default = str, ",".join(map(str, default))
    return inspect.Parameter(
        setting.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, option],
    )


for _name, _probe in sorted(probes().items()):
    app.command(_name)(command("run", _probe, run_probe, flags_of(run_probe)))
