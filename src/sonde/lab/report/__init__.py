"""The report of a lab."""
