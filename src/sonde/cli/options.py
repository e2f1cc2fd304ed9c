"""How dataclasses of options become a verb's flags, and the options that verbs share.

A verb is a function of dataclasses. Each field made by `option` or `argument` is a flag or a word
of its command line, a field that is itself such a dataclass stands for its fields, and the function
is handed the dataclasses filled. What has settings, such as a probe, goes the same way.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    Self,
    TypeVar,
    cast,
    get_origin,
    get_type_hints,
)

import typer

from sonde.cli.console import waiting
from sonde.core.components import build, parse, settings_of
from sonde.core.errors import UsageError
from sonde.models.options import LoadOptions

if TYPE_CHECKING:
    from sonde.core.abilities import Model, Probe
    from sonde.core.facts import Dataset

T = TypeVar("T")

DATA = (
    "Dataset: a table (facts.csv, .tsv, .jsonl, .parquet, .xlsx), a bundled name, a folder, "
    "hub:OWNER/NAME, or sources joined by a plus ('sonde data ls')."
)
CHANGE = "Set a probe setting: KEY=VALUE; repeatable."
DEVICE = "auto, cpu or cuda."
DEVICE_MAP = (
    "Spread a model that one device does not hold: auto, balanced, sequential or a JSON file."
)
DRAWS = "Decides every draw."
FOLDER = "The folder to write."
FORCE = "Replace a dataset that is there."
JSON = "Print every estimate with its stable name."
NAMED = "What the dataset is called."
ALL_TABLES = "Print every finding, table and note, not only what fits on a screen."
ON = (
    "Let workers answer, each with a model of its own: local:N processes, or ray:N of a cluster; "
    "settings follow: ray:4,gpus=1,address=HOST:PORT, local:2,threads=8."
)
PAGE = "Write the self-contained HTML report here."
RELATIONS = "Only these relations, by id or label, separated by commas."
MAX_MEMORY = "Memory per device for --device-map: 0=20GiB,cpu=60GiB."
REVISION = "Revision of a hub model."
SEED = "Seed of every draw."
SPLIT = "Which split of the dataset to ask about."
TRUST = "Let a model folder run its own Python code."


def option(help: str, default: Any = MISSING, *names: str, least: float | None = None) -> Any:
    """A field that becomes a flag; without a default it must be given."""
    info = typer.Option(*names, help=help, min=least)
    return field(default=default, metadata={"typer": info})


def argument(help: str, default: Any = MISSING, metavar: str | None = None) -> Any:
    """A field that becomes a word without a flag; without a default it must be given."""
    info = typer.Argument(help=help, metavar=metavar)
    return field(default=default, metadata={"typer": info})


def verb(
    act: Callable[..., None], component: type | None = None, help: str = ""
) -> Callable[..., None]:
    """The command of a function of dataclasses; its first one is a `component` where one is given.

    The help text is that of the function or, followed by `help`, that of the component.
    """
    # a component stands for what its parameter is said to be, which need not be imported
    first = next(iter(inspect.get_annotations(act).values()))
    known = None if component is None else {first: component}
    kinds: dict[str, Any] = inspect.get_annotations(act, locals=known, eval_str=True)
    del kinds["return"]

    def call(**values: Any) -> None:
        act(**{name: _filled(kind, values) for name, kind in kinds.items()})

    # a component's settings come last, whatever stands before them
    ordered = sorted(kinds.values(), key=lambda kind: kind is component)
    flags = [flag for kind in ordered for flag in _flags(kind)]
    call.__signature__ = inspect.Signature(flags)  # type: ignore[attr-defined]
    call.__annotations__ = {flag.name: flag.annotation for flag in flags}
    call.__doc__ = inspect.getdoc(component or act)
    if help:
        call.__doc__ = f"{call.__doc__}\n\n{help}"
    return call


def _flags(kind: type) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(kind)
    for f in fields(kind):
        hint: Any = hints[f.name]
        default: Any = f.default if f.default_factory is MISSING else f.default_factory()
        if isinstance(hint, type) and is_dataclass(hint):
            yield from _flags(hint)
            continue
        if get_origin(hint) is tuple:  # several values are one text, separated by commas
            hint, default = str, ",".join(map(str, default))
        yield inspect.Parameter(
            f.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if default is MISSING else default,
            annotation=Annotated[hint, f.metadata.get("typer") or _setting(f.metadata)],
        )


def _setting(metadata: Mapping[str, Any]) -> Any:
    return typer.Option(help=metadata.get("help", ""))


def _filled(kind: type, values: Mapping[str, Any]) -> Any:
    """A dataclass out of the values of a command line; settings are checked."""
    hints, names = get_type_hints(kind), [f.name for f in fields(kind)]
    inner = {n: _filled(hints[n], values) for n in names if is_dataclass(hints[n])}
    given = {n: values[n] for n in names if n not in inner}
    if inner or any("typer" in f.metadata for f in fields(kind)):
        return kind(**given, **inner)
    lists = {n: given[n] for n in names if get_origin(hints[n]) is tuple}
    return build(kind, given | parse(kind, lists))


def matching(kind: type[T], options: Any, **more: Any) -> T:
    """A dataclass of another room out of the options of the same names, and what else it needs."""
    names = [f.name for f in fields(kind) if hasattr(options, f.name)]  # type: ignore[arg-type]
    return kind(**{name: getattr(options, name) for name in names} | more)


def listed(text: str) -> tuple[str, ...]:
    """The names in a text, separated by commas; refuses commas without a name."""
    names = tuple(name for part in text.split(",") if (name := part.strip(" ")))
    if text and not names:
        raise UsageError(f"{text!r} holds no name; write names with commas between them")
    return names


def changed(probe: T, texts: list[str] | None) -> T:
    """The probe with settings that KEY=VALUE texts give."""
    kind = type(probe)
    values = {s.name: getattr(probe, s.name) for s in settings_of(kind)}
    return build(kind, {**values, **parse(kind, pairs(texts))})  # type: ignore[no-any-return]


def pairs(texts: list[str] | None) -> dict[str, str]:
    """KEY=VALUE texts as a mapping."""
    values = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--set takes KEY=VALUE, not {text!r}")
        if key in values:
            raise UsageError(f"--set gives {key} more than once; give it once")
        values[key] = value
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """How a dataset is read and worded."""

    template: list[str] | None = option(
        'Templates instead of the dataset\'s own: "The capital of [X] is [Y].", '
        "RELATION=SENTENCE, a file of sentences, SOURCE:FOLDER, or a dataset; repeatable.",
        None,
    )
    columns: list[str] | None = option(
        "Which column of a table is what, where their names do not say it: "
        "subject=COLUMN,object=COLUMN; several objects are a relation each.",
        None,
    )

    def load(self, name: str, relations: Sequence[str] = ()) -> Dataset:
        """The dataset of a name; a template without a relation is for the one that is selected."""
        from sonde.data import catalog

        return catalog.load(name, self.template or (), self.given(), relations)

    def given(self) -> dict[str, list[str]]:
        """The columns of each role."""
        if not self.columns:
            return {}
        from sonde.data.tables.columns import parse_columns

        return parse_columns(self.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class FactOptions:
    """What becomes of a dataset before facts are selected."""

    source: SourceOptions = field(default_factory=SourceOptions)
    drop_guessable: Literal["string", "names"] | None = option(
        "Leave out facts whose object's name is in the subject's; 'names': also those that "
        "--guesser guesses from a person's name.",
        None,
    )
    guesser: str | None = option("The masked model that judges names, such as hf:FOLDER.", None)

    def open(self, name: str, device: str, relations: Sequence[str] = ()) -> Dataset:
        """The whole dataset of a name; a guesser is loaded on the device."""
        with waiting(f"opening {name}"):
            if not self.drop_guessable and not self.guesser:
                return self.source.load(name, relations)
            from sonde.runs.guessing import open_unguessable

            load = partial(self.source.load, name, relations)
            return open_unguessable(load, self.drop_guessable, self.guesser, device)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskOptions:
    """Which model is asked about which dataset."""

    model: str = option(
        "Model, such as smollm2 or hf:FOLDER ('sonde models').", MISSING, "--model", "-m"
    )
    data: str = option(DATA, "atlas", "--data", "-d")
    facts: FactOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeOptions:
    """Where and how a model computes."""

    device: str = option(DEVICE, "auto")
    dtype: str = option("auto, float32, float16 or bfloat16.", "auto")
    batch_tokens: int | None = option(
        "Tokens that go through the model at once (default: what fits).", None
    )

    def __post_init__(self) -> None:
        matching(LoadOptions, self)  # what cannot be is refused before anything is opened

    def load(self, model: str, data: Dataset | None = None, on: str = "") -> Model:
        """A model by its name, loaded as these options say, here or `on` workers."""
        from sonde.runs.run import load_on

        with waiting(f"loading {model} (the first time takes longest)"):
            return load_on(model, on, matching(LoadOptions, self), data)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextModelOptions(ComputeOptions):
    """How a model is loaded that reads texts."""

    bos: str = option("Open texts with the beginning-of-text token: auto, always or never.", "auto")
    revision: str | None = option(REVISION, None)
    trust_remote_code: bool = option(TRUST, False, "--trust-remote-code")
    device_map: str = option(DEVICE_MAP, "")
    max_memory: str = option(MAX_MEMORY, "")
    tokenizer: str = option("Folder or hub id of a served model's tokenizer.", "")
    served_model: str = option("The name under which a server has the model.", "")
    concurrency: int = option("Requests to a server at once, at most.", 8, least=1)
    server_retries: int = option("New tries where a request to a server fails.", 5, least=0)
    server_backoff: float = option("Seconds before the first new try; they double.", 1.0, least=0)
    server_timeout: float = option("Seconds for a server's answer.", 600.0, least=0.1)
    server_wait: float = option("Seconds to wait for a server that is away.", 300.0, least=0)

    def check(self, model: str, *, here: bool = True) -> None:
        """Refuse a name that no model can have, and flags that it would not heed."""
        from sonde.models.load import check, scheme_of

        check(model, here=here)
        named = {"--tokenizer": self.tokenizer, "--served-model": self.served_model}
        if scheme_of(model)[0] != "server" and (flags := [f for f in named if named[f]]):
            raise UsageError(
                f"{' and '.join(flags)} may be given for server:URL alone; {model} has its own"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOptions(TextModelOptions):
    """How a model is loaded that answers the prompts of a probe."""

    chat: str = option("Ask in turns, by the model's chat template: never or always.", "never")
    chat_system: str = option("The conversation's system text (default: the template's own).", "")
    chat_examples: str = option("Examples as turns of their own or in one: turns, one.", "turns")
    chat_thinking: int = option("Tokens more for what is written up to </think>.", 0, least=0)

    def without_turns(self) -> Self:
        """The same for a control that counts facts and reads no texts."""
        return replace(self, chat="never", chat_system="", chat_examples="turns", chat_thinking=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectOptions:
    """Which facts are asked about."""

    limit: int | None = option("Ask about at most this many facts per relation.", None)
    split: str = option(SPLIT, "test")
    relations: str = option(RELATIONS, "")
    languages: str = option("Ask only in these languages, such as en,fr.", "")
    seed: int = option(SEED, 0)

    def of(self, dataset: Dataset) -> Dataset:
        """The dataset with this selection."""
        from sonde.core.facts import Selection

        chosen = dataset.select(matching(Selection, self, relations=listed(self.relations)))
        return chosen.in_languages(listed(self.languages))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What a run is made of, besides its probe."""

    ask: AskOptions
    out: Path | None = option(
        "Run folder; an interrupted run goes on there by itself.", None, "--out", "-o"
    )
    select: SelectOptions
    load: AnswerOptions
    settings: list[str] | None = option(CHANGE, None, "--set")
    vary: list[str] | None = option(
        "Run several values of a setting, to compare them: SETTING=A,B,C; repeatable.", None
    )
    repeats: int = option("Run with this many seeds.", 1, least=1)

    def check(self, probe: Probe, on: str = "") -> None:
        """Refuse at once a setting that the probe has not, and a name that no model can have."""
        from sonde.runs.workers.spec import parse_workers

        self.probe(probe)
        elsewhere = bool(on) and parse_workers(on).place == "ray"
        self.load.check(self.ask.model, here=not elsewhere)

    def prepare(self, probe: Probe, on: str = "") -> tuple[Probe, Model, Dataset]:
        """The probe, the model and the dataset, of names that `check` has looked at."""
        from sonde.runs.refusals import refuse_unasked

        probe = self.probe(probe)
        relations = listed(self.select.relations)
        whole = self.ask.facts.open(self.ask.data, self.load.device, relations)
        dataset = self.select.of(whole)
        refuse_unasked(probe, dataset)
        return probe, self.load.load(self.ask.model, dataset, on), dataset

    def probe(self, probe: Probe) -> Probe:
        """The probe with its settings, those that are varied included."""
        probe = changed(probe, self.settings)
        values: dict[str, list[Any]] = {}
        for text in self.vary or ():
            name, equals, levels = text.partition("=")
            if not equals:
                raise UsageError(f"--vary takes SETTING=A,B,C, not {text!r}")
            for level in listed(levels):
                for key, value in parse(type(probe), {name: level}).items():
                    values.setdefault(key, []).append(value)
        if not values and self.repeats == 1:
            return probe
        from sonde.probes.vary import vary  # polars takes a while

        varied: Any = vary(cast(Any, probe), values, self.repeats)
        return cast("Probe", varied)
