"""Parts of reports that several probes have. Knows numbers, nothing of terminals or HTML."""
