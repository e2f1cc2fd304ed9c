"""Writing and sampling, token by token."""
