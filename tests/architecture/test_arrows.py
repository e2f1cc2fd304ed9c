"""The layout is the architecture: who may import whom, and what must stay light."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

import sonde

SOURCE = Path(sonde.__file__).parent

IMPORT = re.compile(r"^ *(?:from (\S+) )?import (\([^)]*\)|[^\n#]+)", re.MULTILINE)

TEXTS = {"answers", "bridge", "prompts"}
"""Prompts and answers as columns, and the way from and to those of today's models and stores."""

ARROWS = {
    "core": set(),
    "prompts": set(),
    "answers": {"core", "prompts"},
    "bridge": {"answers", "core", "prompts"},
    "http": {"core"},
    "prompting": {"answers", "core", "prompts"},
    "data": {"core", "evaluation", "http", "prompting"},
    "engine": {"core"},
    "models": {*TEXTS, "core", "engine", "http", "testing"},
    "evaluation": {*TEXTS, "core", "prompting"},
    "reports": {*TEXTS, "core", "evaluation", "models"},
    "probes": {*TEXTS, "core", "evaluation", "prompting"},
    "compare": {"core", "evaluation", "models", "reports", "runs"},
    "attribution": {"core", "prompting", "reports"},
    "cards": {"core", "data", "evaluation", "models", "prompting", "reports"},
    "doctor": {"core", "evaluation"},
    "optimise": {"core", "engine", "models", "store"},
    "store": {"core"},
    "runs": {*TEXTS, "core", "data", "doctor", "evaluation", "models", "probes", "prompting",
             "reports", "store"},
    "api": {"cards", "compare", "core", "data", "models", "probes", "runs"},
    "studies": {"api", "core", "data", "models", "probes", "runs"},
    "lab": {*TEXTS, "api", "core", "data", "evaluation", "models", "optimise", "probes",
            "prompting", "reports", "runs", "store"},
    "testing": {*TEXTS, "core", "data", "evaluation", "models", "runs", "store"},
    "__main__": {"cli"},
    "cli": {"api", "attribution", "cards", "compare", "core", "data", "doctor", "evaluation",
            "http", "lab", "models", "optimise", "probes", "reports", "runs", "studies"},
}  # fmt: skip
"""Which packages a package may import when it runs."""

BACKWARDS = {
    "evaluation/layout.py": {"reports"},  # a notebook shows an exhibit
}
"""Imports against the arrows, made late. Those for types alone are not looked at."""

SIBLINGS = {
    "probes": {"base", "belief", "monitor", "presets", "ic_lke", "vary"},
    "data/readers": set(),
    "optimise": {"making", "folder", "texts", "losses", "state", "training"},
    "models": {"options", "tables", "load", "sentences", "chat_templates", "torch", "served"},
}
"""Folders whose parts never import each other, and what their parts share."""

HEAVY = {
    "torch",
    "transformers",
    "polars",
    "pandas",
    "gguf",
    "scipy",
    "httpx",
    "tenacity",
    "jinja2",
    "sacrebleu",
    "datasets",
    "fastexcel",
    "ray",
}
"""Imported in one place each, never when sonde is."""

AT_HOME: dict[str, str | tuple[str, ...]] = {
    "torch": ("models/torch/", "optimise/", "lab/training/"),
    "transformers": (
        "models/torch/",
        "models/chat_templates.py",
        "models/served/tokens.py",
        "lab/training/",
    ),
    "safetensors": ("models/optimised.py", "models/torch/", "optimise/"),
    "accelerate": "models/torch/loading/spread.py",
    "captum": "models/torch/attribution.py",
    "triton": "models/torch/masked/kernels.py",
    "ray": "runs/workers/ray.py",
    "vllm": "models/served/vllm_engine.py",
    "peft": "models/torch/loading/adapters.py",
    "datasets": "data/tables/hub.py",
    "fastexcel": "data/tables/files.py",
    "gguf": "models/torch/loading/gguf_copies.py",
    "huggingface_hub": "models/torch/loading/weights.py",
    "xllamacpp": "models/served/llamacpp_engine.py",
    "jinja2": "reports/html.py",
    "pyarrow": (
        *("answers.py", "bridge.py", "core/", "data/", "store/"),
        *("evaluation/estimate.py", "evaluation/judge.py"),
    ),
    "spacy": "data/statistics.py",
    "httpx": "http/client.py",
    "tenacity": "http/failures.py",
    "sacrebleu": "data/builders/fktc.py",
    "scipy": ("compare/pairwise.py", "evaluation/stats.py", "lab/report/findings.py"),
    "simplemma": "prompting/matching.py",
    "sudachipy": "prompting/segmenting.py",
    "jieba": "prompting/segmenting.py",
    "pythainlp": "prompting/segmenting.py",
    "tokenizers": (
        "engine/encode.py",
        "engine/seams.py",
        "engine/masked_batch.py",
        "engine/seq2seq_encode.py",
        "engine/causal_texts.py",
        "engine/tokenise.py",
        "engine/endings.py",
        "engine/token_texts.py",
        "lab/training/",
        "models/torch/",
        "models/served/tokens.py",
    ),
    "typer": "cli/",
    "rich": ("cli/", "reports/cells.py", "reports/terminal.py"),
}


