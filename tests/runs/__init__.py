"""Tests of the runner, from Python."""
