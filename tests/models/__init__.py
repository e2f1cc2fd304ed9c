"""Loading and naming models, and the models that need no torch."""
