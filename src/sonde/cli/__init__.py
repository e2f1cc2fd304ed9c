"""The command line, one small file per verb."""
