"""Token ids, spans, batches and tries."""
