"""Figures as pictures, by plotly. Knows plain data, nothing of probes."""
