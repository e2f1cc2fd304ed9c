"""Runs compared on what all of them were asked: who is better, on what, and which facts flipped."""
