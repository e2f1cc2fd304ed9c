"""Framing: prompts of three tasks, how their answers are graded, and what is averaged."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from math import exp
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl
import pytest

from sonde.core.errors import AbilityError, DataError, UsageError
from sonde.core.facts import Dataset, Entity, commonest_objects
from sonde.core.fingerprints import draw_key
from sonde.probes.framing import Framing
from sonde.prompting.matching import answer_contains_name, clean_answer, comparison_language
from sonde.prompting.options import names_correct_for, names_correct_for_repeated_subjects
from sonde.prompts import Generate, Score
from tests.worlds import CAPITAL, INSTRUMENT, fact, facts, relation, world

from .shares import Model, Numbers, results

GOLDEN = Path(__file__).parents[1] / "golden" / "framing"
TASKS = ("wp", "qa", "fc")
Prompt = dict[str, Any]


def prompts(probe: Framing, data: Dataset) -> list[Prompt]:
    """Every prompt, with what is requested."""
    return [
        {**row, "batch": batch}
        for batch in probe.prompts(data)
        for row in batch.frame.iter_rows(named=True)
    ]


def of(rows: Sequence[Prompt], task: str, cue: str = "none") -> list[Prompt]:
    return [row for row in rows if (row["task"], row["cue"]) == (task, cue)]


def says(
    text: Callable[[Prompt], str] = lambda prompt: "",
    check: Callable[[Prompt], tuple[float, float]] = lambda prompt: (-1.0, -1.0),
) -> Model:
    """Generates as one function says; log-probabilities of True and False as the other does."""

    def model(prompt: Prompt) -> Any:
        if prompt["request"] == "Generate":
            return text(prompt)
        true, false = check(prompt)
        # False has two tokens of half of it each, so that its mean would be the larger one
        return {"True": exp(true), "False": (exp(false / 2), exp(false / 2))}

    return model


def whimsical(prompt: Prompt) -> Any:
    """Answers by the hash of the prompt: right names, wrong ones, the cue, nothing, noise."""
    names = ("fact", "template", "task", "cue", "object", "prefix", "request")
    number = draw_key(7, ":".join(prompt[name] for name in names))
    if prompt["request"] == "Score":
        return [{"True": 0.4, "False": 0.1}, {"True": 0.1, "False": 0.4}, {}][number % 5 % 3]
    if prompt["task"] == "fc":
        return [" True", " false.", "", " It is True", "TRUE, of course"][number % 5]
    own = {f.id: f.objects[0].name for f in facts()}.get(prompt["fact"], "Vienna")
    others = [" the guitars", " Cairo", "", f" It is {own}", f" {prompt['object']}."]
    return [f" {own}", f" {own}.", *others][number % 7]


def uneven() -> Dataset:
    """Facts with two correct objects, two facts of one subject, one without a wrong object, a
    relation without questions."""
    more = [
        fact("P1303", "Ivy", "harp", "piano"),
        replace(fact("P1303", "Hal", "oboe"), id="P1303-Hal-2"),
        replace(fact("P36", "Togo", "Cairo"), wrong=(Entity(id="Cairo", names=("Cairo",)),)),
        fact("P9", "Rex", "Cairo"),
        fact("P9", "Sue", "oboe"),
    ]
    pets = relation("P9", "[X] has a [Y]", label="pet", kind="1-1")
    return world([*facts(training=3), *more], CAPITAL, INSTRUMENT, pets)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("plain", {"negatives": 2}),
        ("qa-shots", {"frame": "qa", "shots": 2, "negatives": 1, "paraphrases": 2}),
    ],
)
def test_prompts_are_those_of_the_golden_file(name: str, settings: dict[str, Any]) -> None:
    written = []
    for row in prompts(Framing(**settings), world(limit=1)):
        request, options = row["batch"].request, row["batch"].options
        requested = options[0] if options else request.max_tokens
        own = " ".join(row[column] for column in ("task", "cue", "object"))
        written.append(f"{row['fact']} {row['template']} {own} {requested}\n{row['prefix']}|\n")
    assert "\n".join(written) == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


def test_the_base_question_without_a_cue_is_prompted_once() -> None:
    rows = prompts(Framing(), world())
    assert len({(r["fact"], r["prefix"], type(r["batch"].request)) for r in rows}) == len(rows)


def test_the_prompts_of_a_template_follow_each_other() -> None:
    rows = prompts(Framing(), world())
    runs = [key for key, _ in groupby((r["relation"], r["task"], r["template"]) for r in rows)]
    assert len(runs) == len(set(runs))


@pytest.mark.parametrize("task", TASKS)
def test_prompts_of_a_task_share_their_examples(task: str) -> None:
    rows = prompts(Framing(frame="qa", shots=3), world(relations=("P36",)))
    last = "\nQ: " if task != "wp" else "\n"
    openings = {r["prefix"].rpartition(last)[0] for r in rows if r["task"] == task}
    assert len(openings) == 1
    assert openings.pop().count("\n") >= 2


def test_examples_are_never_about_the_subject_in_question() -> None:
    for row in prompts(Framing(shots=2), world(split="train", relations=("P36",))):
        assert row["prefix"].count(row["subject"]) == 1


def test_spans_are_those_of_the_answers_of_examples() -> None:
    [row, *_] = of(prompts(Framing(shots=2), world(relations=("P36",))), "qa")
    spans = zip(row["example_spans"][::2], row["example_spans"][1::2], strict=True)
    capitals = {f.objects[0].name for f in facts()}
    assert {row["prefix"][start:stop].strip() for start, stop in spans} < capitals


def test_statements_among_examples_are_true_and_false_in_turn() -> None:
    [row, *_] = of(prompts(Framing(shots=4), world(relations=("P36",))), "fc", "right")
    shown = re.findall(r"capital of (\w+) is (\w+)\..*\? (True|False)\n", row["prefix"])
    capitals = {f.subject.name: f.objects[0].name for f in facts()}
    verdicts = [verdict for _, _, verdict in shown]
    assert [str(capitals[subject] == object) for subject, object, _ in shown] == verdicts
    assert verdicts in (["True", "False"] * 2, ["False", "True"] * 2)


def test_the_seed_decides_which_verdict_is_shown_first() -> None:
    firsts = set()
    for seed in range(8):
        rows = prompts(Framing(shots=1), world(relations=("P36",), seed=seed))
        firsts.add(of(rows, "fc", "right")[0]["prefix"].partition("\n")[0].split()[-1])
    assert firsts == {"True", "False"}


def test_examples_have_no_cue() -> None:
    rows = prompts(Framing(shots=2), world(relations=("P36",)))
    for row in (*of(rows, "qa", "right"), *of(rows, "qa", "wrong")):
        *examples, last = row["prefix"].split("\n")
        assert all(line.startswith("What") for line in examples)
        assert not last.startswith("What")


def test_facts_that_are_examples_are_excluded() -> None:
    data = world(facts(training=0), relations=("P36",))
    found = results(Framing(shots=2), data, says())
    assert found.counts()["excluded.used as an example"] == 2
    assert found.counts()["scored"] == 6
    with pytest.raises(DataError, match="set shots lower"):
        list(Framing(shots=3).prompts(world(facts(training=0)[:3], relations=("P36",))))


def test_a_dataset_without_templates_is_rejected() -> None:
    with pytest.raises(DataError, match="neither statements"):
        list(Framing().prompts(world(None, replace(CAPITAL, templates=()))))


def test_correct_objects_among_named_wrong_ones_are_dropped() -> None:
    wrong = tuple(Entity(id=n, names=(n,)) for n in ("Paris", "Cairo", "Rome"))
    data = world([replace(fact("P36", "Egypt", "Cairo"), wrong=wrong)])
    cued = of(prompts(Framing(), data), "qa", "wrong")
    assert [row["object"] for row in cued] == ["Paris", "Rome"]
    assert Framing().facts(data)["dropped_wrong"].to_list() == [1]


def test_answers_are_longer_than_verdicts() -> None:
    requests = {(row["task"], row["batch"].request) for row in prompts(Framing(), world())}
    long, short = Generate(max_tokens=15), Generate(max_tokens=5)
    assert requests == {("wp", long), ("qa", long), ("fc", short), ("fc", Score())}


@pytest.mark.parametrize("capability", ["score", "generate"])
def test_a_model_needs_to_score_and_to_generate(capability: Any) -> None:
    with pytest.raises(AbilityError, match="generate and score"):
        Framing().resolve(frozenset({capability}))


def test_an_unknown_language_is_rejected() -> None:
    with pytest.raises(UsageError, match="lemmas"):
        Framing(language="xx")


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"frame": "qa", "shots": 2, "negatives": 2},
        {"paraphrases": 2, "language": "none"},
    ],
)
def test_estimates_are_what_loops_over_answers_give(settings: dict[str, Any]) -> None:
    data, probe = uneven(), Framing(**settings)
    numbers = Numbers(probe, data, whimsical)
    expected = dict(literal(probe, data))
    assert len(expected) > 50
    for (metric, of, id), value in expected.items():
        found = numbers(metric, *([id] if id else []), of=of)
        assert found == pytest.approx(value, abs=1e-9), (metric, of, id)


def literal(probe: Framing, data: Dataset) -> Iterator[tuple[tuple[str, str, str], float]]:
    """Every mean and spread, by loops over answers; uses nothing of the probe but its prompts."""
    held = {id for id, reason in probe.facts(data).select("fact", "excluded").iter_rows() if reason}
    rows = prompts(probe, data)
    by_relation = {}
    for each in data.asked_relations():
        own = [row for row in rows if row["relation"] == each.id]
        by_relation[each.id] = dict(_of_relation(probe, data, each.id, own, held))
        for (metric, of), value in by_relation[each.id].items():
            yield (metric, of, each.id), value
    for key in {key for own in by_relation.values() for key in own}:
        yield (*key, ""), fmean(own[key] for own in by_relation.values() if key in own)


def _of_relation(
    probe: Framing, data: Dataset, id: str, rows: list[Prompt], held: set[str]
) -> Iterator[tuple[tuple[str, str], float]]:
    names = names_correct_for_repeated_subjects(data, id)
    gold = {f.id: names_correct_for(f, names) for f in data.facts(id)}
    guess = commonest_objects(data.split_frame(id))[0][0]
    language = comparison_language(probe.language, "")

    def holds(text: str, fact: str) -> bool:
        return answer_contains_name(clean_answer(text), gold[fact], language)

    def equals(text: str, fact: str) -> bool:
        return clean_answer(text) != "" and clean_answer(text) in {
            clean_answer(name) for name in gold[fact]
        }

    base = next((row["template"] for row in rows if row["task"] == "qa"), "")
    cells: dict[str, dict[tuple[str, str], list[bool]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        task, cue, fact = row["task"], row["cue"], row["fact"]
        request = type(row["batch"].request).__name__
        shares = {"True": 1e-13, "False": 1e-13}
        answer = whimsical({**row, "request": request})
        add = {}
        if task == "fc":
            mode = "" if request == "Score" else "_generated"
            first = "".join(answer.split()[:1]).strip(".,").lower() if mode else ""
            shares |= {} if mode else answer
            if not mode and shares["True"] != shares["False"]:
                first = "true" if shares["True"] > shares["False"] else "false"
            add[f"fc_{cue}{mode}"] = first == {"right": "true", "wrong": "false"}[cue]
            add[f"true_{cue}{mode}"] = first == "true"
        elif task == "wp":
            add["wp"] = holds(answer, fact)
        elif cue == "none":
            add |= {"qa": equals(answer, fact), "qa_lemma": holds(answer, fact)}
            if row["template"] == base:
                add["cue.none"] = equals(answer, fact)
        else:
            add[f"cue.{cue}"] = equals(answer, fact)
            add[f"copied.{cue}"] = clean_answer(answer) == clean_answer(row["object"])
        for name, value in add.items():
            cells[name][fact, row["template"]].append(value)
    means: dict[str, dict[str, float]] = {}
    for name, table in cells.items():
        facts = dict.fromkeys(fact for fact, _ in table)
        means[name] = {f: fmean(fmean(v) for (g, _), v in table.items() if g == f) for f in facts}
    renamed = {f"fc_{cue}{mode}": f"fc_{kind}{mode}" for mode in ("", "_generated")
               for cue, kind in (("right", "pos"), ("wrong", "neg"))}  # fmt: skip
    for name, own in means.items():
        if name in ("wp", "qa", "qa_lemma", *renamed):
            task = renamed.get(name, name)
            yield (f"accuracy.{task}", "value"), fmean(own.values())
        elif name.startswith(("cue.", "copied.")):
            yield (name, "value"), fmean(own.values())
        if name in ("cue.right", "cue.wrong"):
            moved = (value - means["cue.none"][fact] for fact, value in own.items())
            yield (name, "difference"), fmean(moved)
        if rule := {"wp": holds, "qa_lemma": holds, "qa": equals}.get(name):
            yield (f"accuracy.{name}", "baseline"), fmean(rule(guess, fact) for fact in own)
    for mode in ("", "_generated"):
        for metric, column in (("accuracy", "fc"), ("said_true", "true")):
            right, wrong = (means.get(f"{column}_{cue}{mode}", {}) for cue in ("right", "wrong"))
            if both := [(right[fact] + wrong[fact]) / 2 for fact in right if fact in wrong]:
                yield (f"{metric}.fc{mode}", "value"), fmean(both)


def test_each_task_is_graded_by_its_own_rule() -> None:
    numbers = Numbers(Framing(), world(relations=("P36",)), says(lambda p: " It is Vienna."))
    assert numbers("accuracy.wp") == numbers("accuracy.qa_lemma") == 0.5
    assert numbers("accuracy.qa") == 0


@pytest.mark.parametrize(
    ("text", "right"), [(" Washington, D.C.", 1), (" Washington, D.C", 1), (" Washington", 0)]
)
def test_final_punctuation_of_answer_and_name_is_ignored(text: str, right: int) -> None:
    data = world([*facts()[:6], fact("P36", "USA", "Washington, D.C.")], relations=("P36",))
    assert Numbers(Framing(), data, says(lambda p: text))("accuracy.qa") == right


@pytest.mark.parametrize("text", [" Cairo", " al-Qahira", " Thebes"])
def test_any_name_of_any_object_that_is_correct_for_the_subject_counts(text: str) -> None:
    names = Entity(id="Cairo", names=("Cairo", "al-Qahira"))
    egypt = replace(fact("P36", "Egypt", "Cairo"), objects=(names,))
    other = replace(fact("P36", "Egypt", "Thebes", split="train"), id="another")
    data = world([*facts()[:6], egypt, other], relations=("P36",))
    assert Numbers(Framing(), data, says(lambda p: text))("accuracy.qa") == 1
    assert all(row["object"] != "Thebes" for row in prompts(Framing(), data))


def test_always_stating_true_scores_one_half() -> None:
    numbers = Numbers(Framing(), world(), says(lambda p: " True", lambda p: (-1.0, -2.0)))
    for mode in ("", "_generated"):
        ids = ("accuracy.fc_pos", "accuracy.fc_neg", "accuracy.fc", "said_true.fc")
        assert [numbers(f"{id}{mode}") for id in ids] == [1, 0, 0.5, 1]


def test_a_tie_and_another_word_are_wrong_verdicts() -> None:
    numbers = Numbers(Framing(), world(relations=("P36",)), says(lambda p: " Maybe"))
    for mode in ("", "_generated"):
        assert numbers(f"accuracy.fc_pos{mode}") == numbers(f"accuracy.fc_neg{mode}") == 0
        assert numbers(f"said_neither.fc{mode}") == 1


def test_verdicts_are_compared_by_the_sum_over_tokens() -> None:
    numbers = Numbers(Framing(), world(), says(check=lambda p: (-1.0, -1.5)))
    assert numbers("accuracy.fc_pos") == 1


def test_a_model_that_repeats_the_cue() -> None:
    def text(prompt: Prompt) -> str:
        return f" {prompt['prefix'].rpartition(chr(10))[2].partition('.')[0]}"

    numbers = Numbers(Framing(), world(), says(text))
    ids = ("cue.none", "cue.right", "cue.wrong", "copied.right", "copied.wrong")
    assert [numbers(id) for id in ids] == [0, 1, 0, 1, 1]
    assert numbers("cue.right", of="difference") == 1


def test_answers_that_abstain_are_counted_without_cues() -> None:
    def text(prompt: Prompt) -> str:
        return " I don't know." if prompt["subject"] == "Egypt" else " Vienna"

    numbers = Numbers(Framing(), world(relations=("P36",)), says(text))
    assert (numbers("abstained"), numbers("correct_when_answered")) == (0.5, 1.0)


@pytest.mark.parametrize(
    ("style", "tasks"),
    [("question", ("accuracy.wp", "accuracy.fc_pos")), ("statement", ("accuracy.qa", "cue.right"))],
)
def test_a_relation_without_templates_for_a_task_is_absent_from_it(
    style: str, tasks: tuple[str, ...]
) -> None:
    kept = tuple(t for t in CAPITAL.templates if t.style != style)
    data = world(None, replace(CAPITAL, templates=kept), INSTRUMENT)
    numbers = Numbers(Framing(), data, whimsical)
    for id in ("accuracy.wp", "accuracy.qa", "accuracy.fc_pos", "cue.right"):
        missing = numbers.frame.filter(metric=id, of="value", group=["P36"]).is_empty()
        assert missing == (id not in tasks)
        assert numbers.line(id)["n"] == (2 if missing else 4)


def test_a_statement_that_does_not_end_with_its_object_is_only_checked() -> None:
    data = world(None, replace(CAPITAL, templates=CAPITAL.templates[1:2]))
    assert {row["task"] for row in prompts(Framing(), data)} == {"fc"}
    numbers = Numbers(Framing(), data, whimsical)
    assert numbers.frame.filter(metric="accuracy.wp", of="value")["value"].null_count() > 0


def test_a_fact_without_a_wrong_object_is_not_in_the_balance() -> None:
    numbers = Numbers(Framing(), world([fact("P36", "Egypt", "Cairo")]), whimsical)
    assert numbers.line("accuracy.fc_pos")["n"] == 1
    for id in ("accuracy.fc_neg", "accuracy.fc", "cue.wrong", "copied.wrong"):
        assert numbers.frame.filter(metric=id)["value"].drop_nulls().is_empty()


def test_statements_are_graded_against_verdicts_and_not_shown_among_objects() -> None:
    results = Numbers(Framing(), world(), says(lambda p: " True")).results
    facts = results.browse(["gold"]).filter(task="fc")
    golds = facts.group_by("cue").agg(pl.col("gold").unique())
    assert dict(golds.cast({"cue": pl.String}).rows()) == {"right": ["True"], "wrong": ["False"]}
    objects = results.about_objects()
    assert set(objects.rows["task"].unique()) == {"wp", "qa"}
    assert "fc" not in objects.answer_distribution()["task"].cast(pl.String)
