"""A whole BELIEF-ICL on the bundled `atlas`: four contexts in two styles, 100 samples a confidence.

One `sonde sweep`, from the start of the command to its report, as a user waits for it. Every cell
is an ordinary run of SmolLM2; the table has what each took for asking, without its report.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from benchmarks.common import Result, parser, seconds, tell

NAME = "gpu_belief_icl"
CONTEXTS = "zero-shot,random,relation,template"
STYLES = "mask,qa"


def main() -> None:
    """Measure, print, and store where asked."""
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--device", default="cuda")
    options.add_argument("--dtype", default="bfloat16")
    options.add_argument("--limit", type=int, help="facts of a relation, to try it")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "sweep"
        words = ["sweep", "belief-icl", "-m", "smollm2", "-d", "atlas", "-o", str(out)]
        words += ["--over", f"context={CONTEXTS}", "--over", f"style={STYLES}"]
        words += ["--device", given.device, "--dtype", given.dtype]
        words += ["--limit", str(given.limit)] if given.limit else []
        command = [sys.executable, "-m", "sonde", *words]
        took = seconds(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))
        rows = tuple(cell(path) for path in sorted(out.glob("*/manifest.json")))
    where = torch.cuda.get_device_name() if given.device == "cuda" else "CPU"
    tell(
        Result(
            name=NAME,
            title=f"BELIEF-ICL on atlas, contexts and styles, SmolLM2-135M, {where}",
            columns=("context and style", "prompts", "s asked"),
            rows=rows,
            findings=(
                f"The whole command took {took:.0f} s, start, loading, all {len(rows)} runs, their "
                f"reports and the sweep's included; {given.dtype}, 100 samples for each of the "
                "pairs' confidences.",
            ),
        ),
        write=given.write,
    )


def cell(manifest: Path) -> tuple[str, ...]:
    """One run of the sweep: its settings, prompts, and the seconds of its sessions."""
    settings = json.loads(manifest.read_text())["probe"]["settings"]
    lines = (manifest.parent / "timings.jsonl").read_text().splitlines()
    done = json.loads((manifest.parent / "complete.json").read_text())
    spent = sum(json.loads(line)["seconds"] for line in lines)
    return f"{settings['context']}, {settings['style']}", f"{done['prompts']:,}", f"{spent:.1f}"


if __name__ == "__main__":
    main()
