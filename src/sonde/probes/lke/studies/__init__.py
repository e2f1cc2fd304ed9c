"""Studies of the design of in-context estimation."""
