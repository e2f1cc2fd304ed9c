"""Models that know counts of facts and no text."""
