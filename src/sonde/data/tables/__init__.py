"""Tables as datasets: their files, what a cell holds, which column is what."""
