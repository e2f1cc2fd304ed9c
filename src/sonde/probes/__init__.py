"""Probes, a folder each: what to ask, how to judge the answers, what the report says.

`PROBES` is how a probe class is found: by its name, those of other packages through `sonde.probes`.
Light: a wrong name is refused before any of them is imported.
"""

from __future__ import annotations

from sonde.core.components import Components

MODULES = {
    "bear": "sonde.probes.bear.probe",
    "belief": "sonde.probes.belief.probe",
    "belief-icl": "sonde.probes.belief_icl.probe",
    "counterfact": "sonde.probes.counterfact.probe",
    "eic-lke": "sonde.probes.lke.eic",
    "framing": "sonde.probes.framing.probe",
    "ic-lke": "sonde.probes.lke.ic",
    "lama": "sonde.probes.lama.probe",
    "lke-baselines": "sonde.probes.lke.baselines",
    "lke-separators": "sonde.probes.lke.separators",
    "lke-sequence": "sonde.probes.lke.sequence",
    "lke-shots": "sonde.probes.lke.shots",
    "monitor": "sonde.probes.monitor.probe",
    "qa": "sonde.probes.qa.probe",
}

SUMMARIES = {
    "bear": "Which allowed answer makes the likeliest sentence.",
    "belief": "Accuracy and consistency over many wordings of a fact.",
    "belief-icl": "The same, of answers that are written after examples.",
    "counterfact": "Is what is true likelier than a given falsehood?",
    "eic-lke": "As ic-lke, several facts tested in one sequence: cheaper.",
    "framing": "One fact as a sentence, a question, a statement to check.",
    "ic-lke": "Which of many options follows, after other such facts.",
    "lama": "Accuracy on cloze sentences, one per fact.",
    "lke-baselines": "In-context estimation beside templates and writing.",
    "lke-separators": "Accuracy under several separators between examples.",
    "lke-sequence": "Probability along a sequence of facts, some of them false.",
    "lke-shots": "Accuracy by number of examples, and how many are enough.",
    "monitor": "Do answers survive other wordings and misleading names?",
    "qa": "Questions with lists of answers, judged as sets.",
}
"""What each is about in a line, for lists that import none of them."""

PROBES = Components(MODULES, "sonde.probes")
"""Every probe class by name."""
