"""Templates and soft prompts made for a model, models tuned; `MODULES` is how methods are found.

A folder each; methods of other packages come through `sonde.optimisers`.
"""

MODULES = {
    "autoprompt": "sonde.optimise.autoprompt.method",
    "finetune": "sonde.optimise.finetune.method",
    "lpaqa": "sonde.optimise.lpaqa.method",
    "optiprompt": "sonde.optimise.optiprompt.method",
}
