"""A probe with several values of some settings, and with several seeds, as passes of one run.

The passes are in one run so that prompts share prefixes and rows are compared fact by fact.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import product, zip_longest
from typing import TYPE_CHECKING, Any, Self, cast

import polars as pl

from sonde.answers import Answers
from sonde.core.components import build, settings_of
from sonde.core.errors import UsageError, nearest
from sonde.core.facts import Dataset, Relation, Template
from sonde.evaluation.layout import Layout
from sonde.evaluation.tables import FACTS, ROWS, TEMPLATES
from sonde.probes.base import Capability, Probe, with_other_facts
from sonde.prompts import PromptBatch

if TYPE_CHECKING:
    from sonde.evaluation.estimate import Contrast, Group, Metric, Special

SEED = "seed"
Level = str | int | float | bool


@dataclass(frozen=True, kw_only=True)
class Vary(Probe):
    """Passes of a probe: one for each combination of values, and for each seed.

    Args:
        probe: has the settings that are the same in all passes.
        vary: the values of each setting that is varied. Its levels are a column of the rows, with
            the name of the setting, and every level is compared with the first.
        repeats: the number of seeds; each is a pass on the same facts.

    Example:
        >>> Vary(probe=sonde.probe("qa"), vary={"shots": (1, 5, 20)}, repeats=3)
    """

    probe: Probe
    vary: Mapping[str, Sequence[Any]] = field(default_factory=dict, hash=False)
    repeats: int = 1

    def __post_init__(self) -> None:
        for name in ("name", "requires", "unit", "length_setting", "answerable_only"):
            object.__setattr__(self, name, getattr(self.probe, name))
        known = {setting.name: setting for setting in settings_of(type(self.probe))}
        for name, values in self.vary.items():
            if name not in known:
                hint = nearest(name, known)
                raise UsageError(f"probe {self.name!r} has no setting {name!r} to vary; {hint}")
            if known[name].analysis_only:
                raise UsageError(
                    f"setting {name} changes no prompt, so one run has all of its values: use "
                    f"'sonde report RUN --set {name}=VALUE' instead of --vary"
                )
            if len(set(values)) < max(len(values), 2):
                raise UsageError(
                    f"--vary {name} takes two or more different values, such as {name}=A,B; not "
                    f"{', '.join(map(str, values)) or 'none'}"
                )
        if self.repeats < 1:
            raise UsageError(f"--repeats must be at least 1, not {self.repeats}")
        assert self.probe_by_levels  # every value is checked

    def __getattr__(self, name: str) -> Any:
        if name == "probe" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.probe, name)

    @cached_property
    def probe_by_levels(self) -> dict[tuple[Level, ...], Probe]:
        """The probe of each combination, by its levels."""
        settings = asdict(cast(Any, self.probe))
        levels = [to_column_values(values) for values in self.vary.values()]
        values = product(*self.vary.values())
        return {
            combination: build(type(self.probe), settings | dict(zip(self.vary, each, strict=True)))
            for combination, each in zip(product(*levels), values, strict=True)
        }

    @property
    def varied_columns(self) -> tuple[str, ...]:
        """The column of each setting that is varied."""
        return tuple(column_of_setting(self.probe, setting) for setting in self.vary)

    @property
    def pass_columns(self) -> tuple[str, ...]:
        """The columns that differ between the passes."""
        return (*self.varied_columns, *([SEED] if self.repeats > 1 else []))

    @property
    def axes(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(dict.fromkeys((*self.probe.axes, *self.pass_columns)))

    @property
    def separate(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(dict.fromkeys((*self.probe.separate, *self.varied_columns)))

    @property
    def exclusion_reason(self) -> str:
        return self.probe.exclusion_reason

    @property
    def metrics(self) -> "Sequence[Metric | Special]":
        return self.probe.metrics

    @property
    def groups(self) -> "Sequence[str | tuple[str, ...] | Group]":
        return tuple(dict.fromkeys((*self.probe.groups, *self.pass_columns)))

    @property
    def contrasts(self) -> "Sequence[Contrast]":
        from sonde.evaluation.estimate import Contrast

        firsts = next(iter(self.probe_by_levels))
        ours = [
            Contrast(axis, first) for axis, first in zip(self.varied_columns, firsts, strict=True)
        ]
        return (*self.probe.contrasts, *ours)

    @property
    def layout(self) -> Layout:
        values = [f"{name} {', '.join(map(str, v))}" for name, v in self.vary.items()]
        values += [f"{self.repeats} repeats"] if self.repeats > 1 else []
        title = "; ".join(filter(None, (self.probe.layout.title, *values)))
        return replace(self.probe.layout, title=title)

    def resolve(self, capabilities: frozenset[Capability]) -> Self:
        resolved = replace(self, probe=self.probe.resolve(capabilities))
        for probe in resolved.probe_by_levels.values():
            probe.resolve(capabilities)
        return resolved

    def templates(self, relation: Relation) -> tuple[Template, ...]:
        every = (
            template
            for probe in self.probe_by_levels.values()
            for template in probe.templates(relation)
        )
        return tuple({template.id: template for template in every}.values())

    def notices(self, data: Dataset) -> tuple[str, ...]:
        return self.probe.notices(data)

    def prompts(self, data: Dataset) -> Iterator[PromptBatch]:
        """The batches of all passes in turn, so that prompts of one relation are close together."""
        seeds = range(data.selection.seed, data.selection.seed + self.repeats)
        labels, streams = [], []
        for (levels, probe), seed in product(self.probe_by_levels.items(), seeds):
            labels.append(dict(zip(self.pass_columns, (*levels, seed), strict=False)))
            streams.append(probe.prompts(with_seed(data, seed)))
        random = self.repeats == 1
        for batches in zip_longest(*streams):
            one, other = batches[:2]
            same = one and other and one.options == other.options and one.frame.equals(other.frame)
            random = random or not same
            for label, batch in zip(labels, batches, strict=True):
                if batch is not None:
                    columns = {name: pl.lit(level) for name, level in label.items()}
                    yield replace(batch, frame=batch.frame.with_columns(**columns))
        if not random:
            raise UsageError(
                f"probe {self.name!r} draws nothing at random with these settings, so all repeats "
                "have the same prompts; leave out --repeats"
            )

    def facts(self, data: Dataset) -> pl.DataFrame:
        """Those of the first pass; a fact is excluded if it is in all of them."""
        tables = [probe.facts(data) for probe in self.probe_by_levels.values()]
        everywhere = pl.all_horizontal(table["excluded"].is_not_null() for table in tables)
        return tables[0].with_columns(excluded=pl.when(everywhere).then("excluded"))

    def judge(
        self, answers: Answers, facts: pl.DataFrame
    ) -> pl.DataFrame | Mapping[str, pl.DataFrame]:
        """Each pass as its probe does it."""
        parts: dict[str, list[pl.DataFrame]] = {}
        keys = answers.frame.select(self.pass_columns).with_row_index("place")
        for levels, rows in keys.group_by(self.pass_columns, maintain_order=True):
            probe = self.probe_by_levels[levels[: len(self.vary)]]
            whole = rows.height == len(answers)
            part = answers if whole else answers.select(rows["place"].to_numpy())
            judged = probe.judge(part, facts)
            columns = {n: pl.lit(level) for n, level in zip(self.pass_columns, levels, strict=True)}
            tables = {"rows": judged} if isinstance(judged, pl.DataFrame) else judged
            for name, table in tables.items():
                parts.setdefault(name, []).append(table.with_columns(**columns))
        return {name: pl.concat(frames, how="diagonal_relaxed") for name, frames in parts.items()}

    def combine(self, rows: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
        """Each pass as its probe does it."""
        parts = [
            self.probe_by_levels[levels[: len(self.vary)]].combine(part, facts)
            for levels, part in rows.group_by(self.pass_columns, maintain_order=True)
        ]
        return pl.concat(parts, how="diagonal_relaxed").sort("fact_no", maintain_order=True)

    def accepts(self, answer: str, names: Sequence[str], language: str) -> bool:
        return self.probe.accepts(answer, names, language)


def vary(probe: Probe, values: Mapping[str, Sequence[Any]], repeats: int = 1) -> Probe:
    """The probe with these values and seeds; as it is, if it draws several seeds by itself."""
    if repeats > 1 and hasattr(probe, "seeds"):
        probe, repeats = replace(cast(Any, probe), seeds=repeats), 1
    return Vary(probe=probe, vary=values, repeats=repeats) if values or repeats != 1 else probe


def with_settings(probe: Any, **settings: Any) -> Any:
    """The probe with other settings, in all passes if it has several."""
    if isinstance(probe, Vary):
        return replace(probe, probe=with_settings(probe.probe, **settings))
    return replace(probe, **settings)


def column_of_setting(probe: Probe, setting: str) -> str:
    """The column that has the levels of a setting; one that the probe has already, or a new one."""
    if f"n_{setting}" in probe.axes:
        return f"n_{setting}"
    taken = FACTS.keys() | TEMPLATES.keys() | ROWS.keys()
    return f"{setting}_setting" if setting in taken else setting


def to_column_values(values: Sequence[Any]) -> list[Level]:
    """The values of a setting as those of a column: numbers and texts, of one type."""
    if len({type(value) for value in values}) == 1 and isinstance(values[0], Level):
        return list(values)
    return [" ".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in values]


def with_seed(data: Dataset, seed: int) -> Dataset:
    """The dataset with the same prompted facts, and another seed for what probes draw."""
    if seed == data.selection.seed:
        return data
    return with_other_facts(data, data.asked_frame, selection=replace(data.selection, seed=seed))
