"""What a GPU gives beside what the CPU gives: answers, attributions, training."""
