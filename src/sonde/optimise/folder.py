"""The folder that `sonde optimise` fills: what was asked for, and each relation as it is finished.

manifest.json        method, settings, seed, model, dataset; `complete` and `counts` at the end
progress.jsonl       one line a relation, written when the relation is finished
vectors.safetensors  the vectors of soft prompts, by marker
state.safetensors    how far the relations at work have come, until all is done
templates.jsonl      written at the end, for the reader `optimised`

A killed command goes on where it stopped. Knows nothing of how templates are made.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sonde
from sonde.core.abilities import Identity, deciding
from sonde.core.errors import RunMismatch, StoreError
from sonde.core.facts import Dataset
from sonde.core.files import add_line, explain_os_errors, take_lock, write_whole

if TYPE_CHECKING:
    from sonde.optimise.making import Made

FORMAT = 1
STATE = "state.safetensors"
SAME = ("method", "settings", "order", "dataset", "relations")


def head(
    method: Any, order: Any, model: Identity, reference: str, dataset: Dataset, relations: list[str]
) -> dict[str, Any]:
    """What decides the templates, as the manifest has it; settings and order are dataclasses."""
    values = {
        "format": FORMAT,
        "sonde": sonde.__version__,
        "method": method.name,
        "settings": asdict(method),
        "order": {key: value for key, value in asdict(order).items() if key != "relations"},
        "model": {"reference": reference, **asdict(model)},
        "dataset": {"name": dataset.name, "fingerprint": dataset.fingerprint},
        "relations": relations,
    }
    plain: dict[str, Any] = json.loads(json.dumps(values))
    return plain


class Folder:
    """The files of one optimisation."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def writing(self, head: dict[str, Any]) -> Iterator[None]:
        """Begin or go on, alone; refuses a folder that holds something else."""
        with explain_os_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            with take_lock(self.path / ".lock", f"another process is at work in {self.path}"):
                self._begin(head)
                yield

    def _begin(self, head: dict[str, Any]) -> None:
        written = self.manifest()
        if written is None:
            strangers = [p.name for p in self.path.iterdir() if p.name != ".lock"]
            if strangers:
                raise StoreError(
                    f"{self.path} holds other files ({strangers[0]}); name a folder that is empty "
                    "or does not exist"
                )
            self._write(head)
            return
        for key in SAME:
            if written.get(key) != head[key]:
                raise RunMismatch(
                    f"{self.path} was begun with {key} {_brief(written.get(key))} and this is "
                    f"{_brief(head[key])}; name another folder, or delete that one"
                )
        before, now = written["model"], deciding(head["model"])
        for key in now.keys() - {"reference"}:
            if before.get(key, "") != now[key]:
                raise RunMismatch(
                    f"{self.path} was begun with another model ({before['name']}, {key} "
                    f"{before.get(key)}, not {now[key]}); name another folder"
                )

    def manifest(self) -> dict[str, Any] | None:
        """The manifest, if there is one."""
        try:
            manifest = json.loads((self.path / "manifest.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise StoreError(f"{self.path / 'manifest.json'} does not read back: {error}") from None
        if not isinstance(manifest, dict) or not {"method", "model"} <= manifest.keys():
            raise StoreError(f"{self.path} holds something else than 'sonde optimise' makes")
        return manifest

    def _write(self, values: Mapping[str, Any]) -> None:
        text = json.dumps(values, indent=2, ensure_ascii=False) + "\n"
        write_whole(self.path / "manifest.json", text.encode())

    def progress(self) -> list[dict[str, Any]]:
        """The relations that are finished; a line cut off by a kill is passed over."""
        path = self.path / "progress.jsonl"
        rows = []
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            try:
                rows.append(json.loads(line))
            except ValueError:
                continue
        return rows

    def rows(self) -> list[dict[str, Any]]:
        """The relations that are finished, in the order they were asked for."""
        manifest = self.manifest()
        assert manifest is not None
        return sorted(self.progress(), key=lambda row: manifest["relations"].index(row["relation"]))

    def add(self, made: Made) -> None:
        """Keep what was made for a relation; vectors first, since its line says they are there."""
        if made.vectors:
            self._add_vectors(made.vectors)
        row = {key: value for key, value in asdict(made).items() if key != "vectors"}
        add_line(self.path / "progress.jsonl", json.dumps(row, ensure_ascii=False))

    def _add_vectors(self, vectors: Mapping[str, Any]) -> None:
        from safetensors.numpy import load_file, save

        path = self.path / "vectors.safetensors"
        before = load_file(path) if path.exists() else {}
        write_whole(path, save({**before, **vectors}))

    def finish(self) -> None:
        """Write the templates and say in the manifest that all is done."""
        rows, manifest = self.rows(), self.manifest()
        assert manifest is not None
        lines = (
            {"relation": row["relation"], **{k: v for k, v in t.items() if v is not None}}
            for row in rows
            for t in row["templates"]
        )
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        write_whole(self.path / "templates.jsonl", text.encode())
        counts: Counter[str] = Counter()
        for row in rows:
            counts.update(row["counts"])
        counts["relations_made"] = sum(1 for row in rows if row["templates"])
        counts["relations_not_made"] = sum(1 for row in rows if not row["templates"])
        (self.path / STATE).unlink(missing_ok=True)
        self._write({**manifest, "complete": True, "counts": dict(counts)})


def _brief(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else text[:117] + "…"
