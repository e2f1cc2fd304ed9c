"""Work of `benchmarks.before`, run in this checkout. Prints JSON."""

import json
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sonde
from benchmarks import ic_lke, lama_fill, samples, together
from sonde.core.prompts import Sample

assert Path(sonde.__file__).is_relative_to(os.getcwd()), sonde.__file__
logging.disable(logging.WARNING)
took: dict[str, tuple[float, float]] = {}


def timed(name: str, work: Callable[[], object]) -> None:
    wall, spent = time.perf_counter(), time.process_time()
    work()
    took[name] = (time.perf_counter() - wall, time.process_time() - spent)


model: Any = sonde.model("smollm2")
drawn = list(samples.prompts(sonde.dataset("atlas"), Sample(count=100, most=16), 16))
samples.ours(model, drawn[:1])
model.prefixes.clear()
timed("samples", lambda: samples.ours(model, drawn))
asked = ic_lke.questions(model, "P190", 40, 100, 700)
ic_lke.by_sonde(model, asked[:2])
timed("ic_lke", lambda: ic_lke.by_sonde(model, asked))
both = together.asked(6)
together.turn(together.together, model, both[:4])
timed("together", lambda: together.turn(together.together, model, both))
shared = Path(os.environ["SONDE_SHARED"])
masked: Any = sonde.model(f"hf:{shared / 'models/encoder-24m'}")
prompts = lama_fill.questions(shared / "data/lama", 3000)
timed("lama_fill", lambda: lama_fill.by_sonde(masked, prompts))
print(json.dumps(took))
