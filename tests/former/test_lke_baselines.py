"""lke-baselines: examples, sentences and free writing, compared on the same facts and options."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest
from polars import lit

import sonde
from sonde.core.abilities import Generates, Scores
from sonde.core.answers import Generated
from sonde.core.columns import in_blocks, one_by_one
from sonde.core.errors import AbilityError, DataError
from sonde.core.facts import Dataset, Fact, Relation, Source
from sonde.core.prompts import Generate, Prompt, Score
from sonde.core.reports import DotPlot, Report, Strip
from sonde.models.controls import majority
from sonde.models.scripted import Scripted
from sonde.former.lke.asking import Asked
from sonde.former.lke.baselines import LkeBaselines
from sonde.former.lke.choices import Choices, worded
from sonde.former.lke.metrics import MASS, Mean
from sonde.prompting.matching import correct
from sonde.prompting.sequences import Separators
from sonde.testing import check_probe
from tests import tiny
from tests.rows import answer_all, asked
from tests.worlds import template, world

from .lke_world import read, read_as

OVER = "mean_over_relations"


@pytest.fixture(scope="module")
def atlas() -> Dataset:
    return sonde.dataset("atlas", relations=("P36", "P30"), limit=4)


def with_templates(data: Dataset, *templates: tuple[Source, str]) -> Dataset:
    """The capitals alone, with other templates: (source, text) each."""
    made = tuple(
        template(f"t{i}", text, style="question" if "?" in text else "statement", source=source)
        for i, (source, text) in enumerate(templates)
    )
    relation: Relation = replace(data.relation("P36"), templates=made)
    return replace(data, relations=(relation,))


def ways(prompts: list[Prompt]) -> list[str]:
    return list(dict.fromkeys(map(way, prompts)))


def way(prompt: Prompt) -> str:
    """How a prompt asks: its template, with how it is put where it is not simply scored."""
    how = prompt.own["how"]
    return prompt.key.template if how == "scored" else f"{how}:{prompt.key.template}"


def literal(model: object, prompt: Prompt, fact: Fact) -> float:
    """Whether one prompt alone is answered right, by the definition of each way."""
    if isinstance(prompt.want, Score):
        assert isinstance(model, Scores)
        [(_, scored)] = one_by_one(model.score([prompt]))
        after = scored.suffix_logps or ((),) * len(scored.options)
        sums = [sum((*own, *rest)) for own, rest in zip(scored.logps, after, strict=True)]
        return float(scored.options[sums.index(max(sums))] == fact.objects[0].name)
    assert isinstance(model, Generates)
    [(_, written)] = model.generate([prompt])
    return float(correct(written.text, [n for e in fact.objects for n in e.names]))


def test_every_number_is_that_of_a_literal_reading(atlas: Dataset, tmp_path: Path) -> None:
    model = sonde.model(f"hf:{tiny.llama(tmp_path, max_position_embeddings=512)}", device="cpu")
    probe = LkeBaselines(n=3, templates=3, options=3, most=5)
    prompts = list(probe.ask(atlas))
    facts = {f.id: f for r in ("P36", "P30") for f in atlas.asked(r)}
    right: dict[tuple[str, str], list[float]] = {}
    for prompt in prompts:
        own = right.setdefault((prompt.key.relation, way(prompt)), [])
        own.append(literal(model, prompt, facts[prompt.key.fact]))
    report = probe.read(atlas, answer_all(model, prompts))

    def over(how: str, kind: str) -> float:
        """Mean over relations of the mean over a kind's templates and the facts."""
        source = {t.id: t.source for r in atlas.relations for t in r.templates}
        means = []
        for relation in ("P36", "P30"):
            named = [
                values
                for (r, template), values in right.items()
                if r == relation
                and template.startswith(how)
                and source.get(template.removeprefix(how), "in_context") == kind
                and (how or ":" not in template)
            ]
            assert named, (how, kind)
            means.append(mean(map(mean, named)))
        return mean(means)

    expected = {
        "in_context": over("", "in_context"),
        "manual": over("", "manual"),
        "paraphrase": over("", "paraphrase"),
        "manual_separator": over("separator:", "manual"),
        "paraphrase_separator": over("separator:", "paraphrase"),
        "written_in_context": over("written:", "in_context"),
        "written_manual": over("written:", "manual"),
        "written_paraphrase": over("written:", "paraphrase"),
    }
    got = {name: report.estimates[f"accuracy.{name}.{OVER}"].value for name in expected}
    assert got == pytest.approx(expected)
    assert len(set(expected.values())) > 3, "ways that are all the same show nothing"
    ahead = report.estimates[f"ahead.manual.{OVER}"].value
    assert ahead == pytest.approx(expected["in_context"] - expected["manual"])
    written = report.estimates[f"ahead.written_manual.{OVER}"].value
    difference = expected["written_in_context"] - expected["written_manual"]
    assert written == pytest.approx(difference)


