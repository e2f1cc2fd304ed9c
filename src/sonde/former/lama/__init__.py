"""LAMA: one sentence per fact."""
