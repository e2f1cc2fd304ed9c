"""Read what was asked in several languages: its numbers, and what a report says of them."""
