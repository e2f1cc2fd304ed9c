"""`--on`: what a user sees of workers."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.command import Sonde, on_a_terminal, process
from tests.runs.workers.world import kept

SLOW_RAY = """
# Ray, one of whose processes is never quick enough to say where it listens
import os
from types import SimpleNamespace

_private = SimpleNamespace(ray_constants=SimpleNamespace(ENABLE_RAY_CLUSTER=True))

def is_initialized():
    return False

def init(**settings):
    tell("init " + settings["_node_ip_address"])
    raise RuntimeError("Timed out waiting for file /tmp/ray/session/gcs_server_port_1.")

def shutdown():
    tell("shutdown")

def tell(what):
    with open(os.environ["TOLD"], "a") as file:
        file.write(what + "\\n")
"""

ASKED = ("lama", "-m", "control:majority", "--relations", "P36,P30", "--limit", 20)


def test_a_bar_says_how_many_workers_answer(tmp_path: Path) -> None:
    words = ("run", *ASKED, "--no-html", "--on", "local:2", "-o", tmp_path / "out")
    code, shown = on_a_terminal(*words, columns=160)
    assert code == 0, shown
    assert "2 workers" in shown


@pytest.mark.parametrize("more", [(), ("--vary", "capitalize=true,false")])
def test_workers_leave_what_one_process_leaves_but_timings(
    sonde: Sonde, tmp_path: Path, more: tuple[str, ...]
) -> None:
    words = ("run", *ASKED, *more, "--no-html")
    alone, together = tmp_path / "alone", tmp_path / "together"
    assert sonde(*words, "-o", alone).code == 0
    assert sonde(*words, "-o", together, "--on", "local:2").code == 0
    shutil.copy(alone / "timings.jsonl", together / "timings.jsonl")
    assert kept(together) == kept(alone)


def test_what_names_no_workers_is_refused_before_anything_is_opened(
    sonde: Sonde, tmp_path: Path
) -> None:
    words = ("run", *ASKED, "-d", "nowhere", "-o", tmp_path / "out")
    sonde(*words, "--on", "local:none").refused(2, "'local:none'", "local:N", "ray:N")
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(find_spec("ray") is not None, reason="ray is installed")
def test_ray_that_is_not_installed_is_named_with_the_command(sonde: Sonde, tmp_path: Path) -> None:
    done = sonde("run", *ASKED, "--on", "ray:2", "-o", tmp_path / "out")
    done.refused(4, "--on ray:2 needs ray", "pip install 'sonde[ray]'")
    assert not (tmp_path / "out").exists()


def test_ray_that_cannot_be_imported_leaves_a_sentence(
    sonde: Sonde, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ray.py").write_text("import no_such_part_of_ray")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    done = sonde("run", *ASKED, "--on", "ray:2", "-o", tmp_path / "out")
    done.refused(6, "Ray is installed but cannot be imported", "no_such_part_of_ray", "local:N")
    assert not (tmp_path / "out").exists()


def test_ray_that_does_not_start_is_tried_three_times_and_leaves_a_sentence_alone(
    tmp_path: Path,
) -> None:
    fake, here, told = tmp_path / "first" / "ray", tmp_path / "here", tmp_path / "told"
    fake.mkdir(parents=True)
    here.mkdir()
    (fake / "__init__.py").write_text(SLOW_RAY)
    paths = [str(fake.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "TOLD": str(told)}
    env.pop("RAY_ADDRESS", None)
    for words in ((), ("-o", "out")):
        done = process("run", *ASKED, "--on", "ray:2", *words, cwd=here, env=env)
        cause = "(Timed out waiting for file /tmp/ray/session/gcs_server_port_1)"
        said = done.refused(6, f"Ray did not start in 3 attempts {cause}; ", "or use local:N")
        assert [said.count(f"attempt {n} of 3") for n in (1, 2, 3, 4)] == [0, 1, 1, 0]
        assert told.read_text().splitlines() == ["init 127.0.0.1", "shutdown"] * 3
        assert not [*here.iterdir()], "something is left"
        told.unlink()
