"""Runs on disk: a manifest and append-only Parquet shards. Knows nothing of models or probes."""
