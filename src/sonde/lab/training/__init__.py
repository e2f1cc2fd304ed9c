"""Models taught a world's text."""
