"""Plans of runs, held to what the runs really take."""
