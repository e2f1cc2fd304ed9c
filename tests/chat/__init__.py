"""Prompts as turns of a conversation."""
