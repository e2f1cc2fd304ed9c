"""Show a report: in the terminal, as one HTML file, as JSON. Knows nothing of probes or models."""
