"""BELIEF: every fact in many wordings."""
