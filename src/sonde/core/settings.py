"""Typed settings: a dataclass field with a help text becomes a flag and a manifest entry."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from sonde.core.errors import UsageError, nearest


def setting(default: Any, help: str) -> Any:
    """A dataclass field with a default and a sentence that explains it."""
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting of a probe, as help texts and flags need it."""

    name: str
    type: Any
    default: Any
    help: str


def settings_of(cls: type) -> tuple[Setting, ...]:
    """The settings of a probe class, in the order they are declared."""
    hints = get_type_hints(cls)
    return tuple(
        Setting(
            name=f.name,
            type=hints[f.name],
            default=_default(f),
            help=f.metadata.get("help", ""),
        )
        for f in fields(cls)
    )


def _default(f: Field[Any]) -> Any:
    if f.default is not MISSING:
        return f.default
    return f.default_factory() if f.default_factory is not MISSING else None


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


def _value(name: str, kind: Any, text: str) -> Any:
    origin = get_origin(kind)
    if origin is Literal:
        if text not in get_args(kind):
            choices = ", ".join(map(str, get_args(kind)))
            raise UsageError(f"setting {name} must be one of {choices}; not {text!r}")
        return text
    if origin in (Union, types.UnionType):
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
