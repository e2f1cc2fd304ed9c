"""Find components: a file in its folder, or an entry point of another package."""

from __future__ import annotations

import importlib
import logging
import pkgutil
from functools import cache
from importlib.metadata import entry_points
from typing import Any

log = logging.getLogger(__name__)


@cache
def find(package: str, group: str) -> dict[str, Any]:
    """Components by name: the `COMPONENT` of each module in a package, then of each entry point.

    A built-in wins over an entry point of the same name.
    """
    found: dict[str, Any] = {}
    folder = importlib.import_module(package)
    for info in pkgutil.iter_modules(folder.__path__):
        if info.ispkg or info.name.startswith("_"):
            continue
        component = getattr(importlib.import_module(f"{package}.{info.name}"), "COMPONENT", None)
        if component is not None:
            found[component.name] = component
    for point in entry_points(group=group):
        try:
            component = point.load()
        except Exception as error:  # one broken package must not take every verb down
            log.warning("the %s entry point %r does not load: %s", group, point.value, error)
            continue
        found.setdefault(component.name, component)
    return found
