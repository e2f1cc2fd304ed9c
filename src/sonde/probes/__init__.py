"""Probes, a file each: which prompts, how answers are judged, which metrics.

`PROBES` finds a probe's class by its name; those of other packages come from the entry point group
`sonde.probes`. A wrong name is rejected before any of them is imported.
"""

from sonde.core.components import Components

MODULES = {
    "bear": "sonde.probes.bear:Bear",
    "belief": "sonde.probes.belief:Belief",
    "belief-icl": "sonde.probes.belief_icl:BeliefIcl",
    "counterfact": "sonde.probes.counterfact:Counterfact",
    "eic-lke": "sonde.probes.eic_lke:EicLke",
    "framing": "sonde.probes.framing:Framing",
    "ic-lke": "sonde.probes.ic_lke:IcLke",
    "lama": "sonde.probes.lama:Lama",
    "lke-baselines": "sonde.probes.presets:LkeBaselines",
    "lke-sequence": "sonde.probes.sequence:LkeSequence",
    "lke-shots": "sonde.probes.presets:LkeShots",
    "monitor": "sonde.probes.monitor:Monitor",
    "profile": "sonde.probes.profile:Profile",
    "qa": "sonde.probes.qa:Qa",
}

SUMMARIES = {
    "bear": "Which allowed answer makes the most likely sentence.",
    "belief": "Accuracy and consistency over many templates of a fact.",
    "belief-icl": "The same for generated answers after examples.",
    "counterfact": "Is the true object more likely than a false one?",
    "eic-lke": "Like ic-lke, several facts per sequence: cheaper.",
    "framing": "One fact as a sentence, a question, a statement to check.",
    "ic-lke": "Which of many options follows after other such facts.",
    "lama": "Accuracy on cloze sentences, one per fact.",
    "lke-baselines": "In-context estimation next to templates and generation.",
    "lke-sequence": "Probability along a sequence of facts, some of them false.",
    "lke-shots": "Accuracy by number of examples, and how many are enough.",
    "monitor": "Do answers survive other templates and misleading cues?",
    "profile": "What a model knows, by every way to ask it.",
    "qa": "Questions with lists of answers, judged as sets.",
}

PROBES = Components(MODULES, "sonde.probes")
