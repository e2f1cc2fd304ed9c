"""Every estimator of what a model knows."""
