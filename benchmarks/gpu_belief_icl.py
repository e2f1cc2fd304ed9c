"""A whole BELIEF-ICL on the bundled `atlas`: four contexts in two styles, 100 samples a confidence.

One `sonde run` with --vary, from the start of the command to its report. The table has the seconds
in which SmolLM2 answered, without the report.
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
        out = Path(folder) / "run"
        words = ["run", "belief-icl", "-m", "smollm2", "-d", "atlas", "-o", str(out)]
        words += ["--vary", f"context={CONTEXTS}", "--vary", f"style={STYLES}"]
        words += ["--device", given.device, "--dtype", given.dtype]
        words += ["--limit", str(given.limit)] if given.limit else []
        command = [sys.executable, "-m", "sonde", *words]
        took = seconds(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))
        rows = (answered(out),)
    where = torch.cuda.get_device_name() if given.device == "cuda" else "CPU"
    tell(
        Result(
            name=NAME,
            title=f"BELIEF-ICL on atlas, contexts and styles, SmolLM2-135M, {where}",
            columns=("passes", "prompts", "s answering"),
            rows=rows,
            findings=(
                f"The whole command took {took:.0f} s, with start, loading and the report; "
                f"{given.dtype}, 100 samples for each of the pairs' confidences.",
            ),
        ),
        write=given.write,
    )


def answered(run: Path) -> tuple[str, ...]:
    """The passes of the run, its prompts, and the seconds of its sessions."""
    vary = json.loads((run / "manifest.json").read_text())["probe"]["vary"]
    sessions = [json.loads(line) for line in (run / "timings.jsonl").read_text().splitlines()]
    prompts, took = (sum(session[name] for session in sessions) for name in ("prompts", "seconds"))
    passes = " × ".join(f"{len(values)} of {name}" for name, values in vary.items())
    return passes, f"{prompts:,}", f"{took:.0f}"


if __name__ == "__main__":
    main()
