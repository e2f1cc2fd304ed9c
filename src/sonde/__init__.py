"""sonde: what does this language model actually know, and how far can you trust it?

    import sonde
    run = sonde.run(sonde.probe("lama"), sonde.model("smollm2"), sonde.dataset("atlas"), out="run")
    print(run.report())

Probes, models and readers of your own import from here, too (docs/plug-ins.md). Everything heavy is
imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sonde.answers import Answers as Answers
    from sonde.answers import Completions as Completions
    from sonde.answers import MaskScores as MaskScores
    from sonde.answers import OptionScores as OptionScores
    from sonde.answers import Samples as Samples
    from sonde.answers import SpanLogprobs as SpanLogprobs
    from sonde.api import card as card
    from sonde.api import certify as certify
    from sonde.api import compare as compare
    from sonde.api import dataset as dataset
    from sonde.api import model as model
    from sonde.api import probe as probe
    from sonde.compare.report import Comparison as Comparison
    from sonde.core.abilities import Identity as Identity
    from sonde.core.abilities import Model as Model
    from sonde.core.answers import Filled as Filled
    from sonde.core.answers import Generated as Generated
    from sonde.core.answers import Sampled as Sampled
    from sonde.core.answers import Scored as Scored
    from sonde.core.answers import Traced as Traced
    from sonde.core.certificates import Certificate as Certificate
    from sonde.core.components import setting as setting
    from sonde.core.facts import Card as Card
    from sonde.core.facts import Dataset as Dataset
    from sonde.core.facts import Entity as Entity
    from sonde.core.facts import Fact as Fact
    from sonde.core.facts import Relation as Relation
    from sonde.core.facts import Template as Template
    from sonde.core.prompts import Prompt as Prompt
    from sonde.data.format import hash_files as hash_files
    from sonde.evaluation.estimate import Contrast as Contrast
    from sonde.evaluation.estimate import Group as Group
    from sonde.evaluation.estimate import Metric as Metric
    from sonde.evaluation.estimate import Special as Special
    from sonde.evaluation.layout import Exhibit as Exhibit
    from sonde.evaluation.layout import Layout as Layout
    from sonde.evaluation.tables import Results as Results
    from sonde.models.options import LoadOptions as LoadOptions
    from sonde.probes.base import Probe as Probe
    from sonde.probes.vary import vary as vary
    from sonde.prompting.templates import fill_templates as fill_templates
    from sonde.prompting.templates import usual_names as usual_names
    from sonde.prompts import FillMask as FillMask
    from sonde.prompts import Generate as Generate
    from sonde.prompts import PromptBatch as PromptBatch
    from sonde.prompts import Sample as Sample
    from sonde.prompts import Score as Score
    from sonde.prompts import TokenLogprobs as TokenLogprobs
    from sonde.reports.model import Report as Report
    from sonde.runs.plan import Plan as Plan
    from sonde.runs.plan import plan as plan
    from sonde.runs.run import Run as Run
    from sonde.runs.run import open_run as open_run
    from sonde.runs.run import run as run
    from sonde.studies import study as study

__version__ = "0.2.0"

_MODULES = {
    "sonde.compare.report": ("Comparison",),
    "sonde.answers": (
        "Answers",
        "Completions",
        "MaskScores",
        "OptionScores",
        "Samples",
        "SpanLogprobs",
    ),
    "sonde.api": ("card", "certify", "compare", "dataset", "model", "probe"),
    "sonde.core.abilities": ("Identity", "Model"),
    "sonde.core.answers": ("Filled", "Generated", "Sampled", "Scored", "Traced"),
    "sonde.core.certificates": ("Certificate",),
    "sonde.core.components": ("setting",),
    "sonde.core.facts": ("Card", "Dataset", "Entity", "Fact", "Relation", "Template"),
    "sonde.core.prompts": ("Prompt",),
    "sonde.data.format": ("hash_files",),
    "sonde.evaluation.estimate": ("Contrast", "Group", "Metric", "Special"),
    "sonde.evaluation.layout": ("Exhibit", "Layout"),
    "sonde.evaluation.tables": ("Results",),
    "sonde.models.options": ("LoadOptions",),
    "sonde.probes.base": ("Probe",),
    "sonde.probes.vary": ("vary",),
    "sonde.prompting.templates": ("fill_templates", "usual_names"),
    "sonde.prompts": ("FillMask", "Generate", "PromptBatch", "Sample", "Score", "TokenLogprobs"),
    "sonde.reports.model": ("Report",),
    "sonde.runs.plan": ("Plan", "plan"),
    "sonde.runs.run": ("Run", "open_run", "run"),
    "sonde.studies": ("study",),
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
