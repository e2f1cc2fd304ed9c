"""There is no moment at which a run may not be killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from sonde.data.format import write_dataset
from tests.worlds import numbered


def test_a_run_killed_before_any_of_its_file_operations_ends_the_same(tmp_path: Path) -> None:
    write_dataset(numbered(4), tmp_path / "data")
    script = Path(__file__).parent / "dying.py"
    words = [sys.executable, str(script), str(tmp_path / "data"), str(tmp_path / "out")]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20, "fewer operations than a run of four shards needs"
