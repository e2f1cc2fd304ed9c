"""Templates and soft prompts made for a model, models tuned; `MODULES` is how methods are found.

A folder each; methods of other packages come through `sonde.optimisers`.
"""

MODULES = {
    "autoprompt": "sonde.optimise.autoprompt",
    "finetune": "sonde.optimise.finetune",
    "lpaqa": "sonde.optimise.lpaqa",
    "optiprompt": "sonde.optimise.optiprompt",
}
