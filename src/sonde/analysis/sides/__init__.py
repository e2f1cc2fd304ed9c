"""Reports of runs of one probe side by side, whatever the probe."""
