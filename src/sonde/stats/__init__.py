"""Intervals and tests over plain numbers. Knows nothing of facts, prompts or models."""