def test_every_way_has_the_same_options_for_a_fact(atlas: Dataset) -> None:
    options: dict[str, set[tuple[str, ...]]] = {}
    for prompt in LkeBaselines().ask(atlas):
        if isinstance(prompt.want, Score):
            options.setdefault(prompt.key.fact, set()).add(prompt.want.options)
    assert all(len(found) == 1 for found in options.values())


def test_in_context_estimation_is_ahead_only_where_a_paired_test_says_so() -> None:
    data = with_templates(
        sonde.dataset("atlas", relations=("P36",), limit=6), ("manual", "[X] has [Y].")
    )
    probe = LkeBaselines(n=2, separating=False, most=0)
    # three facts won and none lost: p is 0.25, so the interval reaches 0
    report = read_as(probe, data, {"in-context": 5, "t0": 2})
    assert report.estimates[f"ahead.manual.{OVER}"].low == 0
    [said] = [finding for finding in report.findings if "against manual" in finding]
    assert "not distinguishable (+50.0 points" in said


def test_a_template_as_separator_tells_each_example_in_it() -> None:
    probe = LkeBaselines(n=2, templates=1, most=0)
    data = with_templates(world(relations=("P36",)), ("manual", "The capital of [X] is [Y]."))
    [prompt, *_] = [p for p in probe.ask(data) if way(p) == "separator:t0"]
    assert prompt.prefix.count("The capital of ") == 3
    assert prompt.prefix.endswith(f"The capital of {prompt.key.subject} is ")


def test_only_templates_with_the_answer_last_are_taken_statements_first() -> None:
    data = with_templates(
        world(relations=("P36",)),
        ("manual", "[Y] is the capital of [X]."),
        ("manual", "The capital of [X] is [Y]."),
        ("paraphrase", "[X] has [Y] as its capital."),
        ("mined", "[X] , capital [Y]"),
    )
    found = ways(list(LkeBaselines(most=0).ask(data)))
    assert found == ["in-context", "t1", "t3", "separator:t1", "separator:t3"]


def test_a_statement_is_taken_before_a_question() -> None:
    data = with_templates(
        world(relations=("P36",)),
        ("manual", "What is the capital of [X]? [Y]."),
        ("manual", "The capital of [X] is [Y]."),
    )
    assert "t1" in ways(list(LkeBaselines(most=0, templates=1).ask(data)))


def test_of_more_templates_than_wanted_some_are_drawn_by_the_seed() -> None:
    texts = [f"{word}, the capital of [X] is [Y]." for word in "abcdefghij"]
    data = with_templates(world(relations=("P36",)), *(("manual", text) for text in texts))

    def taken(seed: int, held: Dataset = data) -> list[str]:
        chosen = replace(held, selection=replace(held.selection, seed=seed))
        return ways(list(LkeBaselines(most=0, separating=False).ask(chosen)))[1:]

    draws = [taken(seed) for seed in range(20)]
    assert all(len(set(draw)) == 3 for draw in draws)
    assert draws[0] == taken(0)
    assert {template for draw in draws for template in draw} == {f"t{i}" for i in range(10)}
    relation = data.relation("P36")
    left = [t for t in relation.templates if t.id in draws[0]]
    assert (
        taken(0, replace(data, relations=(replace(relation, templates=tuple(left)),))) == draws[0]
    )


