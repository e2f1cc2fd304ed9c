"""From prompts to token ids and batches. Knows token ids and a tokenizer, no model class."""
