"""Compare finished runs on what they share: `compare(RUN, RUN)`."""
