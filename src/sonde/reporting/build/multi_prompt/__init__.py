"""What every report of many prompts per fact has: estimates, tables, figures, findings."""
