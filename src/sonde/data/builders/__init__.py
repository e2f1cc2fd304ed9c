"""Builders: make a dataset out of what others published, and say what was left out."""
