"""Where golden runs are made: their data and models by short names, each made once, in one folder.

Everything goes through what users have: `sonde`'s functions, its command line, run folders. What
has no public way stands in `inside.py`.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import sonde
from tests import tiny

from . import inside
from .inside import SHIPPED
from .plain import Plain

ANSWERS = Path(__file__).parent / "answers"

DATA = {
    "world": str(SHIPPED / "world"),
    "tongues": f"bmlama:{ANSWERS / 'tongues'}",
    "cases": f"counterfact:{ANSWERS / 'cases.json'}",
    "people": f"popqa:{ANSWERS / 'people.tsv'}",
    "clubs": f"templama:{ANSWERS / 'clubs.jsonl'}",
    "tagged": str(ANSWERS / "tagged"),
}
"""References of data that are not their own names."""

COUNTING = {
    "majority": "control:majority",
    "class-prior": "control:class-prior",
    "naive-bayes": "control:naive-bayes",
    "few": f"scripted:{ANSWERS / 'few.json'}",
    "many": f"scripted:{ANSWERS / 'many.json'}",
}
"""Models without arithmetic of their own: the same everywhere, to the last bit."""

TRAINED = {kind: f"hf:{SHIPPED / kind}" for kind in ("causal", "masked")}
"""The models that come with sonde, which know some of the facts of `world`."""

TRAINED["random"] = f"random:{TRAINED['masked']}"

TINY = {"llama": tiny.llama, "gpt2": tiny.gpt2, "bert": tiny.bert, "t5": tiny.t5}
"""Random weights by a seed."""

LONG = {
    "llama": "max_position_embeddings",
    "gpt2": "n_positions",
    "bert": "max_position_embeddings",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked of whom: a run."""

    probe: str
    model: str
    data: str = "atlas"
    relations: tuple[str, ...] = ()
    limit: int | None = None
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    controls: str = ""

    @property
    def exact(self) -> bool:
        """Whether its answers are the same everywhere, to the last bit."""
        return self.model in COUNTING and self.controls != "all"


@dataclass(slots=True, kw_only=True)
class Workshop:
    """Makes runs in a folder, each once, and whatever they need."""

    folder: Path
    asked: Mapping[str, Asked]
    runs: dict[str, sonde.Run] = field(default_factory=dict)
    models: dict[str, Any] = field(default_factory=dict)

    def run(self, name: str) -> sonde.Run:
        """The run of that name, with its controls."""
        if name not in self.runs:
            asked, place = self.asked[name], self.folder / "runs" / name
            self.runs[name] = self.ask(asked, place)
            if asked.controls:
                self.command(*self.words(asked), "--controls", asked.controls, "-o", place)
        return self.runs[name]

    def ask(self, asked: Asked, out: Path, **more: Any) -> sonde.Run:
        """Put the questions, or what is left of them."""
        data = self.dataset(asked)
        model = self.model(asked.model, data)
        return sonde.run(sonde.probe(asked.probe, **asked.settings), model, data, out, **more)

    def dataset(self, asked: Asked) -> Any:
        """The facts that are asked about."""
        return sonde.dataset(
            DATA.get(asked.data, asked.data),
            relations=asked.relations,
            limit=asked.limit,
            seed=asked.seed,
        )

    def model(self, name: str, data: Any) -> Any:
        """The model of that name; one that counts facts is made anew for the data."""
        if name in COUNTING:
            return sonde.model(COUNTING[name], data=data)
        if name not in self.models:
            self.models[name] = sonde.model(self.reference(name), device="cpu", dtype="float32")
        return self.models[name]

    def reference(self, name: str) -> str:
        """How a model is named on the command line."""
        if name in COUNTING or name in TRAINED:
            return (COUNTING | TRAINED)[name]
        place = self.folder / "models" / name
        if not place.exists():
            longer = {LONG[name]: 1024} if name in LONG else {}
            TINY[name](place, **longer)
        return f"hf:{place}"

    def words(self, asked: Asked, verb: str = "run") -> list[str]:
        """The command that asks the same."""
        chosen = ["--relations", ",".join(asked.relations)] if asked.relations else []
        chosen += ["--limit", str(asked.limit)] if asked.limit is not None else []
        for key, value in asked.settings.items():
            chosen += ["--set", f"{key}={value}"]
        if verb == "run":
            chosen.append("--no-html")
        who = ["-m", self.reference(asked.model), "-d", DATA.get(asked.data, asked.data)]
        how = ["--device", "cpu", "--dtype", "float32", "--seed", str(asked.seed)]
        probe = ["--probe", asked.probe] if verb == "doctor" else [asked.probe]
        return [verb, *probe, *who, *how, *chosen]

    def command(self, *words: object) -> str:
        """What a command prints."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            code = inside.command([str(word) for word in words])
        assert code == 0, f"sonde {' '.join(map(str, words))} ended with {code}"
        return printed.getvalue()

    def told(self, *words: object) -> Plain:
        """What a command prints as JSON."""
        return json.loads(self.command(*words, "--json"))

    def without_places(self, value: Plain) -> Plain:
        """Plain data without the names of this machine's folders."""
        if isinstance(value, dict):
            return {self.without_places(k): self.without_places(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self.without_places(member) for member in value]
        if isinstance(value, str):
            for place in (self.folder, SHIPPED, ANSWERS):
                value = value.replace(f"{place}/", "").replace(str(place), "")
        return value


def shard_hashes(run: sonde.Run) -> dict[str, str]:
    """SHA-256 of every file of a run's answers."""
    files = sorted((run.path / "shards").glob("[!.]*"))
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in files}
