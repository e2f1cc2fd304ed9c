"""The extension examples: run as they are printed, in memory and as an installed package."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import sonde.testing

from .pages import DOCS, ROOT, blocks, first_cells

PAGE = DOCS / "plug-ins.md"


def written(folder: Path) -> Path:
    """The page's files in a folder, installed as far as Python can tell."""
    for block in blocks(PAGE):
        if block.kind == "file":
            (folder / block.rest).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.rest).write_text(block.text, encoding="utf-8")
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    metadata = folder / "my_sonde-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\n")
    groups = project["entry-points"].items()
    lines = [f"[{group}]\n{name} = {value}" for group, v in groups for name, value in v.items()]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder


def in_package(folder: Path, program: str) -> str:
    """What a program prints where the example package is installed."""
    environment = {"PYTHONPATH": f"{folder}:{ROOT / 'src'}", "PATH": "", "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_example_package_is_found_and_used_by_the_command_line(tmp_path: Path) -> None:
    folder = written(tmp_path)
    (folder / "capitals").mkdir()
    (folder / "capitals" / "capitals.tsv").write_text("France\tParis\nUzbekistan\tTashkent\n")
    [command] = [
        line[2:]
        for block in blocks(PAGE)
        for line in block.text.splitlines()
        if line.startswith("$ sonde run robust")
    ]
    printed = in_package(
        folder,
        f"import sys; sys.argv = {command.split()!r}\nfrom sonde.cli.main import entry\nentry()",
    )
    # the longest option is Tashkent, which is correct once in two
    assert re.search(r"correct in all +50\.0%", printed), printed


def test_the_example_components_pass_the_public_checks(tmp_path: Path) -> None:
    folder = written(tmp_path)
    (folder / "capitals.tsv").write_text("France\tParis\nUzbekistan\tTashkent\n")
    in_package(
        folder,
        "from pathlib import Path\n"
        "from sonde import api\n"
        "from sonde.data import catalog\n"
        "from sonde.core.prompts import prompts_of\n"
        "from sonde.testing import check_dataset, check_model, check_probe\n"
        "dataset = catalog.load('tsv:.')\n"
        "probe = api.probe('robust')\n"
        "check_dataset(dataset)\n"
        "check_probe(probe, dataset)\n"
        "check_model(api.model('longest'), list(prompts_of(probe.ask(dataset))))\n",
    )


@pytest.mark.slow
def test_the_example_package_passes_strict_type_checking(tmp_path: Path) -> None:
    folder = written(tmp_path)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--no-incremental"),
            *("--config-file", str(ROOT / "pyproject.toml"), "-p", "my_sonde"),
        ],
        cwd=folder,
        env={"MYPYPATH": f"{folder}:{ROOT / 'src'}", "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_documented_checks_are_the_public_ones() -> None:
    documented = {name.partition("(")[0] for name in first_cells(PAGE, "Conformance checks")}
    assert documented == {name for name in vars(sonde.testing) if name.startswith("check_")}
