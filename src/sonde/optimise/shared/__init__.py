"""What several methods use: texts, losses, training of vectors."""