def test_templates_that_read_the_same_up_to_the_answer_are_one() -> None:
    texts = ("The capital of [X] is [Y] .", "The capital of [X] is [Y].", "[X] has [Y].")
    data = with_templates(world(relations=("P36",)), *(("manual", text) for text in texts))
    assert ways(list(LkeBaselines(most=0, separating=False).ask(data)))[1:] == ["t0", "t2"]


def test_paraphrases_stand_in_for_hand_written_templates_beside_mined_ones() -> None:
    data = with_templates(
        world(relations=("P36",)),
        ("mined", "[X] , capital [Y]"),
        ("paraphrase", "The main city of [X] is [Y]."),
    )
    report = read(LkeBaselines(most=0, separating=False), data)
    assert [row[0] for row in report.tables[0].rows][:3] == [
        "in-context",
        "paraphrase templates",
        "mined templates",
    ]
    assert any("no hand-written templates" in found for found in report.findings)
    assert not any("no mined templates" in found for found in report.findings)


def test_at_most_so_many_templates_of_a_kind_are_taken(atlas: Dataset) -> None:
    prompts = [p for p in LkeBaselines(templates=2, most=0).ask(atlas) if p.key.relation == "P36"]
    assert len(ways(prompts)) == 1 + 2 * 4


def test_paraphrases_stand_in_for_mined_templates_and_that_is_said(atlas: Dataset) -> None:
    report = read(LkeBaselines(most=0), atlas, {})
    assert (
        "The dataset has no mined templates; paraphrases stand in their place." in report.findings
    )
    assert f"accuracy.paraphrase.{OVER}" in report.estimates


def test_without_a_template_with_the_answer_last_nothing_is_compared() -> None:
    data = with_templates(world(relations=("P36",)), ("manual", "[Y] is the capital of [X]."))
    with pytest.raises(DataError, match="no template with the answer last"):
        list(LkeBaselines().ask(data))


@pytest.mark.parametrize(
    ("source", "said"), [("manual", "neither mined"), ("mined", "no hand-written")]
)
def test_a_kind_of_templates_that_is_missing_is_said(source: Source, said: str) -> None:
    data = with_templates(world(relations=("P36",)), (source, "[X] , capital [Y]"))
    report = read(LkeBaselines(most=0), data)
    assert any(said in found for found in report.findings)
    assert [row[0] for row in report.tables[0].rows][:2] == ["in-context", f"{source} templates"]


def test_a_relation_without_templates_counts_for_in_context_alone() -> None:
    data = world()
    bare = replace(data.relation("P1303"), templates=())
    data = replace(data, relations=(data.relation("P36"), bare))
    report = read(LkeBaselines(most=0), data)
    assert report.counts["relations_without_templates"] == 1
    assert report.estimates["accuracy.in_context.relation.P1303"].value == 0.5
    assert report.estimates["accuracy.manual.relation.P1303"].value is None
    assert report.estimates["share_ahead.manual"].n == 1
    assert any("Without a template that has the answer last: P1303" in f for f in report.findings)


def answered(data: Dataset, probe: LkeBaselines, texts: dict[str, str]) -> Report:
    """Read answers that are all scored wrong and written as given by fact."""
    rows = []
    for row in answer_all(Scripted(answers={}), list(probe.ask(data))):
        if isinstance(row.answer, Generated):
            answer = Generated(text=texts.get(row.key.fact, ""), logps=(-1.0,))
            rows.append(replace(row, answer=answer))
        else:
            rows.append(row)
    return probe.read(data, rows)


def test_a_written_answer_is_right_where_a_right_name_occurs() -> None:
    data = world(relations=("P36",))
    texts = {"P36-Austria": " a city.\nIt is the Vienna of old", "P36-Egypt": " Romania and Oman"}
    report = answered(data, LkeBaselines(templates=1), texts)
    assert report.estimates[f"accuracy.written_in_context.{OVER}"].value == 0.5
    assert report.estimates[f"accuracy.written_manual.{OVER}"].value == 0.5


