"""One benchmark a file; each is run by `python -m benchmarks.NAME` and described in README.md."""
