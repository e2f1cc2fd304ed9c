"""Find components by name: those of sonde through a table of modules, others as entry points."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any

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
