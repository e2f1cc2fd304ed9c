"""Worlds of invented facts, models that are taught them, and estimators held against both."""
