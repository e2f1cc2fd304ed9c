"""How facts are put into words: options, contexts, matching."""
