"""Encoder-decoder language models."""
