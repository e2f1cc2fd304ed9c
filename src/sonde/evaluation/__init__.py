"""Tables of graded prompts, and the numbers estimated from them."""
