"""MONITOR: reliability under framing and interference."""
