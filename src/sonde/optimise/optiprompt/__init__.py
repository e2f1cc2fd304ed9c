"""OptiPrompt: soft prompts by gradient."""
