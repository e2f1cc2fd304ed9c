"""Tests of the run folder and its files."""
