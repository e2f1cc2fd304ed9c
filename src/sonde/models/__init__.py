"""Models by scheme, one light file each; found by being here or through `sonde.models`.

What needs torch lies in `models/torch` and is imported when a model is loaded, not before.
"""
