"""Masked language models: a masked position filled or scored."""
