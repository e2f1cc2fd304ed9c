"""Invented worlds: facts, truth, text."""
