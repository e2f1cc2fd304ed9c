"""Have shards answered by several workers, each with a model of its own, that one driver directs.

The driver alone asks and writes. `spec` reads `local:2` or `ray:4`; `messages` is what the two say
to each other; `worker` answers them, wherever it is; `local` and `ray` start workers; `dealing`
says who answers which shard; `crew` is the driver, which a run takes for a model.
"""
