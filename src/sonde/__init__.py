"""sonde: what does this language model actually know, and how far can you trust it?

    import sonde
    run = sonde.run(sonde.probe("lama"), sonde.model("smollm2"), sonde.dataset("atlas"), out="run")
    print(run.report().estimates["p_at_1.mean_over_relations"])

What probes, models and readers of your own need is here too (docs/plug-ins.md). Everything heavy
is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sonde.analysis.report import Comparison as Comparison
    from sonde.api import card as card
    from sonde.api import certify as certify
    from sonde.api import compare as compare
    from sonde.api import dataset as dataset
    from sonde.api import learning as learning
    from sonde.api import model as model
    from sonde.api import probe as probe
    from sonde.core.abilities import Ability as Ability
    from sonde.core.abilities import Identity as Identity
    from sonde.core.abilities import Model as Model
    from sonde.core.abilities import need as need
    from sonde.core.answers import Filled as Filled
    from sonde.core.answers import Generated as Generated
    from sonde.core.answers import Sampled as Sampled
    from sonde.core.answers import Scored as Scored
    from sonde.core.answers import Traced as Traced
    from sonde.core.certificates import Certificate as Certificate
    from sonde.core.columns import Answers as Answers
    from sonde.core.components import setting as setting
    from sonde.core.facts import Card as Card
    from sonde.core.facts import Dataset as Dataset
    from sonde.core.facts import Entity as Entity
    from sonde.core.facts import Fact as Fact
    from sonde.core.facts import Relation as Relation
    from sonde.core.facts import Template as Template
    from sonde.core.prompts import Block as Block
    from sonde.core.prompts import Fill as Fill
    from sonde.core.prompts import Generate as Generate
    from sonde.core.prompts import Key as Key
    from sonde.core.prompts import Prompt as Prompt
    from sonde.core.prompts import Sample as Sample
    from sonde.core.prompts import Score as Score
    from sonde.core.prompts import Trace as Trace
    from sonde.core.reports import Estimate as Estimate
    from sonde.core.reports import Metric as Metric
    from sonde.core.reports import Report as Report
    from sonde.data.format import hash_files as hash_files
    from sonde.metrics.frames import judge as judge
    from sonde.metrics.frames import mean as mean
    from sonde.models.options import LoadOptions as LoadOptions
    from sonde.prompting.sentences import sentences as sentences
    from sonde.prompting.sentences import usual_names as usual_names
    from sonde.reporting.build.parts import headline as headline
    from sonde.runs.plan import Plan as Plan
    from sonde.runs.plan import plan as plan
    from sonde.runs.run import Run as Run
    from sonde.runs.run import open_run as open_run
    from sonde.runs.run import run as run
    from sonde.runs.sweep import Sweep as Sweep
    from sonde.runs.sweep import open_sweep as open_sweep
    from sonde.runs.sweep import sweep as sweep

__version__ = "0.2.0"

_MODULES = {
    "sonde.analysis.report": ("Comparison",),
    "sonde.api": ("card", "certify", "compare", "dataset", "learning", "model", "probe"),
    "sonde.core.abilities": ("Ability", "Identity", "Model", "need"),
    "sonde.core.answers": ("Filled", "Generated", "Sampled", "Scored", "Traced"),
    "sonde.core.certificates": ("Certificate",),
    "sonde.core.columns": ("Answers",),
    "sonde.core.components": ("setting",),
    "sonde.core.facts": ("Card", "Dataset", "Entity", "Fact", "Relation", "Template"),
    "sonde.core.prompts": (
        "Block",
        "Fill",
        "Generate",
        "Key",
        "Prompt",
        "Sample",
        "Score",
        "Trace",
    ),
    "sonde.core.reports": ("Estimate", "Metric", "Report"),
    "sonde.data.format": ("hash_files",),
    "sonde.metrics.frames": ("judge", "mean"),
    "sonde.models.options": ("LoadOptions",),
    "sonde.prompting.sentences": ("sentences", "usual_names"),
    "sonde.reporting.build.parts": ("headline",),
    "sonde.runs.plan": ("Plan", "plan"),
    "sonde.runs.run": ("Run", "open_run", "run"),
    "sonde.runs.sweep": ("Sweep", "open_sweep", "sweep"),
}
_LAZY = {name: module for module, names in _MODULES.items() for name in names}

__all__ = ["__version__", *sorted(_LAZY)]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'sonde' has no attribute {name!r}")
