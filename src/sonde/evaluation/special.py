"""Numbers that are no ratios of sums over facts: fluctuation, bias, ranks and spreads of templates."""
