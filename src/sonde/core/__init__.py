"""The nouns everything else speaks in. Imports nothing of ours."""
