"""The naive twins of the engine: one text at a time."""
