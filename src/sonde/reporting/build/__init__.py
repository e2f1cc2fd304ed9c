"""Reports from metrics: tables, figures, headlines and findings."""
