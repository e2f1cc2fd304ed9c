"""Probes, one file each; found by being here or through `sonde.probes`. No torch in here."""
