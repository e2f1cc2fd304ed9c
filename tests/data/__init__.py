"""Tests of datasets and their readers."""
