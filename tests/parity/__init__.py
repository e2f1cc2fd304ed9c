"""Fast paths give what the slow, naive path gives."""
