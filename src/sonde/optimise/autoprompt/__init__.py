"""AutoPrompt: trigger tokens by gradient."""
