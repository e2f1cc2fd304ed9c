"""Estimators held against the truth."""
