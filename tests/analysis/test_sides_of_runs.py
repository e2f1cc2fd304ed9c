"""Real runs of every probe side by side: the numbers are those of the single reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

import sonde
from sonde.core.errors import UsageError
from sonde.core.reports import Boxes, Cell, Curves, Estimate, Figure, Histogram, Labelled, Strip
from sonde.models.scripted import Scripted
from sonde.former import PROBES

ICL: dict[str, Any] = {"samples": 3, "most": 3, "floor": 2, "draws": 200}
SETTINGS: dict[str, dict[str, Any]] = {
    "lama": {"answer": "score"},
    "belief": {"answer": "score", "draws": 200, "templates": "manual"},
    "bear": {},
    "belief-icl": ICL,
    "counterfact": {},
    "ic-lke": {"n": 3, "seeds": 2},
    "eic-lke": {"training": 20, "start": 10, "stride": 2},
    "lke-shots": {"n": (1, 3), "seeds": 2},
    "lke-sequence": {"length": 10, "replaced": 2, "seeds": 2, "replace": "incorrect"},
    "lke-separators": {"n": 3, "seeds": 1, "separators": ("space/space", "colon/comma")},
    "lke-baselines": {"n": 3, "most": 3, "templates": 2},
    "monitor": {"most": 4, "frames": 2, "negatives": 2},
    "framing": {"paraphrases": 2, "negatives": 2},
    "qa": {"shots": 2},
}
RELATIONS = ("P30", "P36")

Make = Callable[..., list[sonde.Run]]
Together = tuple[sonde.Report, dict[str, sonde.Report]]
Analysed = Callable[[str], Together]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Runs of a probe: a table of right answers to half of the facts, and two controls."""
    home = tmp_path_factory.mktemp("sides")

    @cache
    def run(probe: str, limit: int, name: str) -> sonde.Run:
        data, models = world(limit)
        asked = sonde.probe(probe, **SETTINGS[probe])
        return sonde.run(asked, models[name], data, home / f"{probe}-{limit}" / name)

    def runs(probe: str, limit: int = 4, models: Sequence[str] = MODELS) -> list[sonde.Run]:
        return [run(probe, limit, name) for name in models]

    return runs


MODELS = ("table", "majority", "bayes")


@cache
def world(limit: int) -> tuple[sonde.Dataset, Mapping[str, sonde.Model]]:
    """Facts and models that every probe asks."""
    data = sonde.dataset("atlas", relations=RELATIONS, limit=limit)
    facts = [fact for id in RELATIONS for fact in data.asked(id)]
    right = {
        f"{fact.relation}:{fact.id}": fact.objects[0].name
        for fact in facts
        if crc32(fact.id.encode()) % 2
    }
    models: dict[str, sonde.Model] = {
        "table": Scripted(answers=right),
        "majority": sonde.model("control:majority", data=data),
        "bayes": sonde.model("control:naive-bayes", data=data),
    }
    return data, models


NAMES = ("scripted", "majority", "naive-bayes")
"""What an analysis calls them."""


@pytest.fixture(scope="module")
def analysed(make: Make) -> Analysed:
    """The runs of a probe side by side, and each by itself."""

    @cache
    def of(probe: str) -> Together:
        runs = make(probe)
        own = {name: run.report() for name, run in zip(NAMES, runs, strict=True)}
        return sonde.compare(*runs).report, own

    return of


def test_every_probe_is_tried() -> None:
    assert set(SETTINGS) == set(PROBES)


@pytest.mark.parametrize("probe", SETTINGS)
def test_every_number_side_by_side_is_that_of_the_run_s_own_report(
    probe: str, analysed: Analysed
) -> None:
    report, own = analysed(probe)
    side = [table for table in report.tables if table.title.endswith("run by run")]
    assert side, "nothing stands side by side"
    for table in side:
        columns = [column.title for column in table.columns]
        for name, single in own.items():
            at = columns.index(name)
            known = set(estimates_of(single))
            for row in table.rows:
                assert row[at] in known, (table.id, row[:at], name)
    for name, single in own.items():
        for headline in single.headlines:
            shared = f"{headline.estimate}.run.{name}"
            assert report.estimates[shared].value == single.estimates[headline.estimate].value


