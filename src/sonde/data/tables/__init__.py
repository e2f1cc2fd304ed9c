"""Tables as datasets: their files, what a cell holds, which column is what."""

HUB = "hub"
"""How tables of the Hugging Face Hub are named: hub:OWNER/NAME."""