@cache
def modules() -> Mapping[Path, str]:
    """The text of every file."""
    return {path: path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))}


@cache
def imports(path: Path) -> frozenset[str]:
    """Every module a file imports, wherever in the file.

    The formatter begins a line with every import; to parse whole files would take seconds.
    """
    found: set[str] = set()
    # what is imported for types alone, up to the next line that is not indented
    text = re.sub(r"^if TYPE_CHECKING:\n(?:(?: .*)?\n)*", "", modules()[path], flags=re.MULTILINE)
    for module, names in IMPORT.findall(text):
        assert not module.startswith("."), f"{path}: relative import"
        each = re.findall(r"([\w.]+)(?: as \w+)?", re.sub(r"#.*", "", names))
        found.update(f"{module}.{name}" if module else name for name in each)
    return frozenset(found)


def test_every_way_to_write_an_import_is_found() -> None:
    """Parsed for once, so that none is overlooked: the file with the most imports."""
    every = (path for path, text in modules().items() if "if TYPE_CHECKING" not in text)
    path = max(every, key=lambda path: len(imports(path)))
    found: set[str] = set()
    for node in ast.walk(ast.parse(modules()[path])):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    assert imports(path) == found


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def test_a_module_imports_only_along_the_arrows() -> None:
    for path in modules():
        here = room(path)
        allowed = set(ARROWS) if here == "__init__" else ARROWS[here]  # by name, when used
        ours = {name.split(".")[1] for name in imports(path) if name.startswith("sonde.")}
        name = str(path.relative_to(SOURCE))
        strangers = {n for n in ours - {here} - allowed if not n.startswith("__")}
        assert strangers <= BACKWARDS.get(name, set()), f"{name} may not import {strangers}"


def test_the_top_level_holds_rooms_and_what_users_import() -> None:
    files = {path.stem for path in SOURCE.glob("*.py")}
    assert files == {"__init__", "__main__", "api", "studies", "testing", *TEXTS}


@pytest.mark.parametrize("room", ["api", "cli", "lab", "runs"])
def test_probes_are_known_by_their_names_alone(room: str) -> None:
    table = tuple(f"sonde.probes.{name}" for name in ("PROBES", "SUMMARIES", "base.", "vary."))
    for path in (path for path in modules() if path.relative_to(SOURCE).parts[0].startswith(room)):
        for name in imports(path):
            assert not name.startswith("sonde.probes") or name.startswith(table), (path.name, name)


@pytest.mark.parametrize("folder", SIBLINGS)
def test_siblings_do_not_import_each_other(folder: str) -> None:
    package = "sonde." + folder.replace("/", ".")
    parts = {p.stem for p in (SOURCE / folder).iterdir() if p.suffix in ("", ".py")}
    alone = parts - SIBLINGS[folder] - {"__init__", "__pycache__"}
    assert len(alone) > 2, f"no siblings in {folder}"
    for path in (SOURCE / folder).rglob("*.py"):
        own = path.relative_to(SOURCE / folder).parts[0].removesuffix(".py")
        for other in alone - {own} if own in alone else ():
            prefix = f"{package}.{other}"
            met = [i for i in imports(path) if i == prefix or i.startswith(prefix + ".")]
            assert not met, f"{path.relative_to(SOURCE)} imports its sibling {other}"


@pytest.mark.parametrize("library", AT_HOME)
def test_a_library_is_imported_in_its_place_only(library: str) -> None:
    for path in modules():
        used = any(name.split(".")[0] == library for name in imports(path))
        inside = str(path.relative_to(SOURCE)).startswith(AT_HOME[library])
        assert not used or inside, f"{path.relative_to(SOURCE)} imports {library}"


def test_every_module_says_what_it_is_for() -> None:
    for path, text in modules().items():
        assert not text.strip() or text.startswith(('"""', 'r"""')), f"{path} has no docstring"


def loaded_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stdout.split()}


def test_importing_sonde_loads_nothing_heavy() -> None:
    assert not loaded_after("import sonde") & (HEAVY | {"numpy", "pyarrow", "rich", "typer"})


def test_the_command_line_starts_without_anything_heavy() -> None:
    assert not loaded_after("import sonde.cli.main, sonde.cli.verbs") & HEAVY
