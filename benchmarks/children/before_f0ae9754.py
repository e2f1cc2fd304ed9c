"""Work of `benchmarks.before`, run in a checkout of commit f0ae9754. Prints JSON."""
# mypy: ignore-errors
# its types are those of that commit

import json
import logging
import os
import time
from pathlib import Path

import sonde
from benchmarks import ic_lke, lama_fill, samples, together
from sonde.core.prompts import Sample

assert Path(sonde.__file__).is_relative_to(os.getcwd()), sonde.__file__
logging.disable(logging.WARNING)
took = {}


def timed(name, work):
    wall, spent = time.perf_counter(), time.process_time()
    work()
    took[name] = (time.perf_counter() - wall, time.process_time() - spent)


model = sonde.model("smollm2")
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
masked = sonde.model(f"hf:{shared / 'models/encoder-24m'}")
prompts = lama_fill.questions(shared / "data/lama", 3000)
timed("lama_fill", lambda: lama_fill.by_sonde(masked, prompts))
print(json.dumps(took))
