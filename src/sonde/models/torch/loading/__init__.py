"""Weights, tokenizer and device of a model."""
