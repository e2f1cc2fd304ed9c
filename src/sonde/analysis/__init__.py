"""What several runs say together: what they share, which templates they rank alike, how steady."""
