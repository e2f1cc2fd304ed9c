"""docs/belief.md tells the names that the probe has."""

from __future__ import annotations

from pathlib import Path

from sonde.core.components import settings_of
from sonde.probes.belief.probe import Belief
from tests.docs import program
from tests.docs.pages import DOCS, first_cells
from tests.rows import answer_all
from tests.rows import asked as asked_of

from .belief_world import ANSWERS, FACTS, Told, world

PAGE = DOCS / "belief.md"
GOLDEN = Path(__file__).parents[1] / "golden" / "belief-estimates.txt"


def test_the_estimates_are_documented() -> None:
    both = first_cells(PAGE, "For the dataset and each relation")
    alone = first_cells(PAGE, "For the dataset only")
    names = {*both, *alone, *(f"{name}.relation.P36" for name in both)}
    assert sorted(names) == GOLDEN.read_text().split()


def test_the_counts_are_documented() -> None:
    probe = Belief(answer="fill", draws=10)
    answered = answer_all(Told(answers=ANSWERS), asked_of(probe, world(*FACTS)))
    counts = probe.read(world(*FACTS), answered).counts
    assert list(counts) == first_cells(PAGE, "Counts")


def test_the_settings_are_documented() -> None:
    assert [setting.name for setting in settings_of(Belief)] == first_cells(PAGE, "Settings")


def test_content_free_subjects_can_be_left_out_by_a_flag(tmp_path: Path) -> None:
    words = ["run", "belief", "-m", "control:majority", "--relations", "P30", "--limit", "2"]
    outcome = program.sonde(
        [*words, "--no-bias", "--draws", "10", "--all-tables", "-o", "run"], tmp_path
    )
    assert outcome.code == 0, outcome.printed
    assert "no content-free subject was asked about" in " ".join(outcome.printed.split())
