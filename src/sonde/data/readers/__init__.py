"""Readers of public datasets, one file each; found by being here or through `sonde.readers`."""
