"""Dataclasses of options become flags, and a verb is handed them filled."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from sonde.cli.options import argument, changed, listed, matching, option, verb
from sonde.cli.verbs import group
from sonde.core.components import setting
from sonde.core.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    depth: int = option("How deep.", 1, least=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    who: str = argument("Who is greeted.")
    inner: Depth
    loud: bool = option("Loudly.", False, "--loud")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool with settings."""

    name: ClassVar[str] = "tool"
    sizes: tuple[int, ...] = setting((1, 2), "its sizes")
    sharp: bool = setting(True, "whether it cuts")
    edge: int = setting(3, "how thin", min=2)


def greet(words: Words) -> None:
    """Greet someone."""
    seen.append(words)


def use(tool: Any, words: Words) -> None:
    """Use a tool."""
    seen.append((tool, words))


seen: list[Any] = []


def run(*words: str) -> Any:
    """Run a command line of two verbs; what the verb was handed."""
    verbs = {"greet": verb(greet), "use": verb(use, Tool, "Example: use it")}
    seen.clear()
    group("Two verbs.", verbs, verbs.__getitem__)(list(words), standalone_mode=False)
    return seen[0]


def test_a_dataclass_inside_another_stands_for_its_fields_where_it_is() -> None:
    assert list(inspect.signature(verb(greet)).parameters) == ["who", "depth", "loud"]
    handed = run("greet", "Ada", "--depth", "4", "--loud")
    assert handed == Words(who="Ada", inner=Depth(depth=4), loud=True)
    assert run("greet", "Ada") == Words(who="Ada", inner=Depth())


def test_what_has_settings_comes_last_and_is_built_with_them() -> None:
    names = list(inspect.signature(verb(use, Tool)).parameters)
    assert names == ["who", "depth", "loud", "sizes", "sharp", "edge"]
    tool, words = run("use", "Ada", "--sizes", "4,5", "--no-sharp")
    assert tool == Tool(sizes=(4, 5), sharp=False) and words.who == "Ada"
    with pytest.raises(UsageError, match="edge must be at least 2"):
        run("use", "Ada", "--edge", "1")


def test_the_help_text_is_the_function_s_or_the_component_s_with_its_example() -> None:
    assert verb(greet).__doc__ == "Greet someone."
    assert verb(use, Tool, "Example: use it").__doc__ == "A tool with settings.\n\nExample: use it"


def test_texts_change_settings_and_keep_the_others() -> None:
    assert changed(Tool(edge=5), ["sharp=no"]) == Tool(edge=5, sharp=False)
    with pytest.raises(UsageError, match="KEY=VALUE"):
        changed(Tool(), ["sharp"])


def test_options_fill_a_dataclass_of_the_same_names() -> None:
    assert matching(Tool, Depth(), edge=7) == Tool(edge=7)
    assert matching(Depth, Tool(), depth=2) == Depth(depth=2)
    assert listed("a, b,,c") == ("a", "b", "c")


def test_a_verb_is_imported_when_it_is_named_and_a_probe_when_it_is_run() -> None:
    code = (
        "import sys; from sonde.cli.main import main; main(['run', 'lama', '--help'])\n"
        "print(*(name for name in sys.modules if name.startswith('sonde.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert {"sonde.cli.run", "sonde.probes.lama"} <= {*loaded}
    assert not {"sonde.cli.lab", "sonde.cli.optimise", "sonde.probes.belief"} & {*loaded}
