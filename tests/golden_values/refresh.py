"""Freeze what is measured now: `python -m tests.golden_values.refresh [--check] [NAME …]`.

Prints every estimate, cell, point, interval, sentence and hash that changed, with its old and new
value, and writes the golden files anew; with --check it writes nothing. Names are of cases or
beginnings of them; without any all are made. A number that is near enough to the frozen one keeps
its old digits. A case that fails is named at the end, and its file is left as it is.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from .cases import CASES, document, workshop
from .documents import FOLDER, changes, load, save, settled
from .workshop import Workshop


def refresh(name: str, shop: Workshop, given: argparse.Namespace) -> None:
    """Freeze one case, saying what changed."""
    golden, near = load(name) or {}, CASES[name].near(shop)
    if given.near is not None:
        near = dict.fromkeys(near, given.near)
    found = document(name, shop)
    made = changes(golden, found, near)
    if not made:
        return
    counts = Counter(f"{change.place.split(' / ')[0]} {change.kind}" for change in made)
    print(f"{name}: {', '.join(f'{n} {what}' for what, n in counts.items())}")
    for change in made[: given.most] if golden else ():
        print(f"  {change}")
    if golden and len(made) > given.most:
        print(f"  … and {len(made) - given.most} more (--most N shows N)")
    if not given.check:
        save(name, {k: settled(golden.get(k), v, near.get(k, 0)) for k, v in found.items()})


def remove_strays(given: argparse.Namespace) -> None:
    """Remove the files of cases that are no more."""
    for path in sorted(FOLDER.glob("*.json")):
        if path.stem not in CASES:
            print(f"{path.name} is of no case")
            if not given.check:
                path.unlink()


def options(words: Sequence[str] | None) -> argparse.Namespace:
    """What the command was told."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden_values.refresh")
    parser.add_argument("names", nargs="*", help="cases, or beginnings of their names")
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--most", type=int, default=40, help="how many changes of a case to show")
    parser.add_argument("--near", type=float, help="how near all numbers must be, such as 1e-12")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Refresh the cases that are named; ends with 1 if one of them failed."""
    given = options(words)
    chosen = [n for n in CASES if not given.names or n.startswith(tuple(given.names))]
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("SONDE_CACHE", str(Path(folder) / "cache"))
        shop = workshop(Path(folder))
        for name in chosen:
            try:
                refresh(name, shop, given)
            except Exception:
                traceback.print_exc()
                failed.append(name)
    remove_strays(given)
    print(f"{len(chosen) - len(failed)} of {len(chosen)} cases made")
    if failed:
        print(f"failed, and left as they were: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
