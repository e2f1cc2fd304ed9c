"""Data cards: what a dataset holds, what it gives away, and its metadata for other programs."""
