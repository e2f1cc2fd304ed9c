"""Reports: the results of a run as a page, in the terminal and as files."""
