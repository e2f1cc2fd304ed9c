"""Make templates out of training facts: each method is a file with a COMPONENT."""
