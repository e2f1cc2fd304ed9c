"""Make a run, plan it, set controls beside it, open several to compare."""
