"""Datasets: the one on-disk form, readers of public ones, and what is bundled."""
