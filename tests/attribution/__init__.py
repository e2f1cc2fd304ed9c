"""Prompts in parts, and the share each part has."""
