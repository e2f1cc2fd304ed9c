"""Probes, a folder each: what to ask, how to judge the answers, what the report says.

`PROBES` is how a probe class is found: by its name, those of other packages through `sonde.probes`.
Light: a wrong name is refused before any of them is imported.
"""

from __future__ import annotations

from sonde.core.components import Components

MODULES = {
    "bear": "sonde.former.bear.probe",
    "belief": "sonde.former.belief.probe",
    "belief-icl": "sonde.former.belief_icl.probe",
    "counterfact": "sonde.former.counterfact.probe",
    "eic-lke": "sonde.former.lke.eic",
    "framing": "sonde.former.framing.probe",
    "ic-lke": "sonde.former.lke.ic",
    "lama": "sonde.former.lama.probe",
    "lke-baselines": "sonde.former.lke.baselines",
    "lke-separators": "sonde.former.lke.separators",
    "lke-sequence": "sonde.former.lke.sequence",
    "lke-shots": "sonde.former.lke.shots",
    "monitor": "sonde.former.monitor.probe",
    "qa": "sonde.former.qa.probe",
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
