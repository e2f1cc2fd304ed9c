"""Components, such as probes, by name, and their typed settings.

Those of sonde are found through a table of modules, others as entry points. A setting is a
dataclass field with a help text: it becomes a flag and a manifest entry. Beside them: whether
values, such as JSON gives, have the types that were declared.
"""

from __future__ import annotations

import importlib
import logging
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import cache
from importlib.metadata import entry_points
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from sonde.core.errors import UsageError, nearest

log = logging.getLogger(__name__)


class Components(Mapping[str, Any]):
    """Components by name, each imported when it is looked up.

    `modules` names the module of each built-in, whose `COMPONENT` it is (or what a name after a
    colon says); a built-in wins over an entry point of the same name. Of the entry points of
    `group` those count that `fit`.
    """

    def __init__(
        self, modules: Mapping[str, str], group: str, fit: Callable[[Any], bool] | None = None
    ) -> None:
        self._modules = modules
        self._group = group
        self._fit = fit

    def __getitem__(self, name: str) -> Any:
        """The component of that name."""
        if name in self._modules:
            module, _, attribute = self._modules[name].partition(":")
            return getattr(importlib.import_module(module), attribute or "COMPONENT")
        return self._plugins[name]

    def find(self, name: str) -> Any:
        """The component of that name; refused, with the nearest, if there is none."""
        if name not in self:
            what = self._group.rpartition(".")[2].removesuffix("s")  # such as a probe
            raise UsageError(f"no {what} called {name!r}; {nearest(name, self)}")
        return self[name]

    def __contains__(self, name: object) -> bool:
        """Whether there is one; no built-in is imported to find out."""
        return name in self._modules or name in self._plugins

    def __iter__(self) -> Iterator[str]:
        """The names, sonde's own first."""
        yield from self._modules
        yield from (name for name in self._plugins if name not in self._modules)

    def __len__(self) -> int:
        """How many there are."""
        return len(list(iter(self)))

    @property
    def _plugins(self) -> dict[str, Any]:
        found = _plugins(self._group)
        return {n: c for n, c in found.items() if self._fit is None or self._fit(c)}


@cache
def _plugins(group: str) -> dict[str, Any]:
    """The components of other packages; one that is broken must not take every verb down."""
    found: dict[str, Any] = {}
    for point in entry_points(group=group):
        try:
            component = point.load()
        except Exception as error:
            log.warning("the %s entry point %r does not load: %s", group, point.value, error)
            continue
        found.setdefault(component.name, component)
    return found


def fits(value: object, kind: Any) -> bool:
    """Whether a value is of a type; lists are as good as tuples, and true is no number.

    A dataclass is filled by an object with some of its fields and no others.

    >>> fits([1, 2], tuple[int, ...]), fits({"a": None}, dict[str, int | None]), fits(True, int)
    (True, True, False)
    """
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return True
    if origin is Literal:
        return any(value == each and type(value) is type(each) for each in inner)
    if origin in (Union, UnionType):
        return any(fits(value, each) for each in inner)
    if origin is tuple:
        return isinstance(value, list | tuple) and all(fits(each, inner[0]) for each in value)
    if origin is dict:
        return isinstance(value, Mapping) and all(
            fits(key, inner[0]) and fits(each, inner[1]) for key, each in value.items()
        )
    if is_dataclass(kind):
        return isinstance(value, Mapping) and _fills(value, kind)
    return isinstance(value, kind) and isinstance(value, bool) <= (kind is bool)


def _fills(value: Mapping[str, object], kind: Any) -> bool:
    hints = get_type_hints(kind)
    return all(name in hints and fits(each, hints[name]) for name, each in value.items())


def setting(default: Any, help: str, *, min: int | None = None, analysis_only: bool = False) -> Any:
    """A dataclass field with a default and a sentence that explains it.

    `min` is the smallest number allowed. An `analysis_only` setting changes no prompt, only how the
    answers are read, and may be changed after the run.
    """
    metadata = {"help": help, "min": min, "analysis_only": analysis_only}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting of a probe, as help texts and flags need it."""

    name: str
    type: Any
    default: Any
    help: str
    min: int | None
    analysis_only: bool


def settings_of(cls: type) -> tuple[Setting, ...]:
    """The settings of a probe class, in the order they are declared."""
    hints = get_type_hints(cls)
    return tuple(
        Setting(
            name=f.name,
            type=hints[f.name],
            default=_default(f),
            help=f.metadata.get("help", ""),
            min=f.metadata.get("min"),
            analysis_only=f.metadata.get("analysis_only", False),
        )
        for f in fields(cls)
    )


def _default(f: Field[Any]) -> Any:
    if f.default is not MISSING:
        return f.default
    return f.default_factory() if f.default_factory is not MISSING else None


def build(cls: type, values: Mapping[str, Any]) -> Any:
    """The probe with these settings, each checked against its type."""
    known = {s.name: s for s in settings_of(cls)}
    for name, value in values.items():
        if name not in known:
            raise UsageError(f"unknown setting {name!r}; {nearest(name, known)}")
        _check(known[name], value)
    return cls(**values)


def _check(setting: Setting, value: Any) -> None:
    origin, choices = get_origin(setting.type), get_args(setting.type)
    if origin is Literal:
        if value not in choices:
            allowed = ", ".join(map(str, choices))
            raise UsageError(f"setting {setting.name} must be one of {allowed}; not {value!r}")
    elif not fits(value, setting.type):
        kind = setting.type if origin else setting.type.__name__
        raise UsageError(f"setting {setting.name} must be {kind}, not {value!r}")
    if setting.min is not None and value < setting.min:
        raise UsageError(f"setting {setting.name} must be at least {setting.min}, not {value}")


def parse(cls: type, texts: Mapping[str, str]) -> dict[str, Any]:
    """Turn `key=value` texts into values of the settings' types."""
    known = {s.name: s for s in settings_of(cls)}
    values = {}
    for raw, text in texts.items():
        name = raw.replace("-", "_")
        if name not in known:
            raise UsageError(f"unknown setting {raw!r}; {nearest(name, known)}")
        values[name] = _value(name, known[name].type, text)
    return values


def _choice(name: str, choices: Sequence[Any], text: str) -> str:
    if text not in choices:
        told = ", ".join(map(str, choices))
        raise UsageError(f"setting {name} must be one of {told}; not {text!r}")
    return text


def _value(name: str, kind: Any, text: str) -> Any:
    origin = get_origin(kind)
    if origin is Literal:
        return _choice(name, get_args(kind), text)
    if origin in (Union, UnionType):
        inner = [a for a in get_args(kind) if a is not type(None)]
        return None if text.lower() in ("none", "") else _value(name, inner[0], text)
    if origin is tuple:
        inner = get_args(kind)[0]
        return tuple(_value(name, inner, part) for part in text.split(",") if part)
    if kind is bool:
        if text.lower() not in ("true", "false", "yes", "no", "1", "0"):
            raise UsageError(f"setting {name} must be true or false, not {text!r}")
        return text.lower() in ("true", "yes", "1")
    try:
        return typing.cast(Any, kind)(text)
    except ValueError:
        raise UsageError(f"setting {name} must be {kind.__name__}, not {text!r}") from None
