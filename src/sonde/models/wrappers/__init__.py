"""Models made out of another: random weights, soft prompts, ensembles, fine-tuned."""