def test_fifty_tokens_are_written_past_the_end_of_the_line(atlas: Dataset) -> None:
    wants = {p.want for p in LkeBaselines().ask(atlas) if isinstance(p.want, Generate)}
    assert wants == {Generate(most=50, until="")}


def test_without_written_answers_a_model_need_not_write() -> None:
    with pytest.raises(AbilityError, match="unless most=0"):
        LkeBaselines().suited(frozenset({"score"}))
    LkeBaselines(most=0).suited(frozenset({"score"}))


def test_the_figures_compare_wordings_and_relations(atlas: Dataset) -> None:
    ways, wordings, strip, relations = read(LkeBaselines(), atlas, {}).figures
    assert isinstance(wordings, DotPlot) and isinstance(relations, DotPlot)
    assert isinstance(strip, Strip)
    assert isinstance(ways, DotPlot) and ways.labels == strip.labels
    assert wordings.labels == (
        "in-context",
        *(f"{kind} {k}" for kind in ("manual", "paraphrase") for k in (1, 2, 3)),
    )
    assert len(strip.labels) == 8 and all(len(row) == 2 for row in strip.values)
    assert relations.series[0].name == "in-context"


@pytest.mark.parametrize("most", [0, 4])
def test_it_passes_the_checks_on_nobel(most: int) -> None:
    check_probe(LkeBaselines(n=3, templates=1, most=most), sonde.dataset("nobel", limit=3))


def test_three_templates_that_are_right_together_are_not_behind_by_a_last_digit() -> None:
    data = world(relations=("P36",))
    asked_about = Asked.of(data, n=1, options=2)
    ways = ("in-context", "a", "b", "c")
    rows = [asked_about.facts[:1].with_columns(mass=lit(0.1), template=lit(way)) for way in ways]
    choices = Choices.of(
        asked_about, rows, ["template"], worded("{template}", lambda way: Separators())
    )
    examples = choices.frame["template"] == "in-context"
    mean = Mean(MASS, "mass", examples, less=~examples)
    [sample] = choices.by_fact.resampled(mean).samples.values()
    assert sample.differences().tolist() == [0.0]


def test_the_dearest_part_can_be_left_out() -> None:
    data = sonde.dataset("atlas", relations=("P36",), limit=3)
    full, spare = (
        {way(p) for p in asked(sonde.probe("lke-baselines", most=0, separating=on), data)}
        for on in (True, False)
    )
    assert spare == {name for name in full if not name.startswith("separator:")} < full
    probe = sonde.probe("lke-baselines", most=0, separating=False)
    report = probe.read(data, in_blocks(answer_all(majority(data), probe.ask(data))))
    assert not [name for name in report.estimates if "separator" in name]


@pytest.mark.shared
def test_hand_written_and_mined_templates_of_three_sources_meet_in_one_run(shared: Path) -> None:
    data = shared / "data"
    sources = [f"{name}:{data / name}" for name in ("lama", "lpaqa", "pararel")]
    dataset = sonde.dataset(sources[0], wording=sources, relations=("P36", "P103", "P176"), limit=2)
    probe = LkeBaselines(most=0)
    kinds = {
        relation.id: {t.id: (t.source, t.id.split("-")[1]) for t in relation.templates}
        for relation in dataset.relations
    }
    drawn: dict[str, Counter[str]] = {}
    origins: set[tuple[str, str]] = set()
    for relation in dataset.asked_relations():
        chosen = dataset.select(replace(dataset.selection, relations=(relation.id,)))
        used = ways([p for p in probe.ask(chosen) if p.own["how"] == "scored"])[1:]
        found = [kinds[relation.id][id] for id in used]
        drawn[relation.id] = Counter(source for source, _ in found)
        origins.update(found)
    # LAMA and ParaRel ask for P103 in two sentences with the answer last
    assert {r: (n["manual"], n["mined"]) for r, n in drawn.items()} == {
        "P36": (3, 3),
        "P103": (2, 3),
        "P176": (3, 3),
    }
    assert origins <= {("manual", "lama"), ("manual", "pararel"), ("mined", "lpaqa")}
    joined = sonde.dataset("+".join(sources), relations=("P36",), limit=2)
    assert any(p.key.template == "in-context" for p in probe.ask(joined))
