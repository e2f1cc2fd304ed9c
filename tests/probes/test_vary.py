"""Settings that are varied: passes of one run, told apart by columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import pytest

from sonde.answers import Answers, OptionScores
from sonde.core.components import setting
from sonde.core.errors import AbilityError, UsageError
from sonde.core.facts import Dataset, Relation, Template
from sonde.core.fingerprints import draw_key
from sonde.evaluation.layout import Layout
from sonde.probes.base import Probe
from sonde.probes.vary import Vary, vary, with_seed
from sonde.prompts import PromptBatch, Score
from tests.worlds import world


@dataclass(frozen=True, kw_only=True)
class Toy(Probe):
    """One prompt per fact, with a number that is drawn."""

    shots: int = setting(2, "so many examples", min=0)
    answer: str = setting("x", "what counts as correct")
    random: bool = setting(True, "draw a number")
    pick: int = setting(1, "which template", min=1)
    normalize: str = setting("none", "how options are compared", analysis_only=True)

    name = "toy"
    requires = (frozenset({"score"}),)
    axes = ("n_shots",)
    metrics = ()
    layout = Layout(headlines=("accuracy",), title="toy")

    def templates(self, relation: Relation) -> tuple[Template, ...]:
        return relation.templates[self.pick - 1 : self.pick]

    def prompts(self, data: Dataset) -> Iterator[PromptBatch]:
        for relation in data.asked_relations():
            [template] = self.templates(relation)
            yield PromptBatch.of(
                [
                    {
                        "relation": relation.id,
                        "fact": fact.id,
                        "template": template.id,
                        "subject": fact.subject.name,
                        "n_shots": -1,
                        "prefix": str(draw_key(data.selection.seed, fact.id) * self.random),
                        "options": ["a", "b"],
                    }
                    for fact in data.asked(relation.id)
                ],
                Score(),
            )

    def facts(self, data: Dataset) -> pl.DataFrame:
        excluded = ["few" if self.shots > 3 else None, "always"]
        return pl.DataFrame({"fact_no": [0, 1], "excluded": excluded})

    def judge(self, answers: Answers, facts: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        frame = answers.frame.select("fact", answer=pl.lit(self.answer))
        return {"rows": frame, "further": pl.DataFrame({"shots": [self.shots]})}

    def combine(self, rows: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
        return rows.with_columns(combined=pl.len())


def answers(batches: Sequence[PromptBatch]) -> Answers:
    frame = pl.concat([batch.frame for batch in batches])
    n = 2 * frame.height
    scores = OptionScores.of(
        [2] * frame.height, [1] * n, pl.zeros(n, pl.Float32, eager=True).to_numpy()
    )
    return Answers(batch=PromptBatch(frame=frame, request=Score()), result=scores)


def test_every_combination_is_a_pass_with_a_column_for_each_setting() -> None:
    probe = Vary(probe=Toy(), vary={"shots": (1, 5), "answer": ("x", "y")})
    assert probe.axes == ("n_shots", "answer_setting")  # n_shots: the probe's name for the levels
    assert probe.separate == ("answer_mode", "n_shots", "answer_setting")
    assert probe.groups == ("relation", "n_shots", "answer_setting")
    frames = [batch.frame for batch in probe.prompts(world())]
    assert [frame.select("n_shots", "answer_setting").row(0) for frame in frames[:4]] == [
        (1, "x"),
        (1, "y"),
        (5, "x"),
        (5, "y"),
    ]
    relations = [frame["relation"][0] for frame in frames]
    assert relations == [r.id for r in world().asked_relations() for _ in range(4)]
    assert all(frame["relation"].n_unique() == 1 for frame in frames)


def test_every_level_is_compared_with_the_first() -> None:
    probe = Vary(probe=Toy(), vary={"shots": (5, 1), "answer": ("y", "x")})
    assert [tuple(contrast)[:2] for contrast in probe.contrasts] == [
        ("n_shots", 5),
        ("answer_setting", "y"),
    ]
    assert probe.layout.title == "toy; shots 5, 1; answer y, x"


def test_a_pass_is_judged_and_combined_by_its_own_probe() -> None:
    probe = Vary(probe=Toy(), vary={"answer": ("x", "y"), "shots": (1, 5)})
    batches = list(probe.prompts(world()))
    tables: Any = probe.judge(answers(batches), pl.DataFrame())
    rows = tables["rows"]
    assert (rows["answer"] == rows["answer_setting"]).all()
    assert rows.height == sum(map(len, batches))
    assert tables["further"]["shots"].to_list() == tables["further"]["n_shots"].to_list()
    rows = rows.with_columns(fact_no=pl.int_range(pl.len()))
    combined = probe.combine(rows, pl.DataFrame())
    assert combined["combined"].to_list() == [rows.height // 4] * rows.height
    assert combined["fact_no"].is_sorted()


def test_repeats_have_seeds_of_their_own_and_the_same_facts() -> None:
    data = world(limit=1, seed=7)
    probe = Vary(probe=Toy(), repeats=3)
    assert probe.axes == ("n_shots", "seed") and probe.groups == ("relation", "seed")
    assert probe.layout.title == "toy; 3 repeats"
    frame = pl.concat([batch.frame for batch in probe.prompts(data)])
    assert frame["seed"].unique().sort().to_list() == [7, 8, 9]
    assert frame.group_by("relation").agg(pl.col("fact").n_unique())["fact"].unique().to_list() == [
        1
    ]
    assert frame.group_by("fact").agg(pl.col("prefix").n_unique())["prefix"].unique().to_list() == [
        3
    ]
    assert with_seed(data, 8).selection.seed == 8 and with_seed(data, 7) is data


def test_repeats_that_are_all_the_same_are_rejected() -> None:
    with pytest.raises(UsageError, match="draws nothing at random with these"):
        list(Vary(probe=Toy(random=False), repeats=2).prompts(world()))


def test_a_probe_with_seeds_repeats_itself() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Seeded(Toy):
        seeds: int = setting(1, "how many draws", min=1)

    assert vary(Seeded(), {}, 3) == Seeded(seeds=3)
    assert vary(Toy(), {}) == Toy()
    both = vary(Seeded(), {"shots": (1, 2)}, 3)
    assert isinstance(both, Vary) and both.repeats == 1
    assert [probe.seeds for probe in both.probe_by_levels.values()] == [3, 3]  # type: ignore[attr-defined]


def test_templates_and_exclusions_of_all_passes_are_put_together() -> None:
    relation = world().asked_relations()[0]
    one, two = Toy(pick=1).templates(relation), Toy(pick=2).templates(relation)
    probe = Vary(probe=Toy(), vary={"pick": (2, 1), "shots": (5, 1)})
    assert probe.templates(relation) == (*two, *one)
    assert probe.facts(world())["excluded"].to_list() == [None, "always"]


def test_settings_of_the_probe_are_read_through() -> None:
    probe = Vary(probe=Toy(normalize="tokens"), vary={"shots": (1, 2)})
    assert (probe.name, probe.normalize) == ("toy", "tokens")
    assert probe.resolve(frozenset({"score"})) == probe
    with pytest.raises(AbilityError, match="probe 'toy' needs a model that can score"):
        probe.resolve(frozenset({"generate"}))
    with pytest.raises(AttributeError):
        _ = probe.nothing


FEW = "--vary shots takes two or more different values, such as shots=A,B; not {}"


@pytest.mark.parametrize(
    ("varied", "repeats", "message"),
    [
        ({"shot": (1, 2)}, 1, "probe 'toy' has no setting 'shot' to vary; did you mean 'shots'?"),
        (
            {"normalize": ("none", "tokens")},
            1,
            "setting normalize changes no prompt, so one run has all of its values: use "
            "'sonde report RUN --set normalize=VALUE' instead of --vary",
        ),
        ({"shots": (1,)}, 1, FEW.format("1")),
        ({"shots": (1, 1)}, 1, FEW.format("1, 1")),
        ({"shots": ()}, 1, FEW.format("none")),
        ({"shots": (1, -1)}, 1, "setting shots must be at least 0, not -1"),
        ({"shots": (1, "2")}, 1, "setting shots must be int, not '2'"),
        ({}, 0, "--repeats must be at least 1, not 0"),
    ],
)
def test_what_cannot_be_varied_is_rejected(varied: Any, repeats: int, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        vary(Toy(), varied, repeats)
    assert str(raised.value) == message
