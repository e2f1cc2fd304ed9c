"""LPAQA: templates chosen and weighed."""