def estimates_of(report: sonde.Report) -> Iterator[Cell]:
    """Every number that a report shows."""
    yield None
    yield from report.estimates.values()
    for table in report.tables:
        for row in table.rows:
            yield from row


@pytest.mark.parametrize("probe", SETTINGS)
def test_every_figure_of_a_probe_is_drawn_for_all_runs(probe: str, analysed: Analysed) -> None:
    report, own = analysed(probe)
    drawn = {figure.id: figure for figure in report.figures}
    shared = set.intersection(*({figure.id for figure in r.figures} for r in own.values()))
    for id in shared:
        found = [figure for other, figure in drawn.items() if other.startswith(id)]
        assert found, f"{id} is not drawn"
        for figure in found:
            for name, single in own.items():
                [before] = [figure for figure in single.figures if figure.id == id]
                assert set(values(figure, name)) <= set(values(before)) | {None}, (id, name)


def values(figure: Figure, run: str = "") -> Iterator[Any]:
    """The values that a figure shows, or those of one run."""
    match figure:
        case Curves():
            for curve in figure.curves:
                if run in ("", curve.name):
                    yield from curve.y
        case Labelled():
            for series in figure.series:
                if run in ("", series.name):
                    yield from (e.value for e in series.values)
        case Strip() | Boxes():
            for label, row in zip(figure.labels, figure.values, strict=True):
                if not run or label == run or label.endswith(f": {run}"):
                    yield from row
        case Histogram():
            total = sum(figure.counts)
            yield 0.0
            for k in range(len(figure.counts)):
                yield sum(figure.counts[: k + 1]) / total


@pytest.mark.parametrize("probe", sorted(set(SETTINGS) - {"eic-lke", "lke-sequence"}))
def test_runs_are_read_on_the_facts_that_all_were_asked(probe: str, make: Make) -> None:
    (fewer, few), (more, *_) = make(probe, 3, MODELS[:2]), make(probe, 4)
    report = sonde.compare(few, more).report
    again, whole = fewer.report(), more.report().estimates
    first = next(h.estimate for h in again.headlines if whole[h.estimate].value is not None)
    assert report.estimates[f"{first}.run.scripted"] == again.estimates[first] != whole[first]
    [note] = [note for note in report.notes if "run by run" in note]
    assert "in the same prompts" in note


def test_prompts_about_several_facts_cannot_be_taken_apart_and_the_report_says_so(
    make: Make,
) -> None:
    report = sonde.compare(make("eic-lke", 3)[1], make("eic-lke", 4)[2]).report
    [note] = [note for note in report.notes if "run by run" in note]
    assert "6 are the same in all runs (majority 6, naive-bayes 8)" in note


def test_runs_that_share_no_fact_are_refused_as_such(tmp_path: Path) -> None:
    runs = []
    for relation in RELATIONS:
        data = sonde.dataset("atlas", relations=(relation,), limit=2)
        model = sonde.model("control:majority", data=data)
        runs.append(sonde.run(sonde.probe("ic-lke", n=2), model, data, tmp_path / relation))
    with pytest.raises(UsageError, match="the runs share no fact"):
        sonde.compare(*runs)


def test_runs_of_different_probes_are_compared_without_their_own_reports(make: Make) -> None:
    data = make("lama")[0], make("belief")[1]
    report = sonde.compare(*data).report
    assert not any(table.title.endswith("run by run") for table in report.tables)


OTHERS = ("belief", "bear", "ic-lke", "belief-icl", "monitor", "qa", "counterfact", "lke-shots")


@pytest.mark.parametrize("probe", OTHERS)
def test_runs_of_any_two_probes_are_compared_on_the_facts_they_share(
    probe: str, make: Make
) -> None:
    made = sonde.compare([make("lama")[0], make(probe)[0]])
    assert made.verdict.facts == 8, "four of each relation"
    assert f"different probe: lama and {probe}" in made.verdict.sentence
    shares = made.facts.select(f"right {name}" for name in made.names).mean().row(0)
    assert made.verdict.difference.value == pytest.approx(shares[1] - shares[0])


