"""The layout is the architecture: who may import whom, and what must stay light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import sonde

SOURCE = Path(sonde.__file__).parent

ARROWS = {
    "core": set(),
    "stats": set(),
    "wording": {"core"},
    "data": {"core", "wording", "stats"},
    "engine": {"core"},
    "models": {"core", "engine"},
    "metrics": {"core", "stats"},
    "probes": {"core", "wording", "metrics", "stats"},
    "analysis": {"core", "metrics", "stats"},
    "attribution": {"core", "wording"},
    "doctor": {"core"},
    "optimise": {"core", "engine", "models", "store"},
    "store": {"core"},
    "report": {"core"},
    "fitting": {"core"},
    "runner": {"core", "store", "data", "fitting"},
    "measure": {"core"},
    "planner": {"core", "store", "runner", "measure", "fitting"},
    "comparing": {"analysis", "core", "metrics", "models", "runner", "wording"},
    "controls": {"analysis", "core", "metrics", "runner"},
    "guessing": {"core", "metrics", "runner", "wording"},
    "api": {"analysis", "comparing", "core", "data", "guessing", "models", "runner"},
    "lab": {
        "api",
        "core",
        "data",
        "metrics",
        "models",
        "optimise",
        "runner",
        "stats",
        "store",
        "wording",
    },
    "testing": {"core", "data", "models", "runner"},
    "cli": {
        "analysis",
        "api",
        "attribution",
        "comparing",
        "controls",
        "core",
        "data",
        "doctor",
        "lab",
        "metrics",
        "models",
        "optimise",
        "planner",
        "report",
        "runner",
    },
}

SIBLINGS = ("probes", "data/readers", "models")
HELPERS = {"models": {"options", "extras", "tables", "load"}}

HEAVY = {
    "torch",
    "transformers",
    "polars",
    "plotly",
    "pandas",
    "gguf",
    "scipy",
    "httpx",
    "sacrebleu",
}
"""Imported in one place each, never when sonde is."""

AT_HOME: dict[str, str | tuple[str, ...]] = {
    "torch": ("models/torch/", "optimise/", "lab/_training"),
    "transformers": ("models/torch/", "lab/_training"),
    "safetensors": ("models/soft.py", "models/torch/", "optimise/", "lab/_training"),
    "captum": "models/torch/attribution.py",
    "gguf": "models/torch/dequantise.py",
    "huggingface_hub": "models/torch/weights.py",
    "plotly": "report/figures.py",
    "polars": "runner.py",
    "pyarrow": ("store/", "data/columns.py"),
    "spacy": "data/syntax.py",
    "httpx": "data/builders/endpoint.py",
    "sacrebleu": "data/builders/bleu.py",
    "scipy": "stats/",
    "simplemma": "wording/matching.py",
    "tokenizers": (
        "engine/encode.py",
        "engine/pairs.py",
        "engine/seams.py",
        "engine/tokenise.py",
        "lab/_training",
        "lab/tokens.py",
        "models/torch/",
    ),
    "typer": "cli/",
    "rich": ("cli/", "report/terminal"),
}


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def imports(path: Path) -> set[str]:
    """Every module a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_module_imports_only_along_the_arrows(path: Path) -> None:
    here = room(path)
    ours = {name.split(".")[1] for name in imports(path) if name.startswith("sonde.")}
    if here == "__init__":
        assert ours <= {"api", "runner", "planner"}
        return
    strangers = {name for name in ours - {here} if not name.startswith("__")}
    assert strangers <= ARROWS[here], f"{here} may not import {strangers - ARROWS[here]}"


@pytest.mark.parametrize("folder", SIBLINGS)
def test_siblings_do_not_import_each_other(folder: str) -> None:
    package = "sonde." + folder.replace("/", ".")
    components = [p for p in (SOURCE / folder).glob("*.py") if "COMPONENT" in p.read_text()]
    names = {p.stem for p in components}
    assert names, f"no component in {folder}"
    for path in components:
        for other in names - {path.stem}:
            prefix = f"{package}.{other}"
            met = [i for i in imports(path) if i == prefix or i.startswith(prefix + ".")]
            assert not met, f"{path.name} imports its sibling {other}"


@pytest.mark.parametrize("library", AT_HOME)
def test_a_library_is_imported_in_its_place_only(library: str) -> None:
    for path in modules():
        used = any(name.split(".")[0] == library for name in imports(path))
        inside = str(path.relative_to(SOURCE)).startswith(AT_HOME[library])
        assert not used or inside, f"{path.relative_to(SOURCE)} imports {library}"


def test_every_module_says_what_it_is_for() -> None:
    for path in modules():
        text = path.read_text(encoding="utf-8")
        assert not text.strip() or ast.get_docstring(ast.parse(text)), f"{path} has no docstring"


def test_no_file_outgrows_400_lines() -> None:
    for path in modules():
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 400, f"{path} is too long"


def loaded_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stdout.split()}


def test_importing_sonde_loads_nothing_heavy() -> None:
    assert not loaded_after("import sonde") & (HEAVY | {"numpy", "pyarrow", "rich", "typer"})


def test_the_command_line_starts_without_anything_heavy() -> None:
    assert not loaded_after("import sonde.cli.main, sonde.cli.verbs") & HEAVY
