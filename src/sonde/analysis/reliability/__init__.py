"""MONITOR over several runs."""