PAPERS = {
    "MONITOR, table 2": ("framing", "tasks", "sentence question true_statement false_statement"),
    "MONITOR, table 3": ("framing", "interference", "nothing the_right_name a_wrong_name"),
    "BELIEF, table 11": ("belief", "summary", "worst_templates best_templates mean_of_templates"),
    "BELIEF, coverage": ("belief", "coverage", "average maximum oracle"),
    "BELIEF, bias level": ("belief", "bias", "a_single_prompt all_prompts"),
    "BELIEF, Overconf by tokens": ("belief-icl", "overconf-by-length", "1 2 3"),
    "IC-LKE, figure 3": ("lke-baselines", "by-way", "in-context manual_templates"),
}
"""Of a paper's table: the probe, the table that has its numbers, and what its rows are called."""


@pytest.mark.parametrize("item", PAPERS)
def test_the_papers_tables_have_a_place_for_every_run(item: str, analysed: Analysed) -> None:
    probe, id, rows = PAPERS[item]
    [found] = [table for table in analysed(probe)[0].tables if table.id == id]
    titles = [column.title for column in found.columns]
    assert titles[-len(NAMES) :] == list(NAMES)
    told = {cell for row in found.rows for cell in row if isinstance(cell, str)}
    assert {name.replace("_", " ") for name in rows.split()} <= told


DRAWN = {
    "MONITOR, figure 11": ("framing", "accuracy-by-paraphrase-question-by-equal-names"),
    "IC-LKE, figure 1": ("lke-shots", "accuracy-by-examples"),
    "IC-LKE, figure 3": ("lke-baselines", "accuracy-by-way"),
    "IC-LKE, figure 4": ("lke-baselines", "accuracy-by-wording-behind-examples"),
    "IC-LKE, figure 8": ("ic-lke", "accuracy-at-k"),
    "IC-LKE, figure 12": ("lke-baselines", "in-context-and-templates"),
    "BELIEF, Overconf by tokens": ("belief-icl", "overconf-by-length"),
}


@pytest.mark.parametrize("item", DRAWN)
def test_the_papers_figures_are_drawn_for_every_run(item: str, analysed: Analysed) -> None:
    probe, id = DRAWN[item]
    report, _ = analysed(probe)
    [figure] = [figure for figure in report.figures if figure.id == id]
    drawn = [n for n in NAMES if any(value is not None for value in values(figure, n))]
    assert len(drawn) > 1


def test_answers_that_are_written_are_ways_of_asking_of_their_own(analysed: Analysed) -> None:
    """IC-LKE, figure 16."""
    [figure] = [f for f in analysed("lke-baselines")[0].figures if f.id == "accuracy-by-way"]
    assert isinstance(figure, Labelled)
    assert {"written, in-context", "written, manual templates"} <= set(figure.labels)


def test_the_first_number_is_drawn_against_size_in_each_relation(
    make: Make, tmp_path: Path
) -> None:
    """MONITOR, figure 7."""
    sizes = (("majority", 7), ("naive-bayes", 1), ("scripted", 3))
    known = tmp_path / "mine.toml"
    known.write_text(
        "".join(
            f'[[model]]\nname = "{name}"\nfamily = "counting"\nsize = {size}000000000\n'
            for name, size in sizes
        )
    )
    runs = make("monitor")
    report = sonde.compare(*runs, models=known).report
    figures = {figure.id: figure for figure in report.figures}
    relations = figures["scaling-relations-counting"]
    assert isinstance(relations, Curves)
    assert relations.title == "MONITOR in each relation, against size: counting"
    own = {size: run.report() for run, (_, size) in zip(runs[::-1], sizes[1::-1], strict=False)}
    for curve in relations.curves:
        id = {"continent": "P30", "capital": "P36"}[curve.name]
        for size, y in zip(curve.x, curve.y, strict=True):
            if size in own:
                assert own[int(size)].estimates[f"monitor.relation.{id}"].value == y
    [board] = [table for table in report.tables if table.id == "headlines"]
    titles = [column.title for column in board.columns]
    assert titles == ["number", "naive-bayes", "scripted", "majority"], "from the smallest"


def test_a_difference_that_a_probe_tests_keeps_its_interval(analysed: Analysed) -> None:
    report, _ = analysed("framing")
    [told] = [table for table in report.tables if table.id == "interference-points"]
    moved = [cell for row in told.rows for cell in row[1:]]
    assert len(moved) == 6
    assert all(isinstance(cell, Estimate) and cell.low is not None for cell in moved)
