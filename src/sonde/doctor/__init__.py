"""Does sonde talk to a model correctly, on this data? Knows nothing of how models are run."""
