"""Runs side by side: what they share, rank alike, know of each other."""
