"""What in a prompt an answer comes from: prompts in parts, and the share each part has."""
