"""Reports: what a run found, as a page, in the terminal and as files."""
