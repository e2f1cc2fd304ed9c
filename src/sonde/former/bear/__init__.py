"""BEAR: answers ranked by the likelihood of whole sentences."""
