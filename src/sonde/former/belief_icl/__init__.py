"""BELIEF-ICL: answers written after examples."""
