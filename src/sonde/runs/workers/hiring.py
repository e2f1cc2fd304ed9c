"""Start workers that each load a model. Knows nothing of what is asked."""

from __future__ import annotations

from dataclasses import replace

from sonde.core.errors import UsageError
from sonde.core.facts import Dataset
from sonde.models.load import check, reads_facts
from sonde.models.options import LoadOptions
from sonde.runs.workers.channels import Place
from sonde.runs.workers.crew import Crew
from sonde.runs.workers.messages import Order
from sonde.runs.workers.spec import Workers, parse_workers


def start_workers(on: str, reference: str, options: LoadOptions, dataset: Dataset | None) -> Crew:
    """Workers, as `on` says, that have all loaded the model; to be closed by who started them."""
    workers = parse_workers(on)
    check(reference, here=workers.place == "local")
    if options.device.startswith("cuda:"):
        raise UsageError(
            f"--device {options.device} names one GPU, and workers are given theirs; write "
            f"--device cuda, and say with CUDA_VISIBLE_DEVICES which GPUs there are for {workers}"
        )
    facts = None if dataset is None or not reads_facts(reference) else _whole(dataset)
    order = Order(reference=reference, options=options, dataset=facts)
    return Crew(workers, _place(workers, options), order)


def _whole(dataset: Dataset) -> Dataset:
    """The dataset with its facts in memory, since its files may not be where a worker is."""
    frames = {relation.id: dataset.frame(relation.id) for relation in dataset.relations}
    return replace(dataset, read=frames.__getitem__)


def _place(workers: Workers, options: LoadOptions) -> Place:
    cpu, spread = options.device == "cpu", bool(options.device_map)
    if workers.place == "ray":
        from sonde.runs.workers.ray import RayPlace

        return RayPlace(workers, cpu=cpu, spread=spread)
    from sonde.runs.workers.local import LocalPlace

    return LocalPlace(workers, cpu=cpu, spread=spread)
