"""Probes, a folder each: what to ask, how to judge the answers, what the report says.

`MODULES` is how a probe is found; those of other packages come through `sonde.probes`.
"""

MODULES = {
    "belief": "sonde.probes.belief.probe",
    "belief-icl": "sonde.probes.belief_icl.probe",
    "eic-lke": "sonde.probes.lke.eic",
    "framing": "sonde.probes.framing.probe",
    "ic-lke": "sonde.probes.lke.ic",
    "lama": "sonde.probes.lama.probe",
    "lke-baselines": "sonde.probes.lke.baselines",
    "lke-separators": "sonde.probes.lke.separators",
    "lke-sequence": "sonde.probes.lke.sequence",
    "lke-shots": "sonde.probes.lke.shots",
    "monitor": "sonde.probes.monitor.probe",
}
