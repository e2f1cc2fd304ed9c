"""Tests of what a report looks like."""
