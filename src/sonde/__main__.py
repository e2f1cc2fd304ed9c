"""`python -m sonde`: the command line."""

from sonde.cli.main import entry

entry()
