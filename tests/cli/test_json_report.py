"""`sonde report`: stable names, and no model needed to read them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.command import Sonde

MODEL_LIBRARIES = ("torch", "transformers", "tokenizers", "safetensors")


def test_estimates_have_stable_names(sonde: Sonde, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert sonde("run", "lama", "-m", "control:majority", "-d", data, "-o", out).code == 0
    body = json.loads(sonde("report", out, "--json").out)
    assert body["counts"]["prompts"] == 8
    assert body["provenance"]["model"]["name"] == "control:majority"
    assert body["provenance"]["run"]["prompts"] == 8
    assert {"p_at_1", "p_at_1.baseline", "p_at_1.difference", "p_at_1.facts"} <= {
        *body["estimates"]
    }
    assert {"p_at_1.relation.P36", "uhn.p_at_1", "p_at_10", "mrr"} <= {*body["estimates"]}
    for estimate in body["estimates"].values():
        assert estimate.keys() <= {"high", "low", "n", "value", "p", "p_adjusted"}
    assert body["metrics"]["p_at_1"]["unit"] == "percent"


def test_the_same_answers_give_the_same_report(sonde: Sonde, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert sonde("run", "lama", "-m", "control:majority", "-d", data, "-o", out).code == 0
    moved = tmp_path / "moved"
    first = sonde("report", out, "--json").out
    out.rename(moved)
    assert sonde("report", moved, "--json").out == first


def test_a_report_is_made_where_no_model_library_can_be_imported(
    sonde: Sonde, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert sonde("run", "lama", "-m", "control:majority", "-d", data, "-o", out).code == 0
    code = f"""
import sys
sys.modules.update(dict.fromkeys({MODEL_LIBRARIES!r}))
from sonde.cli.main import main
sys.exit(main(["report", {str(out)!r}, "--html", {str(tmp_path / "page.html")!r}]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "P@1" in done.stdout
    assert (tmp_path / "page.html").exists()


def test_importing_sonde_and_starting_the_command_load_nothing_heavy() -> None:
    code = "import sonde, sonde.cli.main, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert not loaded & {
        *MODEL_LIBRARIES,
        "numpy",
        "pandas",
        "polars",
        "pyarrow",
        "rich",
        "typer",
    }
