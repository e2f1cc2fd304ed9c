"""Analyses over several runs."""
