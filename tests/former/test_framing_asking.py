"""Framing: what it asks, what it shows before, and what it refuses to ask."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from sonde.core.errors import AbilityError, DataError, UsageError
from sonde.core.facts import Entity
from sonde.core.prompts import Generate, Prompt, Score
from sonde.former.framing.judge import TASKS
from sonde.former.framing.probe import Framing
from tests.worlds import CAPITAL, fact, facts, world

from .framing_world import Says, read

GOLDEN = Path(__file__).parents[1] / "golden" / "framing"
OVER = "mean_over_relations"


def of(prompts: list[Prompt], task: str, kind: str = "none") -> list[Prompt]:
    return [p for p in prompts if (p.own["task"], p.own["told"]) == (task, kind)]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("plain", {"negatives": 2}),
        ("qa-shots", {"frame": "qa", "shots": 2, "negatives": 1, "paraphrases": 2}),
    ],
)
def test_prompts_are_those_written_down(name: str, settings: dict[str, Any]) -> None:
    written = []
    for prompt in Framing(**settings).ask(world(limit=1)):
        key, want = prompt.key, prompt.want
        asked = want.options if isinstance(want, Score) else getattr(want, "most", None)
        own = " ".join(prompt.own.values())
        written.append(f"{key.fact} {key.template} {own} {asked}\n{prompt.prefix}|\n")
    assert "\n".join(written) == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


def test_the_base_question_without_a_name_is_asked_once() -> None:
    prompts = list(Framing().ask(world()))
    assert len({(p.key.fact, p.prefix, type(p.want)) for p in prompts}) == len(prompts)


def test_a_relation_comes_whole_and_a_template_comes_whole() -> None:
    prompts = list(Framing().ask(world()))
    for key in (
        lambda p: p.key.relation,
        lambda p: (p.key.relation, p.own["task"], p.key.template),
    ):
        runs = [name for name, _ in groupby(prompts, key=key)]
        assert len(runs) == len(set(runs))


@pytest.mark.parametrize("task", TASKS)
def test_prompts_of_a_task_share_their_examples(task: str) -> None:
    prompts = list(Framing(frame="qa", shots=3).ask(world(relations=("P36",))))
    last = "\nQ: " if task != "wp" else "\n"
    kinds = ("none", "right", "wrong")
    beginnings = {p.prefix.rpartition(last)[0] for kind in kinds for p in of(prompts, task, kind)}
    assert len(beginnings) == 1
    assert beginnings.pop().count("\n") >= 2


def test_examples_are_never_about_the_subject_that_is_asked_about() -> None:
    data = world(split="train", relations=("P36",))
    for prompt in Framing(shots=2).ask(data):
        assert prompt.prefix.count(prompt.key.subject) == 1


def test_statements_that_are_shown_are_true_and_false_in_turn() -> None:
    [prompt, *_] = of(list(Framing(shots=4).ask(world(relations=("P36",)))), "fc", "right")
    shown = re.findall(r"capital of (\w+) is (\w+)\..*\? (True|False)\n", prompt.prefix)
    capitals = {f.subject.name: f.objects[0].name for f in facts()}
    verdicts = [verdict for _, _, verdict in shown]
    assert [str(capitals[subject] == object) for subject, object, _ in shown] == verdicts
    assert verdicts in (["True", "False"] * 2, ["False", "True"] * 2)


def test_the_seed_says_which_verdict_is_shown_first() -> None:
    firsts = set()
    for seed in range(8):
        prompts = list(Framing(shots=1).ask(world(relations=("P36",), seed=seed)))
        firsts.add(of(prompts, "fc", "right")[0].prefix.partition("\n")[0].split()[-1])
    assert firsts == {"True", "False"}


def test_examples_have_no_name_in_front() -> None:
    prompts = list(Framing(shots=2).ask(world(relations=("P36",))))
    for prompt in (*of(prompts, "qa", "right"), *of(prompts, "qa", "wrong")):
        *examples, last = prompt.prefix.split("\n")
        assert all(line.startswith("What") for line in examples)
        assert not last.startswith("What")


def test_facts_that_are_shown_are_not_asked_about_and_are_counted() -> None:
    data = world(given=facts(training=0), relations=("P36",))
    probe = Framing(shots=2)
    asked = {p.key.fact for p in probe.ask(data)}
    report = read(probe, data, Says())
    assert report.counts["facts_held_back_as_examples"] == 2
    assert len(asked) == report.counts["facts"] == 6


def test_a_run_in_which_every_fact_is_an_example_is_refused() -> None:
    data = world(given=facts(training=0)[:3], relations=("P36",))
    with pytest.raises(DataError, match="set shots lower"):
        list(Framing(shots=3).ask(data))


def test_fewer_examples_than_asked_for_are_counted() -> None:
    given = [*facts()[:6], replace(fact("P36", "Peru", "Lima"), id="again"), facts()[6]]
    data = world(given=[*given, fact("P36", "Peru", "Cuzco")], relations=("P36",))
    report = read(Framing(shots=5), data, Says())
    few = report.counts["facts_fewer_examples"]
    assert few > 0
    assert f"{few:,} fact" in " ".join(report.findings)


def test_a_dataset_without_templates_is_refused() -> None:
    with pytest.raises(DataError, match="neither statements"):
        list(Framing().ask(world(None, replace(CAPITAL, templates=()))))


def test_named_wrong_objects_are_used_and_right_ones_among_them_dropped() -> None:
    wrong = tuple(Entity(id=n, names=(n,)) for n in ("Paris", "Cairo", "Rome"))
    data = world(given=[replace(fact("P36", "Egypt", "Cairo"), wrong=wrong)])
    told = of(list(Framing().ask(data)), "qa", "wrong")
    assert [p.own["object"] for p in told] == ["Paris", "Rome"]
    report = read(Framing(), data, Says())
    assert report.counts["wrong_names_correct_after_all"] == 1
    assert report.counts["facts_fewer_wrong_names"] == 1


def test_answers_have_room_and_verdicts_little() -> None:
    wants = {p.own["task"]: p.want for p in Framing().ask(world())}
    assert wants["wp"] == wants["qa"] == Generate(most=15)
    assert wants["fc"] == Generate(most=5)


@pytest.mark.parametrize("can", [{"score"}, {"generate"}])
def test_a_model_that_cannot_both_write_and_score_is_refused(can: set[Any]) -> None:
    with pytest.raises(AbilityError, match=r"generate|score"):
        Framing().suited(frozenset(can))


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(UsageError, match="lemmas"):
        Framing(language="xx")
