"""Everything that needs torch and transformers; imported only when such a model is loaded."""
