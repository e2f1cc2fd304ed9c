"""Fine-tuning: all weights follow the gradient."""
