"""Causal language models: options scored along a tree of shared tokens."""
