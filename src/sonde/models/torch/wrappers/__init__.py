"""Models with other weights, vectors or templates."""
