"""What runs may have learnt from training facts."""
